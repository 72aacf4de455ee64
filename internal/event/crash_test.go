package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/event"
	"rnix/types"
)

// crashed is the history whose events the operations below write.
var crashed = types.UUID{0x01, 0x90, 6: 0x70, 8: 0x80, 15: 0xa}

// writeEvents writes events as a daemon does, and acknowledges those that were there for longer than the
// time between two syncs, or until the end. It returns the first failure that the writer has reported.
func writeEvents(fsys durable.FS, ack func(string)) error {
	l := event.New(0)
	watch := l.Cursor(0)
	f := event.WriteFiles(l, fsys, in(faultfs.DataDir))
	var due []string
	failure := func() (err error) {
		for {
			e, ok, rerr := watch.TryNext()
			if !ok || rerr != nil {
				return err
			}
			if e.Kind == event.StorageError && err == nil {
				err = errors.New(e.Err)
			}
		}
	}
	for range 2 {
		for i := range 4 {
			text := fmt.Sprintf("event-%d-%d", time.Now().UnixNano(), i)
			l.Append(event.Event{PID: 3, UUID: crashed, Kind: event.LogLine, Text: text, Err: string(bytes.Repeat([]byte("x"), 100*i))})
			due = append(due, text)
			synctest.Wait()
		}
		<-time.After(1100 * time.Millisecond)
		synctest.Wait()
		if err := failure(); err != nil {
			f.Close()
			return err
		}
		for _, d := range due {
			ack(d)
		}
		due = nil
	}
	text := fmt.Sprintf("event-%d-last", time.Now().UnixNano())
	l.Append(event.Event{PID: 3, UUID: crashed, Kind: event.Reaped, Text: text})
	f.Close()
	err := failure()
	if err == nil {
		ack(text)
	}
	return err
}

// eventsOp is events.jsonl: what was synced is there once, and whatever else is there is whole, or is a hole that
// power loss has made.
func eventsOp() *faultfs.Op {
	path := in(faultfs.DataDir)(crashed)
	return &faultfs.Op{Name: "events.jsonl", Run: writeEvents,
		Recover: func(fsys durable.FS) error {
			l, _, err := durable.OpenLog(fsys, path, nil)
			if err != nil {
				return err
			}
			return l.Close()
		},
		Check: func(fsys durable.FS, acked []string) error {
			b, err := durable.ReadFile(fsys, path)
			if err != nil {
				return err
			}
			seen := map[string]int{}
			for line := range bytes.Lines(b) {
				var e event.Event
				if err := json.Unmarshal(line, &e); err == nil {
					seen[e.Text]++
				} else if bytes.IndexByte(line, 0) < 0 {
					return fmt.Errorf("a torn line: %q", line)
				}
			}
			for text, n := range seen {
				if n > 1 && text != "" {
					return fmt.Errorf("%q is there %d times", text, n)
				}
			}
			if i := slices.IndexFunc(acked, func(text string) bool { return seen[text] != 1 }); i >= 0 {
				return fmt.Errorf("%s was acknowledged and is lost", acked[i])
			}
			return nil
		}}
}

func TestSyncedEventsSurviveEveryCrashAndError(t *testing.T) { faultfs.Test(t, eventsOp()) }

// neverSynced is a disk on which no file is synced.
type neverSynced struct{ durable.FS }

func (n neverSynced) SyncDir(string) error { return nil }

func TestUnsyncedEventsFileIsFound(t *testing.T) {
	op := eventsOp()
	op.Between = func(fsys durable.FS) durable.FS { return neverSynced{fsys} }
	synctest.Test(t, func(t *testing.T) {
		if r := op.Crash(2); len(r.Problems) == 0 {
			t.Error("nothing was found")
		}
	})
}
