package proc

import (
	"log/slog"
	"os"
	ossignal "os/signal"
	"slices"
	"syscall"
	"time"
)

// orphanPause is the shortest time between two looks for orphans. A zombie that could be a child that
// somebody waits for is only reaped if it was there for at least so long, and a living orphan that
// belongs to nobody is only ended after as long.
const orphanPause = 2 * time.Second

// tendOrphans looks after the orphans that this program has adopted as a subreaper, until the manager
// is closed.
func (m *Manager) tendOrphans() {
	died := make(chan os.Signal, 1)
	ossignal.Notify(died, syscall.SIGCHLD)
	defer ossignal.Stop(died)
	waiting := make(map[identity]bool)
	for {
		select {
		case <-m.quit:
			m.tend(waiting, true)
			return
		case <-died:
		}
		for again := true; again; { // until there is none left to become sure of
			select {
			case <-m.quit:
				m.tend(waiting, true)
				return
			case <-time.After(orphanPause):
			}
			waiting = m.tend(waiting, false)
			again = len(waiting) > 0
		}
	}
}

// tend takes the status of every zombie that is surely an orphan, ends the strays, and returns those
// of which it is not sure: seen holds those of the last look, and who is still there was left alone by
// all. last says that no child is left and none will come.
func (m *Manager) tend(seen map[identity]bool, last bool) (unsure map[identity]bool) {
	table := ownTable()
	self := os.Getpid()
	session := 0
	for _, p := range table {
		if p.PID == self {
			session = p.session
		}
	}
	unsure = make(map[identity]bool)
	for _, p := range table {
		switch {
		case p.parent != self || mine(p.PID):
		case p.dead() && (adopted(p, session) || seen[p.identity] && notBeingStarted(p)):
			reapZombie(p.PID)
		case p.dead():
			unsure[p.identity] = true
		case !stray(p, session):
		case (seen[p.identity] || last) && notBeingStarted(p):
			killed := newTree(root{leader: p.identity}).kill()
			awaitGone(killed, time.Now().Add(time.Second))
			toldOrphans(m.log, killed)
		default:
			unsure[p.identity] = true
		}
	}
	return unsure
}

// notBeingStarted reports that an orphan is not a child that is just being started, which may have ended before it is among the children.
func notBeingStarted(p stat) bool {
	family.forking.Lock()
	defer family.forking.Unlock()
	return !mine(p.PID)
}

// toldOrphans says in the log who was ended; some end by themselves before.
func toldOrphans(log *slog.Logger, killed []identity) {
	if len(killed) > 0 {
		log.Warn("ended processes that had left the child that started them", "pids", pidsOf(killed))
	}
}

// adopted reports whether a child of ours can only be an orphan. What we start ourselves stays in our
// session or leads one of its own; who is in the session of another was started by that one's people.
func adopted(p stat, session int) bool { return p.session != session && p.session != p.PID }

// stray reports whether a living orphan of ours can only have been left by a child that has ended, and no child is at ending it.
// Children that adopt what descends from them leave nobody to us before they end. While one that does not is alive, what is younger may be
// what that one works with.
func stray(p stat, session int) bool {
	if p.dead() || p.session == session {
		return false
	}
	return len(everyones(func(c *Child) bool {
		return !c.adopts && c.entry.Leader.Start <= p.Start || c.tree.knows(p.identity)
	})) == 0
}

// leftBehind returns the orphans of ours that a child has left at its end; none while it lives. Which of two children that end at the same time
// has left somebody whom nothing marks cannot be seen: who looks first takes them all.
func (c *Child) leftBehind(table []stat) (out []stat) {
	self, session := os.Getpid(), 0
	for _, p := range table {
		switch {
		case p.PID == self:
			session = p.session
		case p.parent == self && !p.dead() && p.Start >= c.entry.Leader.Start && !mine(p.PID):
			out = append(out, p)
		}
	}
	if len(out) == 0 || !isSubreaper() || !hasExited(c.process.Pid) {
		return nil
	}
	family.forking.Lock() // who was being started when the table was read is among the children now
	defer family.forking.Unlock()
	return slices.DeleteFunc(out, func(p stat) bool { return mine(p.PID) || !stray(p, session) })
}
