package daemon

import (
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// The notes to a model whose conversation does not say what to do next.
const (
	noteDone = "[The task was reported as done, and the process has been resumed by a person. Check whether something is left to do. If nothing is, end as you did, with the result again.]"
	noteOn   = "[The process has been resumed. Go on with the task.]"
)

// fromOf is the point from which the process goes on, and what becomes of its calls in doubt.
func (d reviver) fromOf(a *again, req *ipc.ResumeRequest) (*kernel.From, []ipc.InDoubt, error) {
	policy, err := recovery.ParsePolicy(req.OnInDoubt)
	if err != nil {
		return nil, nil, err
	}
	f := &kernel.From{State: a.state, Rec: a.rec, Was: a.was, Input: req.NewInput, Person: req.Person, Policy: policy, Choices: map[string]recovery.Policy{}}
	for id, text := range req.Choices {
		if f.Choices[id], err = recovery.ParsePolicy(text); err != nil {
			return nil, nil, err
		}
	}
	switch exit := a.state.Exit; {
	case a.state.Open != nil:
	case exit != nil && exit.Code == types.ExitOK && a.state.Phase == recovery.Ended && !a.fork:
		f.Note = noteDone
	case a.state.EndsWithAnswer():
		f.Note = noteOn
	}
	doubts := d.doubts(a, f)
	for _, c := range doubts {
		if c.Verdict == string(recovery.Refuse) {
			return nil, nil, types.Errorf(types.ErrInDoubt, "Resume", a.rec.ID.String(),
				"it is not known whether the call %s of %s in step %d has run; see it with `rnix ledger %s`, then choose with --on-in-doubt tell, retry or skip", c.CallID, c.Tool, c.Step, a.rec.ID)
		}
	}
	return f, doubts, nil
}

// doubts lists the calls that were begun and have no result, with what becomes of each.
func (d reviver) doubts(a *again, f *kernel.From) []ipc.InDoubt {
	var out []ipc.InDoubt
	for _, c := range a.state.Unknown() {
		policy := f.Policy
		if p, ok := f.Choices[c.ID]; ok {
			policy = p
		}
		restorable := c.Intent.Before != nil && a.state.Origin == nil && !d.snapshots.Off()
		out = append(out, ipc.InDoubt{CallID: c.ID, Tool: c.Name, Path: c.Intent.Path, Effect: c.Intent.Effect, Step: c.Intent.Step,
			Input: service.FirstLine(string(a.state.InputOf(c.ID)), 200), Verdict: string(recovery.Decide(&c, policy, restorable))})
	}
	return out
}
