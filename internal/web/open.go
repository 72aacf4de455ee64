package web

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"rnix/types"
)

// openWait is how long the file with the link may lie there for a browser that has to start first.
const openWait = 2 * time.Minute

// Open shows a new link in the browser of the person's desktop, with the environment env. The link stands in a file that
// only this user can read, and not among the arguments of a program, which everybody on the machine can: whoever
// opens a link first is let in. The file goes as soon as the link is used, after two minutes, and with done, which the caller
// calls before it ends and which may be called twice.
func (s *Server) Open(env []string) (done func(), err error) {
	link, used := s.doors.token()
	return open(s.Address()+"login?token="+link, used, openWait, env)
}

func open(link string, used <-chan struct{}, wait time.Duration, env []string) (done func(), err error) {
	const op = "Open"
	dir, err := os.MkdirTemp("", "rnix-web-") // nobody else may enter it
	if err != nil {
		return func() {}, types.Errorf(types.ErrStorage, op, "", "%w", err)
	}
	remove := sync.OnceFunc(func() { _ = os.RemoveAll(dir) }) // what is left is a link that is used up, or that nobody serves
	page := filepath.Join(dir, "open.html")
	// Nothing in a link that we made needs an escape.
	text := `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=` + link + `"><title>Rnix</title><a href="` + link + `">To the dashboard</a>`
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		return remove, types.Errorf(types.ErrStorage, op, page, "%w", err)
	}
	cmd := exec.Command("xdg-open", page)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl+C is not for the browser
	if err := cmd.Start(); err != nil {
		remove()
		return remove, types.Errorf(types.ErrUnavailable, op, "xdg-open", "%w", err)
	}
	go func() { _ = cmd.Wait() }() // the browser may live longer than this program; its end interests nobody
	quit := make(chan struct{})
	var waits sync.WaitGroup
	waits.Go(func() { // ends with done at the latest, which waits for it
		late := time.NewTimer(wait)
		defer late.Stop()
		select {
		case <-used:
		case <-late.C:
		case <-quit:
		}
		remove()
	})
	return sync.OnceFunc(func() { close(quit); waits.Wait() }), nil
}
