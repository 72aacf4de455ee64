package lifecycle

import (
	"errors"
	"slices"
	"testing"

	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// again is a run that is resumed as it was, and has no nodes.
type again struct{ begun bool }

func (*again) Decide(*recovery.State) (*ipc.ResumeRequest, error) {
	return &ipc.ResumeRequest{Env: []string{"KEY=k"}}, nil
}
func (*again) Begin(kernel.Body) error       { return nil }
func (a *again) Begun(func(types.UUID) bool) { a.begun = true }

// The end of a pause that cannot be written holds until the daemon ends: nobody stays paused for that, and who asks for it is told.
func TestAResumeThatCannotBeWrittenReachesAllAndIsAnError(t *testing.T) {
	stop := step.Marker{Name: step.MarkerDaemonStop}
	for name, way := range map[string]struct {
		all []types.PID // who goes on
		do  func(w *world) (ipc.ResumeResponse, error)
	}{
		"of one": {[]types.PID{1, 2, 3}, func(w *world) (ipc.ResumeResponse, error) {
			d := &resumes{Names: w.names, Kernel: w, Seq: w.launcher.Seq, chain: w.chain()}
			return d.thaw(w.runs(true, true, true), 0)
		}},
		"of a family": {[]types.PID{1, 2, 3, 4}, func(w *world) (ipc.ResumeResponse, error) {
			d := &resumes{Names: w.names, Kernel: w, Seq: w.launcher.Seq, chain: w.chain()}
			w.runs(true, true, true, true)
			head, _ := w.names.ByUUID(w.live[2].UUID)
			return d.family(t.Context(), head, &ipc.ResumeRequest{Tree: true})
		}},
		"of one on disk": {[]types.PID{1, 2, 102}, func(w *world) (ipc.ResumeResponse, error) {
			id := w.write(w.runs(true, true).UUID, stop)
			return w.chain().Continued(t.Context(), id, &ipc.ResumeRequest{Env: []string{"KEY=k"}}, nil)
		}},
		"of a run on disk": {[]types.PID{1, 2}, func(w *world) (ipc.ResumeResponse, error) {
			id, run := w.write(w.runs(true, true).UUID, stop), new(again)
			r, err := w.chain().ResumeRun(t.Context(), id, &ipc.ResumeRequest{}, run)
			if !run.begun {
				t.Error("its nodes stay suspended")
			}
			return r, err
		}},
	} {
		for _, lost := range append([]types.PID{0}, way.all...) {
			w := newWorld(t)
			w.lost = []types.PID{lost}
			r, err := way.do(w)
			of, _ := errors.AsType[*types.SyscallError](err)
			if lost == 0 && err != nil || lost != 0 && (types.CodeOf(err) != types.ErrStorage || of.PID != lost) {
				t.Errorf("%s, of which PID %d cannot be written: %v", name, lost, err)
			}
			for _, pid := range way.all {
				if !slices.Contains(w.told, "SIGRESUME "+pid.String()) {
					t.Errorf("%s, of which PID %d cannot be written: PID %d stays paused: %q", name, lost, pid, w.told)
				}
				if pid != r.PID && name != "of a run on disk" && !slices.Contains(r.Woken, pid) {
					t.Errorf("%s, of which PID %d cannot be written: woken %v", name, lost, r.Woken)
				}
			}
		}
	}
}
