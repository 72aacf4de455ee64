package web

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"rnix/types"
)

// Open shows a link in the browser of the person's desktop, with the environment env. The link stands in a file that
// only this user can read, and not among the arguments of a program, which everybody on the machine can: whoever
// opens a link first is let in. Done removes the file; the caller calls it before it ends.
func Open(link string, env []string) (done func(), err error) {
	const op = "Open"
	dir, err := os.MkdirTemp("", "rnix-web-") // nobody else may enter it
	if err != nil {
		return func() {}, types.Errorf(types.ErrStorage, op, "", "%w", err)
	}
	done = func() { _ = os.RemoveAll(dir) } // what is left is a link that is used up
	page := filepath.Join(dir, "open.html")
	// Nothing in a link that we made needs an escape.
	text := `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=` + link + `"><title>Rnix</title><a href="` + link + `">To the dashboard</a>`
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		return done, types.Errorf(types.ErrStorage, op, page, "%w", err)
	}
	cmd := exec.Command("xdg-open", page)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl+C is not for the browser
	if err := cmd.Start(); err != nil {
		return done, types.Errorf(types.ErrUnavailable, op, "xdg-open", "%w", err)
	}
	go func() { _ = cmd.Wait() }() // the browser may live longer than this program; its end interests nobody
	return done, nil
}
