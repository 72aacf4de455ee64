package event_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/event"
	"rnix/types"
)

func lines(t *testing.T, fsys durable.FS, path string) []event.Event {
	t.Helper()
	b, err := durable.ReadFile(fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	var out []event.Event
	for _, l := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		var e event.Event
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		out = append(out, e)
	}
	return out
}

func in(dir string) func(types.UUID) string {
	return func(id types.UUID) string { return filepath.Join(dir, id.String(), "events.jsonl") }
}

func TestEachHistoryGetsItsOwnEvents(t *testing.T) {
	path := in(t.TempDir())
	l := event.New(100_000)
	f := event.WriteFiles(l, durable.OS, path)
	const procs, each = 300, 20 // more than may be open at a time
	ids := make([]types.UUID, procs)
	for i := range ids {
		ids[i] = types.NewUUID()
	}
	for n := range each {
		for i, id := range ids {
			l.Append(event.Event{PID: types.PID(i + 1), UUID: id, Kind: event.LogLine, Text: fmt.Sprint(n)})
		}
		l.Append(event.Event{Kind: event.Mounted}) // of nobody
	}
	f.Close()
	for i, id := range ids {
		got := lines(t, durable.OS, path(id))
		if len(got) != each {
			t.Fatalf("process %d: %d events", i, len(got))
		}
		for n, e := range got {
			if e.PID != types.PID(i+1) || e.Text != fmt.Sprint(n) {
				t.Errorf("process %d, event %d: %+v", i, n, e)
			}
		}
	}
	if info, _ := os.Stat(path(ids[0])); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestFileSaysWhichEventsAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := faultfs.New("/d")
		id, late := types.NewUUID(), types.NewUUID()
		l := event.New(8)
		f := event.WriteFiles(l, fsys, in("/d"))
		l.Append(event.Event{UUID: id, Kind: event.Spawned})
		synctest.Wait()
		for range 100 { // faster than the writer, as a rule
			l.Append(event.Event{UUID: id, Kind: event.LogLine})
		}
		synctest.Wait()
		l.Append(event.Event{UUID: late, Kind: event.LogLine})
		f.Close()
		seen, covered := uint64(0), uint64(0)
		for _, e := range lines(t, fsys, in("/d")(id)) {
			if e.Kind == event.Lag {
				var from, to uint64
				if _, err := fmt.Sscanf(e.Text, "events %d to %d", &from, &to); err != nil || from != seen+1 {
					t.Errorf("%q after %d", e.Text, seen)
				}
				seen, covered = to, covered+to-from+1
				continue
			}
			if e.Seq != seen+1 {
				t.Errorf("event %d after %d, and no line says so", e.Seq, seen)
			}
			seen = e.Seq
		}
		if seen != 101 {
			t.Errorf("the file ends at %d", seen)
		}
		if n := len(lines(t, fsys, in("/d")(late))); covered > 0 && n != 2 {
			t.Errorf("a file opened after the gap has %d lines", n)
		}
	})
}

func TestEventsAreSyncedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := faultfs.New("/d")
		id := types.NewUUID()
		l := event.New(0)
		f := event.WriteFiles(l, fsys, in("/d"))
		defer f.Close()
		syncs := func() int {
			return strings.Count(strings.Join(fsys.Trace(), "\n"), "sync /d/"+id.String()+"/events.jsonl")
		}
		for range 10 {
			l.Append(event.Event{UUID: id, Kind: event.LogLine})
			synctest.Wait()
		}
		if syncs() != 0 {
			t.Errorf("%d syncs at once", syncs())
		}
		<-time.After(time.Second)
		synctest.Wait()
		if syncs() != 1 {
			t.Errorf("%d syncs after a second", syncs())
		}
		<-time.After(time.Hour)
		if syncs() != 1 {
			t.Errorf("%d syncs of nothing", syncs()-1)
		}
	})
}

func TestFullDiskIsReportedAndTheGapIsWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := faultfs.New("/d")
		id := types.NewUUID()
		l := event.New(0)
		watch := l.Cursor(0)
		f := event.WriteFiles(l, fsys, in("/d"))
		put := func(text string) {
			l.Append(event.Event{PID: 3, UUID: id, Kind: event.LogLine, Text: text})
			synctest.Wait()
		}
		put("one")
		fsys.Fail(faultfs.Fault{At: 1, Err: syscall.ENOSPC, Persistent: true, Short: true})
		put("two")
		put("three")
		fsys.Fail(faultfs.Fault{})
		<-time.After(11 * time.Second)
		put("four")
		f.Close()
		reports := 0
		for {
			e, ok, err := watch.TryNext()
			if !ok || err != nil {
				break
			}
			if e.Kind == event.StorageError {
				reports++
				if e.PID != 3 || e.Code != types.ErrStorage || !strings.Contains(e.Err, "no space") {
					t.Errorf("%+v", e)
				}
			}
		}
		if reports != 1 {
			t.Errorf("%d reports", reports)
		}
		got := lines(t, fsys, in("/d")(id))
		if len(got) != 3 || got[0].Text != "one" || got[1].Kind != event.Lag || got[2].Text != "four" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestFilesAreClosedWhenTheirProcessIsReaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := faultfs.New("/d")
		l := event.New(0)
		f := event.WriteFiles(l, fsys, in("/d"))
		defer f.Close()
		id := types.NewUUID()
		l.Append(event.Event{UUID: id, Kind: event.Spawned})
		l.Append(event.Event{UUID: id, Kind: event.Reaped})
		synctest.Wait()
		fsys.Crash(0)
		if got := lines(t, fsys, in("/d")(id)); len(got) != 2 {
			t.Errorf("after a crash: %v", got)
		}
	})
}
