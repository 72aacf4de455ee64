package proc

import (
	"maps"
	"slices"
	"sync"
	"syscall"
)

// identity names one process for good: a pid is used again, a pid with its start time is not, until
// the next boot. Part of the on-disk format.
type identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot; 0 = not known
}

// stat is one line of the process table.
type stat struct {
	identity
	parent, group, session int
	state                  byte
	exiting                bool  // it is on its way out: what it had open is closed, or about to be
	threads                int   // 1 also for one that has ended and was not waited for
	resident               int64 // bytes of memory
}

// dead reports whether the process has ended. One whose first thread has, while others of it run on, has not, though the system
// calls it a zombie.
func (s stat) dead() bool { return s.state == 'Z' && s.threads < 2 || s.state == 'X' }

// IsStopped reports whether the process with this id stands still because of a signal (SIGSTOP, SIGTSTP), or of a debugger.
func IsStopped(pid int) bool {
	s, ok := statOf(pid)
	return ok && (s.state == 'T' || s.state == 't')
}

// root is what a family of processes descends from.
type root struct {
	leader identity // the child itself; PID 0 if the fork was not recorded
	token  string   // in the environment of the child and of what inherits it
}

// members tells which processes of a table belong to which root, by index into roots: leaders, their
// groups and sessions as long as the leaders hold their pids, bearers of their tokens, processes known
// to belong from an earlier look, and descendants of all of these. Dead ones are left out, and so are
// the processes in spared, with what is only below those.
//
// token returns the token in a process's environment, or ""; it is asked as seldom as possible.
func members(table []stat, roots []root, known map[identity]int, spared map[int]bool, token func(pid int) string) map[identity]int {
	leads, bears, oldest := make(map[int]int), make(map[string]int), ^uint64(0)
	for i, r := range roots {
		if r.token != "" {
			bears[r.token] = i
		}
		oldest = min(oldest, r.leader.Start)
	}
	for _, p := range table {
		for i, r := range roots {
			if p.identity == r.leader {
				leads[p.PID] = i
			}
		}
	}
	below := make(map[int][]stat)
	found := make(map[identity]int)
	var claim func(p stat, i int)
	claim = func(p stat, i int) {
		if _, ok := found[p.identity]; ok || spared[p.PID] || p.dead() {
			return
		}
		found[p.identity] = i
		for _, child := range below[p.PID] {
			claim(child, i)
		}
	}
	for _, p := range table {
		below[p.parent] = append(below[p.parent], p)
	}
	for _, p := range table {
		if i, ok := known[p.identity]; ok {
			claim(p, i)
		}
		for _, id := range []int{p.PID, p.group, p.session} {
			if i, ok := leads[id]; ok && p.Start >= roots[i].leader.Start {
				claim(p, i)
			}
		}
	}
	for _, p := range table {
		if _, ok := found[p.identity]; ok || p.dead() || spared[p.PID] || p.Start < oldest {
			continue
		}
		if i, ok := bears[token(p.PID)]; ok {
			claim(p, i)
		}
	}
	return found
}

// ancestors returns self and everything above it in table.
func ancestors(table []stat, self int) map[int]bool {
	parent := make(map[int]int, len(table))
	for _, p := range table {
		parent[p.PID] = p.parent
	}
	out := make(map[int]bool)
	for pid := self; pid != 0 && !out[pid]; pid = parent[pid] {
		out[pid] = true
	}
	return out
}

// tree finds and signals the living processes of some roots. It remembers whom it has found, so that
// a process still belongs when its parent is gone. Safe for concurrent use.
type tree struct {
	roots  []root
	alone  func() bool               // no orphan is alive; nil = not known
	cradle cgroup                    // what is in it belongs to the first root
	left   func(table []stat) []stat // orphans of the first root, which has ended, that nothing else tells to be its; nil = not known

	mu sync.Mutex
	// +checklocks:mu
	known map[identity]int // to the index of its root
}

func newTree(roots ...root) *tree { return &tree{roots: roots, known: make(map[identity]int)} }

// find returns the living processes of the tree.
func (t *tree) find() []identity {
	return slices.Collect(maps.Keys(t.look()))
}

func (t *tree) look() map[identity]int {
	if t.over() {
		return nil
	}
	table := processTable()
	t.mu.Lock()
	known := maps.Clone(t.known)
	t.mu.Unlock()
	if t.left != nil {
		for _, p := range t.left(table) {
			known[p.identity] = 0
		}
	}
	for _, id := range t.cradle.living() {
		known[id] = 0
	}
	found := members(table, t.roots, known, spared(table), tokenOf)
	t.mu.Lock()
	maps.Copy(t.known, found)
	t.mu.Unlock()
	return found
}

// knows reports whether a process was found to belong to the tree.
func (t *tree) knows(id identity) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.known[id]
	return ok
}

// over reports that nothing of the tree can be alive, as far as that can be seen without reading the
// process table: most children end and leave nobody behind, and each look would cost what all processes
// of the machine cost.
func (t *tree) over() bool {
	if t.alone == nil {
		return false
	}
	for _, r := range t.roots {
		if !hasExited(r.leader.PID) {
			return false
		}
	}
	t.mu.Lock()
	known := maps.Clone(t.known)
	t.mu.Unlock()
	for id := range known {
		if alive(id) {
			return false
		}
	}
	return len(t.cradle.living()) == 0 && t.alone()
}

// freeze stops the whole tree: it looks again until it finds nobody new, and who is stopped cannot
// fork any more. It returns the processes.
func (t *tree) freeze() map[identity]int {
	const rounds = 20 // more only if somebody outside adds processes to the tree
	stopped := make(map[identity]int)
	for range rounds {
		fresh := 0
		for id, i := range t.look() {
			if _, ok := stopped[id]; !ok {
				stopped[id] = i
				signal(id, syscall.SIGSTOP)
				fresh++
			}
		}
		if fresh == 0 {
			break
		}
	}
	return stopped
}

// thaw lets the tree go on.
func (t *tree) thaw() {
	for _, id := range t.find() {
		signal(id, syscall.SIGCONT)
	}
}

// kill kills the whole tree and returns the processes that were alive.
func (t *tree) kill() []identity { return slices.Collect(maps.Keys(t.killAll())) }

func (t *tree) killAll() map[identity]int {
	var born map[identity]int
	if t.cradle != "" { // what forks faster than it is found ends there, too
		born = t.look()
		_ = t.cradle.kill() // what it does not reach is found below
	}
	all := t.freeze()
	maps.Copy(all, born)
	for id := range all {
		signal(id, syscall.SIGKILL)
	}
	return all
}
