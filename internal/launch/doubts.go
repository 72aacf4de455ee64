package launch

import (
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// The notes to a model whose conversation does not say what to do next.
const (
	noteDone    = "[The task was reported as done, and the process has been resumed by a person. Check whether something is left to do. If nothing is, end as you did, with the result again.]"
	noteRefused = "[The process ended after a call that was refused, and has been resumed by a person. That call may be allowed now. Try what is left to do of the task, and end with the result.]"
	noteOn      = "[The process has been resumed. Go on with the task.]"
)

// fromOf is the point from which the process goes on, and what becomes of its calls in doubt.
func (l *Launcher) fromOf(a *Opened, req *ipc.ResumeRequest) (*kernel.From, []ipc.InDoubt, error) {
	policy, err := recovery.ParsePolicy(req.OnInDoubt)
	if err != nil {
		return nil, nil, err
	}
	f := &kernel.From{State: a.State, Rec: a.Rec, Was: a.Was, Input: req.NewInput, Person: req.Person, Policy: policy, Choices: map[string]recovery.Policy{}}
	for id, text := range req.Choices {
		if f.Choices[id], err = recovery.ParsePolicy(text); err != nil {
			return nil, nil, err
		}
	}
	switch exit := a.State.Exit; {
	case a.State.Open != nil:
	case exit != nil && exit.Code == types.ExitRefused && a.State.Phase == recovery.Ended && !a.Fork:
		f.Note = noteRefused
	case exit != nil && exit.Code == types.ExitOK && a.State.Phase == recovery.Ended && !a.Fork:
		f.Note = noteDone
	case a.State.EndsWithAnswer():
		f.Note = noteOn
	}
	doubts := l.doubts(a, f)
	for _, c := range doubts {
		if c.Verdict == string(recovery.Refuse) {
			return nil, nil, types.Errorf(types.ErrInDoubt, "Resume", a.Rec.ID.String(),
				"it is not known whether the call %s of %s in step %d has run; see it with `rnix ledger %s`, then choose with --on-in-doubt tell, retry or skip", c.CallID, c.Tool, c.Step, a.Rec.ID)
		}
	}
	return f, doubts, nil
}

// doubts lists the calls that were begun and have no result, with what becomes of each.
func (l *Launcher) doubts(a *Opened, f *kernel.From) []ipc.InDoubt {
	var out []ipc.InDoubt
	for _, c := range a.State.Unknown() {
		policy := f.Policy
		if p, ok := f.Choices[c.ID]; ok {
			policy = p
		}
		restorable := c.Intent.Before != nil && a.State.Origin == nil && l.Snapshots
		out = append(out, ipc.InDoubt{CallID: c.ID, Tool: c.Name, Path: c.Intent.Path, Effect: c.Intent.Effect, Step: c.Intent.Step,
			Input: service.FirstLine(string(a.State.InputOf(c.ID)), 200), Verdict: string(recovery.Decide(&c, policy, restorable))})
	}
	return out
}
