package compose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rnix/types"
)

// Do is what is to be done.
type Do int

// What can be done.
const (
	Start   Do = iota // an attempt of an instance, now
	Expand            // find the items of a node with foreach, now
	Skip              // a node that can not run any more; Why says so
	Wait              // until something happens, at the latest Until; zero = no time
	Suspend           // the run: all that has not ended is suspended; Why names it, Until is the earliest wake
	End               // the run: everything has ended
)

// Action is one thing to be done.
type Action struct {
	Do    Do
	Key   Key
	Why   string
	Until time.Time
}

// Next returns what is to be done now: starts, expansions and skips, in the order of the plan, and when
// there are none, one of Wait, Suspend and End.
func (s *State) Next(now time.Time) []Action {
	var out []Action
	var until time.Time
	room := s.plan.Width
	open, parked := 0, 0
	for i := range s.nodes {
		for j := range s.nodes[i].inst {
			switch s.nodes[i].inst[j].phase {
			case Running:
				room--
				open++
			case Suspended:
				parked++
			case Retrying:
				open++
			}
		}
	}
	ended := true
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.phase.Final() {
			continue
		}
		ended = false
		ready, never := s.ready(n)
		switch {
		case never != "":
			out = append(out, Action{Do: Skip, Key: Key{n.name, -1}, Why: never})
			continue
		case !ready:
			continue
		case n.node.ForEach != nil && n.phase == Waiting:
			out = append(out, Action{Do: Expand, Key: Key{n.name, -1}})
			continue
		}
		for j := range n.inst {
			in := &n.inst[j]
			switch {
			case in.phase == Retrying && in.until.After(now):
				if until.IsZero() || in.until.Before(until) {
					until = in.until
				}
			case in.phase == Waiting || in.phase == Retrying:
				if open++; room > 0 {
					room--
					out = append(out, Action{Do: Start, Key: in.key})
				}
			}
		}
	}
	switch {
	case len(out) > 0:
		return out
	case ended:
		return []Action{{Do: End}}
	case open == 0 && parked > 0:
		return []Action{suspension(s.Report())}
	}
	return []Action{{Do: Wait, Until: until}}
}

// ready reports whether a node's conditions hold, or why they never will.
func (s *State) ready(n *nodeState) (ready bool, never string) {
	ready = true
	for _, up := range n.node.Above() {
		cond, _ := n.node.Needs(up)
		switch p := s.nodes[s.place[up]].phase; {
		case !p.Final():
			ready = false
		case fits(cond, p):
		default:
			return false, fmt.Sprintf("it needs %s to have %s, and it %s", up, cond, became[p])
		}
	}
	return ready, ""
}

// fits reports whether a node that has ended so is what another one needs.
func fits(cond Condition, p Phase) bool {
	return cond == OnCompleted || cond == OnSucceeded && p == Succeeded || cond == OnFailed && p == Failed
}

// because returns the nodes for whose ends a node was skipped, if it was.
func because(s *State, n *nodeState, p Phase) (out []string) {
	if p != Skipped {
		return nil
	}
	for _, up := range n.node.Above() {
		cond, _ := n.node.Needs(up)
		if p := s.nodes[s.place[up]].phase; p.Final() && !fits(cond, p) {
			out = append(out, up)
		}
	}
	return out
}

// Lost returns the nodes that were not run because one has failed, or because one that was not run for that was
// skipped, in the order of the report.
func Lost(report []Status, node string) (out []string) {
	gone := map[string]bool{node: true}
	for grown := true; grown; {
		grown = false
		for i := range report {
			st := &report[i]
			if st.Phase == Skipped && !gone[st.Key.Node] && slices.ContainsFunc(st.Because, func(up string) bool { return gone[up] }) {
				gone[st.Key.Node], grown = true, true
			}
		}
	}
	for i := range report {
		if st := &report[i]; st.Phase == Skipped && st.Key.Node != node && gone[st.Key.Node] && !slices.Contains(out, st.Key.Node) {
			out = append(out, st.Key.Node)
		}
	}
	return out
}

var became = map[Phase]string{Succeeded: "has succeeded", Failed: "has failed", Skipped: "was skipped"}

// suspension is how a run waits that can do nothing else.
func suspension(report []Status) Action {
	a := Action{Do: Suspend}
	var names []string
	for i := range report {
		st := &report[i]
		if st.Phase != Suspended {
			continue
		}
		names = append(names, st.Key.String()+" ("+st.Why+")")
		if !st.Until.IsZero() && (a.Until.IsZero() || st.Until.Before(a.Until)) {
			a.Until = st.Until
		}
	}
	a.Why = "its nodes, which are suspended: " + few(names)
	return a
}

// Live returns the instances of which an attempt has started and not ended, with the UUID of the attempt.
func (s *State) Live() map[Key]types.UUID {
	out := map[Key]types.UUID{}
	for i := range s.nodes {
		for j := range s.nodes[i].inst {
			if in := &s.nodes[i].inst[j]; in.phase == Running || in.phase == Suspended {
				out[in.key] = in.note.UUID
			}
		}
	}
	return out
}

// Item is the item of an instance; nil if it has none.
func (s *State) Item(k Key) any {
	if n := &s.nodes[s.place[k.Node]]; k.Index >= 0 && k.Index < len(n.items) {
		return n.items[k.Index]
	}
	return nil
}

// Latest is the note about the latest attempt of an instance.
func (s *State) Latest(k Key) (Note, bool) {
	n, ok := s.known[k]
	return n, ok
}

// Given is an instance whose result another node is given.
type Given struct {
	Key   Key
	Phase Phase
	UUID  types.UUID // of the attempt
	Why   string     // it has failed, or was skipped
}

// Given returns whose results a node is given: of each node that it waits for, all instances.
func (s *State) Given(node string) []Given {
	var out []Given
	for _, up := range s.nodes[s.place[node]].node.Above() {
		out = append(out, s.Results(up)...)
	}
	return out
}

// Results returns the instances of a node, with what has become of them.
func (s *State) Results(node string) []Given {
	n := &s.nodes[s.place[node]]
	if len(n.inst) == 0 {
		return []Given{{Key: Key{n.name, -1}, Phase: n.phase, Why: n.why}}
	}
	out := make([]Given, len(n.inst))
	for i := range n.inst {
		in := &n.inst[i]
		out[i] = Given{Key: in.key, Phase: in.phase, UUID: in.note.UUID, Why: in.why}
	}
	return out
}

// Status is what people see of an instance, or of a node whose instances are not known.
type Status struct {
	Key      Key
	Phase    Phase
	Why      string
	Until    time.Time // of one that waits for its next attempt, or can go on by itself then
	Attempt  int
	UUID     types.UUID
	Kind     Kind
	Code     types.ErrCode // of the error for which it could not be started
	Exit     *int
	Files    []string // of a conflict
	Tokens   int      // of attempts that have ended
	CostUSD  float64
	Unpriced int // those of Tokens of which nobody knows what they cost
	At       time.Time
	Needs    []string // of one that waits: the nodes that have not ended
	Because  []string // of one that was skipped: the nodes whose ends do not fit what it needs
	Item     string   // of an instance of a node with foreach: its Label
}

// Report returns what has become of each instance, in the order of the plan.
func (s *State) Report() []Status {
	var out []Status
	for i := range s.nodes {
		n := &s.nodes[i]
		if len(n.inst) == 0 {
			k := Key{n.name, -1}
			st := Status{Key: k, Phase: n.phase, Why: n.why, Needs: s.needs(n), Because: because(s, n, n.phase)}
			if n.phase.Final() {
				st.Kind, st.Code, st.At = s.known[k].Kind, s.known[k].Code, s.known[k].At
			}
			out = append(out, st)
			continue
		}
		for j := range n.inst {
			in := &n.inst[j]
			note := s.known[in.key]
			st := Status{Key: in.key, Phase: in.phase, Why: in.why, Attempt: note.Attempt, Tokens: note.Tokens, CostUSD: note.CostUSD, Unpriced: note.Unpriced}
			if in.key.Index >= 0 {
				st.Item = Label(s.Item(in.key))
			}
			if in.phase != Waiting {
				st.UUID, st.Kind, st.Code, st.Exit, st.Files, st.At = in.note.UUID, in.note.Kind, in.note.Code, in.note.Exit, in.note.Files, in.note.At
				st.Because = because(s, n, in.phase)
			}
			switch in.phase {
			case Waiting:
				st.Needs = s.needs(n)
			case Retrying:
				st.Until = in.until
			case Suspended:
				st.Until = in.wake
			}
			out = append(out, st)
		}
	}
	return out
}

func (s *State) needs(n *nodeState) []string {
	if n.phase.Final() {
		return nil
	}
	return slices.DeleteFunc(n.node.Above(), func(up string) bool { return s.nodes[s.place[up]].phase.Final() })
}

// Phase returns what has become of a node.
func (s *State) Phase(node string) Phase {
	n := &s.nodes[s.place[node]]
	if n.phase.Final() || n.node.ForEach != nil {
		return n.phase
	}
	return n.inst[0].phase
}

// Summary says in one line what has become of a run that has ended, and whether all is well: no node has
// failed, so that nothing was skipped but what was to be.
func Summary(report []Status) (text string, ok bool) {
	var failed, skipped []string
	done, total := 0, 0
	for _, st := range report {
		total++
		switch st.Phase {
		case Succeeded:
			done++
		case Failed:
			what := st.Key.String()
			if st.Kind != "" && st.Kind != Error {
				what += " (" + string(st.Kind) + ")"
			}
			failed = append(failed, what)
		case Skipped:
			skipped = append(skipped, st.Key.String())
		}
	}
	text = fmt.Sprintf("%d of %s succeeded", done, types.Counted(total, "node", "nodes"))
	if len(failed) > 0 {
		text = fmt.Sprintf("%d of %s failed: %s", len(failed), types.Counted(total, "node", "nodes"), few(failed))
	}
	if len(skipped) > 0 {
		text += fmt.Sprintf("; %d skipped: %s", len(skipped), few(skipped))
	}
	return text, len(failed) == 0
}

func few(names []string) string {
	if n := len(names); n > 8 {
		return strings.Join(names[:8], ", ") + fmt.Sprintf(" and %d more", n-8)
	}
	return strings.Join(names, ", ")
}

// MayRedo refuses to do a node again that has not ended, or whose conditions do not hold. stopped says of an attempt
// that has no end here whether it was ended with the run.
func (s *State) MayRedo(node string, stopped func(types.UUID) bool) error {
	i, ok := s.place[node]
	if !ok {
		return fmt.Errorf("there is no node %q; nodes are %s", node, few(s.plan.Order))
	}
	for below := range s.plan.From(node) {
		n := &s.nodes[s.place[below]]
		for j := range n.inst {
			if p := n.inst[j].phase; (p == Running || p == Suspended) && !stopped(n.inst[j].note.UUID) {
				return fmt.Errorf("%s was begun and has not come to its end; resume the whole run, without naming a node", n.inst[j].key)
			}
		}
	}
	for _, up := range s.nodes[i].node.Above() {
		cond, _ := s.nodes[i].node.Needs(up)
		p := s.Phase(up)
		if !p.Final() {
			return fmt.Errorf("%s needs %s to have %s, and it has not got so far; resume the whole run, or do that node again", node, up, cond)
		}
		if cond == OnSucceeded && p != Succeeded || cond == OnFailed && p != Failed {
			return fmt.Errorf("%s needs %s to have %s, and it %s; do that node again", node, up, cond, became[p])
		}
	}
	return nil
}
