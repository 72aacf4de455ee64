package daemon

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/profile"
	"rnix/internal/records"
	"rnix/internal/recovery"
	"rnix/internal/service/platform"
	"rnix/internal/step"
	"rnix/internal/step/crashtest"
	"rnix/internal/store"
	"rnix/internal/workspace"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// histA is the history that the operations below find.
var histA = types.UUID{0x01, 0x90, 6: 0x70, 8: 0x80, 15: 0xa}

// nowhere is a directory of the real disk that is not there: no fork below has files.
var nowhere = filepath.Join(os.TempDir(), "rnix-"+rand.Text())

// session opens the data directory of an operation, and closes it in every case.
func session(fsys durable.FS, do func(*store.Files) error) error {
	j, err := store.Open(fsys, faultfs.DataDir, step.Synced)
	if err != nil {
		return err
	}
	return errors.Join(do(j), j.Close())
}

// house opens what a daemon has between its kernel and the disk, with a checkpoint after each step, and closes
// it in every case.
func house(fsys durable.FS, do func(*Daemon) error) error {
	return session(fsys, func(j *store.Files) (err error) {
		d := newDaemon(Options{})
		d.journal, d.log, d.platforms = j, slog.New(slog.DiscardHandler), platform.New(nowhere)
		d.places.DataDir = nowhere
		keepFiles(d, workspace.New(workspace.Options{Dir: nowhere, Env: []string{}}), true)
		d.store = records.New(j, "test", config.Checkpoint{EverySteps: config.Value[int]{V: 1}}, d.log)
		defer func() { err = errors.Join(err, d.store.Close()) }()
		openLaunch(d)
		return do(d)
	})
}

// started does with the histories what a daemon does when it starts, but lets none go on.
func started(fsys durable.FS) error { return house(fsys, looked) }

func looked(d *Daemon) error {
	return withKernel(d, func() error {
		d.auto.GoOn(context.Background())
		return nil
	})
}

// withKernel does something in a daemon with a kernel in which nothing runs.
func withKernel(d *Daemon, do func() error) (err error) {
	d.kernel = kernel.New(kernel.Config{Devices: vfs.NewDeviceRegistry()}, nil)
	defer func() { err = errors.Join(err, d.kernel.Shutdown(context.Background())) }()
	d.clis, d.profiles = newCLIs(d), &profile.Reader{Home: d.home}
	startLifecycle(d)
	return do()
}

// taken is started, and takes each history once, as who resumes it does: of one at rest, no start removes what
// power loss has left of the writing of a small file.
func taken(fsys durable.FS) error {
	return errors.Join(started(fsys), session(fsys, func(j *store.Files) (err error) {
		for _, info := range j.Index().List() {
			lease, aerr := j.Acquire(context.Background(), info.UUID, "test")
			if aerr == nil {
				aerr = j.Release(context.Background(), info.UUID, lease.Epoch)
			}
			err = errors.Join(err, aerr)
		}
		return err
	}))
}

// diary writes records as a process does. Each has a text of its own, also over all runs of an operation.
type diary struct {
	d    *Daemon
	rec  *records.Recorder
	run  uint64 // with what number this run began
	name string // of the writer
	n    int
	ack  func(string)
	due  []string
	over bool // the record is closed
	err  error
}

// text returns a text that no other record of the history has.
func (y *diary) text(kind string) string {
	y.n++
	return fmt.Sprintf("%s%s%d.%d", kind, y.name, y.run, y.n)
}

func (y *diary) add(recs ...step.Record) {
	if y.err == nil {
		y.err = y.rec.Add(recs...)
	}
	for i := range recs {
		y.due = append(y.due, crashtest.Holds(y.rec.ID, crashtest.Label(&recs[i])))
	}
}

// commit acknowledges what is on the disk now.
func (y *diary) commit() bool {
	if y.err == nil {
		y.err = y.rec.Commit()
	}
	if y.err == nil {
		for _, d := range y.due {
			y.ack(d)
		}
		y.due = nil
	}
	return y.err == nil
}

func (y *diary) message(role rnixctx.Role, text string) step.Record {
	return step.Record{Kind: step.KindMessage, Message: &rnixctx.Message{Role: role, Content: text}}
}

func (y *diary) marker(name, text string) step.Record {
	m := step.Marker{Name: name, PID: 7, Text: text}
	switch name {
	case step.MarkerSpawn, step.MarkerResumed:
		m.Detail, y.err = json.Marshal(step.Settled{ProcInfo: step.ProcInfo{ProcStatus: types.ProcStatus{PID: 7, Intent: "work", WorkDir: "/w", ContextBudget: 1000}}, SystemPrompt: "be good"})
	case step.MarkerExit:
		m.Exit = &types.ExitStatus{Reason: "done"}
	case step.MarkerSuspended:
		m.Exit, m.Detail = &types.ExitStatus{Code: types.ExitError}, json.RawMessage(`{"hint":"rnix resume"}`)
	}
	return step.Record{Kind: step.KindMarker, Marker: &m}
}

// answered writes an answer with calls and the intents of these, and lets the tools run.
func (y *diary) answered(n, calls int) (ids []string) {
	said := y.message(rnixctx.RoleAssistant, y.text("answer"))
	said.Answer = &step.Answer{Step: n, Prompt: 1, Started: time.Now(), TokensUsed: 10, Provider: "p"}
	var intents []step.Record
	for range calls {
		id := y.text("call")
		ids = append(ids, id)
		said.Message.ToolCalls = append(said.Message.ToolCalls, rnixctx.ToolCall{ID: id, Name: "shell", Input: json.RawMessage(`{"command":"make"}`)})
		intents = append(intents, step.Record{Kind: step.KindIntent, Intent: &step.Intent{Step: n, CallID: id, Tool: "shell", Path: "/dev/shell", Effect: "external"}})
	}
	y.add(said)
	y.add(intents...)
	if y.commit() {
		for _, id := range ids {
			y.ack(crashtest.Effect(y.rec.ID, id))
		}
	}
	return ids
}

// closed writes the results of calls, and the step.
func (y *diary) closed(n int, ids []string) {
	s := &step.StepRecord{StepNumber: n, MessageCount: 1, Summary: y.text("step"), TokensUsed: 10, Provider: "p"}
	for _, id := range ids {
		s.ToolCalls = append(s.ToolCalls, step.Call{ID: id, Name: "shell", Path: "/dev/shell"})
		answer := y.message(rnixctx.RoleTool, y.text("made"))
		answer.Message.ToolCallID = id
		y.add(step.Record{Kind: step.KindResult, Result: &step.Result{Step: n, CallID: id, Tool: "shell"}}, answer)
	}
	y.add(step.Record{Kind: step.KindStep, Step: s})
	if y.commit() {
		y.ack(fmt.Sprintf("amounts %s %d", y.rec.ID, n))
	}
}

// close gives the history back and returns the first error of the run.
func (y *diary) close() error {
	if !y.over {
		y.over = true
		y.err = errors.Join(y.err, y.rec.Close())
	}
	return y.err
}

// save replaces the small file as the kernel does.
func (y *diary) save(info step.ProcInfo) {
	info.V, info.UUID, info.PID, info.Intent, info.WorkDir, info.ContextBudget, info.UpdatedAt = step.FormatVersion, y.rec.ID, 7, "work", "/w", 1000, time.Now()
	if y.err == nil {
		y.err = y.d.store.SaveInfo(info)
	}
}

// end writes how a run ends, and what the kernel does behind it.
func (y *diary) end(name string, phase recovery.Phase, n int) {
	text := y.text(name)
	y.add(y.marker(name, text))
	if !y.commit() {
		return
	}
	y.ack(fmt.Sprintf("ended %s %s %s", y.rec.ID, phase, text))
	y.close()
	info := step.ProcInfo{State: types.StateDead, ProcStatus: types.ProcStatus{Step: n}, Suspended: true, Suspension: types.SuspendFor(types.SuspendOther, text)}
	switch {
	case phase == recovery.Ended:
		info.Suspended, info.SuspendReason, info.Exit, info.DeadAt = false, "", &types.ExitStatus{Reason: "done"}, time.Now()
	case name == step.MarkerSuspended:
		info.Exit = &types.ExitStatus{Code: types.ExitError}
	}
	y.save(info)
	if phase == recovery.Ended && y.err == nil {
		y.d.store.Ended(y.rec.ID)
	}
}

// spawnedIn begins a history, as the kernel does, and takes it back if that fails.
func spawnedIn(d *Daemon, id types.UUID, ack func(string), do func(*diary)) error {
	r, err := d.store.Create(id)
	if err != nil {
		return err
	}
	y := &diary{d: d, rec: r.(*records.Recorder), run: 1, ack: ack}
	_ = d.store.SaveMeta(id, "be good", []vfs.Tool{{Name: "shell", Path: "/dev/shell"}}, vfs.ModelCard{}) // nothing depends on it
	y.add(y.marker(step.MarkerSpawn, y.text("work")), y.message(rnixctx.RoleUser, y.text("do")))
	if !y.commit() {
		_, _ = y.rec.Close(), d.store.Discard(id) // the first error matters more
		return y.err
	}
	y.save(step.ProcInfo{State: types.StateRunning})
	do(y)
	return y.close()
}

// resumed goes on with a history, as the kernel does: its open calls get their answers first.
func resumed(d *Daemon, id types.UUID, input bool, ack func(string), do func(y *diary, next int)) error {
	rec, state, _, _, err := d.store.Open(context.Background(), id)
	if err != nil {
		return err
	}
	return goneOn(d, rec, state, input, ack, do)
}

func goneOn(d *Daemon, rec *records.Recorder, state *recovery.State, input bool, ack func(string), do func(y *diary, next int)) error {
	y := &diary{d: d, rec: rec, run: state.Seq + 1, ack: ack}
	y.add(y.marker(step.MarkerResumed, y.text("resumed")))
	text := y.text("said")
	if input {
		y.add(y.marker(step.MarkerInput, text+" "))
	}
	if state.Open == nil {
		y.add(y.message(rnixctx.RoleUser, text))
	}
	next := state.Step + 1
	if y.commit(); y.err == nil && state.Open != nil {
		var ids []string
		for _, c := range state.Unknown() {
			ids = append(ids, c.ID)
		}
		y.closed(next, ids)
		next++
	}
	if y.err == nil {
		do(y, next)
	}
	return y.close()
}

// leftBehind makes a history as a daemon leaves it that is killed; with open, in the middle of its third step.
func leftBehind(open bool) func(durable.FS) error {
	return func(fsys durable.FS) error {
		return house(fsys, func(d *Daemon) error {
			return spawnedIn(d, histA, func(string) {}, func(y *diary) {
				for n := range 2 {
					y.closed(n+1, y.answered(n+1, 1))
				}
				if open {
					y.answered(3, 2)
				}
			})
		})
	}
}

// locked makes ack safe for several goroutines.
func locked(ack func(string)) func(string) {
	var mu sync.Mutex
	return func(s string) { mu.Lock(); defer mu.Unlock(); ack(s) }
}

func crashOp(name string, prepare func(durable.FS) error, run func(d *Daemon, ack func(string)) error) *faultfs.Op {
	var states atomic.Int64
	return &faultfs.Op{Name: name, Changing: []string{"epoch", step.IndexFile}, Prepare: prepare, Recover: started,
		Run: func(fsys durable.FS, ack func(string)) error {
			return house(fsys, func(d *Daemon) error { return run(d, locked(ack)) })
		},
		Check: func(fsys durable.FS, acked []string) error {
			err := errors.Join(house(fsys, func(d *Daemon) error { return told(fsys, d, acked) }), crashtest.Sound(fsys, acked))
			if states.Add(1)%int64(faultfs.Share(4)) == 0 {
				err = errors.Join(err, goesOnTwice(fsys), crashtest.Sound(fsys, acked))
			}
			return err
		}}
}

// daemonOps are the operations of store and recorder that write, as the kernel puts them together.
func daemonOps() []*faultfs.Op {
	ending := func(name string, marker string, phase recovery.Phase) *faultfs.Op {
		op := crashOp(name, leftBehind(false), func(d *Daemon, ack func(string)) error {
			return resumed(d, histA, false, ack, func(y *diary, n int) {
				y.closed(n, y.answered(n, 1))
				y.end(marker, phase, n)
			})
		})
		op.Recover = taken
		return op
	}
	return []*faultfs.Op{
		crashOp("spawn", nil, func(d *Daemon, ack func(string)) error {
			id := histA
			id[14] = byte(len(d.journal.Index().List())) // a new one each time
			return spawnedIn(d, id, ack, func(*diary) {})
		}),
		crashOp("steps", leftBehind(false), func(d *Daemon, ack func(string)) error {
			return resumed(d, histA, false, ack, func(y *diary, n int) {
				for i := range 2 {
					y.closed(n+i, y.answered(n+i, i))
				}
				y.save(step.ProcInfo{State: types.StateRunning, ProcStatus: types.ProcStatus{Step: n + 1}})
			})
		}),
		crashOp("pause beside the loop", leftBehind(false), func(d *Daemon, ack func(string)) error {
			return resumed(d, histA, false, ack, func(y *diary, n int) {
				beside := &diary{d: d, rec: y.rec, run: y.run, name: "beside", ack: ack}
				var both sync.WaitGroup
				both.Go(func() { // ends by itself
					for _, name := range []string{step.MarkerPause, step.MarkerResume} {
						beside.add(beside.marker(name, beside.text(name)))
						beside.commit()
					}
				})
				y.closed(n, y.answered(n, 2))
				both.Wait()
				y.err = errors.Join(y.err, beside.err)
			})
		}),
		ending("suspended", step.MarkerSuspended, recovery.Suspended),
		ending("daemon_stop", step.MarkerDaemonStop, recovery.Stopped),
		ending("reap", step.MarkerExit, recovery.Ended),
		crashOp("resume", leftBehind(true), func(d *Daemon, ack func(string)) error {
			return resumed(d, histA, true, ack, func(*diary, int) {})
		}),
		crashOp("mark of an interruption", leftBehind(true), func(d *Daemon, ack func(string)) error {
			if err := looked(d); err != nil {
				return err
			}
			s, _, _, err := d.store.Read(context.Background(), histA)
			if err != nil {
				return err
			}
			if s.Phase == recovery.Running {
				return fmt.Errorf("it is not marked by a start that says %q", d.notes.all())
			}
			ack("marked " + histA.String())
			return nil
		}),
		forkOp("fork", nil), forkOp("truncated fork", new(int)),
	}
}

// told checks that what a start shows, and what a checkpoint makes quicker, is what the records say, and that it
// is no less than was acknowledged.
func told(fsys durable.FS, d *Daemon, acked []string) (err error) {
	for _, info := range d.journal.Index().List() {
		if terr := toldOf(fsys, d, &info, acked); terr != nil {
			err = errors.Join(err, fmt.Errorf("history %s: %w", info.UUID, terr))
		}
	}
	return err
}

func toldOf(fsys durable.FS, d *Daemon, info *step.ProcInfo, acked []string) error {
	id := info.UUID
	s, _, damage, err := recovery.Read(d.store.Source(context.Background(), id), nil)
	if err != nil || damage != "" {
		return fmt.Errorf("%q, %w", damage, err)
	}
	for range 2 { // the one before, once the latest is gone
		if err := quicker(d, id, s); err != nil {
			return err
		}
		_ = fsys.Remove(filepath.Join(d.journal.Dir(id), step.CheckpointFile)) // it may not be there
	}
	h, err := step.ReadHistory(context.Background(), d.journal, id)
	if err != nil {
		return err
	}
	var calls, unknown []string
	for _, c := range h.Interrupted {
		calls = append(calls, c.CallID)
	}
	for _, c := range s.Unknown() {
		unknown = append(unknown, c.ID)
	}
	last, shown := &h.Records[len(h.Records)-1], s.Step
	if s.Open != nil {
		shown = max(shown, s.Open.Answer.Step) // the step that it is in
	}
	switch {
	case s.Phase == recovery.Running || s.Phase == "":
		return fmt.Errorf("it is %q after a start", s.Phase)
	case info.Suspended != (s.Phase != recovery.Ended) || (info.State == types.StateDead && !info.Suspended) != (s.Phase == recovery.Ended) || info.Step != shown:
		return fmt.Errorf("it is shown as %s, step %d, suspended %v; the records say %s, step %d", info.State, info.Step, info.Suspended, s.Phase, s.Step)
	case !slices.Equal(calls, unknown):
		return fmt.Errorf("the calls %v have no result, and of %v it is not known", calls, unknown)
	}
	for i := range h.Markers[1:] {
		if h.Markers[i].Name == step.MarkerInterrupted && h.Markers[i+1].Name == step.MarkerInterrupted {
			return errors.New("it is marked twice as interrupted")
		}
	}
	for _, a := range acked {
		var of, phase, text string
		var n int
		if _, err := fmt.Sscanf(a, "amounts %s %d", &of, &n); err == nil && of == id.String() && (s.Step < n || s.Tokens < 10*n) {
			return fmt.Errorf("%s was acknowledged, and it has %d steps and %d tokens", a, s.Step, s.Tokens)
		}
		if _, err := fmt.Sscanf(a, "ended %s %s %s", &of, &phase, &text); err == nil && of == id.String() && crashtest.Label(last) == text && string(s.Phase) != phase {
			return fmt.Errorf("%s was acknowledged, and it is %s", a, s.Phase)
		}
	}
	return nil
}

// quicker checks that a checkpoint, if it is used, changes nothing.
func quicker(d *Daemon, id types.UUID, want *recovery.State) error {
	got, _, damage, err := d.store.Read(context.Background(), id)
	if err != nil || damage != "" {
		return fmt.Errorf("with a checkpoint: %q, %w", damage, err)
	}
	a, err := want.Checkpoint(id)
	b, berr := got.Checkpoint(id)
	if err = errors.Join(err, berr); err != nil {
		return err
	}
	without, err := json.Marshal(a)
	with, merr := json.Marshal(b)
	if !bytes.Equal(with, without) {
		return fmt.Errorf("with a checkpoint it is\n%s, without\n%s", with, without)
	}
	return errors.Join(err, merr)
}

// goesOnTwice resumes every history, and again after a start: whatever was cut off before can go on.
func goesOnTwice(fsys durable.FS) error {
	for range 2 {
		err := house(fsys, func(d *Daemon) (err error) {
			for _, info := range d.journal.Index().List() {
				if rerr := resumed(d, info.UUID, false, func(string) {}, func(*diary, int) {}); rerr != nil {
					err = errors.Join(err, fmt.Errorf("history %s cannot go on: %w", info.UUID, rerr))
				}
			}
			return err
		})
		if err = errors.Join(err, started(fsys)); err != nil {
			return err
		}
	}
	return nil
}

func TestEveryCrashAndEveryErrorLeavesWhatGoesOn(t *testing.T) {
	ops := daemonOps()
	if faultfs.Share(2) > 1 { // they run the lines that reap and fork do
		ops = slices.DeleteFunc(ops, func(op *faultfs.Op) bool {
			return slices.Contains([]string{"suspended", "daemon_stop", "truncated fork"}, op.Name)
		})
	}
	faultfs.Test(t, ops...)
}

// lazy is a disk that takes a sync of a record for done.
type lazy struct{ durable.FS }

func (l lazy) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	f, err := l.FS.OpenFile(name, flag, perm)
	if err == nil && filepath.Base(name) == step.StepsFile {
		f = lazyFile{f}
	}
	return f, err
}

type lazyFile struct{ durable.File }

func (lazyFile) Sync() error { return nil }

func TestLossOfAcknowledgedRecordsIsFound(t *testing.T) {
	op := daemonOps()[0]
	op.Between = func(fsys durable.FS) durable.FS { return lazy{fsys} }
	var found []string
	synctest.Test(t, func(*testing.T) { found = op.Crash(2).Problems })
	if len(found) == 0 {
		t.Error("nothing was found")
	}
}
