package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

func TestChildrenOfOneAnswerWorkAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5
		s := newSys(t)
		s.model = func(_ context.Context, c vfs.Caller, turn int) (reply, error) {
			switch {
			case c.PID != 1:
				time.Sleep(time.Hour)
				return reply{Content: fmt.Sprint("from ", c.PID)}, nil
			case turn == 1:
				return reply{Calls: strings.Split(strings.Repeat(`spawn {"intent":"kid"}|`, n-1)+`spawn {"intent":"kid"}`, "|")}, nil
			}
			return reply{Content: "all have ended"}, nil
		}
		i, err := s.WaitInfo(t.Context(), s.spawn())
		if err != nil || i.Result != "all have ended" || i.Elapsed != time.Hour {
			t.Errorf("%d children of an hour each took %v: %+v %v", n, i.Elapsed, i, err)
		}
	})
}

// fullDisk is a store whose records cannot be written.
type fullDisk struct{ *memStore }

func (f fullDisk) Create(id types.UUID) (Recorder, error) {
	r, err := f.memStore.Create(id)
	f.of(id).fail = types.Errorf(types.ErrStorage, "Commit", "steps.jsonl", "no space left on device")
	return r, err
}

func TestSpawnThatCannotBeRecordedLeavesNoHistory(t *testing.T) {
	s := newSys(t, func(c *Config) { c.Store = fullDisk{c.Store.(*memStore)} })
	s.model = finish("x")
	if _, err := s.Spawn("x", nil, opts()); types.CodeOf(err) != types.ErrStorage {
		t.Errorf("%v", err)
	}
	if n, c := len(s.List()), s.cfg.Contexts.Len(); n != 0 || c != 0 || len(s.stores.recs) != 0 {
		t.Errorf("left %d processes, %d conversations, %d records", n, c, len(s.stores.recs))
	}
}

// stubborn is a model's file that cannot be closed.
type stubborn struct{ device }

func (*stubborn) Close() error { return errors.New("the far end is gone") }

func TestFailedCloseIsTold(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	s := newSys(t, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(writer(func(b []byte) { mu.Lock(); log.Write(b); mu.Unlock() }), nil))
		open := func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
			return &stubborn{device{do: func(context.Context, vfs.Caller, []byte) (string, error) { return `{"content":"done"}`, nil }}}, nil
		}
		if err := c.Devices.Register("/dev/llm/stubborn", open); err != nil {
			t.Fatal(err)
		}
	})
	pid := s.spawn(func(o *SpawnOpts) { o.Provider = "stubborn" })
	if e, err := s.Wait(pid); err != nil || e.Code != types.ExitOK {
		t.Fatalf("%v %v", e, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if text := log.String(); !strings.Contains(text, "the far end is gone") || !strings.Contains(text, "/dev/llm/stubborn") {
		t.Errorf("the log says %q", text)
	}
}

// writer is a function as an io.Writer.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// witnessed is a store that says when a small file is written of a history that another run may have begun: its record
// is given back, and the table has forgotten the process.
type witnessed struct {
	*memStore
	s    *sys
	late []string
}

func (w *witnessed) SaveInfo(i step.ProcInfo) error {
	if rec := w.of(i.UUID); rec != nil {
		rec.mu.Lock()
		closed := rec.closed
		rec.mu.Unlock()
		if _, there := w.s.ByUUID(i.UUID); closed && !there {
			w.mu.Lock()
			w.late = append(w.late, i.State.String())
			w.mu.Unlock()
		}
	}
	return w.memStore.SaveInfo(i)
}

// The write that a run ends with is over before somebody else can have its history: else it replaces the small file
// of the next run, or is taken for what a crash has left.
func TestNothingIsWrittenOfAHistoryThatIsGivenBack(t *testing.T) {
	w := &witnessed{}
	s := newSys(t, func(c *Config) { w.memStore = c.Store.(*memStore); c.Store = w })
	w.s = s
	s.model = finish("x")
	for range 20 {
		pid := s.spawn()
		if _, err := s.WaitInfo(t.Context(), pid); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.late) > 0 {
		t.Errorf("written late: %v", w.late)
	}
}

// A run whose model has given its last answer, and whose end was not recorded, ends so when it goes on.
func TestWhoHasAnsweredIsNotAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		asks  int
	}{"nothing is said": {"", 0}, "a person says something": {"one more thing", 1}} {
		t.Run(name, func(t *testing.T) {
			s := newSys(t)
			s.model = finish("the result")
			first, err := s.WaitInfo(t.Context(), s.spawn())
			if err != nil {
				t.Fatal(err)
			}
			rec := s.stores.of(first.UUID)
			if last := rec.committed[len(rec.committed)-1]; last.Marker == nil || last.Marker.Name != step.MarkerExit {
				t.Fatalf("the last record is %+v", last)
			}
			rec.committed = rec.committed[:len(rec.committed)-1]
			again := newSys(t)
			asks := 0
			again.stores.recs = s.stores.recs
			again.model = func(context.Context, vfs.Caller, int) (reply, error) {
				asks++
				return reply{Content: "more"}, nil
			}
			from := again.lastRun(first.UUID)
			from.Input, from.Note = c.input, "go on"
			pid, err := again.Spawn("do it", nil, opts(func(o *SpawnOpts) { o.UUID, o.From = first.UUID, from }))
			if err != nil {
				t.Fatal(err)
			}
			i, err := again.WaitInfo(t.Context(), pid)
			if err != nil || i.Exit.Code != 0 || asks != c.asks || c.asks == 0 && i.Result != "the result" {
				t.Errorf("asked %d times: %+v %v", asks, i, err)
			}
		})
	}
}
