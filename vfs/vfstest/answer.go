package vfstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"rnix/vfs"
)

// each runs f as a subtest for each sample, on a fresh device.
func (d Device) each(t *testing.T, samples []Sample, f func(t *testing.T, b bench, s Sample)) {
	for i, s := range samples {
		name := s.Name
		if name == "" {
			name = fmt.Sprintf("%d-%s%s", i, s.Tool, strings.ReplaceAll(s.Subpath, "/", "-"))
		}
		t.Run(name, func(t *testing.T) { f(t, d.bench(t), s) })
	}
}

func (d Device) testSamples(t *testing.T) {
	d.each(t, d.Samples, func(t *testing.T, b bench, s Sample) {
		answer, err := b.run(t, s, 0)
		if s.WantCode != "" {
			if code := checkError(t, "sample", err); err != nil && code != s.WantCode {
				t.Errorf("code is %s, want %s: %v", code, s.WantCode, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("sample: %v", err)
		}
		if !strings.Contains(string(answer), s.Want) {
			t.Errorf("answer does not contain %q:\n%.2000s", s.Want, answer)
		}
	})
}

// run performs a sample and reads the answer in pieces of n bytes. At the end it checks that the
// end stays the end.
func (b bench) run(t *testing.T, s Sample, n int) ([]byte, error) {
	t.Helper()
	f, input, err := b.open(t, s)
	if err != nil {
		return nil, err
	}
	if err := perform(limited(t), f, input, b.d.ReadOnly); err != nil {
		if _, rerr := f.Read(0); rerr != nil && !errors.Is(rerr, io.EOF) {
			checkError(t, "Read after a write that failed", rerr)
		}
		return nil, err
	}
	answer, err := readAll(t, f, n)
	if err != nil {
		return nil, err
	}
	if more, err := f.Read(1); len(more) != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("Read after the end returned %q, %v; want io.EOF", more, err)
	}
	return answer, f.Close()
}

func (d Device) testPieces(t *testing.T) {
	for _, s := range d.good() {
		whole, err := d.bench(t).run(t, s, 0)
		if err != nil {
			t.Fatalf("sample %s%s: %v", s.Tool, s.Subpath, err)
		}
		for _, n := range []int{1, 7, 4096, 1 << 20} {
			if n == 1 && len(whole) > 1<<16 {
				continue // slow, and proves nothing more
			}
			pieces, err := d.bench(t).run(t, s, n)
			if err != nil {
				t.Fatalf("sample %s%s in pieces of %d: %v", s.Tool, s.Subpath, n, err)
			}
			if !s.Volatile && !bytes.Equal(pieces, whole) {
				t.Errorf("sample %s%s: pieces of %d do not make the whole\n got: %.500q\nwant: %.500q", s.Tool, s.Subpath, n, pieces, whole)
			}
		}
		d.testReadInto(t, s, whole)
	}
}

// testReadInto checks the optional face that reads without allocating.
func (d Device) testReadInto(t *testing.T, s Sample, whole []byte) {
	t.Helper()
	f, input := d.bench(t).mustOpen(t, s)
	r, ok := f.(vfs.ReaderInto)
	if !ok {
		return
	}
	if err := perform(limited(t), f, input, d.ReadOnly); err != nil {
		t.Fatalf("sample %s%s: %v", s.Tool, s.Subpath, err)
	}
	var all []byte
	for buf := make([]byte, 13); ; {
		n, err := r.ReadInto(buf)
		all = append(all, buf[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || n == 0 {
			t.Fatalf("ReadInto: %d, %v", n, err)
		}
	}
	if !s.Volatile && !bytes.Equal(all, whole) {
		t.Errorf("ReadInto gives other bytes than Read\n got: %.500q\nwant: %.500q", all, whole)
	}
}

// testReadBeforeWrite: a file that needs a request says so at once; any other has its content.
func (d Device) testReadBeforeWrite(t *testing.T) {
	for _, s := range d.good() {
		f, _ := d.bench(t).mustOpen(t, s)
		within(t, "Read before Write", func() {
			if _, err := f.Read(16); err != nil && !errors.Is(err, io.EOF) {
				checkError(t, "Read before Write", err)
			}
		})
	}
}

func (d Device) testStat(t *testing.T) {
	for _, s := range d.good() {
		f, input := d.bench(t).mustOpen(t, s)
		if _, err := f.Stat(); err != nil {
			t.Errorf("Stat of %s%s: %v", d.Path, s.Subpath, err)
		}
		if err := perform(limited(t), f, input, d.ReadOnly); err != nil {
			t.Fatalf("sample %s%s: %v", s.Tool, s.Subpath, err)
		}
		if st, err := f.Stat(); err != nil || st.Size < -1 {
			t.Errorf("Stat of %s%s after its answer: %+v, %v", d.Path, s.Subpath, st, err)
		}
	}
}

// testIndependent runs all samples of one device at once: each gets its own answer.
func (d Device) testIndependent(t *testing.T) {
	b := d.bench(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, s := range d.good() {
		f, input := b.mustOpen(t, s)
		for range 2 {
			wg.Go(func() { // two on one file: no promise but that it is safe
				_ = perform(context.Background(), f, input, d.ReadOnly)
				_, _ = f.Read(64)
				_, _ = f.Stat()
			})
		}
	}
}
