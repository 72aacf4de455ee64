package step_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/internal/step/crashtest"
	"rnix/types"
)

// Histories of the operations below.
var (
	histA = types.UUID{0x01, 0x90, 6: 0x70, 8: 0x80, 15: 0xa}
	histB = types.UUID{0x01, 0x91, 6: 0x70, 8: 0x80, 15: 0xb}
	histC = types.UUID{0x01, 0x92, 6: 0x70, 8: 0x80, 15: 0xc}
)

// author writes records of which each has a text of its own, and acknowledges those that are committed.
type author struct {
	j   *step.Local
	id  types.UUID
	w   *step.Writer
	ack func(string)
	due []string
	err error
}

// authored runs do with an author of a history.
func authored(j *step.Local, id types.UUID, ack func(string), do func(*author)) error {
	lease, err := j.Acquire(context.Background(), id, "test")
	if err != nil {
		return err
	}
	a := &author{j: j, id: id, w: step.NewWriter(j, id, lease), ack: ack}
	do(a)
	return errors.Join(a.err, a.w.Close(context.Background()))
}

// text returns a text that no other record of the history has.
func (a *author) text(kind string) string { return fmt.Sprint(kind, a.w.Next()) }

func (a *author) add(label string, err error) {
	a.due = append(a.due, crashtest.Recorded(a.id, a.w.Next()-1, label))
	a.err = errors.Join(a.err, err)
}

func (a *author) message(more int) {
	text := a.text("m") + strings.Repeat(" and more", more/9)
	a.add(text, a.w.Message(step.User(text)))
}

func (a *author) marker(m step.Marker) {
	m.Text = a.text(m.Name)
	a.add(m.Text, a.w.Marker(&m))
}

func (a *author) intent(n int) (call string) {
	call = a.text("c")
	a.add("intent "+call, a.w.Intent(&step.Intent{Step: n, CallID: call, Tool: "read", Path: "/dev/fs/x", Effect: "external"}))
	return call
}

func (a *author) result(n int, call string) {
	a.add("result "+call, a.w.Result(&step.Result{Step: n, CallID: call, Tool: "read"}))
}

func (a *author) step(n int) {
	text := a.text("s")
	a.add(text, a.w.Step(&step.StepRecord{StepNumber: n, MessageCount: 1, Summary: text, TokensUsed: 7}))
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
func (a *author) effect(call string) { a.ack(crashtest.Effect(a.id, call)) }

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

func running(id types.UUID, pid types.PID, n int) *step.ProcInfo {
	return &step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id, PID: pid, Intent: "work", Step: n}, State: types.StateRunning}
}

// restart does what a daemon does with the files when it starts.
func restart(fsys durable.FS) error { return crashtest.Session(fsys, restarted) }

func restarted(j *step.Local) (err error) {
	for _, info := range j.Index().List() {
		if info.State != types.StateDead && info.Exit == nil && !info.Suspended {
			err = errors.Join(err, interrupted(j, info, func(string) {}))
		}
	}
	return err
}

// interrupted marks a history whose daemon has ended without warning.
func interrupted(j *step.Local, info step.ProcInfo, ack func(string)) error {
	h, err := step.ReadHistory(context.Background(), j, info.UUID)
	if types.CodeOf(err) == types.ErrNotFound {
		h, err = &step.History{}, nil
	}
	if err != nil {
		return err
	}
	folded := h.Info()
	if len(h.Records) == 0 {
		folded = info
	} else if err := authored(j, info.UUID, ack, func(a *author) { a.marker(step.Marker{Name: step.MarkerInterrupted, PID: info.PID}); a.commit() }); err != nil {
		return err
	}
	if folded.Exit == nil {
		folded.Suspended, folded.Suspension = true, types.Suspend(types.SuspendBroken)
	}
	if err := j.PutInfo(&folded); err != nil || len(h.Records) > 0 || h.Damage == "" {
		return err
	}
	return errors.New(h.Damage)
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
func begun(j *step.Local, id types.UUID, pid types.PID, steps int) error {
	err := authored(j, id, func(string) {}, func(a *author) {
		a.marker(step.Marker{Name: step.MarkerSpawn, PID: pid})
		for n := range steps {
			a.whole(n+1, 1, 30)
		}
	})
	return errors.Join(err, j.PutInfo(running(id, pid, steps)))
}

func prepared(steps int, ids ...types.UUID) func(durable.FS) error {
	return func(fsys durable.FS) error {
		return crashtest.Session(fsys, func(j *step.Local) (err error) {
			for i, id := range ids {
				err = errors.Join(err, begun(j, id, types.PID(i+1), steps))
			}
			return err
		})
	}
}

// smallFile is an operation that replaces a small file of a history, which may be lost but not wrong.
func smallFile[T any](name string, write func(fsys durable.FS, dir string, n int) error, read func(fsys durable.FS, dir string) (*T, error), wrong func(*T, *step.History) string) *faultfs.Op {
	return &faultfs.Op{Name: name, Changing: []string{step.EpochFile}, Recover: restart, Prepare: prepared(1, histA),
		Run: func(fsys durable.FS, ack func(string)) error {
			return crashtest.Session(fsys, func(j *step.Local) (err error) {
				for n := range 3 {
					if err := write(fsys, j.Dir(histA), n+1); err != nil {
						return err
					}
				}
				return nil
			})
		},
		Check: func(fsys durable.FS, acked []string) error {
			err := crashtest.Sound(fsys, acked)
			v, rerr := read(fsys, step.Dir(faultfs.DataDir, histA))
			switch code := types.CodeOf(rerr); {
			case code == types.ErrNotFound || code == types.ErrStorage:
			case rerr != nil:
				err = errors.Join(err, rerr)
			default:
				h, herr := step.ReadSteps(fsys, step.Dir(faultfs.DataDir, histA), histA)
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
	op := func(name string, prepare func(durable.FS) error, run func(j *step.Local, ack func(string)) error) *faultfs.Op {
		return &faultfs.Op{Name: name, Changing: []string{step.EpochFile}, Prepare: prepare, Recover: restart, Check: crashtest.Sound,
			Run: func(fsys durable.FS, ack func(string)) error {
				return crashtest.Session(fsys, func(j *step.Local) error { return run(j, ack) })
			}}
	}
	return []*faultfs.Op{
		op("create", nil, func(j *step.Local, ack func(string)) error {
			err := authored(j, histA, ack, func(a *author) {
				a.marker(step.Marker{Name: step.MarkerSpawn, PID: 3})
				a.message(20)
				a.commit()
			})
			if err == nil {
				err = j.PutInfo(running(histA, 3, 0))
			}
			return err
		}),
		op("append", prepared(2, histA), func(j *step.Local, ack func(string)) error {
			return authored(j, histA, ack, func(a *author) {
				a.whole(3, 2, 40)
				a.marker(step.Marker{Name: step.MarkerPause})
				a.commit()
				a.marker(step.Marker{Name: step.MarkerResume})
				a.whole(4, 0, 600)
			})
		}),
		op("batch", prepared(1, histA), func(j *step.Local, ack func(string)) error {
			return authored(j, histA, ack, func(a *author) {
				for range 2 {
					for i := range 8 {
						a.message(i * 200)
					}
					a.commit()
				}
			})
		}),
		op("proc-info", prepared(1, histA, histB), func(j *step.Local, ack func(string)) error {
			for n := range 2 {
				for _, id := range []types.UUID{histA, histB} {
					if err := j.PutInfo(running(id, 1, 5+n)); err != nil {
						return err
					}
				}
			}
			return nil
		}),
		op("index", prepared(1, histA, histB), func(j *step.Local, ack func(string)) error {
			if err := begun(j, histC, 9, 1); err != nil {
				return err
			}
			j.Index().Age(5000) // so that it is time to compact
			if err := errors.Join(j.PutInfo(running(histC, 9, 2)), j.Discard(histC)); err != nil {
				return err
			}
			return j.PutInfo(&step.ProcInfo{ProcStatus: types.ProcStatus{UUID: histA, PID: 1, Exit: &types.ExitStatus{}}, State: types.StateDead})
		}),
		op("interrupted", func(fsys durable.FS) error {
			return crashtest.Session(fsys, func(j *step.Local) error {
				err := authored(j, histA, func(string) {}, func(a *author) {
					a.marker(step.Marker{Name: step.MarkerSpawn, PID: 4})
					a.whole(1, 1, 20)
					a.message(20)
					a.intent(2)
					a.commit()
				})
				return errors.Join(err, j.PutInfo(running(histA, 4, 1)))
			})
		}, func(j *step.Local, ack func(string)) error {
			return interrupted(j, *running(histA, 4, 1), ack)
		}),
		op("daemon_stop", prepared(1, histA), func(j *step.Local, ack func(string)) error {
			err := authored(j, histA, ack, func(a *author) { a.marker(step.Marker{Name: step.MarkerDaemonStop, PID: 1}); a.commit() })
			if err != nil {
				return err
			}
			info := running(histA, 1, 1)
			info.Suspended = true
			return j.PutInfo(info)
		}),
		discardOp(), wakeOp(), pidOp(), epochOp(),
		smallFile("process-meta", func(fsys durable.FS, dir string, n int) error {
			return step.WriteMeta(fsys, dir, &step.Meta{UUID: histA, SystemPrompt: strings.Repeat("be good ", 100*n)})
		}, step.ReadMeta, func(m *step.Meta, _ *step.History) string {
			if m.UUID != histA || len(m.SystemPrompt)%800 != 0 {
				return "process-meta.json is not as it was written"
			}
			return ""
		}),
		smallFile("ctx-profile", func(fsys durable.FS, dir string, n int) error {
			h, err := step.ReadSteps(fsys, dir, histA)
			if err == nil && h.Damage != "" {
				err = errors.New(h.Damage)
			}
			if err != nil {
				return err
			}
			p, err := h.Profile(step.ProfileOptions{Now: time.Now()})
			if err != nil {
				return err
			}
			return step.WriteProfile(fsys, dir, &p)
		}, step.ReadProfile, func(p *step.Profile, h *step.History) string {
			if p.UUID != histA || len(p.Segments) == 0 || len(p.Segments) > len(h.Messages) {
				return "ctx-profile.json is not as it was written"
			}
			return ""
		}),
		checkpointOp(trusted), forkOp(), inputsOp(), attachmentsOp(),
	}
}

// discardOp removes a history: it is there with all of its records, or gone.
func discardOp() *faultfs.Op {
	return &faultfs.Op{Name: "discard", Changing: []string{step.EpochFile}, Prepare: prepared(1, histA, histB), Recover: restart,
		Run: func(fsys durable.FS, ack func(string)) error {
			return crashtest.Session(fsys, func(j *step.Local) error {
				err := j.Discard(histA)
				if err == nil {
					ack("gone " + histA.String())
				}
				return err
			})
		},
		Check: func(fsys durable.FS, acked []string) error {
			err := crashtest.Sound(fsys, nil)
			h, herr := step.ReadSteps(fsys, step.Dir(faultfs.DataDir, histA), histA)
			switch {
			case types.CodeOf(herr) == types.ErrNotFound:
			case herr != nil:
				err = errors.Join(err, herr)
			case len(acked) > 0:
				err = errors.Join(err, errors.New("a history that is gone has come back"))
			case len(h.Steps) != 1:
				err = errors.Join(err, fmt.Errorf("a part of the history is there: %d steps", len(h.Steps)))
			}
			if b, berr := step.ReadSteps(fsys, step.Dir(faultfs.DataDir, histB), histB); berr != nil || len(b.Steps) != 1 {
				err = errors.Join(err, fmt.Errorf("the other history has suffered: %v", berr))
			}
			return err
		}}
}

// pidOp hands out PIDs.
func pidOp() *faultfs.Op {
	next := func(j *step.Local, times int, ack func(string)) error {
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
	return &faultfs.Op{Name: "PIDs", Changing: []string{step.EpochFile}, Recover: restart,
		Run: func(fsys durable.FS, ack func(string)) error {
			return crashtest.Session(fsys, func(j *step.Local) error {
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
			return crashtest.Session(fsys, func(j *step.Local) (err error) {
				return errors.Join(next(j, 1, func(s string) { err = above("PID", numbers("PID", []string{s})[0], acked) }), err)
			})
		}}
}

// epochOp takes a history several times.
func epochOp() *faultfs.Op {
	take := func(fsys durable.FS) (epoch uint64, err error) {
		err = crashtest.Session(fsys, func(j *step.Local) error {
			lease, err := j.Acquire(context.Background(), histA, "test")
			epoch = lease.Epoch
			return err
		})
		return epoch, err
	}
	return &faultfs.Op{Name: "epochs", Changing: []string{step.EpochFile}, Recover: restart, Prepare: prepared(0, histA),
		Run: func(fsys durable.FS, ack func(string)) error {
			for range 3 {
				err := crashtest.Session(fsys, func(j *step.Local) error {
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
func trusted(c *step.Checkpoint, h *step.History) bool { return c.Of(h) }

// checkpointOp writes a checkpoint after each commit, and one before its commit: after a crash that one may
// claim what the journal has not.
func checkpointOp(trust func(*step.Checkpoint, *step.History) bool) *faultfs.Op {
	return &faultfs.Op{Name: "checkpoint", Changing: []string{step.EpochFile}, Recover: restart, Prepare: prepared(1, histA),
		Run: func(fsys durable.FS, ack func(string)) error {
			return crashtest.Session(fsys, func(j *step.Local) error {
				return authored(j, histA, ack, func(a *author) {
					for n := range 3 {
						a.message(300)
						if n != 1 && !a.commit() {
							return
						}
						texts := []rnixctx.Message{{Content: a.text("m")}}
						a.err = errors.Join(a.err, step.WriteCheckpoint(fsys, j.Dir(histA), &step.Checkpoint{UUID: histA, Seq: a.w.Next() - 1, Messages: texts, State: json.RawMessage(`{}`)}))
						a.commit()
					}
				})
			})
		},
		Check: func(fsys durable.FS, acked []string) error {
			dir := step.Dir(faultfs.DataDir, histA)
			h, err := step.ReadSteps(fsys, dir, histA)
			if err != nil {
				return err
			}
			c, err := step.ReadCheckpoint(fsys, dir)
			switch code := types.CodeOf(err); {
			case code == types.ErrNotFound || code == types.ErrStorage:
			case err != nil:
				return err
			case !trust(c, h):
			case c.Seq >= h.Next || !strings.HasPrefix(crashtest.Label(&h.Records[c.Seq-1]), fmt.Sprint("m", c.Seq)):
				return fmt.Errorf("a checkpoint up to record %d is trusted, which is not the one it was made of; there are %d", c.Seq, h.Next-1)
			}
			return crashtest.Sound(fsys, acked)
		}}
}

func TestEveryCrashAndEveryErrorLeavesWhatWasAcknowledged(t *testing.T) {
	faultfs.Test(t, crashOps()...)
}
