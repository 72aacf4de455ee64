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
