package loop

import (
	"time"

	"rnix/types"
	"rnix/vfs"
)

// elsewhere is where a call is said to have run that whoever answered has run itself.
const elsewhere = "own:"

// done returns how a call ended that has been run already; nil if it is to be run.
func (r *Response) done(id string) *Done {
	for i := range r.Done {
		if r.Done[i].ID == id {
			return &r.Done[i]
		}
	}
	return nil
}

// stopRan is the stop reason of an answer whose calls have all been run by whoever answered. See drivers/llm.
const stopRan = "tools_ran"

// ranUnseen settles a call of such an answer when it is not known any more how it ended: the process ended between the
// answer and the record of its calls.
func (a *Action) ranUnseen() {
	a.ranElsewhere(&Done{ID: a.Call.ID, Output: "(You have run this yourself; what came of it was not recorded, since the process ended meanwhile.)"})
}

// ranElsewhere settles a call that was run by whoever asked for it: it is on record as any other, and
// nothing is run. What it has done is not ours to take back or to run again.
func (a *Action) ranElsewhere(d *Done) {
	effect := vfs.EffectExternal
	if d.Reads {
		effect = vfs.EffectNone
	}
	a.Kind, a.Problem, a.fields = ToolCall, nil, object(a.Call.Input)
	a.Tool = vfs.Tool{Name: a.Call.Name, Path: elsewhere + a.Call.Name, Effect: effect}
	a.Settled, a.Closed = &Outcome{Output: d.Output, Duration: time.Duration(d.DurationMs) * time.Millisecond}, true
	if d.IsError {
		a.Settled.Output, a.Settled.Err = "", types.Errorf(types.ErrDriver, "Tool", a.Call.Name, "%s", d.Output)
	}
}

// allElsewhere reports whether nothing is left to do.
func allElsewhere(actions []Action) bool {
	for i := range actions {
		if !actions[i].Elsewhere() {
			return false
		}
	}
	return true
}

// Elsewhere reports whether a call was run by whoever asked for it.
func (a *Action) Elsewhere() bool { return a.Settled != nil && a.Tool.Path == elsewhere+a.Call.Name }
