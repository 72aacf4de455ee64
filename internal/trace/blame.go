package trace

import (
	"cmp"
	"slices"

	"rnix/internal/compose"
	"rnix/internal/step"
	"rnix/types"
)

// blame follows the cause of the root's failure down: from a child that has failed to its failing step, and
// from that to the call or the model; of a workflow to the node that failed first, and from that to its process, if it
// had one that failed. What is suspended is followed as what has failed; what runs or went well has no blame.
func (f *forest) blame() []Blame {
	var out []Blame
	var lost []string
	seen := map[*node]bool{}
	for n := f.root; n != nil && !seen[n]; {
		seen[n] = true
		if n.Kind == Process && !failed(n) {
			break
		}
		out = append(out, Blame{Span: n.ID, PID: n.PID, UUID: n.UUID, Kind: n.Kind, Name: n.Name, Step: n.Step, Code: n.Code, Err: cmp.Or(n.Err, n.told), Lost: lost})
		st := failedNode(n)
		if st == nil {
			n, lost = cause(n), nil
			continue
		}
		lost = compose.Lost(n.nodes, st.Key.Node)
		kid := f.procs[st.UUID]
		if kid == nil || !failed(kid) || seen[kid] { // it was never there, or it did what it should and that was not enough
			at := n
			if kid != nil {
				at = kid
			}
			out = append(out, Blame{Span: at.ID, PID: at.PID, UUID: at.UUID, Kind: Node, Name: st.Key.String(), Code: st.Code, Err: bounded(cmp.Or(st.Why, string(st.Kind))), Lost: lost})
			break
		}
		n = kid
	}
	return out
}

// failedNode returns the node of a run of a workflow that failed first, if the run has ended and that is why.
func failedNode(n *node) (found *compose.Status) {
	if n.Kind != Process || n.Status != Failed || n.Exit == nil || n.Exit.Code != types.ExitError {
		return nil
	}
	for i := range n.nodes {
		if st := &n.nodes[i]; st.Phase == compose.Failed && (found == nil || st.At.Before(found.At)) {
			found = st
		}
	}
	return found
}

// failed reports whether a process has failed, or is suspended because it cannot be resumed automatically.
func failed(p *node) bool { return p.Exit != nil && p.Exit.Code != types.ExitOK }

// cause returns what made a span fail, if it was something below it; nil = it is the cause itself.
func cause(n *node) *node {
	switch n.Kind {
	case Process:
		if kid := first(n); kid != nil { // of a run of a workflow, a supervisor
			return kid
		}
		return failingStep(n)
	case Step:
		if p := failingPart(n); p != nil {
			return p
		}
		if n.up != nil && n.up.Kind == Process && declared(n.up) {
			return toldPart(n)
		}
	case Tool:
		for _, k := range append(slices.Clone(n.kids), n.through...) {
			if k.Kind == Process && failed(k) && !k.End().After(n.End().Add(tiny)) {
				return k
			}
		}
	}
	return nil
}

// supervised is what a process that starts its children again has for a body.
const supervised = "supervisor"

// first returns the child process that failed first and was not tried again; nil if there is none.
func first(n *node) (found *node) {
	kids := n.kids
	again := map[types.UUID]bool{} // a later attempt went another way
	named := map[string]*node{}    // the latest of each child of a supervisor
	for _, k := range kids {
		if k.Kind == Process && n.Body == supervised {
			if before := named[k.Name]; before != nil && !k.Start.Before(before.End()) {
				again[before.UUID] = true
			}
			named[k.Name] = k
		}
		for _, id := range k.after {
			for _, other := range kids {
				again[id] = again[id] || other.UUID == id && other.Name == k.Name
			}
		}
	}
	for _, k := range kids {
		if k.Kind != Process || !failed(k) || again[k.UUID] {
			continue
		}
		// One that is suspended waits for those that are, and not for those that have failed.
		waits := n.Status == Open && k.Status == Open && found != nil && found.Status != Open
		if found == nil || waits || k.End().Before(found.End()) && (n.Status != Open || k.Status == Open || found.Status != Open) {
			found = k
		}
	}
	return found
}

// failingStep returns the step of an agent that ended it: the last one in which something failed, if nothing
// but the end came after it. An agent that was stopped from outside, or was in the middle of nothing, has none.
func failingStep(p *node) *node {
	var last *node
	for _, k := range p.kids {
		if k.Kind == Step {
			last = k
		}
	}
	if last == nil {
		return nil
	}
	if failingPart(last) != nil {
		return last
	}
	if p.Exit.Code == types.ExitCancelled || p.Exit.Code == types.ExitLostOwnership || p.Exit.Code == types.ExitBudget {
		return nil
	}
	for _, k := range slices.Backward(p.kids) {
		if k.Kind == Step && failingPart(k) != nil {
			return k
		}
	}
	if !declared(p) {
		return nil
	}
	for _, k := range slices.Backward(p.kids) {
		if k.Kind == Step && toldPart(k) != nil {
			return k
		}
	}
	return last
}

// stopFailed is the reason to stop of a model that says itself that the task has failed.
const stopFailed = "task_failed"

// declared reports whether the last answer of an agent said that its task has failed. Then no call need have failed: a
// command that ends with an exit code has answered.
func declared(p *node) bool {
	for _, k := range slices.Backward(p.kids) {
		if k.Kind != Step {
			continue
		}
		return slices.ContainsFunc(k.kids, func(m *node) bool { return m.Kind == Model && m.StopReason == stopFailed })
	}
	return false
}

// toldPart returns the last call of a step whose answer tells of a failure.
func toldPart(s *node) (found *node) {
	for _, k := range s.kids {
		if k.Kind == Tool && k.told != "" {
			found = k
		}
	}
	return found
}

// failingPart returns the request or the call of a step that failed: the model's before those of tools, and the
// last one of those; one that is open, if the process ended in it.
func failingPart(s *node) *node {
	var found *node
	for _, k := range s.kids {
		if k.Kind == Model && k.Status == Failed && s.Status == Failed {
			return k
		}
		if k.Kind != Tool {
			continue
		}
		open := k.Open && k.Verdict != step.LedgerRunning && k.Verdict != step.LedgerAgain && k.Verdict != step.LedgerUndone && k.Verdict != step.LedgerAttached
		if k.Status == Failed && k.told == "" || open {
			if found == nil || !child(found) || child(k) {
				found = k
			}
		}
	}
	return found
}

// child reports whether a call has a child that failed, which says more than a call without.
func child(n *node) bool { return cause(n) != nil }
