package compose

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/types"
)

// Phase is what has become of an instance of a node, or of a node. Part of the on-disk format.
type Phase string

// The phases.
const (
	Waiting   Phase = "waiting"   // for what it depends on, or for a place
	Running   Phase = "running"   // also while it is paused
	Suspended Phase = "suspended" // it waits for a budget, a quota or a person; not ended
	Stopped   Phase = "stopped"   // it was ended with its run, and goes on with it; only of a run that has ended
	Retrying  Phase = "retrying"  // an attempt has failed, and the next one is due later
	Expanded  Phase = "expanded"  // of a node with foreach: its items are known
	Succeeded Phase = "succeeded"
	Failed    Phase = "failed"
	Skipped   Phase = "skipped" // what it waits for can not come about any more
)

// Final reports whether nothing more becomes of it.
func (p Phase) Final() bool { return p == Succeeded || p == Failed || p == Skipped }

// Key names an instance of a node. Index is -1 for the node itself, which is its only instance if it has
// no foreach.
type Key struct {
	Node  string
	Index int
}

// String returns "node" or "node[3]".
func (k Key) String() string {
	if k.Index < 0 {
		return k.Node
	}
	return k.Node + "[" + strconv.Itoa(k.Index) + "]"
}

// ParseKey reads what String has written.
func ParseKey(s string) (Key, bool) {
	name, rest, deep := strings.Cut(s, "[")
	if !deep {
		return Key{s, -1}, s != ""
	}
	digits, closed := strings.CutSuffix(rest, "]")
	n, err := strconv.Atoi(digits)
	return Key{name, n}, closed && err == nil && n >= 0 && name != ""
}

// Note is what a run keeps of an instance, or of a node with foreach: the latest of each key is all that
// is needed to go on. Part of the on-disk format.
type Note struct {
	Round    int           `json:"round,omitempty"`   // of the run, from 0
	Phase    Phase         `json:"phase"`             // Running, Expanded, Succeeded, Failed or Skipped
	Attempt  int           `json:"attempt,omitempty"` // from 1, over all rounds
	First    int           `json:"first,omitempty"`   // the first attempt of the round
	UUID     types.UUID    `json:"uuid,omitzero"`     // of the attempt
	Origin   types.UUID    `json:"origin,omitzero"`   // of the first attempt of the round, if this is a later one
	Kind     Kind          `json:"kind,omitempty"`    // why the attempt failed
	Why      string        `json:"why,omitempty"`     // in words: why it failed, or was skipped
	Code     types.ErrCode `json:"code,omitempty"`    // of the error for which it could not be started
	Exit     *int          `json:"exit,omitempty"`    // exit code of the process
	Files    []string      `json:"files,omitempty"`   // of a conflict
	At       time.Time     `json:"at,omitzero"`       // when it happened
	Tokens   int           `json:"tokens,omitempty"`  // over all attempts that have ended
	CostUSD  float64       `json:"cost_usd,omitempty"`
	Unpriced int           `json:"unpriced_tokens,omitempty"` // those of Tokens of which nobody knows what they cost
	Told     string        `json:"told,omitempty"`            // what the attempt is told of the one before
	Items    []any         `json:"items,omitzero"`            // of an expanded node
}

// Redo is what a later round of a run does again. The zero value: what has failed, and what was skipped.
// Part of the on-disk format.
type Redo struct {
	Node string `json:"node,omitempty"` // and those below it, whatever became of them
}

// State is what has become of each node of one run. It decides what is done next, and does nothing itself.
// It is not safe for concurrent use.
type State struct {
	plan   *Plan
	rounds []Redo
	over   [][]bool // over[r]: which nodes, by their place in the order, round r does again; nil = what failed
	place  map[string]int
	nodes  []nodeState
	known  map[Key]Note // every note, also those of earlier rounds
}

type nodeState struct {
	name  string
	node  *Node
	phase Phase // Waiting, Expanded, or final
	why   string
	items []any
	inst  []instance // of one without foreach: one
}

// instance is one instance of a node. phase is Waiting, Running, Suspended, Retrying or final.
type instance struct {
	key   Key
	phase Phase
	note  Note      // of the latest attempt
	until time.Time // of one that waits for its next attempt
	why   string    // it is suspended
	wake  time.Time // when a suspended one can go on by itself; zero = not known
}

// NewState folds the notes of a run, whose keys are those of Key.String. rounds are what each round after
// the first one does again. Notes about nodes that the plan does not have count for nothing.
func NewState(p *Plan, rounds []Redo, notes map[string]json.RawMessage) (*State, error) {
	s := &State{plan: p, rounds: rounds, place: map[string]int{}, known: map[Key]Note{}}
	for i, name := range p.Order {
		s.place[name] = i
	}
	for _, r := range rounds {
		var again []bool
		if r.Node != "" {
			again = make([]bool, len(p.Order))
			for name := range p.From(r.Node) {
				again[s.place[name]] = true
			}
		}
		s.over = append(s.over, again)
	}
	s.nodes = make([]nodeState, len(p.Order))
	for i, name := range p.Order {
		s.nodes[i] = newNode(p, name)
	}
	var keys []Key
	for text, raw := range notes {
		k, ok := ParseKey(text)
		if !ok {
			continue
		}
		if _, ok := s.place[k.Node]; !ok {
			continue
		}
		var n Note
		if err := Unmarshal(raw, &n); err != nil {
			return nil, fmt.Errorf("the note about %s cannot be read: %w", k, err)
		}
		s.known[k] = n
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b Key) int { // an expansion comes before its instances
		return cmp.Or(s.place[a.Node]-s.place[b.Node], a.Index-b.Index)
	})
	for _, k := range keys {
		s.fold(k, s.known[k])
	}
	return s, nil
}

// newNode is a node of which nothing is known.
func newNode(p *Plan, name string) nodeState {
	n := nodeState{name: name, node: p.File.Agents[name], phase: Waiting}
	if n.node.ForEach == nil {
		n.inst = []instance{{key: Key{name, -1}, phase: Waiting}}
	}
	return n
}

// void reports whether a later round does again what a note tells of.
func (s *State) void(k Key, n Note) bool {
	for r := n.Round; r < len(s.rounds); r++ {
		if again := s.over[r]; again != nil && again[s.place[k.Node]] || again == nil && (n.Phase == Failed || n.Phase == Skipped) {
			return true
		}
	}
	return false
}

// Round returns the number of the round, from 0.
func (s *State) Round() int { return len(s.rounds) }

// Apply takes in what has become of an instance, or of a node with foreach. The note is durable already.
func (s *State) Apply(k Key, n Note) {
	s.known[k] = n
	s.fold(k, n)
}

func (s *State) fold(k Key, n Note) {
	node := &s.nodes[s.place[k.Node]]
	if s.void(k, n) {
		if in := s.find(k); in != nil {
			*in = instance{key: k, phase: Waiting}
		}
		return
	}
	if node.node.ForEach != nil && k.Index < 0 {
		node.phase, node.why, node.items, node.inst = n.Phase, n.Why, nil, nil
		if n.Phase == Expanded {
			node.items = n.Items
			node.inst = make([]instance, len(n.Items))
			for i := range node.inst {
				node.inst[i] = instance{key: Key{k.Node, i}, phase: Waiting}
			}
		}
		node.settle()
		return
	}
	in := s.find(k)
	if in == nil {
		return // of an earlier list of items
	}
	in.note, in.phase, in.why, in.wake = n, n.Phase, n.Why, time.Time{}
	if n.Phase == Failed && node.node.again(n) {
		in.phase, in.until = Retrying, n.At.Add(node.node.Retries.Backoff.before(n.Attempt-n.First+1))
	}
	node.settle()
}

// again reports whether a node is tried again after an attempt that failed.
func (n *Node) again(note Note) bool {
	r := n.Retries
	if r == nil || note.Kind == Cancelled || note.Kind == Refused || note.Kind == Conflict || note.Attempt-note.First >= r.Max {
		return false
	}
	return r.On == nil || slices.Contains(r.On, note.Kind)
}

// settle makes a node final whose instances all are. A node with a failed instance has failed.
func (n *nodeState) settle() {
	if n.node.ForEach != nil && n.phase != Expanded {
		return
	}
	end, failed := Succeeded, 0
	for i := range n.inst {
		switch p := n.inst[i].phase; {
		case !p.Final():
			return
		case p == Failed:
			failed++
			end, n.why = Failed, n.inst[i].why
		case p == Skipped:
			end, n.why = Skipped, n.inst[i].why
		}
	}
	if n.phase = end; failed > 0 && len(n.inst) > 1 {
		n.why = fmt.Sprintf("%d of %d instances failed", failed, len(n.inst))
	}
}

func (s *State) find(k Key) *instance {
	i, ok := s.place[k.Node]
	if !ok {
		return nil
	}
	n := &s.nodes[i]
	j := max(k.Index, 0)
	if j >= len(n.inst) || n.inst[j].key != k {
		return nil
	}
	return &n.inst[j]
}

// Park takes in that an attempt is suspended; it is not durable, since its own history says so. wake may
// be zero.
func (s *State) Park(k Key, why string, wake time.Time) {
	if in := s.find(k); in != nil && (in.phase == Running || in.phase == Suspended) {
		in.phase, in.why, in.wake = Suspended, why, wake
	}
}

// Unpark takes in that a suspended attempt goes on.
func (s *State) Unpark(k Key) {
	if in := s.find(k); in != nil && in.phase == Suspended {
		in.phase, in.why, in.wake = Running, "", time.Time{}
	}
}

// Began is the note that an attempt of an instance is about to start.
func (s *State) Began(k Key, id types.UUID, now time.Time) Note {
	n := Note{Round: s.Round(), Phase: Running, UUID: id, At: now, Attempt: 1}
	if was, ok := s.known[k]; ok {
		n.Attempt, n.Tokens, n.CostUSD, n.Unpriced = was.Attempt+1, was.Tokens, was.CostUSD, was.Unpriced
		if was.Kind == BadOutput {
			n.Told = was.Why
		}
	}
	n.First = n.Attempt
	if in := s.find(k); in != nil && in.phase == Retrying {
		n.First = in.note.First
		if n.Origin = in.note.Origin; n.Origin == (types.UUID{}) {
			n.Origin = in.note.UUID
		}
	}
	return n
}

// Outcome is how an attempt has ended.
type Outcome struct {
	Kind     Kind // empty = it has succeeded
	Why      string
	Code     types.ErrCode // of the error for which it could not be started
	Exit     *int          // of the process; nil = it was never there
	Files    []string      // of a conflict
	Tokens   int
	CostUSD  float64
	Unpriced int // those of Tokens of which nobody knows what they cost
}

// Over is the note that an attempt has ended. One of an earlier round that has failed, since it was ended
// with its run, has not failed in this one: the note is of that round, and so the node waits again.
func (s *State) Over(k Key, o Outcome, now time.Time) Note {
	was := s.known[k]
	n := was
	n.Phase, n.Kind, n.Why, n.Code, n.Exit, n.Files, n.At = Succeeded, o.Kind, o.Why, o.Code, o.Exit, o.Files, now
	n.Tokens, n.CostUSD, n.Unpriced = was.Tokens+o.Tokens, was.CostUSD+o.CostUSD, was.Unpriced+o.Unpriced
	if o.Kind != "" {
		n.Phase = Failed
	}
	if n.Round = s.Round(); o.Kind != "" && was.Round < n.Round {
		n.Round = was.Round
	}
	return n
}
