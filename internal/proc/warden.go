package proc

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	ossignal "os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"rnix/types"
)

// wardenWord is the first argument of the program of a warden; the directory of the registrations, and the PID and the
// start time of whom it watches over follow.
const wardenWord = "daemon-warden"

// warden is a program that waits for the end of this one, however that comes, and then ends what children have left:
// the system ends our children when we are killed, but not what these have started.
type warden struct {
	command []string // empty = there is none

	mu      sync.Mutex
	process *os.Process   // +checklocks:mu; nil = none runs
	life    *os.File      // +checklocks:mu; it lives as long as this end of a pipe is open
	gone    chan struct{} // +checklocks:mu; closed when it has ended
}

// Guard has a program run from the first child on as the warden of this one: it ends what children have started when this
// program is killed, at once and not only at the next start. Command is the program with the arguments before its own; its main
// function calls RunWarden. It is called before the first Start.
func (m *Manager) Guard(command ...string) { m.warden.command = command }

// guard starts the warden if there is to be one and none runs. Without it children run too, as they do where there is none.
func (w *warden) guard(r registry, log *slog.Logger) {
	if len(w.command) == 0 {
		return
	}
	if err := w.start(r); err != nil {
		log.Warn("if the daemon is killed, what its children have started lives on until it is started again", "error", err)
	}
}

func (w *warden) start(r registry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil {
		return nil
	}
	ours, its, err := pipe()
	if err != nil {
		return err
	}
	defer its.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	defer null.Close()
	argv := append(append([]string{}, w.command...), wardenWord, r.dir, strconv.Itoa(r.daemon.PID), strconv.FormatUint(r.daemon.Start, 10))
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{its, null, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	gone := make(chan struct{})
	w.process, w.life, w.gone = p, ours, gone
	go func() { // ends with the warden, for which dismiss waits
		_, _ = reap(p, func() {}) // how it ended changes nothing
		w.mu.Lock()
		w.process = nil // the next child gets another one
		_ = ours.Close()
		w.mu.Unlock()
		close(gone)
	}()
	return nil
}

// pipe returns the two ends of a pipe, the one that is written to first.
func pipe() (write, read *os.File, err error) {
	read, write, err = os.Pipe()
	return write, read, err
}

// dismiss ends the warden when no child is left: there is nothing for it to do.
func (w *warden) dismiss() {
	w.mu.Lock()
	p, gone := w.process, w.gone
	w.mu.Unlock()
	if p != nil {
		_ = p.Kill()
		<-gone
	}
}

// pid returns the pid of the warden; 0 = none runs.
func (w *warden) pid() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return 0
	}
	return w.process.Pid
}

// RunWarden is the whole program of a warden, if that is what its last arguments ask for: it returns when the
// one whom it watches over has ended and nothing of that one's children is left, with the exit code.
func RunWarden(args []string) (code int, asked bool) {
	if len(args) < 4 || args[len(args)-4] != wardenWord {
		return 0, false
	}
	args = args[len(args)-4:]
	pid, err := strconv.Atoi(args[2])
	start, err2 := strconv.ParseUint(args[3], 10, 64)
	if err = errors.Join(err, err2); err != nil {
		fmt.Fprintln(os.Stderr, "warden:", err)
		return 2, true
	}
	ossignal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE) // it ends when its work is done
	_, _ = io.Copy(io.Discard, os.Stdin)                                                               // ends when the other end of the pipe is closed
	if err := watchOver(args[1], identity{PID: pid, Start: start}); err != nil {
		fmt.Fprintln(os.Stderr, "warden:", err)
		return 1, true
	}
	return 0, true
}

// dying is how long a program may take from the closing of its files to its end.
const dying = 10 * time.Second

// watchOver ends what the children of a daemon that is about to end have left.
func watchOver(dir string, daemon identity) error {
	r, log := newRegistry(dir), slog.New(slog.NewTextHandler(os.Stderr, nil))
	if names, err := r.names(); err != nil || len(names) == 0 {
		return err // it has stopped in an orderly way
	}
	if len(awaitGone([]identity{daemon}, time.Now().Add(dying))) > 0 {
		return types.Errorf(types.ErrConflict, "Guard", dir, "the daemon, pid %d, has closed its files and lives on; its children are left to it", daemon.PID)
	}
	_, err := endLeft(r, newCages(), func(e entry, s *Survivor) {
		if len(s.Killed) == 0 {
			return
		}
		log.Warn("the daemon was killed; ended what a child of it had left", "kind", e.Kind, "process", e.Owner, "command", e.Command, "pids", s.Killed)
		e.Killed = s.Killed // the next daemon tells of it, and removes the registration
		if err := r.write(e); err != nil {
			log.Warn("the next daemon will not tell of it", "error", err)
		}
	})
	return err
}
