package kernel

import (
	"context"
	"testing"

	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// clerk is a body that starts one child and ends with its result.
type clerk struct {
	self   Self
	joined chan types.PID
	ended  chan *Process
}

func (c *clerk) Attach(self Self, _ *recovery.State) error {
	c.self = self
	return nil
}

func (c *clerk) Record() (step.BodyRecord, error) {
	return step.BodyRecord{Kind: "clerk", Spec: []byte(`{"n":1}`)}, nil
}

func (c *clerk) Joined(child *Process) { c.joined <- child.PID }

func (c *clerk) Ended(child *Process) { c.ended <- child }

func (c *clerk) Run(ctx context.Context) End {
	pid, err := c.self.Kernel().SpawnContext(ctx, "help", nil, SpawnOpts{ParentPID: c.self.Process().PID, ProcSpec: types.ProcSpec{Provider: "m"}})
	if err == nil {
		err = c.self.Note("child", map[string]types.PID{"pid": pid})
	}
	if err != nil {
		return End{Exit: types.ExitStatus{Code: types.ExitError, Reason: err.Error(), Err: err}}
	}
	select {
	case child := <-c.ended:
		i, err := c.self.Kernel().WaitInfo(ctx, child.PID)
		if err != nil {
			return End{Cause: err}
		}
		return End{Exit: types.ExitStatus{Reason: types.ReasonCompleted}, Result: "child said " + i.Result}
	case <-ctx.Done():
		return End{Cause: context.Cause(ctx)}
	}
}

func TestABodyRunsInPlaceOfTheLoopAndIsToldOfItsChildren(t *testing.T) {
	s := newSys(t)
	c := &clerk{joined: make(chan types.PID, 1), ended: make(chan *Process, 1)}
	pid, err := s.SpawnContext(t.Context(), "work as a clerk", nil, SpawnOpts{Body: c})
	if err != nil {
		t.Fatal(err)
	}
	end, err := s.WaitInfo(t.Context(), pid)
	if err != nil || end.Exit == nil || end.Exit.Code != types.ExitOK {
		t.Fatalf("%+v, %v", end.Exit, err)
	}
	child := <-c.joined
	if end.Result == "" || child == pid {
		t.Errorf("result %q, child %d", end.Result, child)
	}
	rec := s.stores.of(end.UUID)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	state := new(recovery.State)
	for i := range rec.committed {
		r := rec.committed[i]
		r.Seq = uint64(i + 1)
		state.Apply(&r)
	}
	was, err := state.Was()
	if err != nil || was.Body == nil || was.Body.Kind != "clerk" || string(was.Body.Spec) != `{"n":1}` {
		t.Errorf("%+v, %v", was.Body, err)
	}
	if got := string(state.Notes["child"]); got != `{"pid":`+child.String()+`}` {
		t.Errorf("note %q", got)
	}
}
