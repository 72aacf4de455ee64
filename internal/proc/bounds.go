package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"rnix/types"
)

// hitEvery is how often a child that runs for long is asked whether bounds have held it.
const hitEvery = time.Second

// errNoCgroup is the cause of the refusal to start what would not be bounded.
var errNoCgroup = errors.New("the cgroup that bounds what its process uses cannot be made")

// Hits is how often the children of an agent, and what they have started, were held by the agent's bounds.
type Hits struct {
	Killed  int64 // processes that the kernel has killed since all together used more memory
	Refused int64 // processes and threads that could not be started since there were as many already
	Bounds  types.Bounds
}

// None reports whether no bound has held anything.
func (h Hits) None() bool { return h.Killed == 0 && h.Refused == 0 }

// Texts say what has happened, a sentence each.
func (h Hits) Texts() (out []string) {
	if h.Killed > 0 {
		out = append(out, "the kernel has killed a program: the commands and servers of this agent used more memory together than they may ("+h.Bounds.Memory.String()+"); use less at once")
	}
	if h.Refused > 0 {
		out = append(out, "a program or thread could not be started: the commands and servers of this agent have as many processes and threads together as they may ("+h.Bounds.Processes.String()+"); start fewer at once")
	}
	return out
}

func (h Hits) since(before Hits) Hits {
	h.Killed, h.Refused = max(0, h.Killed-before.Killed), max(0, h.Refused-before.Refused)
	return h
}

// Enforced is which bounds of agents a manager enforces, by the cgroups that their children are born in.
type Enforced struct {
	Memory    bool
	Processes bool
	Why       string // that it does not enforce both
}

// bounding is how a manager bounds what its children use. Safe for concurrent use.
type bounding struct {
	of   func(types.PID) types.Bounds // see Bound; nil = nothing is bounded
	tell func(Spec, Hits)             // may be nil

	mu sync.Mutex
	// +checklocks:mu
	set map[types.PID]types.Bounds // what the cgroups of agents have
	// +checklocks:mu
	told map[types.PID]Hits
}

// Bound says how m finds out what the children of an agent may use together, and whom it tells, once, that these have held something: spec is that of the
// child that was found to run then. It is called before the first Start; without it nothing is bounded. tell may be nil.
func Bound(m *Manager, of func(types.PID) types.Bounds, tell func(Spec, Hits)) {
	m.births.bounding.of, m.births.bounding.tell = of, tell
}

// EnforcedBy returns which bounds m enforces.
func EnforcedBy(m *Manager) Enforced {
	home, _ := m.births.home()
	m.births.mu.Lock()
	defer m.births.mu.Unlock()
	e := Enforced{Why: m.births.why}
	if home != "" {
		e.Memory, e.Processes = slices.Contains(m.births.gives, controllerMemory), slices.Contains(m.births.gives, controllerPids)
	}
	return e
}

// bound gives the cgroup of an agent its bounds, if they are others than it has. What a controller that is missing would do is left out.
func (b *births) bound(g cgroup, owner types.PID) error {
	b.mu.Lock()
	gives := b.gives
	b.mu.Unlock()
	if owner == 0 || b.bounding.of == nil || len(gives) == 0 {
		return nil
	}
	if g == "" {
		return errNoCgroup
	}
	want := b.bounding.of(owner).Held()
	b.bounding.mu.Lock()
	defer b.bounding.mu.Unlock()
	if has, ok := b.bounding.set[owner]; ok && has == want {
		return nil
	}
	var errs []error
	if slices.Contains(gives, controllerPids) {
		errs = append(errs, poke(filepath.Join(string(g), "pids.max"), limitText(int64(want.Processes))))
	}
	if slices.Contains(gives, controllerMemory) {
		swap := "max"
		if want.Memory > 0 {
			swap = "0" // else it would use as much again, and slow down all
		}
		if err := poke(filepath.Join(string(g), "memory.swap.max"), swap); !errors.Is(err, fs.ErrNotExist) { // where there is none to count
			errs = append(errs, err)
		}
		errs = append(errs, poke(filepath.Join(string(g), "memory.max"), limitText(int64(want.Memory))))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("its bounds cannot be set: %w", err)
	}
	b.bounding.set[owner] = want
	return nil
}

// limitText returns a limit as the file of a cgroup takes it; 0 = none.
func limitText(n int64) string {
	if n <= 0 {
		return "max"
	}
	return strconv.FormatInt(n, 10)
}

// unbound forgets an agent whose cgroup is removed.
func (b *bounding) unbound(owner types.PID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.set, owner)
	delete(b.told, owner)
}

// hits returns how often the bounds of an agent have held something since its cgroup was made.
func (b *births) hits(owner types.PID) (h Hits) {
	b.bounding.mu.Lock()
	h.Bounds = b.bounding.set[owner]
	b.bounding.mu.Unlock()
	b.mu.Lock()
	own := b.own
	b.mu.Unlock()
	if own == nil || h.Bounds.IsZero() {
		return h
	}
	g := string(cgroup(own.Dir).agent(owner))
	if h.Bounds.Memory > 0 {
		h.Killed = counter(g, "memory.events", "oom_kill")
	}
	if h.Bounds.Processes > 0 {
		h.Refused = counter(g, "pids.events", "max")
	}
	return h
}

// counter returns a number of a file of a cgroup that has a name and a number on each line; 0 = there is none.
func counter(dir, file, name string) int64 {
	fields := listed(dir, file)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == name {
			n, _ := strconv.ParseInt(fields[i+1], 10, 64)
			return n
		}
	}
	return 0
}

// report tells of what the bounds of a child's agent have held since they were asked last, and returns what they have since the child began.
func report(c *Child) Hits {
	owner, by := c.spec.Owner, &c.manager.births.bounding
	now := c.manager.births.hits(owner)
	if now.Bounds.IsZero() {
		return Hits{}
	}
	by.mu.Lock()
	fresh := now.since(by.told[owner])
	by.told[owner] = now
	by.mu.Unlock()
	if by.tell != nil && !fresh.None() {
		by.tell(c.spec, fresh)
	}
	return now.since(c.before)
}

// heed reports what holds a child that runs for long while it runs.
func heed(c *Child) {
	if c.spec.Kind != KindHarness && c.spec.Kind != KindMCP || c.before.Bounds.IsZero() {
		return
	}
	c.manager.work.Go(func() { // ends with the child
		tick := time.NewTicker(hitEvery)
		defer tick.Stop()
		for {
			select {
			case <-c.done:
				return
			case <-tick.C:
				report(c)
			}
		}
	})
}

// full says that a start has failed since its agent has as many processes as it may have, if so.
func full(c *Child, err error) error {
	if now := c.manager.births.hits(c.spec.Owner).since(c.before); now.Refused > 0 {
		return types.Errorf(types.ErrExhausted, "Start", c.spec.Path, "%s: %w", Hits{Refused: now.Refused, Bounds: now.Bounds}.Texts()[0], err)
	}
	return err
}
