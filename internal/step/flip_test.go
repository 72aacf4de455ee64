package step_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/internal/step/crashtest"
	"rnix/types"
)

// damageTail is how much of a history is damaged, byte by byte, from its end.
const damageTail = 4 << 10

// damaged opens one history again and again, with other bytes each time.
type damaged struct {
	fsys  *faultfs.FS
	j     *step.Local
	path  string
	good  []byte
	lines [][]byte // of good, each with its newline
	read  func(id types.UUID) (*step.History, error)

	labels []string // of the lines
}

func newDamaged(t *testing.T) *damaged {
	fsys := faultfs.New(faultfs.DataDir)
	d := &damaged{fsys: fsys, j: step.OpenIn(t, fsys, faultfs.DataDir)}
	step.Must(t, authored(d.j, histA, func(string) {}, func(a *author) {
		a.marker(step.Marker{Name: step.MarkerSpawn, PID: 3})
		for n := range 4 {
			a.whole(n+1, 1, 400)
		}
	}))
	d.path = filepath.Join(d.j.Dir(histA), step.StepsFile)
	good, err := durable.ReadFile(fsys, d.path)
	step.Must(t, err)
	d.good, d.lines = good, bytes.SplitAfter(good, []byte("\n"))
	d.lines = d.lines[:len(d.lines)-1]
	d.read = func(id types.UUID) (*step.History, error) { return step.ReadHistory(t.Context(), d.j, id) }
	h, err := d.read(histA)
	step.Must(t, err)
	for i := range h.Records {
		d.labels = append(d.labels, crashtest.Label(&h.Records[i]))
	}
	if len(good) < damageTail+1000 {
		t.Fatalf("only %d bytes", len(good))
	}
	return d
}

// lineAt returns the number of the line, from 0, that has the byte at off, and where it begins.
func (d *damaged) lineAt(off int) (n, start int) {
	for start+len(d.lines[n]) <= off {
		start += len(d.lines[n])
		n++
	}
	return n, start
}

// put replaces the file, and removes what was kept of the one before.
func (d *damaged) put(b []byte, kept string) error {
	f, err := d.fsys.OpenFile(d.path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	if kept != "" {
		err = d.fsys.Remove(kept)
	}
	return err
}

// reads checks that the first n records are read, as they were written, and that the place is named where
// reading stopped; say is "" if it did not.
func (d *damaged) reads(n int, say string) error {
	h, err := d.read(histA)
	if err != nil {
		return err
	}
	if len(h.Records) != n || (h.Damage == "") != (say == "") || !strings.Contains(h.Damage, say) {
		return fmt.Errorf("%d records are read, %d are good; damage %q, which should name %q", len(h.Records), n, h.Damage, say)
	}
	for i := range h.Records {
		if got := crashtest.Label(&h.Records[i]); got != d.labels[i] {
			return fmt.Errorf("record %d is read as %q, and was %q", i+1, got, d.labels[i])
		}
	}
	return nil
}

// acquire takes the history and gives it back.
func (d *damaged) acquire(t *testing.T) (step.Lease, error) {
	lease, err := d.j.Acquire(t.Context(), histA, "test")
	if err == nil {
		err = d.j.Release(t.Context(), histA, lease.Epoch)
	}
	return lease, err
}

// truncated checks the history with its end cut off at off.
func (d *damaged) truncated(t *testing.T, off int) error {
	n, start := d.lineAt(off)
	say := ""
	if off > start {
		say = fmt.Sprintf("line %d, offset %d", n+1, start)
	}
	if err := d.reads(n, say); err != nil {
		return err
	}
	lease, err := d.acquire(t)
	if err != nil || lease.Next != uint64(n)+1 || !strings.Contains(lease.Damage, say) || (lease.Damage == "") != (say == "") {
		return fmt.Errorf("lease %+v, %w", lease, err)
	}
	if b, err := durable.ReadFile(d.fsys, d.path); err != nil || !bytes.Equal(b, d.good[:start]) {
		return fmt.Errorf("the file has %d bytes afterwards, %d are good, %w", len(b), start, err)
	}
	if off > start+3 { // the same bytes as with the cut before this one
		return nil
	}
	return d.reads(n, "")
}

// flipped checks the history as bad, which differs from the good one at off, and returns where a part
// was kept.
func (d *damaged) flipped(t *testing.T, bad []byte, off int) (kept string, err error) {
	n, start := d.lineAt(off)
	say := fmt.Sprintf("line %d, offset %d", n+1, start)
	if err := d.reads(n, say); err != nil {
		return "", err
	}
	lease, err := d.acquire(t)
	now, rerr := durable.ReadFile(d.fsys, d.path)
	if rerr != nil {
		return "", rerr
	}
	if err != nil {
		code := types.CodeOf(err)
		if code != types.ErrStorage && code != types.ErrInvalid || !strings.Contains(err.Error(), say) {
			return "", fmt.Errorf("refused without the place %q: %w", say, err)
		}
		if !bytes.Equal(now, bad) {
			return "", fmt.Errorf("refused, and the file was changed")
		}
		return "", nil
	}
	if lease.Next != uint64(n)+1 || !strings.Contains(lease.Damage, say) || !bytes.Equal(now, d.good[:start]) {
		return "", fmt.Errorf("lease %+v, %d bytes left, %d are good", lease, len(now), start)
	}
	tail := bad[start:]
	if tail[len(tail)-1] != '\n' || bytes.IndexByte(tail, 0) >= 0 {
		return "", d.reads(n, "") // it looks like a torn append, and nothing can tell
	}
	kept = fmt.Sprintf("%s.cut-%d", d.path, start)
	if b, err := durable.ReadFile(d.fsys, kept); err != nil || !bytes.Equal(b, tail) {
		return "", fmt.Errorf("what was cut off is not kept: %q, %w", b, err)
	}
	return kept, d.reads(n, "")
}

func TestTruncationAtAnyByteCostsTheUnfinishedRecordOnly(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	for off := len(d.good) - damageTail; off < len(d.good); off += faultfs.Share(3) {
		step.Must(t, d.put(d.good[:off], ""))
		if err := d.truncated(t, off); err != nil {
			t.Fatalf("cut at %d: %v", off, err)
		}
	}
}

// masks change a byte: the lowest bit, the bit that makes lower case of upper case, the highest bit, all.
var masks = []byte{0x01, 0x20, 0x80, 0xff}

func TestFlippedByteIsFoundNamedAndKept(t *testing.T) {
	share := faultfs.Share(len(masks))
	for i, mask := range masks {
		t.Run(fmt.Sprintf("%02x", mask), func(t *testing.T) {
			t.Parallel()
			d := newDamaged(t)
			kept := ""
			for off := len(d.good) - damageTail; off < len(d.good); off++ {
				if off%share != i%share {
					continue
				}
				bad := bytes.Clone(d.good)
				bad[off] ^= mask
				step.Must(t, d.put(bad, kept))
				var err error
				if kept, err = d.flipped(t, bad, off); err != nil {
					t.Fatalf("byte %d, %q as %q: %v", off, d.good[off], bad[off], err)
				}
			}
		})
	}
}
