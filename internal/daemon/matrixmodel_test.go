package daemon_test

import (
	"slices"
	"strings"
	"testing"

	"rnix/types"
)

// The axes of the matrix. A way of naming is no argument of the model: it makes no difference.
var (
	matrixVerbs = []string{"kill -TERM", "kill -KILL", "kill -INT", "pause", "resume",
		"kill -TERM --subtree", "kill -KILL --subtree", "kill -INT --subtree", "pause --subtree", "resume --subtree",
		"budget add", "budget add --subtree", "steer", "send", "wait", "log", "steps", "diff"}
	// The name of a node is run/node.
	matrixNamings = []string{"PID", "UUID", "prefix", "name"}
	// Where the process lies that is named.
	matrixPlaces = []string{
		"model",        // in a model call, as all of its family
		"tool",         // in a tool call; the others in model calls
		"waiting",      // for its child, which is in a model call
		"paused",       // with all of its family
		"parked",       // suspended, as its budget is used up; the others go on
		"over parked",  // its child is parked; itself in a model call, or, if it is a run, suspended with it
		"ended",        // killed, with all of its family
		"ended below",  // killed, while all others of its family are paused
		"paused, stop", // as paused, and then the daemon was stopped and started again
		"stopped",      // suspended with all of its family, as the daemon was stopped
		"cut off",      // the same, as the daemon was killed
		"archived",     // ended, and then archived with all of its family
		"gone",         // ended, and then deleted with all of its family
	}
	// Whom of its family the named process is: root, middle or leaf of a chain of three, alone, the run of a workflow
	// or its only node.
	matrixFamilies = []string{"alone", "parent", "middle", "child", "run", "node"}
)

// square is one cell of the matrix.
type square struct{ verb, naming, place, family string }

func (c square) String() string {
	return strings.Join([]string{c.verb, c.naming, c.place, c.family}, " | ")
}

// fate is what becomes of a member of a family, as people see it.
type fate string

const (
	runs      fate = "running"
	isPaused  fate = "paused"
	suspended fate = "suspended"
	archived  fate = "archived"
	deleted   fate = "deleted"
)

// endedBy is the fate of what has ended with an exit code.
func endedBy(code int) fate { return fate("ended " + string(rune('0'+code))) }

func (f fate) ended() bool { return strings.HasPrefix(string(f), "ended") }

// kin is a member of a family. Each is the child of the one before it.
type kin struct {
	role string // its place in the chain, and its name
	was  fate   // before the verb
	body bool   // it has no model: a run, which waits for its node, and stands for it
	poor bool   // it has used up its budget
}

// kinship is a family before the verb.
type kinship struct {
	chain  []kin
	target int  // which of them is named
	onDisk bool // the daemon was started again since: what did not end is in no memory
}

// before is the family of a cell as the verb finds it. False: there is no such cell, as one without a child waits for none.
func before(place, family string) (k kinship, ok bool) {
	switch family {
	case "alone":
		k.chain = []kin{{role: "one"}}
	case "run", "node":
		k.chain = []kin{{role: "run", body: true}, {role: "node"}}
		k.target = map[string]int{"run": 0, "node": 1}[family]
	default:
		k.chain = []kin{{role: "root"}, {role: "mid"}, {role: "leaf"}}
		k.target = map[string]int{"parent": 0, "middle": 1, "child": 2}[family]
	}
	all := runs
	switch place {
	case "paused", "paused, stop", "ended below":
		all = isPaused
	case "ended":
		all = endedBy(types.ExitCancelled)
	case "stopped", "cut off":
		all = suspended
	case "archived":
		all = archived
	case "gone":
		all = deleted
	}
	for i := range k.chain {
		k.chain[i].was = all
	}
	k.onDisk = slices.Contains([]string{"paused, stop", "stopped", "cut off", "archived", "gone"}, place)
	last := k.target == len(k.chain)-1
	switch place {
	case "parked":
		k.parks(k.target)
		return k, family != "run" // it uses nothing itself
	case "over parked":
		if last {
			return k, false
		}
		k.parks(k.target + 1)
	case "waiting":
		return k, !last
	case "ended below":
		k.chain[k.target].was = endedBy(types.ExitError) // killed while it was paused
		return k, k.target > 0
	case "model", "tool":
		return k, family != "run"
	}
	return k, true
}

// parks has a member use up its budget. Who only waits for it is suspended with it.
func (k *kinship) parks(i int) {
	k.chain[i].was, k.chain[i].poor = suspended, true
	if i > 0 && k.chain[i-1].body {
		k.chain[i-1].was = suspended
	}
}

// decided reports whether the specifications say what the verb does there. They do not for: a resume of a run that has ended, or of its node,
// which is that of rnix compose resume; a resume of an ended family with --subtree; more budget for what has ended.
func decided(verb, place, family string) bool {
	switch {
	case place != "ended" && place != "ended below":
		return true
	case verb == "resume":
		return family != "run" && family != "node"
	}
	return verb != "resume --subtree" && !strings.HasPrefix(verb, "budget add")
}

// outcome is what a verb does.
type outcome struct {
	code  types.ErrCode // of the refusal; "" = it is accepted
	says  string        // what stands in the refusal, or what wait answers
	after []fate        // of each of the family
}

func (o outcome) equal(p outcome) bool {
	return o.code == p.code && o.says == p.says && slices.Equal(o.after, p.after)
}

func (o outcome) String() string {
	var b strings.Builder
	if b.WriteString("accepted"); o.code != "" {
		b.Reset()
		b.WriteString(string(o.code))
	}
	if o.says != "" {
		b.WriteString(" (" + o.says + ")")
	}
	for i, f := range o.after {
		b.WriteString([]string{": ", ", "}[min(i, 1)] + string(f))
	}
	return b.String()
}

// expect is the model: what a verb does to a process of a family, wherever its members lie and however it is named.
func expect(verb string, k kinship) outcome {
	o := outcome{after: make([]fate, len(k.chain))}
	for i := range k.chain {
		o.after[i] = k.chain[i].was
	}
	switch k.chain[k.target].was {
	case archived:
		o.code, o.says = types.ErrNotFound, "archived"
		return o
	case deleted:
		o.code, o.says = types.ErrNotFound, "deleted"
		return o
	}
	action, tree := strings.CutSuffix(verb, " --subtree")
	switch {
	case strings.HasPrefix(action, "kill"):
		o.kill(k, tree)
	case action == "pause":
		o.pause(k, tree)
	case action == "resume":
		o.resume(k, tree)
	default:
		o.quiet(k, action, tree)
	}
	return o
}

// meant are the members whom a verb is for: one, or with --subtree also those below it, wherever they lie. A run does nothing but by its
// nodes, so what is done to it is done to them.
func meant(k kinship, tree bool) []int {
	ids := []int{k.target}
	for i := k.target + 1; (tree || k.chain[k.target].body) && i < len(k.chain); i++ {
		ids = append(ids, i)
	}
	return ids
}

// kill ends what has not ended. Killed while paused has an exit code of its own (003 §7.5). Children go on below PID 0 (003 §7.4). A run
// fails with its node, unless it is paused or on disk.
func (o *outcome) kill(k kinship, tree bool) {
	if o.over(k) {
		return
	}
	for _, i := range meant(k, tree) {
		o.after[i] = endedBy(types.ExitCancelled)
		if k.chain[i].was == isPaused {
			o.after[i] = endedBy(types.ExitError)
		}
	}
	up := k.target - 1
	if up < 0 || !k.chain[up].body {
		return
	}
	if held := k.onDisk || o.after[up] == isPaused; !held {
		o.after[up] = endedBy(types.ExitError)
	}
}

// over refuses what is for processes that have not ended.
func (o *outcome) over(k kinship) bool {
	if k.chain[k.target].was.ended() {
		o.code = types.ErrNotFound
	}
	return o.code != ""
}

// pause holds whatever has not ended until somebody resumes it, also what is suspended already. Twice is once (003 §7.6).
func (o *outcome) pause(k kinship, tree bool) {
	if o.over(k) {
		return
	}
	for _, i := range meant(k, tree) {
		if !o.after[i].ended() {
			o.after[i] = isPaused
		}
	}
}

// resume lets one process go on, or with --subtree all below it too. It wakes those above it that are suspended or paused (001, "Resume
// propagates upward"). What runs already is a CONFLICT for one, and nothing for a tree (003 §7.6).
func (o *outcome) resume(k kinship, tree bool) {
	me := k.chain[k.target]
	switch {
	case me.poor, me.body && k.chain[k.target+1].poor:
		o.code = types.ErrExhausted
		return
	case me.was == runs && !tree:
		o.code = types.ErrConflict
		return
	case me.was == runs: // none below it is paused; who waits for a budget waits on
		return
	}
	for _, i := range meant(k, tree) {
		o.after[i] = runs
	}
	o.wakeAbove(k.target, true)
}

// wakeAbove wakes those above the named one that are suspended, and with thaw those that are paused.
func (o *outcome) wakeAbove(i int, thaw bool) {
	for i--; i >= 0 && (o.after[i] == suspended || thaw && o.after[i] == isPaused); i-- {
		o.after[i] = runs
	}
}

// quiet is the model of the verbs that move nobody, but for more budget for who waits for it.
func (o *outcome) quiet(k kinship, verb string, tree bool) {
	me := k.chain[k.target]
	switch verb {
	case "budget add":
		for i := k.target; i < len(k.chain) && (tree || i == k.target); i++ {
			if k.chain[i].poor {
				o.after[i] = runs
				o.wakeAbove(i, false)
			}
		}
	case "steer", "send":
		switch {
		case me.was.ended():
			o.code = types.ErrBrokenPipe
		case me.body:
			o.code = types.ErrInvalid
		}
	case "diff":
		if me.body { // it has no files
			o.code = types.ErrNotFound
		}
	case "wait":
		switch {
		case me.was.ended():
			o.says = string(me.was)
		case me.was == suspended || k.onDisk:
			o.says = "suspended"
		default:
			o.code = types.ErrTimeout
		}
	}
}

func TestMatrixModelSaysWhatTheSpecificationsDo(t *testing.T) {
	for _, c := range []struct{ verb, place, family, want string }{
		{"kill -TERM", "model", "middle", "accepted: running, ended 4, running"},
		{"kill -INT --subtree", "model", "middle", "accepted: running, ended 4, ended 4"},
		{"kill -KILL", "paused", "parent", "accepted: ended 1, paused, paused"},
		{"kill -KILL", "waiting", "run", "accepted: ended 4, ended 4"},
		{"kill -TERM", "model", "node", "accepted: ended 1, ended 4"},
		{"kill -TERM", "parked", "node", "accepted: ended 1, ended 4"},
		{"kill -TERM", "stopped", "node", "accepted: suspended, ended 4"},
		{"kill -TERM", "ended", "alone", "NOT_FOUND: ended 4"},
		{"pause", "parked", "parent", "accepted: paused, running, running"},
		{"pause --subtree", "parked", "parent", "accepted: paused, paused, paused"},
		{"resume", "paused", "child", "accepted: running, running, running"},
		{"resume", "ended below", "child", "accepted: running, running, running"},
		{"resume", "stopped", "child", "accepted: running, running, running"},
		{"resume", "stopped", "parent", "accepted: running, suspended, suspended"},
		{"resume", "stopped", "run", "accepted: running, running"},
		{"resume", "paused, stop", "run", "accepted: running, running"},
		{"pause", "waiting", "run", "accepted: paused, paused"},
		{"resume", "over parked", "run", "RESOURCE_EXHAUSTED: suspended, suspended"},
		{"budget add", "over parked", "run", "accepted: suspended, suspended"},
		{"budget add --subtree", "over parked", "run", "accepted: running, running"},
		{"budget add", "parked", "node", "accepted: running, running"},
		{"resume --subtree", "paused, stop", "parent", "accepted: running, running, running"},
		{"resume --subtree", "paused, stop", "middle", "accepted: running, running, running"},
		{"resume", "parked", "alone", "RESOURCE_EXHAUSTED: suspended"},
		{"resume", "tool", "alone", "CONFLICT: running"},
		{"budget add", "parked", "middle", "accepted: running, running, running"},
		{"send", "ended", "alone", "BROKEN_PIPE: ended 4"},
		{"wait", "ended", "alone", "accepted (ended 4): ended 4"},
		{"wait", "cut off", "child", "accepted (suspended): suspended, suspended, suspended"},
		{"log", "gone", "alone", "NOT_FOUND (deleted): deleted"},
	} {
		k, ok := before(c.place, c.family)
		if got := expect(c.verb, k).String(); !ok || got != c.want {
			t.Errorf("%s, %s, %s: %s, want %s (%v)", c.verb, c.place, c.family, got, c.want, ok)
		}
	}
	for _, c := range [][2]string{{"waiting", "alone"}, {"waiting", "node"}, {"over parked", "child"}, {"parked", "run"}, {"tool", "run"}} {
		if _, ok := before(c[0], c[1]); ok {
			t.Errorf("%s, %s: there is no such family", c[0], c[1])
		}
	}
}
