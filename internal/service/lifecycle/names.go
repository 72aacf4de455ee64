package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// Table is what of the kernel's table of processes is asked.
type Table interface {
	// Info describes a process, also one that has ended as long as the kernel remembers it. NOT_FOUND if it does not.
	Info(pid types.PID) (kernel.Info, error)
	// ByUUID returns a process that runs.
	ByUUID(id types.UUID) (*kernel.Process, bool)
	// List describes all that run.
	List() []kernel.Info
	// Descends reports whether a process is another one or below it, wherever those between them lie.
	Descends(id, root types.UUID) bool
}

// Index is what of the index of histories is asked.
type Index interface {
	Get(id types.UUID) (step.ProcInfo, bool)
	// List returns all, and Open those that have no end.
	List() []step.ProcInfo
	Open() []step.ProcInfo
}

// Names finds processes by what people call them. Safe for concurrent use.
type Names struct {
	Table Table
	Index Index
	// Gone says what became of a history that is archived or was deleted; nil if the text names none of these.
	Gone func(text string) error
}

// Resolve finds the process that text names: a PID, a UUID or its beginning or end, or a name. A living
// process goes before those on disk, and one that is suspended before those that have ended; of the children
// that a process gives one name, one after the other, the latest is meant. Several that match are AMBIGUOUS,
// with the candidates; none is NOT_FOUND, and of one that is archived or was deleted the error says so.
func (n *Names) Resolve(text string) (service.Target, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return service.Target{}, types.Errorf(types.ErrInvalid, "Find", "", "no process was named: give a PID, a UUID or its beginning or end, or a name")
	}
	pid, perr := types.ParsePID(text)
	if i, err := n.Table.Info(pid); perr == nil && err == nil {
		if t, ok := n.living(i.UUID); ok { // an earlier run of a process means the process
			return t, nil
		}
		return n.Of(&i), nil
	}
	var id types.UUID
	if len(text) == len(id.String()) && id.UnmarshalText([]byte(strings.ToLower(text))) == nil {
		if t, ok := n.ByUUID(id); ok {
			return t, nil
		}
	}
	stored := n.Index.List()
	if perr == nil {
		if t, ok := n.byPID(pid, stored); ok {
			return t, nil
		}
	}
	for _, match := range []func(id, name string) bool{
		func(_, name string) bool { return name == text },
		func(id, _ string) bool {
			return len(text) >= service.MinPrefix && strings.HasPrefix(id, strings.ToLower(text))
		},
		func(id, _ string) bool {
			return len(text) >= service.MinPrefix && strings.HasSuffix(id, strings.ToLower(text))
		}, // those of a second share their beginning
	} {
		live, dead := n.matching(match, stored)
		if len(live) == 0 {
			live = preferred(dead, text)
		}
		switch len(live) {
		case 0:
		case 1:
			return live[0], nil
		default:
			return service.Target{}, types.Errorf(types.ErrAmbiguous, "Find", text, "%d processes match:%s\nname one of them by its PID or a longer UUID", len(live), candidates(live))
		}
	}
	if err := n.Gone(text); err != nil {
		return service.Target{}, err
	}
	return service.Target{}, types.Errorf(types.ErrNotFound, "Find", text, "no such process; `rnix ps -a` lists all")
}

// ResolveKind finds a process of a kind as Resolve does: where a name is that of others, too, it means the one
// of the kind, if only one of the kind lives.
func (n *Names) ResolveKind(text, kind string) (service.Target, error) {
	t, err := n.Resolve(text)
	if types.CodeOf(err) != types.ErrAmbiguous {
		return t, err
	}
	named := strings.TrimSpace(text)
	live, _ := n.matching(func(_, name string) bool { return name == named }, n.Index.List())
	live = slices.DeleteFunc(live, func(t service.Target) bool { return t.Kind() != kind })
	if len(live) == 1 {
		return live[0], nil
	}
	return t, err
}

// Of is the target that the kernel describes.
func (n *Names) Of(i *kernel.Info) service.Target {
	t := service.Target{UUID: i.UUID, PID: i.PID, Live: i}
	if s, ok := n.Index.Get(i.UUID); ok {
		t.Info = &s
	}
	if i.State == types.StateDead && t.Info != nil && !t.Info.Suspended && t.Info.Exit == nil { // its next run has begun since it was looked up
		if p, ok := n.Table.ByUUID(i.UUID); ok {
			if now, err := n.Table.Info(p.PID); err == nil {
				t.PID, t.Live = now.PID, &now
			}
		}
	}
	return t
}

// ByUUID finds a process, alive or on disk.
func (n *Names) ByUUID(id types.UUID) (service.Target, bool) {
	if t, ok := n.living(id); ok {
		return t, true
	}
	s, ok := n.Index.Get(id)
	return service.Target{UUID: id, PID: s.PID, Info: &s}, ok
}

// living finds a process that runs.
func (n *Names) living(id types.UUID) (service.Target, bool) {
	p, ok := n.Table.ByUUID(id)
	if !ok {
		return service.Target{}, false
	}
	i, err := n.Table.Info(p.PID)
	if err != nil {
		return service.Target{}, false
	}
	return n.Of(&i), true
}

// byPID finds the process on disk of which a run had the PID; the last run goes before earlier ones.
func (n *Names) byPID(pid types.PID, stored []step.ProcInfo) (service.Target, bool) {
	for i := range stored {
		if stored[i].PID == pid {
			return service.Target{UUID: stored[i].UUID, PID: pid, Info: &stored[i]}, true
		}
	}
	for i := range stored { // an earlier run of a process means the process
		if s := &stored[i]; slices.Contains(s.EarlierPIDs, pid) {
			if t, ok := n.living(s.UUID); ok {
				return t, true
			}
			return service.Target{UUID: s.UUID, PID: s.PID, Info: s}, true
		}
	}
	return service.Target{}, false
}

// matching returns the living and the other processes that match.
func (n *Names) matching(match func(id, name string) bool, stored []step.ProcInfo) (live, dead []service.Target) {
	alive := map[types.UUID]bool{}
	for _, i := range n.Table.List() {
		alive[i.UUID] = true
		if match(i.UUID.String(), i.Name) {
			live = append(live, n.Of(&i))
		}
	}
	for i := range stored {
		s := &stored[i]
		if !alive[s.UUID] && match(s.UUID.String(), s.Name) {
			dead = append(dead, service.Target{UUID: s.UUID, PID: s.PID, Info: s})
		}
	}
	return live, dead
}

// namesakes says which process beside self has a name already, the latest of several, since the name alone may not tell them apart; "" if there is none.
func (n *Names) namesakes(name string, self types.UUID) string {
	if name == "" {
		return ""
	}
	live, dead := n.matching(func(_, has string) bool { return has == name }, n.Index.List())
	all := slices.DeleteFunc(append(live, dead...), func(t service.Target) bool { return t.UUID == self })
	if len(all) == 0 {
		return ""
	}
	last := slices.MaxFunc(all, func(a, b service.Target) int { return cmp.Compare(a.PID, b.PID) })
	others := ""
	if more := len(all) - 1; more > 0 {
		others = " and " + types.Counted(more, "other", "others")
	}
	return fmt.Sprintf("the name %s is that of PID %s%s, too: where it is not clear which one is meant, give the PID or UUID", name, last.PID, others)
}

// preferred returns those of several processes on disk that a name means. A file gives the children of a supervisor
// their names, run after run; what people have named themselves, they must tell apart themselves.
func preferred(dead []service.Target, name string) []service.Target {
	if len(dead) < 2 {
		return dead
	}
	var suspended []service.Target
	last := 0
	for i, t := range dead {
		if t.Info.Suspended && t.Info.Name == name {
			suspended = append(suspended, t)
		}
		if t.Info.CreatedAt.After(dead[last].Info.CreatedAt) {
			last = i
		}
	}
	if len(suspended) > 0 {
		return suspended
	}
	for _, t := range dead {
		if t.Info.Name != name || t.Info.PPID == 0 {
			return dead
		}
	}
	return dead[last : last+1]
}

func candidates(ts []service.Target) string {
	var b strings.Builder
	for i, t := range ts {
		if i == service.MaxCandidates {
			fmt.Fprintf(&b, "\n  and %d more", len(ts)-i)
			break
		}
		state, intent, name := "", "", ""
		if t.Live != nil {
			state, intent, name = t.Live.StateName(), t.Live.Intent, t.Live.Name
		} else {
			state, intent, name = stateOf(t.Info), t.Info.Intent, t.Info.Name
		}
		if name != "" {
			name += ": "
		}
		fmt.Fprintf(&b, "\n  PID %-4d %s  %-9s  %s%s", t.PID, t.UUID, state, name, service.FirstLine(intent, 50))
	}
	return b.String()
}

// stateOf is what a process on disk is called.
func stateOf(i *step.ProcInfo) string {
	if i.Suspended || i.State < types.StateDead && i.Exit == nil {
		return "suspended"
	}
	return i.State.String()
}
