package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/types"
)

// Histories of the operations below.
var (
	histA = types.UUID{0x01, 0x90, 6: 0x70, 8: 0x80, 15: 0xa}
	histB = types.UUID{0x01, 0x91, 6: 0x70, 8: 0x80, 15: 0xb}
	histC = types.UUID{0x01, 0x92, 6: 0x70, 8: 0x80, 15: 0xc}
)

// session opens the data directory as a daemon does, and closes it in every case.
func session(fsys durable.FS, do func(*Local) error) error {
	j, err := OpenLocal(fsys, faultfs.DataDir, Synced)
	if err != nil {
		return err
	}
	return errors.Join(do(j), j.Close())
}

// author writes records of which each has a text of its own, and acknowledges those that are committed.
type author struct {
	j   *Local
	id  types.UUID
	w   *Writer
	ack func(string)
	due []string
	err error
}

// authored runs do with an author of a history.
func authored(j *Local, id types.UUID, ack func(string), do func(*author)) error {
	lease, err := j.Acquire(context.Background(), id, "test")
	if err != nil {
		return err
	}
	a := &author{j: j, id: id, w: NewWriter(j, id, lease), ack: ack}
	do(a)
	return errors.Join(a.err, a.w.Close(context.Background()))
}

// text returns a text that no other record of the history has.
func (a *author) text(kind string) string { return fmt.Sprint(kind, a.w.Next()) }

func (a *author) add(label string, err error) {
	a.due = append(a.due, fmt.Sprintf("record %s %d %s", a.id, a.w.Next()-1, label))
	a.err = errors.Join(a.err, err)
}

func (a *author) message(more int) {
	text := a.text("m") + strings.Repeat(" and more", more/9)
	a.add(text, a.w.Message(user(text)))
}

func (a *author) marker(m Marker) {
	m.Text = a.text(m.Name)
	a.add(m.Text, a.w.Marker(&m))
}

func (a *author) intent(step int) (call string) {
	call = a.text("c")
	a.add("intent "+call, a.w.Intent(&Intent{Step: step, CallID: call, Tool: "read", Path: "/dev/fs/x", Effect: "external"}))
	return call
}

func (a *author) result(step int, call string) {
	a.add("result "+call, a.w.Result(&Result{Step: step, CallID: call, Tool: "read"}))
}

func (a *author) step(n int) {
	text := a.text("s")
	a.add(text, a.w.Step(&StepRecord{StepNumber: n, MessageCount: 1, Summary: text, TokensUsed: 7}))
}

// commit acknowledges what is on the disk now.
func (a *author) commit() bool {
	if a.err == nil {
		a.err = a.w.Commit(context.Background())
	}
	if a.err == nil {
		for _, d := range a.due {
			a.ack(d)
		}
		a.due = nil
	}
	return a.err == nil
}

// effect acknowledges that a tool has run.
func (a *author) effect(call string) { a.ack(fmt.Sprintf("effect %s %s", a.id, call)) }

// whole writes a step as the kernel does, with its tool calls.
func (a *author) whole(n, calls, size int) {
	a.message(size)
	var ids []string
	for range calls {
		ids = append(ids, a.intent(n))
	}
	if !a.commit() {
		return
	}
	for _, id := range ids {
		a.effect(id)
	}
	for _, id := range ids {
		a.result(n, id)
		a.message(size)
	}
	a.step(n)
	a.commit()
}

// label returns the text of a record that an author has written.
func label(r *Record) string {
	switch r.Kind {
	case KindMessage:
		return r.Message.Content
	case KindIntent:
		return "intent " + r.Intent.CallID
	case KindResult:
		return "result " + r.Result.CallID
	case KindStep:
		return r.Step.Summary
	}
	return r.Marker.Text
}

func running(id types.UUID, pid types.PID, step int) *ProcInfo {
	return &ProcInfo{UUID: id, PID: pid, State: types.StateRunning, Intent: "work", Step: step}
}

// restart does what a daemon does with the files when it starts.
func restart(fsys durable.FS) error {
	return session(fsys, func(j *Local) (err error) {
		for _, info := range j.Index().List() {
			if info.State != types.StateDead && info.Exit == nil && !info.Suspended {
				err = errors.Join(err, interrupted(j, info, func(string) {}))
			}
		}
		return err
	})
}

// interrupted marks a history whose daemon has ended without warning.
func interrupted(j *Local, info ProcInfo, ack func(string)) error {
	h, err := ReadHistory(context.Background(), j, info.UUID)
	if types.CodeOf(err) == types.ErrNotFound {
		h, err = &History{}, nil
	}
	if err != nil {
		return err
	}
	folded := h.Info()
	if len(h.Records) == 0 {
		folded = info
	} else if err := authored(j, info.UUID, ack, func(a *author) { a.marker(Marker{Name: MarkerInterrupted, PID: info.PID}); a.commit() }); err != nil {
		return err
	}
	if folded.Exit == nil {
		folded.Suspended, folded.SuspendReason = true, "the daemon ended without warning"
	}
	if err := j.PutInfo(&folded); err != nil || len(h.Records) > 0 || h.Damage == "" {
		return err
	}
	return errors.New(h.Damage)
}

// sound checks what holds for every history, whatever has happened to it; acked is of an author.
func sound(fsys durable.FS, acked []string) error {
	return session(fsys, func(j *Local) (err error) {
		names, err := j.index.names()
		for id := range names {
			err = errors.Join(err, soundHistory(j, id, acked))
		}
		for _, a := range acked {
			if f := strings.Fields(a); (f[0] == "record" || f[0] == "effect") && !slices.ContainsFunc(j.index.List(), func(p ProcInfo) bool { return p.UUID.String() == f[1] }) {
				return errors.Join(err, fmt.Errorf("%s was acknowledged, and the history is not listed", a))
			}
		}
		return err
	})
}

func soundHistory(j *Local, id types.UUID, acked []string) error {
	ctx := context.Background()
	lease, err := j.Acquire(ctx, id, "check")
	if err != nil {
		return err
	}
	if err := j.Release(ctx, id, lease.Epoch); err != nil {
		return err
	}
	h, err := ReadHistory(ctx, j, id)
	if err != nil || h.Damage != "" || lease.Next != uint64(len(h.Records))+1 {
		return fmt.Errorf("history %s: %d records, next %d, damage %q, %v", id, len(h.Records), lease.Next, h.Damage, err)
	}
	if err := dense(h); err != nil {
		return fmt.Errorf("history %s: %w", id, err)
	}
	for _, p := range j.index.List() {
		if info, err := ReadInfo(j.fs, j.Dir(id)); p.UUID == id && err == nil && (info.Step != p.Step || info.Suspended != p.Suspended || info.State != p.State) {
			return fmt.Errorf("history %s: the index says %s, step %d, suspended %v; the file %s, step %d, suspended %v", id, p.State, p.Step, p.Suspended, info.State, info.Step, info.Suspended)
		}
	}
	return kept(h, acked)
}

// dense checks the order of records, and that each intent without a result is reported once.
func dense(h *History) error {
	var open []string
	seen := map[string]bool{}
	for i := range h.Records {
		r := &h.Records[i]
		text := label(r)
		if r.Seq != uint64(i)+1 {
			return fmt.Errorf("record %d is numbered %d", i+1, r.Seq)
		}
		if seen[text] {
			return fmt.Errorf("%q is there twice", text)
		}
		seen[text] = true
		switch r.Kind {
		case KindIntent:
			open = append(open, r.Intent.CallID)
		case KindResult:
			n := len(open)
			if open = slices.DeleteFunc(open, func(id string) bool { return id == r.Result.CallID }); len(open) != n-1 {
				return fmt.Errorf("%q has no intent before it", text)
			}
		}
	}
	var told []string
	for _, c := range h.Interrupted {
		told = append(told, c.CallID)
	}
	if !slices.Equal(told, open) {
		return fmt.Errorf("the calls %v are reported as interrupted, and %v are", told, open)
	}
	return nil
}

// kept checks that everything acknowledged of a history is in it.
func kept(h *History, acked []string) error {
	for _, a := range acked {
		f := strings.SplitN(a, " ", 4)
		if len(f) < 2 || f[1] != h.UUID.String() {
			continue
		}
		switch f[0] {
		case "record":
			var seq int
			fmt.Sscan(f[2], &seq)
			if seq > len(h.Records) || label(&h.Records[seq-1]) != f[3] {
				return fmt.Errorf("%s was acknowledged and is lost; there are %d records", a, len(h.Records))
			}
		case "effect":
			if !slices.ContainsFunc(h.Records, func(r Record) bool { return r.Kind == KindIntent && r.Intent.CallID == f[2] }) {
				return fmt.Errorf("the call %s has run, and nothing says so", f[2])
			}
		}
	}
	return nil
}

// numbers returns the numbers that were acknowledged as what.
func numbers(what string, acked []string) (out []uint64) {
	for _, a := range acked {
		var n uint64
		if _, err := fmt.Sscanf(a, what+" %d", &n); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// above checks that n was not handed out before.
func above(what string, n uint64, acked []string) error {
	for _, old := range numbers(what, acked) {
		if n <= old {
			return fmt.Errorf("%s %d is handed out after %d", what, n, old)
		}
	}
	return nil
}

// begun makes a running history with some steps.
func begun(j *Local, id types.UUID, pid types.PID, steps int) error {
	err := authored(j, id, func(string) {}, func(a *author) {
		a.marker(Marker{Name: MarkerSpawn, PID: pid})
		for n := range steps {
			a.whole(n+1, 1, 30)
		}
	})
	return errors.Join(err, j.PutInfo(running(id, pid, steps)))
}

func prepared(steps int, ids ...types.UUID) func(durable.FS) error {
	return func(fsys durable.FS) error {
		return session(fsys, func(j *Local) (err error) {
			for i, id := range ids {
				err = errors.Join(err, begun(j, id, types.PID(i+1), steps))
			}
			return err
		})
	}
}

// smallFile is an operation that replaces a small file of a history, which may be lost but not wrong.
func smallFile[T any](name string, write func(fsys durable.FS, dir string, n int) error, read func(fsys durable.FS, dir string) (*T, error), wrong func(*T, *History) string) *faultfs.Op {
	return &faultfs.Op{Name: name, Changing: []string{epochFile}, Recover: restart, Prepare: prepared(1, histA),
		Run: func(fsys durable.FS, ack func(string)) error {
			return session(fsys, func(j *Local) (err error) {
				for n := range 3 {
					if err := write(fsys, j.Dir(histA), n+1); err != nil {
						return err
					}
				}
				return nil
			})
		},
		Check: func(fsys durable.FS, acked []string) error {
			err := sound(fsys, acked)
			v, rerr := read(fsys, Dir(faultfs.DataDir, histA))
			switch code := types.CodeOf(rerr); {
			case code == types.ErrNotFound || code == types.ErrStorage:
			case rerr != nil:
				err = errors.Join(err, rerr)
			default:
				h, herr := readSteps(fsys, Dir(faultfs.DataDir, histA), histA)
				if err = errors.Join(err, herr); err == nil {
					if w := wrong(v, h); w != "" {
						err = errors.New(w)
					}
				}
			}
			return err
		}}
}

// crashOps are the operations of this package that write. CONTRIBUTING.md says how to add one.
func crashOps() []*faultfs.Op {
	op := func(name string, prepare func(durable.FS) error, run func(j *Local, ack func(string)) error) *faultfs.Op {
		return &faultfs.Op{Name: name, Changing: []string{epochFile}, Prepare: prepare, Recover: restart, Check: sound,
			Run: func(fsys durable.FS, ack func(string)) error {
				return session(fsys, func(j *Local) error { return run(j, ack) })
			}}
	}
	return []*faultfs.Op{
		op("create", nil, func(j *Local, ack func(string)) error {
			err := authored(j, histA, ack, func(a *author) {
				a.marker(Marker{Name: MarkerSpawn, PID: 3})
				a.message(20)
				a.commit()
			})
			if err == nil {
				err = j.PutInfo(running(histA, 3, 0))
			}
			return err
		}),
		op("append", prepared(2, histA), func(j *Local, ack func(string)) error {
			return authored(j, histA, ack, func(a *author) {
				a.whole(3, 2, 40)
				a.marker(Marker{Name: MarkerPause})
				a.commit()
				a.marker(Marker{Name: MarkerResume})
				a.whole(4, 0, 600)
			})
		}),
		op("batch", prepared(1, histA), func(j *Local, ack func(string)) error {
			return authored(j, histA, ack, func(a *author) {
				for range 2 {
					for i := range 8 {
						a.message(i * 200)
					}
					a.commit()
				}
			})
		}),
		op("proc-info", prepared(1, histA, histB), func(j *Local, ack func(string)) error {
			for n := range 2 {
				for _, id := range []types.UUID{histA, histB} {
					if err := j.PutInfo(running(id, 1, 5+n)); err != nil {
						return err
					}
				}
			}
			return nil
		}),
		op("index", prepared(1, histA, histB), func(j *Local, ack func(string)) error {
			if err := begun(j, histC, 9, 1); err != nil {
				return err
			}
			j.index.mu.Lock()
			j.index.lines += 5000 // so that it is time to compact
			j.index.mu.Unlock()
			if err := errors.Join(j.PutInfo(running(histC, 9, 2)), j.Discard(histC)); err != nil {
				return err
			}
			return j.PutInfo(&ProcInfo{UUID: histA, PID: 1, State: types.StateDead, Exit: &types.ExitStatus{}})
		}),
		op("interrupted", func(fsys durable.FS) error {
			return session(fsys, func(j *Local) error {
				err := authored(j, histA, func(string) {}, func(a *author) {
					a.marker(Marker{Name: MarkerSpawn, PID: 4})
					a.whole(1, 1, 20)
					a.message(20)
					a.intent(2)
					a.commit()
				})
				return errors.Join(err, j.PutInfo(running(histA, 4, 1)))
			})
		}, func(j *Local, ack func(string)) error {
			return interrupted(j, *running(histA, 4, 1), ack)
		}),
		op("daemon_stop", prepared(1, histA), func(j *Local, ack func(string)) error {
			err := authored(j, histA, ack, func(a *author) { a.marker(Marker{Name: MarkerDaemonStop, PID: 1}); a.commit() })
			if err != nil {
				return err
			}
			info := running(histA, 1, 1)
			info.Suspended = true
			return j.PutInfo(info)
		}),
		discardOp(), pidOp(), epochOp(),
		smallFile("process-meta", func(fsys durable.FS, dir string, n int) error {
			return WriteMeta(fsys, dir, &Meta{UUID: histA, SystemPrompt: strings.Repeat("be good ", 100*n)})
		}, ReadMeta, func(m *Meta, _ *History) string {
			if m.UUID != histA || len(m.SystemPrompt)%800 != 0 {
				return "process-meta.json is not as it was written"
			}
			return ""
		}),
		smallFile("ctx-profile", func(fsys durable.FS, dir string, n int) error {
			h, err := readSteps(fsys, dir, histA)
			if err == nil && h.Damage != "" {
				err = errors.New(h.Damage)
			}
			if err != nil {
				return err
			}
			p := h.Profile(time.Now())
			return WriteProfile(fsys, dir, &p)
		}, ReadProfile, func(p *Profile, h *History) string {
			if p.UUID != histA || len(p.Segments) == 0 || len(p.Segments) > len(h.Messages) {
				return "ctx-profile.json is not as it was written"
			}
			return ""
		}),
		checkpointOp(trusted),
	}
}

// discardOp removes a history: it is there with all of its records, or gone.
func discardOp() *faultfs.Op {
	return &faultfs.Op{Name: "discard", Changing: []string{epochFile}, Prepare: prepared(1, histA, histB), Recover: restart,
		Run: func(fsys durable.FS, ack func(string)) error {
			return session(fsys, func(j *Local) error {
				err := j.Discard(histA)
				if err == nil {
					ack("gone " + histA.String())
				}
				return err
			})
		},
		Check: func(fsys durable.FS, acked []string) error {
			err := sound(fsys, nil)
			h, herr := readSteps(fsys, Dir(faultfs.DataDir, histA), histA)
			switch {
			case types.CodeOf(herr) == types.ErrNotFound:
			case herr != nil:
				err = errors.Join(err, herr)
			case len(acked) > 0:
				err = errors.Join(err, errors.New("a history that is gone has come back"))
			case len(h.Steps) != 1:
				err = errors.Join(err, fmt.Errorf("a part of the history is there: %d steps", len(h.Steps)))
			}
			if b, berr := readSteps(fsys, Dir(faultfs.DataDir, histB), histB); berr != nil || len(b.Steps) != 1 {
				err = errors.Join(err, fmt.Errorf("the other history has suffered: %v", berr))
			}
			return err
		}}
}

// pidOp hands out PIDs.
func pidOp() *faultfs.Op {
	next := func(j *Local, times int, ack func(string)) error {
		c, err := j.PIDs()
		for range times {
			n := uint64(0)
			if err == nil {
				n, err = c.Next()
			}
			if err != nil {
				return err
			}
			ack(fmt.Sprint("PID ", n))
		}
		return err
	}
	return &faultfs.Op{Name: "PIDs", Changing: []string{epochFile}, Recover: restart,
		Run: func(fsys durable.FS, ack func(string)) error {
			return session(fsys, func(j *Local) error {
				c, err := j.PIDs()
				for i := range 66 {
					if err != nil {
						return err
					}
					var n uint64
					if n, err = c.Next(); err == nil {
						ack(fmt.Sprint("PID ", n))
					}
					if err == nil && i == 2 {
						err = c.Settle()
					}
				}
				return err
			})
		},
		Check: func(fsys durable.FS, acked []string) error {
			return session(fsys, func(j *Local) (err error) {
				return errors.Join(next(j, 1, func(s string) { err = above("PID", numbers("PID", []string{s})[0], acked) }), err)
			})
		}}
}

// epochOp takes a history several times.
func epochOp() *faultfs.Op {
	take := func(fsys durable.FS) (epoch uint64, err error) {
		err = session(fsys, func(j *Local) error {
			lease, err := j.Acquire(context.Background(), histA, "test")
			epoch = lease.Epoch
			return err
		})
		return epoch, err
	}
	return &faultfs.Op{Name: "epochs", Changing: []string{epochFile}, Recover: restart, Prepare: prepared(0, histA),
		Run: func(fsys durable.FS, ack func(string)) error {
			for range 3 {
				err := session(fsys, func(j *Local) error {
					lease, err := j.Acquire(context.Background(), histA, "test")
					if err == nil {
						ack(fmt.Sprint("epoch ", lease.Epoch))
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
		Check: func(fsys durable.FS, acked []string) error {
			epoch, err := take(fsys)
			if err == nil {
				err = above("epoch", epoch, acked)
			}
			return err
		}}
}

// trusted says whether a checkpoint may stand for the records that it covers.
func trusted(c *Checkpoint, h *History) bool { return c.Of(h) }

// checkpointOp writes a checkpoint after each commit, and one before its commit: after a crash that one may
// claim what the journal has not.
func checkpointOp(trust func(*Checkpoint, *History) bool) *faultfs.Op {
	return &faultfs.Op{Name: "checkpoint", Changing: []string{epochFile}, Recover: restart, Prepare: prepared(1, histA),
		Run: func(fsys durable.FS, ack func(string)) error {
			return session(fsys, func(j *Local) error {
				return authored(j, histA, ack, func(a *author) {
					for n := range 3 {
						a.message(300)
						if n != 1 && !a.commit() {
							return
						}
						texts := []rnixctx.Message{{Content: a.text("m")}}
						a.err = errors.Join(a.err, WriteCheckpoint(fsys, j.Dir(histA), &Checkpoint{UUID: histA, Seq: a.w.Next() - 1, Messages: texts, State: json.RawMessage(`{}`)}))
						a.commit()
					}
				})
			})
		},
		Check: func(fsys durable.FS, acked []string) error {
			dir := Dir(faultfs.DataDir, histA)
			h, err := readSteps(fsys, dir, histA)
			if err != nil {
				return err
			}
			c, err := ReadCheckpoint(fsys, dir)
			switch code := types.CodeOf(err); {
			case code == types.ErrNotFound || code == types.ErrStorage:
			case err != nil:
				return err
			case !trust(c, h):
			case c.Seq >= h.Next || !strings.HasPrefix(label(&h.Records[c.Seq-1]), fmt.Sprint("m", c.Seq)):
				return fmt.Errorf("a checkpoint up to record %d is trusted, which is not the one it was made of; there are %d", c.Seq, h.Next-1)
			}
			return sound(fsys, acked)
		}}
}

func TestEveryCrashAndEveryErrorLeavesWhatWasAcknowledged(t *testing.T) {
	faultfs.Test(t, crashOps()...)
}
