package proc

import (
	"os"
	ossignal "os/signal"
	"syscall"
	"time"
)

// orphanPause is the shortest time between two looks for zombies. A zombie that could be a child that
// somebody waits for is only reaped if it was there for at least so long.
const orphanPause = 2 * time.Second

// reapOrphans waits for the orphans that this program has adopted as a subreaper, until the manager
// is closed.
func (m *Manager) reapOrphans() {
	died := make(chan os.Signal, 1)
	ossignal.Notify(died, syscall.SIGCHLD)
	defer ossignal.Stop(died)
	waiting := make(map[identity]bool)
	for {
		select {
		case <-m.quit:
			m.reapZombies(waiting)
			return
		case <-died:
		}
		for again := true; again; { // until there is none left to become sure of
			select {
			case <-m.quit:
				m.reapZombies(waiting)
				return
			case <-time.After(orphanPause):
			}
			waiting = m.reapZombies(waiting)
			again = len(waiting) > 0
		}
	}
}

// reapZombies takes the status of every zombie that is surely an orphan, and returns those of which it
// is not sure: seen holds those of the last look, and who is still there was left alone by all.
func (m *Manager) reapZombies(seen map[identity]bool) (unsure map[identity]bool) {
	table := processTable()
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
		case p.parent != self || p.state != 'Z' || m.mine(p.PID):
		case adopted(p, session), seen[p.identity]:
			reapZombie(p.PID)
		default:
			unsure[p.identity] = true
		}
	}
	return unsure
}

// adopted reports whether a child of ours can only be an orphan. What we start ourselves stays in our
// session or leads one of its own; who is in the session of another was started by that one's people.
func adopted(p stat, session int) bool { return p.session != session && p.session != p.PID }
