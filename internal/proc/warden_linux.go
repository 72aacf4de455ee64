package proc

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	ossignal "os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// wardVar is the variable by which a program learns that its warden has started it: the number of the file that leads to
// that one. Only the warden sets it, for one process, which removes it at once.
const wardVar = "RNIX_WARDED"

// stubborn is how long a killed process may take to end.
const stubborn = 10 * time.Second

// Warded has this program run under a warden. Where it was started without one, it becomes that itself and does not
// return: it starts this program a second time, with the same arguments, environment and files, passes the signals on that it gets, and when
// that one has ended, in whatever way, it ends everything that is left of what that one has started. Then it ends as that one
// did. What descends from a warden cannot leave it: it adopts the orphans, and no process chooses its parent.
//
// In the program that was started a second time it returns the guard. An error means that there is no warden, and why; the program can go
// on without. It is called before anything is started or opened: all that was done by then is done twice.
func Warded() (*Guard, error) {
	if g := guarded(); g != nil {
		return g, nil
	}
	// Who has become this program by an exec, as at the end of a script, may have children already. These are not ours to end: then the
	// warden is a child of this one, too.
	children, listed := childrenOf(os.Getpid())
	w, err := newWarden(len(children) > 0 || !listed && len(below(processTable(), os.Getpid())) > 0)
	if err != nil {
		return nil, fmt.Errorf("no warden: %w", err)
	}
	w.run()
	return nil, nil // not reached
}

// guarded returns the guard if a warden has started this program.
func guarded() *Guard {
	text, said := os.LookupEnv(wardVar)
	if !said {
		return nil
	}
	_ = os.Unsetenv(wardVar) // it cannot fail for this name
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 {
		return nil
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || int(peer.Pid) != os.Getppid() { // somebody else has set it, or the warden has ended by now
		return nil
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil
	}
	return &Guard{warden: identityOf(int(peer.Pid)), socket: os.NewFile(uintptr(fd), "warden")}
}

// warden is a program that waits for the end of a daemon.
type warden struct {
	front  bool // it waits for a warden, and ends nobody
	pid    int  // of the daemon
	socket int  // what the daemon says arrives here
	leases leases
	heard  chan struct{} // closed when nothing more arrives; then what follows is complete
	dir    string        // of the registrations; "" if the daemon has not said it, and so has started nobody
	held   []int         // files that are held until all is done

	mu sync.Mutex
	// +checklocks:mu
	over bool // the daemon was waited for: its pid may belong to another
}

// passedOn are the signals that a warden passes on to its daemon.
var passedOn = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// newWarden makes this program a warden and starts the daemon. A front starts a warden, and passes on what it gets.
func newWarden(front bool) (*warden, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w, env := &warden{front: front, heard: make(chan struct{})}, os.Environ()
	if !front {
		if err := BecomeSubreaper(); err != nil {
			return nil, err
		}
		its, err := w.listen()
		if err != nil {
			return nil, err
		}
		defer unix.Close(its)
		env = append(env, wardVar+"="+strconv.Itoa(its))
	}
	got := make(chan os.Signal, len(passedOn))
	for _, sig := range passedOn {
		if !ossignal.Ignored(sig) {
			ossignal.Notify(got, sig)
		}
	}
	p, err := os.StartProcess(self, os.Args, &os.ProcAttr{Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		ossignal.Stop(got)
		if !front {
			err = errors.Join(err, unix.Close(w.socket))
		}
		return nil, err
	}
	w.pid = p.Pid
	ossignal.Ignore(syscall.SIGPIPE) // nobody may listen any more to what it has to say
	go func() {                      // ends with the program
		for sig := range got {
			w.pass(sig.(syscall.Signal))
		}
	}()
	return w, nil
}

// listen makes the socket, and returns the other end of it, for the daemon to inherit.
func (w *warden) listen() (its int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if _, err := unix.FcntlInt(uintptr(pair[1]), unix.F_SETFD, 0); err != nil { // it keeps its number: others may have been handed to us by theirs
		return 0, errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
	}
	w.socket = pair[0]
	return pair[1], nil
}

// pass sends a signal to the daemon while that lives. Later ones are dropped: a warden ends when its work is done.
func (w *warden) pass(sig syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		_ = unix.Kill(w.pid, sig) // it may be on its way out: that is no news
	}
}

// run waits for the end of the daemon, ends what that has left, and ends this program.
func (w *warden) run() {
	_ = os.WriteFile("/proc/self/comm", []byte(wardenName), 0) // for people, and for Within
	_ = HideMemory()                                           // nobody of the same user may make it do something else; without it they may kill it all the same
	debug.FreeOSMemory()                                       // it has nothing to do until then
	if !w.front {
		go w.listening() // ends when the socket is shut below
	}
	status := w.await()
	if !w.front {
		_ = unix.Shutdown(w.socket, unix.SHUT_RD) // what lies in it is read all the same
		<-w.heard
		if !reapAll() {
			clearAfter(w.dir, identity{PID: w.pid})
			for _, f := range w.held { // until here nobody else could be a daemon of these data
				_ = unix.Close(f)
			}
		}
	}
	endAs(status)
}

// await waits for the end of the daemon, and takes the status of everybody else who ends before, as the first process of a container has to.
func (w *warden) await() (how unix.WaitStatus) {
	for over := false; !over; {
		if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil && err != unix.EINTR {
			return how // without a daemon there is nothing to wait for
		}
		w.mu.Lock()
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil || pid == 0 {
				break
			}
			if pid == w.pid {
				how, w.over, over = status, true, true
			}
		}
		w.mu.Unlock()
	}
	return how
}

// listening takes in what the daemon says: first where its registrations are, with what is to be held until all is done, then
// until when the children of sessions may act.
func (w *warden) listening() {
	defer close(w.heard)
	text, rights := make([]byte, unix.PathMax), make([]byte, unix.CmsgSpace(16*4))
	watched := false
	for {
		n, more, _, _, err := unix.Recvmsg(w.socket, text, rights, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		if said := string(text[:n]); strings.HasPrefix(said, leaseMark) {
			if w.leases.heard(said); !watched {
				watched = true
				go w.watch(newRegistry(w.dir)) // ends with the program
			}
			continue
		}
		messages, _ := unix.ParseSocketControlMessage(rights[:more]) // written by our own program
		for i := range messages {
			fds, _ := unix.ParseUnixRights(&messages[i])
			w.held = append(w.held, fds...)
		}
		w.dir = string(text[:n])
	}
}

// watch ends the children of sessions for which the daemon has not got more time.
func (w *warden) watch(r registry) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	for now := range time.Tick(leaseGrace / 4) {
		for _, id := range w.leases.due(sinceBoot(), now) {
			if killed := r.endLeased(id); len(killed) > 0 {
				log.Warn("the lease of a session has run out while the daemon stood still; ended what acts for it", "process", id, "pids", pidsOf(killed))
			}
		}
	}
}

// reapAll takes the status of all children that have ended, and reports whether no child is left.
func reapAll() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return true
		case pid == 0:
			return false
		}
	}
}

// clearAfter ends everything below this program, which a daemon has left. What was a child's is noted in its registration, and what
// was nobody's any more in one of its own, so that the next daemon can tell of it.
func clearAfter(dir string, daemon identity) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	self := os.Getpid()
	standstill(self) // first of all: who stands still does nothing to us
	r := newRegistry(dir)
	names := commands(below(processTable(), self))
	note := func(e entry) {
		if err := r.write(e); err != nil {
			log.Warn("the next daemon will not tell of it", "error", err)
		}
	}
	known := make(map[int]bool)
	var lost []int // in no registration
	if dir != "" {
		_, err := endLeft(r, newCages(), func(e entry, s *Survivor) {
			if len(s.Killed) == 0 {
				return
			}
			for _, pid := range s.Killed {
				known[pid] = true
			}
			if e.Token == "" {
				lost = append(lost, s.Killed...)
				return
			}
			log.Warn("the daemon was killed; ended what a child of it had left", "kind", e.Kind, "process", e.Owner, "command", e.Command, "pids", s.Killed)
			e.Killed = s.Killed // the next daemon tells of it, and removes the registration
			note(e)
		})
		if err != nil {
			log.Warn("not all registrations of children could be read", "error", err)
		}
	}
	killed, stuck := sweep(reapAll, stubborn)
	if len(stuck) > 0 {
		log.Error("what the daemon has left does not end, even by SIGKILL", "pids", pidsOf(stuck))
	}
	if killed = slices.DeleteFunc(killed, func(id identity) bool { return known[id.PID] }); len(killed)+len(lost) == 0 {
		return
	}
	for _, pid := range lost {
		killed = append(killed, identity{PID: pid})
	}
	e := r.entry(rand.Text(), Spec{}, nameAll(names, killed))
	e.Killed, e.Daemon = pidsOf(killed), daemon // we may live when the next one looks
	log.Warn("ended what had left the children that started it", "commands", e.Command, "processes", len(e.Killed))
	if dir != "" {
		note(e)
	}
}

// endAs ends this program as another one has ended.
func endAs(status unix.WaitStatus) {
	if !status.Signaled() {
		os.Exit(status.ExitStatus())
	}
	switch sig := status.Signal(); sig {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2:
		ossignal.Reset(sig)
		_ = unix.Kill(os.Getpid(), sig)
		time.Sleep(time.Second) // it reaches some thread of ours before
	}
	os.Exit(128 + int(status.Signal()))
}
