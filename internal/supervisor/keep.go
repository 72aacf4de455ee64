package supervisor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/internal/supervisor/supervise"
	"rnix/kernel"
	"rnix/types"
)

// The notes of a supervisor. Part of the on-disk format.
const (
	noteState  = "supervisor" // a keptState
	noteIntent = "intent/"    // with the number of a child that was added at run time: its intent
)

// keptState is what a supervisor keeps for its next run: written before each start, so that a child is found
// again by its UUID and never started twice, and whenever it has decided something.
type keptState struct {
	Policy supervise.Saved `json:"policy"`
	Runs   []keptRun       `json:"runs,omitempty"`
}

// keptRun is the last run of a child.
type keptRun struct {
	Child supervise.ID      `json:"child"`
	UUID  types.UUID        `json:"uuid,omitzero"`
	Last  *types.ExitStatus `json:"last,omitempty"` // of the run before
	End   time.Time         `json:"end,omitzero"`
	Why   string            `json:"why,omitempty"`
}

// memory is what a supervisor keeps for its next run.
type memory struct{ *supervisor }

// keep makes durable what has changed since the last time, with markers of what was decided. A record that
// cannot be written ends the supervisor, as it does every process.
func (s memory) keep(decided ...step.Marker) {
	if s.failed != nil {
		return
	}
	var marks []step.Marker
	note := func(key string, detail []byte) {
		marks = append(marks, step.Marker{Name: step.MarkerNote, PID: s.p.PID, Text: key, Detail: detail})
	}
	st := keptState{Policy: supervise.Save(s.policy)}
	there := map[supervise.ID]bool{}
	for _, c := range st.Policy.Children {
		m := s.members[c.ID]
		there[c.ID] = true
		st.Runs = append(st.Runs, keptRun{c.ID, m.id, m.last, m.lastEnd, m.why})
		if s.spec.Strategy == SimpleOneForOne && !s.noted[c.ID] {
			if text, err := json.Marshal(m.intent); err == nil { // it is a text
				note(intentKey(c.ID), text)
				s.noted[c.ID] = true
			}
		}
	}
	for id := range s.noted {
		if !there[id] {
			note(intentKey(id), nil)
			delete(s.noted, id)
		}
	}
	marks = append(marks, decided...)
	b, err := json.Marshal(&st)
	if err == nil && !bytes.Equal(b, s.kept) {
		note(noteState, b)
		s.kept = b
	}
	if err == nil && len(marks) > 0 {
		err = s.self.Mark(marks...)
	}
	if err != nil {
		s.failed = err
		s.policy.Stop()
	}
}

func intentKey(id supervise.ID) string { return noteIntent + strconv.Itoa(int(id)) }

// restore takes over what the last run has kept. What has become of the children, adopt finds out.
func (s memory) restore(was *recovery.State) error {
	raw, ok := was.Notes[noteState]
	if !ok {
		return nil // it had not begun anything
	}
	bad := func(err error) error {
		return types.Errorf(types.ErrStorage, "Resume", s.p.UUID.String(), "what the supervisor has kept cannot be read: %w", err)
	}
	var st keptState
	if err := json.Unmarshal(raw, &st); err != nil {
		return bad(err)
	}
	policy, err := supervise.Restore(s.spec.policy(), st.Policy, time.Now())
	if err != nil {
		return bad(err)
	}
	s.policy, s.members, s.restored = policy, map[supervise.ID]*member{}, true
	for _, c := range policy.Children() {
		s.members[c.ID] = s.spec.member(c.ID, kept(was.Notes, c.ID))
	}
	for _, r := range st.Runs {
		if m := s.members[r.Child]; m != nil {
			m.id, m.last, m.lastEnd, m.why = r.UUID, r.Last, r.End, r.Why
		}
	}
	for key := range was.Notes {
		if n, err := strconv.Atoi(strings.TrimPrefix(key, noteIntent)); err == nil && strings.HasPrefix(key, noteIntent) {
			s.noted[supervise.ID(n)] = true
		}
	}
	s.publish()
	return nil
}

// kept returns the intent that was kept for a child; "" if it has its spec's.
func kept(notes map[string]json.RawMessage, id supervise.ID) (intent string) {
	_ = json.Unmarshal(notes[intentKey(id)], &intent) // it has none then
	return intent
}

// member is the child of a number.
func (s *Spec) member(id supervise.ID, intent string) *member {
	if s.Strategy != SimpleOneForOne {
		c := &s.Children[id]
		return &member{spec: c, name: c.Name, intent: c.Intent}
	}
	c := &s.Children[0]
	return &member{spec: c, name: c.Name + "." + strconv.Itoa(int(id)+1), intent: cmp.Or(intent, c.Intent)}
}

// Stored describes a supervisor that is only on disk, from its history. One that is none is INVALID.
func Stored(spec Spec, was *recovery.State, now time.Time) (Status, error) {
	spec, err := spec.settled(spec.Name)
	if err != nil {
		return Status{}, err
	}
	s := newSupervisor(spec)
	s.p = new(kernel.Process) // to hold what is restored
	if err := (memory{s}).restore(was); err != nil {
		return Status{}, err
	}
	s.publish()
	out := Status{PID: was.PID, Name: spec.Name, Strategy: spec.Strategy, Intensity: spec.Intensity}
	out.Restarts, out.Children = s.now.get(now, spec.Intensity)
	for i := range out.Children {
		if c := &out.Children[i]; slices.Contains([]string{"starting", "running", "stopping"}, c.State) {
			c.State = "" // whoever has the histories knows more
		}
	}
	return out, nil
}

// New returns the body of a supervisor, for kernel.SpawnOpts.Body, to go on with the history of one.
func New(spec Spec) (kernel.Body, error) {
	spec, err := spec.settled(spec.Name)
	if err != nil {
		return nil, err
	}
	return newSupervisor(spec), nil
}
