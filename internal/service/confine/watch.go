package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// loginTime is how often a login is looked at while a program runs.
const loginTime = 5 * time.Second

// watch gives the user, while a guest runs and when it has ended, what it refreshes of its login by another file, and the guest what the user
// refreshes: else the one that comes later is logged out. It returns what is to be called when the guest has ended, or was not started.
func watch(s *Service, g *guest) (done func()) {
	stop, ended, last := make(chan struct{}), make(chan struct{}), g.loginState()
	go func() { // ends with stop; waited for by done
		defer close(ended)
		tick := time.NewTicker(loginTime)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if now := g.loginState(); now != last {
					refresh(s, g)
					last = g.loginState()
				}
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-ended
		refresh(s, g)
	})
}

// refresh makes the login of a guest and that of its user the same.
func refresh(s *Service, g *guest) {
	if err := furnish(s, g); err != nil {
		s.Log.Warn("the login of a program in the sandbox", "home", g.home, "err", err)
	}
}

// loginState returns a text that is another when a file of the login was written or replaced in one of the homes.
func (g *guest) loginState() (state string) {
	root, err := os.OpenRoot(g.home)
	if err != nil {
		return ""
	}
	defer root.Close() // nothing was written
	for _, name := range g.login.Files {
		name = filepath.Join(g.login.Dir, name)
		own, err1 := root.Lstat(name)
		users, err2 := os.Stat(g.login.At(g.user, g.dir, name))
		if err1 != nil || err2 != nil {
			state += fmt.Sprintln(err1 == nil, err2 == nil)
			continue
		}
		state += fmt.Sprintln(os.SameFile(own, users), own.Mode().Type(), own.ModTime(), own.Size(), users.ModTime(), users.Size())
	}
	return state
}
