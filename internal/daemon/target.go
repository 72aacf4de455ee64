package daemon

import (
	"fmt"
	"slices"
	"strings"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// target is a process that somebody named: alive, or only on disk.
type target struct {
	uuid types.UUID
	pid  types.PID
	live *kernel.Info   // nil if it is not in the kernel's table
	info *step.ProcInfo // nil if there is nothing on disk
}

// minPrefix is the shortest UUID prefix that is looked up. Version 7 UUIDs of one day share their
// first characters, so shorter ones would rarely be unique anyway.
const minPrefix = 4

// resolve finds the process that text names: a PID, a UUID or a prefix of one, or a name. A living
// process goes before those on disk, and one that is suspended before those that have ended; of the children
// that a process gives one name, one after the other, the latest is meant. Several that match are AMBIGUOUS,
// with the candidates; none is NOT_FOUND, and of one that is archived or was deleted the error says so.
func (d processes) resolve(text string) (target, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return target{}, types.Errorf(types.ErrInvalid, "Find", "", "no process was named: give a PID, a UUID or its beginning or end, or a name")
	}
	pid, perr := types.ParsePID(text)
	if i, err := d.kernel.Info(pid); perr == nil && err == nil {
		return d.living(&i), nil
	}
	var id types.UUID
	if len(text) == len(id.String()) && id.UnmarshalText([]byte(strings.ToLower(text))) == nil {
		if t, ok := d.byUUID(id); ok {
			return t, nil
		}
	}
	stored := d.journal.Index().List()
	if perr == nil {
		if t, ok := d.byPID(pid, stored); ok {
			return t, nil
		}
	}
	for _, match := range []func(id, name string) bool{
		func(_, name string) bool { return name == text },
		func(id, _ string) bool { return len(text) >= minPrefix && strings.HasPrefix(id, strings.ToLower(text)) },
		func(id, _ string) bool { return len(text) >= minPrefix && strings.HasSuffix(id, strings.ToLower(text)) }, // those of a second share their beginning
	} {
		live, dead := d.matching(match, stored)
		if len(live) == 0 {
			live = preferred(dead, text)
		}
		switch len(live) {
		case 0:
		case 1:
			return live[0], nil
		default:
			return target{}, types.Errorf(types.ErrAmbiguous, "Find", text, "%d processes match:%s\nname one of them by its PID or a longer UUID", len(live), candidates(live))
		}
	}
	if err := (departed(d)).explain(text); err != nil {
		return target{}, err
	}
	return target{}, types.Errorf(types.ErrNotFound, "Find", text, "no such process; `rnix ps -a` lists all")
}

// find finds the process that a caller names, to read what it did and said. A caller inside an agent sees the
// agent's own subtree only.
func (d processes) find(peer *ipc.Peer, op, text string) (target, error) {
	t, err := d.resolve(text)
	if err != nil {
		return t, err
	}
	if owner, inside := d.agentOf(peer); inside && !(inspector(d)).descends(t, owner) {
		e := outside(op, owner, "see the records of its own subtree only")
		e.PID = t.pid
		return target{}, e
	}
	return t, nil
}

// resolveKind finds a process of a kind as resolve does: where a name is that of others, too, it means the one
// of the kind, if only one of the kind lives.
func resolveKind(d processes, text, kind string) (target, error) {
	t, err := d.resolve(text)
	if types.CodeOf(err) != types.ErrAmbiguous {
		return t, err
	}
	named := strings.TrimSpace(text)
	live, _ := d.matching(func(_, name string) bool { return name == named }, d.journal.Index().List())
	live = slices.DeleteFunc(live, func(t target) bool { return kindOf(&t) != kind })
	if len(live) == 1 {
		return live[0], nil
	}
	return t, err
}

// living is the target that a process of the kernel is.
func (d processes) living(i *kernel.Info) target {
	t := target{uuid: i.UUID, pid: i.PID, live: i}
	if s, ok := d.journal.Index().Get(i.UUID); ok {
		t.info = &s
	}
	return t
}

// byUUID finds a process, alive or on disk.
func (d processes) byUUID(id types.UUID) (target, bool) {
	if p, ok := d.kernel.ByUUID(id); ok {
		if i, err := d.kernel.Info(p.PID); err == nil {
			return d.living(&i), true
		}
	}
	s, ok := d.journal.Index().Get(id)
	return target{uuid: id, pid: s.PID, info: &s}, ok
}

// byPID finds the process on disk of which a run had the PID; the last run goes before earlier ones.
func (d processes) byPID(pid types.PID, stored []step.ProcInfo) (target, bool) {
	for n := range stored {
		if stored[n].PID == pid {
			return target{uuid: stored[n].UUID, pid: pid, info: &stored[n]}, true
		}
	}
	for n := range stored { // an earlier run of a process means the process
		if s := &stored[n]; slices.Contains(s.EarlierPIDs, pid) {
			if p, ok := d.kernel.ByUUID(s.UUID); ok {
				if i, err := d.kernel.Info(p.PID); err == nil {
					return target{uuid: s.UUID, pid: i.PID, live: &i, info: s}, true
				}
			}
			return target{uuid: s.UUID, pid: s.PID, info: s}, true
		}
	}
	return target{}, false
}

// matching returns the living and the other processes that match.
func (d processes) matching(match func(id, name string) bool, stored []step.ProcInfo) (live, dead []target) {
	alive := map[types.UUID]bool{}
	for _, i := range d.kernel.List() {
		alive[i.UUID] = true
		if match(i.UUID.String(), i.Name) {
			live = append(live, d.living(&i))
		}
	}
	for n := range stored {
		s := &stored[n]
		if !alive[s.UUID] && match(s.UUID.String(), s.Name) {
			dead = append(dead, target{uuid: s.UUID, pid: s.PID, info: s})
		}
	}
	return live, dead
}

// preferred returns those of several processes on disk that a name means. A file gives the children of a supervisor
// their names, run after run; what people have named themselves, they must tell apart themselves.
func preferred(dead []target, name string) []target {
	if len(dead) < 2 {
		return dead
	}
	var suspended []target
	last := 0
	for i, t := range dead {
		if t.info.Suspended && t.info.Name == name {
			suspended = append(suspended, t)
		}
		if t.info.CreatedAt.After(dead[last].info.CreatedAt) {
			last = i
		}
	}
	if len(suspended) > 0 {
		return suspended
	}
	for _, t := range dead {
		if t.info.Name != name || t.info.PPID == 0 {
			return dead
		}
	}
	return dead[last : last+1]
}

// maxCandidates bounds the list in an error.
const maxCandidates = 10

func candidates(ts []target) string {
	var b strings.Builder
	for i, t := range ts {
		if i == maxCandidates {
			fmt.Fprintf(&b, "\n  and %d more", len(ts)-i)
			break
		}
		state, intent, name := "", "", ""
		if t.live != nil {
			state, intent, name = t.live.StateName(), t.live.Intent, t.live.Name
		} else {
			state, intent, name = storedProc(t.info).State, t.info.Intent, t.info.Name
		}
		if name != "" {
			name += ": "
		}
		fmt.Fprintf(&b, "\n  PID %-4d %s  %-9s  %s%s", t.pid, t.uuid, state, name, firstLine(intent, 50))
	}
	return b.String()
}

// firstLine returns the first line of s, at most max characters.
func firstLine(s string, max int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > max {
		return string(r[:max-1]) + "…"
	}
	return s
}
