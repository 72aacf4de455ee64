package step_test

import (
	"errors"
	"slices"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/internal/step/crashtest"
	"rnix/types"
)

// wakeOp is the resume of a history that was over: when somebody has been told of it, the next start looks at it.
func wakeOp() *faultfs.Op {
	const awake = "awake"
	return &faultfs.Op{Name: "wake", Changing: []string{step.EpochFile}, Recover: restart,
		Prepare: func(fsys durable.FS) error {
			err := prepared(1, histA)(fsys)
			return errors.Join(err, crashtest.Session(fsys, func(j *step.Local) error {
				return j.PutInfo(&step.ProcInfo{ProcStatus: types.ProcStatus{UUID: histA, PID: 1, Exit: &types.ExitStatus{}}, State: types.StateDead})
			}))
		},
		Run: func(fsys durable.FS, ack func(string)) error {
			return crashtest.Session(fsys, func(j *step.Local) error {
				var err error
				return errors.Join(authored(j, histA, ack, func(a *author) {
					if err = j.PutInfo(running(histA, 2, 1)); err != nil {
						return
					}
					a.marker(step.Marker{Name: step.MarkerResumed, PID: 2})
					if a.commit(); a.err == nil {
						ack(awake)
					}
				}), err)
			})
		},
		Check: func(fsys durable.FS, acked []string) error {
			told := slices.Contains(acked, awake)
			err := crashtest.Sound(fsys, slices.DeleteFunc(slices.Clone(acked), func(a string) bool { return a == awake }))
			return errors.Join(err, crashtest.Session(fsys, func(j *step.Local) error {
				if info, known := j.Index().Get(histA); told && (!known || info.Over()) {
					return errors.New("what was told to go on is said to be over: nobody would look at it")
				}
				return nil
			}))
		}}
}
