package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"rnix/internal/event"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEventsAreNumberedWithoutAGapAndDated(t *testing.T) {
	l := event.New(4)
	if l.Last() != 0 || l.Oldest() != 1 {
		t.Errorf("empty log: last %d, oldest %d", l.Last(), l.Oldest())
	}
	for want := range uint64(10) {
		if got := l.Append(event.Event{Kind: event.Spawned}); got != want+1 {
			t.Errorf("got %d, want %d", got, want+1)
		}
	}
	if l.Last() != 10 || l.Oldest() != 7 {
		t.Errorf("last %d, oldest %d", l.Last(), l.Oldest())
	}
	e, err := l.Cursor(7).Next(t.Context())
	if err != nil || e.Seq != 7 || e.Time.IsZero() {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestSlowReaderIsToldWhatItMissedOnce(t *testing.T) {
	l := event.New(300)
	c := l.Cursor(0)
	for range 1000 {
		l.Append(event.Event{})
	}
	var missed *event.Missed
	if _, err := c.Next(t.Context()); !errors.As(err, &missed) || *missed != (event.Missed{From: 1, To: 700}) {
		t.Fatalf("got %v", err)
	}
	for want := uint64(701); want <= 1000; want++ {
		e, err := c.Next(t.Context())
		if err != nil || e.Seq != want {
			t.Fatalf("got %d, %v, want %d", e.Seq, err, want)
		}
	}
	if _, ok, err := c.TryNext(); ok || err != nil {
		t.Errorf("at the end: %v, %v", ok, err)
	}
}

func TestReaderWaitsForTheNextEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := event.New(0)
		l.Append(event.Event{Text: "before"})
		var got []string
		var wg sync.WaitGroup
		for range 3 {
			c := l.Cursor(0)
			wg.Go(func() { // ends with the log; Wait below
				for {
					e, err := c.Next(t.Context())
					if err != nil {
						if err != io.EOF {
							t.Error(err)
						}
						return
					}
					_ = e
				}
			})
		}
		c := l.Cursor(0)
		wg.Go(func() {
			for {
				e, err := c.Next(t.Context())
				if err == io.EOF {
					return
				}
				got = append(got, e.Text)
			}
		})
		synctest.Wait()
		l.Append(event.Event{Text: "a"})
		synctest.Wait()
		l.Append(event.Event{Text: "b"})
		l.Append(event.Event{Text: "c"})
		l.Close()
		wg.Wait()
		if strings.Join(got, "") != "abc" {
			t.Errorf("got %v", got)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	l := event.New(0)
	why := errors.New("the client has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := l.Cursor(0).Next(ctx); err != why {
		t.Errorf("got %v", err)
	}
}

func TestCursorBeyondTheEndBeginsNow(t *testing.T) {
	l := event.New(0)
	l.Append(event.Event{})
	c := l.Cursor(500)
	l.Append(event.Event{Text: "now"})
	if e, err := c.Next(t.Context()); err != nil || e.Text != "now" {
		t.Errorf("got %v, %v", e, err)
	}
}

// Each of many readers sees every event in order or is told of it, while writers append.
func TestEveryEventIsSeenOrReportedMissed(t *testing.T) {
	l := event.New(64)
	const writers, each = 4, 3000
	var wg, read sync.WaitGroup
	for range 4 {
		c := l.Cursor(1)
		read.Go(func() {
			buf := make([]event.Event, 7)
			var next uint64 = 1
			for {
				n, err := c.Read(context.Background(), buf)
				var m *event.Missed
				if errors.As(err, &m) {
					if m.From != next {
						t.Errorf("missed from %d, want %d", m.From, next)
					}
					next = m.To + 1
				} else if err == io.EOF {
					break
				}
				for _, e := range buf[:n] {
					if e.Seq != next {
						t.Errorf("event %d, want %d", e.Seq, next)
						return
					}
					next++
				}
			}
			if next != writers*each+1 {
				t.Errorf("ended before %d", next)
			}
		})
	}
	for range writers {
		wg.Go(func() {
			for range each {
				l.Append(event.Event{Kind: event.Syscall})
			}
		})
	}
	wg.Wait()
	l.Close()
	read.Wait()
}

var full = event.Event{
	Seq: 7, Time: time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC), PID: 12, UUID: types.UUID{1, 2, 0xab, 15: 0xff}, Kind: event.Syscall,
	PPID: math.MaxUint64, Step: -3, Total: 20, Name: "Open", Path: "/dev/fs/a\"b\\c", Args: "\x00\x1f\n\r\t\u2028<>&é😀", Result: "ok", Err: "no",
	Code: types.ErrNotFound, Dur: 1500, Text: "text", Tokens: 9, CostUSD: 1.25e-7, Until: time.Date(2026, 3, 4, 5, 6, 8, 0, time.FixedZone("", 3600)),
	From: types.StateRunning, To: types.StateZombie, Intent: "do", Agent: "a", Provider: "p", Model: "m",
	Exit: &types.ExitStatus{Code: 1, Reason: "bad", Err: types.Errorf(types.ErrDriver, "Write", "/dev/llm/x", "boom")},
}

func checkEncoding(t *testing.T, e event.Event) {
	t.Helper()
	want, err := json.Marshal(e)
	if err != nil {
		t.Skip(err)
	}
	var a, b event.Event
	if err := json.Unmarshal(want, &a); err != nil {
		t.Skip(err)
	}
	got := event.AppendJSON(nil, &e)
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	same := cmp.Comparer(func(x, y error) bool { return (x == nil) == (y == nil) && (x == nil || x.Error() == y.Error()) })
	if d := cmp.Diff(a, b, same); d != "" {
		t.Errorf("decodes differently (-encoding/json +ours):\n%s\n%s", d, got)
	}
}

func TestEncodingDecodesAsThatOfTheStandardLibrary(t *testing.T) {
	checkEncoding(t, event.Event{})
	checkEncoding(t, full)
	bad := full
	bad.Text = "\xff\xc3 \x7f"
	checkEncoding(t, bad)
}

func TestEncodingAllocatesNothing(t *testing.T) {
	e := full
	e.Exit = nil
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { buf = event.AppendJSON(buf[:0], &e) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzAppendJSON(f *testing.F) {
	f.Add("a", "\x00\xff\u2028", uint64(1), int64(5), 3)
	f.Fuzz(func(t *testing.T, a, b string, n uint64, i int64, state int) {
		st := types.ProcessState(uint(state) % 4)
		checkEncoding(t, event.Event{
			Seq: n, PPID: types.PID(n), Kind: event.Kind(a), Args: b, Text: a + b, Name: b, Dur: time.Duration(i), Step: int(i),
			Time: time.Unix(i%(1<<33), int64(n%1e9)).UTC(), From: st, To: 3 - st, Exit: &types.ExitStatus{Code: state, Reason: b},
		})
	})
}

func BenchmarkEncode(b *testing.B) {
	e := full
	e.Exit, e.Until, e.Args = nil, time.Time{}, "path=/dev/fs/main.go, mode=rw"
	b.Run("AppendJSON", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = event.AppendJSON(buf[:0], &e)
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			json.Marshal(&e)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, readers := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			l := event.New(0)
			var wg sync.WaitGroup
			for range readers {
				c := l.Cursor(0)
				wg.Go(func() {
					buf := make([]event.Event, 64)
					for {
						if _, err := c.Read(context.Background(), buf); err == io.EOF {
							return
						}
					}
				})
			}
			e := full
			for b.Loop() {
				l.Append(e)
			}
			l.Close()
			wg.Wait()
		})
	}
}
