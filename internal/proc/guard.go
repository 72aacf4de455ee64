package proc

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// Guard is what a daemon's program has of the warden that has started it, and below which all that it starts stays,
// whatever that does: see Warded. Safe for concurrent use.
type Guard struct {
	warden identity
	socket *os.File // the warden has the other end, and nobody else: it is closed when the warden has ended
}

// Warden returns the process id of the warden in the operating system; 0 = there is none, as when g is nil.
func (g *Guard) Warden() int {
	if g == nil {
		return 0
	}
	return g.warden.PID
}

// tell says something to the warden: first where the registrations are, and what is to be held. It need not be awake to hear
// it: what is told lies in its socket, and the files with it.
func (g *Guard) tell(text string, held []*os.File) error {
	fds := make([]int, len(held))
	for i, f := range held {
		fds[i] = int(f.Fd())
	}
	raw, err := g.socket.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		sent = unix.Sendmsg(int(fd), []byte(text), rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	})
	return errors.Join(err, sent)
}

// awaitEnd waits until the warden has ended. It reports false when the guard was closed before.
func (g *Guard) awaitEnd() bool {
	_, err := g.socket.Read(make([]byte, 1)) // a warden says nothing
	return !errors.Is(err, os.ErrClosed)
}

// Guard has all that children leave behind ended by a warden if this program ends without having done so, and before the files
// in held are closed in all programs, such as that of a lock. When the warden ends first, which nobody but a killer brings about, what
// has left the children that started it is ended at once and lost is called, which has to stop this program: a second warden could not take
// the place of the first. g may be nil; then nothing is done. It is called before the first Start.
func (m *Manager) Guard(g *Guard, lost func(), held ...*os.File) error {
	if g == nil {
		return nil
	}
	if err := g.tell(m.registry.dir, held); err != nil {
		return types.Errorf(types.ErrInternal, "Guard", m.registry.dir, "the warden, pid %d, cannot be told what to watch over: %w", g.warden.PID, err)
	}
	m.guard = g
	m.own.Go(func() { // ended by Close, which closes the socket and waits
		if g.awaitEnd() {
			m.log.Error("the warden of this daemon was ended; the daemon stops", "pid", g.warden.PID)
			disown(m)
			lost()
		}
	})
	return nil
}

// disown ends at once what would not be found if the program of a manager were killed now: what it has adopted, and below its
// children what has dropped their mark.
func disown(m *Manager) {
	lost := orphansNow()
	for _, c := range m.matching(func(c *Child) bool { return c.adopts }) {
		for _, id := range c.tree.find() {
			if id != c.entry.Leader && tokenOf(id.PID) != c.tree.roots[0].token {
				lost = append(lost, id)
			}
		}
	}
	for _, id := range lost {
		killed := newTree(root{leader: id}).kill()
		awaitGone(killed, time.Now().Add(time.Second))
		toldOrphans(m.log, killed)
	}
}

// orphansNow returns the living orphans that this program has adopted.
func orphansNow() (out []identity) {
	family.forking.Lock() // who is being started is not taken for an orphan
	defer family.forking.Unlock()
	self := os.Getpid()
	table := processTable()
	at := slices.IndexFunc(table, func(p stat) bool { return p.PID == self })
	if at < 0 {
		return nil
	}
	for _, p := range table {
		if p.parent == self && !p.dead() && p.session != table[at].session && !mine(p.PID) {
			out = append(out, p.identity)
		}
	}
	return out
}

// pidsOf returns the pids of some processes, in order.
func pidsOf(ids []identity) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = id.PID
	}
	slices.Sort(out)
	return out
}

// below returns those of a table that live and descend from a process, in any order.
func below(table []stat, pid int) (out []stat) {
	children := make(map[int][]stat)
	for _, p := range table {
		children[p.parent] = append(children[p.parent], p)
	}
	seen := map[int]bool{pid: true} // a table is read over a time, so what it says may go round
	for at := []int{pid}; len(at) > 0; {
		next := children[at[0]]
		at = at[1:]
		for _, p := range next {
			if seen[p.PID] {
				continue
			}
			seen[p.PID] = true
			at = append(at, p.PID)
			if !p.dead() {
				out = append(out, p)
			}
		}
	}
	return out
}

// standstill stops everything below a process: it looks until it finds nobody new, and who is stopped cannot fork.
func standstill(pid int) {
	const rounds = 50 // more only if they fork faster than they are found; then the end comes without this
	seen := make(map[identity]bool)
	for range rounds {
		fresh := false
		for _, p := range below(processTable(), pid) {
			if !seen[p.identity] {
				seen[p.identity], fresh = true, true
				signal(p.identity, syscall.SIGSTOP)
			}
		}
		if !fresh {
			return
		}
	}
}

// sweep kills everything below this program until nothing of it is left, and returns whom it has killed, and who does not end: what
// hangs in the kernel, which will never run again, and what belongs to another user. reap takes the status of the children that have ended,
// and reports whether there is none any more.
func sweep(reap func() (none bool), patience time.Duration) (killed, stuck []identity) {
	self, hit := os.Getpid(), make(map[identity]bool)
	until := time.Now().Add(patience)
	for !reap() {
		left := below(processTable(), self)
		stuck = stuck[:0]
		for _, p := range left {
			if !hit[p.identity] {
				hit[p.identity] = true
				killed = append(killed, p.identity)
				until = time.Now().Add(patience)
			}
			stuck = append(stuck, p.identity)
			signal(p.identity, syscall.SIGKILL)
		}
		if time.Now().After(until) {
			return killed, slices.Clone(stuck)
		}
		if pause := time.Now().Add(20 * time.Millisecond); len(left) > 0 {
			awaitGone(stuck[:1], pause)
		} else {
			time.Sleep(time.Millisecond) // somebody is on the way out, and has no line in the table any more
		}
	}
	return killed, nil
}
