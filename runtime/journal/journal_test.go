package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/runtime/journal"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func open(t *testing.T, opt journal.Options) *journal.Journal {
	t.Helper()
	if opt.Session == "" {
		opt.Session = "s1"
	}
	j, err := journal.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func add(t *testing.T, j *journal.Journal, kind string, texts ...string) (out []journal.Event) {
	t.Helper()
	for _, text := range texts {
		events, err := j.Append(ctx, journal.Draft{Kind: kind, Data: text})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, events...)
	}
	return out
}

func cursor(t *testing.T, j *journal.Journal, name string, kinds ...string) *journal.Cursor {
	t.Helper()
	c, err := j.Cursor(name, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func next(t *testing.T, c *journal.Cursor, max int) []journal.Event {
	t.Helper()
	events, err := c.Next(ctx, max, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func texts(events []journal.Event) (out []string) {
	for _, e := range events {
		var s string
		if json.Unmarshal(e.Data, &s) != nil {
			s = string(e.Data)
		}
		out = append(out, s)
	}
	return out
}

// both runs a test with a journal in files and with one in memory: they make the same promises.
func both(t *testing.T, do func(t *testing.T, opt journal.Options)) {
	t.Run("files", func(t *testing.T) { do(t, journal.Options{Dir: filepath.Join(t.TempDir(), "j")}) })
	t.Run("memory", func(t *testing.T) { do(t, journal.Options{}) })
}

func TestACursorSeesEachEventOfItsKindsInOrderAndAcknowledgedOnesNeverAgain(t *testing.T) {
	both(t, func(t *testing.T, opt journal.Options) {
		j := open(t, opt)
		c := cursor(t, j, "c", "a")
		add(t, j, "a", "1", "2")
		add(t, j, "b", "no")
		last := add(t, j, "a", "3")
		if got := texts(next(t, c, 2)); !slices.Equal(got, []string{"1", "2"}) {
			t.Fatalf("Next = %q", got)
		}
		if got := texts(next(t, c, 9)); !slices.Equal(got, []string{"1", "2"}) || c.Pending() != 3 {
			t.Fatalf("without an Ack, Next = %q, %d pending", got, c.Pending())
		}
		if err := c.Ack(1); err != nil {
			t.Fatal(err)
		}
		if got := texts(next(t, c, 9)); !slices.Equal(got, []string{"2"}) {
			t.Fatalf("after half an Ack, Next = %q", got)
		}
		if err := c.Ack(2); err != nil {
			t.Fatal(err)
		}
		if got := next(t, c, 9); !slices.Equal(texts(got), []string{"3"}) || got[0].ID != last[0].ID || got[0].Seq != 4 {
			t.Fatalf("Next = %+v", got)
		}
		if err := c.Ack(5); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("Ack of what is not there: %v", err)
		}
	})
}

func TestNextWaitsForAnEventOrTheEndOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, journal.Options{})
		c := cursor(t, j, "c")
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := c.Next(short, 1, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Next = %v", err)
		}
		got := make(chan []string)
		go func() { got <- texts(next(t, c, 1)) }()
		synctest.Wait()
		add(t, j, "a", "late")
		if s := <-got; s[0] != "late" {
			t.Errorf("Next = %q", s)
		}
		done := make(chan error)
		go func() { done <- c.Drained(ctx) }()
		synctest.Wait()
		if err := c.Ack(1); err != nil || <-done != nil {
			t.Errorf("Ack = %v", err)
		}
		ended := make(chan error)
		go func() { _, err := c.Next(ctx, 1, 1); ended <- err }()
		synctest.Wait()
		j.Close()
		if err := <-ended; !errors.Is(err, journal.ErrClosed) {
			t.Errorf("Next of a closed journal = %v", err)
		}
	})
}

func TestAFullJournalInMemoryCountsWhatItDropsAndShowsIt(t *testing.T) {
	j := open(t, journal.Options{MaxEvents: 3})
	c := cursor(t, j, "c", "a")
	add(t, j, "a", "1", "2")
	if got := texts(next(t, c, 1)); got[0] != "1" { // in hand, so not lost
		t.Fatal(got)
	}
	add(t, j, "b", "x", "y")
	add(t, j, "a", "3", "4")
	if err := c.Ack(1); err != nil {
		t.Fatal(err)
	}
	if c.Pending() != 3 || c.Dropped() != 1 {
		t.Errorf("%d pending, %d dropped", c.Pending(), c.Dropped())
	}
	gap := next(t, c, 9)
	var g journal.Gap
	if len(gap) != 1 || gap[0].Kind != journal.KindGap || json.Unmarshal(gap[0].Data, &g) != nil || g.From != 2 || g.To != 2 || g.Count != 1 || !strings.HasPrefix(gap[0].ID, "gap_") {
		t.Fatalf("gap = %+v", gap)
	}
	if err := c.Ack(gap[0].Seq); err != nil {
		t.Fatal(err)
	}
	if got := texts(next(t, c, 9)); !slices.Equal(got, []string{"3", "4"}) || c.Pending() != 2 {
		t.Errorf("after the gap: %q", got)
	}
}

func TestAJournalGoesOnWhereItWasAndIDsStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	j := open(t, journal.Options{Dir: dir})
	first := add(t, j, "a", "1", "2", "3")
	c := cursor(t, j, "c")
	next(t, c, 1)
	if err := c.Ack(1); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(journal.Options{Session: "s1", Dir: dir}); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("a second opener: %v", err)
	}
	source := j.Source()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, journal.Options{Dir: dir})
	if j.Source() != source {
		t.Error("the source has changed")
	}
	got := next(t, cursor(t, j, "c"), 9)
	if !slices.Equal(texts(got), []string{"2", "3"}) || got[0].ID != first[1].ID || !got[0].Time.Equal(first[1].Time) {
		t.Errorf("after a restart: %+v", got)
	}
	if e := add(t, j, "a", "4")[0]; e.Seq != 4 {
		t.Errorf("the next event has number %d", e.Seq)
	}
	j.Close()
	if _, err := journal.Open(journal.Options{Session: "other", Dir: dir}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("the journal of another session: %v", err)
	}
	other := open(t, journal.Options{})
	if e := add(t, other, "a", "1")[0]; e.ID == first[0].ID {
		t.Error("two owners of one session give their events the same ID")
	}
}

func TestATornEndIsMendedAndItsNumberGivenAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	j := open(t, journal.Options{Dir: dir})
	add(t, j, "a", "1", "2")
	j.Close()
	name := filepath.Join(dir, "events-00000000000000000001.jsonl")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b[:len(b)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	j = open(t, journal.Options{Dir: dir})
	if e := add(t, j, "a", "two")[0]; e.Seq != 2 {
		t.Errorf("the next event has number %d", e.Seq)
	}
	if got := texts(next(t, cursor(t, j, "c"), 9)); !slices.Equal(got, []string{"1", "two"}) {
		t.Errorf("events are %q", got)
	}
	j.Close()
	if err := os.WriteFile(name, append([]byte("{}\n"), b...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(journal.Options{Session: "s1", Dir: dir}); types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("damage in the middle: %v", err)
	}
}

func segments(t *testing.T, dir string) (names []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "events-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestWhatAllCursorsHaveAcknowledgedIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	j := open(t, journal.Options{Dir: dir, SegmentBytes: 300})
	a, b := cursor(t, j, "a", "a"), cursor(t, j, "b", "b")
	for i := range 20 {
		add(t, j, "a", fmt.Sprint(i))
	}
	all := len(segments(t, dir))
	for a.Pending() > 0 {
		events := next(t, a, 3)
		if err := a.Ack(events[len(events)-1].Seq); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(segments(t, dir)); all < 5 || n != 1 {
		t.Errorf("%d segments, and %d after everybody has seen them", all, n)
	}
	if b.Pending() != 0 {
		t.Errorf("b waits for %d", b.Pending())
	}
	j.Close()
	j = open(t, journal.Options{Dir: dir, SegmentBytes: 300})
	add(t, j, "b", "for b")
	if got := next(t, cursor(t, j, "b", "b"), 9); len(got) != 1 || got[0].Seq != 21 {
		t.Errorf("b sees %+v", got)
	}
	for range 20 {
		add(t, j, "b", "x")
	}
	if len(segments(t, dir)) < 5 {
		t.Error("what b has not seen is gone")
	}
}

func TestADamagedFileIsAGapAndWhatFollowsIsStillRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	j := open(t, journal.Options{Dir: dir, SegmentBytes: 1})
	add(t, j, "a", "1", "2", "3", "4")
	name := segments(t, dir)[1]
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	c := cursor(t, j, "c", "a")
	got := next(t, c, 9)
	if len(got) != 4 || got[1].Kind != journal.KindGap || got[1].Seq != 2 || !strings.Contains(string(got[1].Data), filepath.Base(name)) || texts(got)[3] != "4" {
		t.Errorf("Next = %q", texts(got))
	}
	if err := c.Ack(4); err != nil || c.Pending() != 0 {
		t.Errorf("Ack = %v, %d pending", err, c.Pending())
	}
}

func TestBadDraftsAndNamesAreRefused(t *testing.T) {
	j := open(t, journal.Options{})
	for _, d := range []journal.Draft{{"", 1}, {journal.KindGap, 1}, {"a", func() {}}, {"a", strings.Repeat("x", journal.MaxEvent)}} {
		if _, err := j.Append(ctx, journal.Draft{Kind: "a", Data: 1}, d); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", d.Kind, err)
		}
	}
	if j.Last() != 0 {
		t.Error("a refused draft has left something behind")
	}
	for _, name := range []string{"", "../x", "A", "a.b", strings.Repeat("a", 65)} {
		if _, err := j.Cursor(name); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	c := cursor(t, j, "c")
	if _, err := j.Cursor("c"); types.CodeOf(err) != types.ErrConflict {
		t.Error("a cursor was opened twice")
	}
	if err := j.Forget("c"); types.CodeOf(err) != types.ErrConflict {
		t.Error("an open cursor was forgotten")
	}
	c.Close()
	if err := j.Forget("c"); err != nil {
		t.Error(err)
	}
}

func TestManyAppendersAndReadersAndANewCursorMissNothing(t *testing.T) {
	both(t, func(t *testing.T, opt journal.Options) {
		j := open(t, opt)
		var all sync.WaitGroup
		for w := range 4 {
			all.Go(func() {
				for i := range 50 {
					var err error
					if i%2 == 0 {
						err = j.Post(ctx, "a", fmt.Sprint(w, i))
					} else {
						_, err = j.Append(ctx, journal.Draft{Kind: "a", Data: fmt.Sprint(w, i)})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		for r := range 3 {
			all.Go(func() {
				c, err := j.Cursor(fmt.Sprint("r", r))
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				for seq := uint64(0); seq < 200; {
					if j.Last() == 200 && c.Pending() == 0 { // the others were through before this one began
						return
					}
					events, err := c.Next(ctx, 7, 1<<20)
					if err != nil {
						t.Error(err)
						return
					}
					for _, e := range events {
						if seq++; e.Seq != seq && seq > 1 || e.Seq < seq {
							t.Errorf("reader %d: event %d after %d", r, e.Seq, seq-1)
						}
						seq = e.Seq
					}
					if err := c.Ack(seq); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}

func TestADiskThatFailsIsSaidToWhoAppendsAndNothingFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New("/data")
		j := open(t, journal.Options{Dir: "/data/j", FS: disk})
		c := cursor(t, j, "c")
		add(t, j, "a", "1")
		disk.Fail(faultfs.Fault{At: 1, Err: os.ErrDeadlineExceeded, Persistent: true})
		if _, err := j.Append(ctx, journal.Draft{Kind: "a", Data: "2"}); types.CodeOf(err) != types.ErrStorage {
			t.Fatalf("Append = %v", err)
		}
		if err := j.Post(ctx, "a", "3"); types.CodeOf(err) != types.ErrStorage || j.Err() == nil {
			t.Fatalf("Post = %v", err)
		}
		disk.Fail(faultfs.Fault{})
		if got := texts(next(t, c, 9)); !slices.Equal(got, []string{"1"}) {
			t.Errorf("Next = %q", got)
		}
		if err := c.Ack(1); err != nil {
			t.Fatal(err)
		}
		if err := c.Drained(ctx); types.CodeOf(err) != types.ErrStorage || c.Pending() != 1 {
			t.Errorf("Drained = %v, %d pending", err, c.Pending())
		}
	})
}

// crashOp appends, reads and acknowledges; what was told must be there after any crash.
func crashOp() *faultfs.Op {
	opt := journal.Options{Session: "s1", Source: "me", Dir: "/data/j", SegmentBytes: 400}
	run := func(disk journal.Options, ack func(string)) (err error) {
		j, err := journal.Open(disk)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, j.Close()) }()
		c, err := j.Cursor("c", "a")
		if err != nil {
			return err
		}
		for i := range 4 {
			kinds := []journal.Draft{{"a", i}, {"b", i}, {"a", i}}
			events, err := j.Append(ctx, kinds...)
			if err != nil {
				return err
			}
			for _, e := range events {
				ack(fmt.Sprint("event ", e.Seq, " ", e.Kind))
			}
			if i%2 == 0 {
				continue
			}
			batch, err := c.Next(ctx, 3, 1<<20)
			if err != nil {
				return err
			}
			ack(fmt.Sprint("trying ", batch[len(batch)-1].Seq)) // from now on nobody may count on seeing these again
			if err := c.Ack(batch[len(batch)-1].Seq); err != nil {
				return err
			}
			ack(fmt.Sprint("acked ", batch[len(batch)-1].Seq))
		}
		return nil
	}
	return &faultfs.Op{
		Name:     "journal",
		Changing: []string{".lock"},
		Run:      func(fsys durable.FS, ack func(string)) error { o := opt; o.FS = fsys; return run(o, ack) },
		Recover: func(fsys durable.FS) error {
			o := opt
			o.FS = fsys
			j, err := journal.Open(o)
			if err != nil {
				return err
			}
			return j.Close()
		},
		Check: func(fsys durable.FS, acked []string) error {
			o := opt
			o.FS = fsys
			j, err := journal.Open(o)
			if err != nil {
				return err
			}
			defer j.Close()
			c, err := j.Cursor("c", "a")
			if err != nil {
				return err
			}
			last, done, tried := uint64(0), uint64(0), uint64(0)
			want := map[uint64]bool{}
			for _, a := range acked {
				var seq uint64
				var kind string
				if n, _ := fmt.Sscanf(a, "event %d %s", &seq, &kind); n == 2 {
					last = max(last, seq)
					want[seq] = kind == "a"
				} else if n, _ := fmt.Sscanf(a, "acked %d", &seq); n == 1 {
					done = max(done, seq)
				} else if n, _ := fmt.Sscanf(a, "trying %d", &seq); n == 1 {
					tried = max(tried, seq)
				}
			}
			if j.Last() < last {
				return fmt.Errorf("the last event is %d, %d was told", j.Last(), last)
			}
			for c.Pending() > 0 {
				events, err := c.Next(ctx, 2, 1<<20)
				if err != nil {
					return err
				}
				for _, e := range events {
					if e.Kind != "a" || e.Seq <= done {
						return fmt.Errorf("%s event %d comes, %d was acknowledged", e.Kind, e.Seq, done)
					}
					delete(want, e.Seq)
				}
				if err := c.Ack(events[len(events)-1].Seq); err != nil {
					return err
				}
			}
			for seq, a := range want {
				if a && seq > tried {
					return fmt.Errorf("event %d was told and does not come", seq)
				}
			}
			events, err := j.Append(ctx, journal.Draft{Kind: "a", Data: "after"})
			if err != nil || events[0].Seq <= last {
				return fmt.Errorf("the next event has number %d after %d: %v", events[0].Seq, last, err)
			}
			return nil
		},
	}
}

func TestWhatWasToldOutlivesEveryCrash(t *testing.T) { faultfs.Test(t, crashOp()) }
