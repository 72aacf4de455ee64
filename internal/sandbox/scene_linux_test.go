//go:build amd64 || arm64

package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// scene is a machine with things to steal and to break, beside the work directory of a command. Everything belongs to one user.
type scene struct {
	dir     string // of everything
	place   Place
	policy  Policy
	canary  string // what no command may learn
	victim  *exec.Cmd
	segment int // System V memory with the canary
	ports   map[string]int
	reached atomic.Int64 // connections that arrived
	packets []syscall.Conn
	closers []func() error
}

func (s *scene) path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// newScene makes one, which the caller closes. A linked scene works in a linked work tree.
func newScene(t testing.TB, linked bool) *scene {
	t.Helper()
	dir, err := os.MkdirTemp("", "rnix-scene-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{dir: dir, canary: "CANARY" + rand.Text(), ports: map[string]int{}}
	s.place = Place{
		Work: s.path("work"), Home: s.path("home"), Temp: s.path("temp"), Tools: []string{self(t)},
		Private: []string{s.path("data"), s.path("run"), s.path("agents"), s.path("outside")},
	}
	for _, file := range []string{
		"home/.ssh/id_rsa", "home/.aws/credentials", "home/.config/gh/hosts.yml", "home/.netrc", "home/.claude/login.json", "home/.bash_history",
		"data/steps.jsonl", "agents/other/notes", "outside/secret",
	} {
		write(t, s.path(file), s.canary)
	}
	for _, file := range []string{"home/.bashrc", "home/.profile", "home/.gitconfig", "home/notes"} {
		write(t, s.path(file), "")
	}
	for _, dir := range []string{"run", "temp", "work", "home/.local/bin", "home/.config"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.repository(t, linked)
	s.place.Git = FindGit(s.place.Work, Disk{}, func(path string) (string, error) {
		text, err := os.ReadFile(path)
		return string(text), err
	})
	if s.place.Git.Linked() != linked || s.place.Git.Dir == "" {
		t.Fatalf("the repository was not found: %+v", s.place.Git)
	}
	s.policy = Standard(s.place)
	s.listen(t)
	s.startVictim(t)
	return s
}

// repository makes one in the work directory, or one beside it that the work directory and a second one are linked to.
func (s *scene) repository(t testing.TB, linked bool) {
	t.Helper()
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", args...)
		c.Env = append(os.Environ(), "HOME="+s.path("home"), "GIT_CONFIG_NOSYSTEM=1")
		if text, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, text)
		}
	}
	dir := s.place.Work
	if linked {
		dir = s.path("repository")
	}
	git("init", "-q", "-b", "main", dir)
	for key, value := range map[string]string{"user.name": "A", "user.email": "a@example.com", "gc.auto": "0"} {
		git("-C", dir, "config", key, value)
	}
	write(t, filepath.Join(dir, "file"), "text\n")
	git("-C", dir, "add", ".")
	git("-C", dir, "commit", "-q", "-m", "first")
	if linked {
		if err := os.Remove(s.place.Work); err != nil {
			t.Fatal(err)
		}
		git("-C", dir, "worktree", "add", "-q", s.place.Work)
		git("-C", dir, "worktree", "add", "-q", s.path("other"))
	}
}

// listen waits for who reaches out of a box.
func (s *scene) listen(t testing.TB) {
	t.Helper()
	accept := func(l net.Listener, err error) net.Listener {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s.closers = append(s.closers, l.Close)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				s.reached.Add(1)
				_, _ = c.Write([]byte(s.canary))
				_ = c.Close()
			}
		}()
		return l
	}
	receive := func(c net.PacketConn, err error) net.PacketConn {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s.closers = append(s.closers, c.Close)
		s.packets = append(s.packets, c.(syscall.Conn))
		return c
	}
	short := s.path("run")
	accept(net.Listen("unix", filepath.Join(short, "s")))
	accept(net.Listen("unix", filepath.Join(s.path("home"), "bus")))
	accept(net.Listen("unix", "@"+s.canary))
	accept(net.Listen("unixpacket", filepath.Join(short, "p")))
	addr := &net.UnixAddr{Name: filepath.Join(s.path("home"), "log"), Net: "unixgram"}
	c, err := net.ListenUnixgram("unixgram", addr)
	receive(c, err)
	s.ports["tcp"] = accept(net.Listen("tcp", "127.0.0.1:0")).Addr().(*net.TCPAddr).Port
	s.ports["udp"] = receive(net.ListenPacket("udp", "127.0.0.1:0")).LocalAddr().(*net.UDPAddr).Port
}

// startVictim starts another program of the same user, with a secret in its environment, in its memory and in memory that it shares.
func (s *scene) startVictim(t testing.TB) {
	t.Helper()
	s.victim = exec.Command("/bin/sh", "-c", `trap 'echo hit >"$HIT"' WINCH; while :; do sleep 3600 & wait $!; done`)
	s.victim.Env = []string{"PATH=" + os.Getenv("PATH"), "KEY=" + s.canary, "HIT=" + s.path("outside", "hit")}
	s.victim.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	secret, err := os.Open(s.path("outside", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	s.victim.ExtraFiles = []*os.File{secret}
	if err := s.victim.Start(); err != nil {
		t.Fatal(err)
	}
	s.segment, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := unix.SysvShmAttach(s.segment, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(memory, s.canary)
	if err := unix.SysvShmDetach(memory); err != nil {
		t.Fatal(err)
	}
	queue, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, cstring("rnix-"+s.canary), unix.O_CREAT|unix.O_RDONLY, 0o600, 0, 0, 0)
	if e != 0 {
		t.Fatal(e)
	}
	s.closers = append(s.closers, func() error { return unix.Close(int(queue)) })
}

func (s *scene) close(t testing.TB) {
	for _, c := range s.closers {
		_ = c()
	}
	if s.victim != nil && s.victim.Process != nil {
		if _, err := os.Lstat(s.path("outside", "hit")); err == nil {
			t.Error("the victim got a signal")
		}
		_ = unix.Kill(-s.victim.Process.Pid, unix.SIGKILL) // its session
		_ = s.victim.Wait()
		_, _ = unix.SysvShmCtl(s.segment, unix.IPC_RMID, nil)
		_ = raw6(unix.SYS_MQ_UNLINK, cstring("rnix-"+s.canary))
	}
	// A test that runs as root leaves nothing; another user's directory is removed by it, too.
	if err := os.RemoveAll(s.dir); err != nil {
		t.Error(err)
	}
}

// clean removes what an attack has left in the work directory.
func (s *scene) clean(t testing.TB) {
	t.Helper()
	entries, err := os.ReadDir(s.place.Work)
	for _, e := range entries {
		if e.Name() != ".git" && err == nil {
			err = os.RemoveAll(filepath.Join(s.place.Work, e.Name()))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.place.Work, "file"), "text\n")
}

// words replaces what stands for things of the scene in a command line.
func (s *scene) words(line string) string {
	return strings.NewReplacer(
		"@WORK", s.place.Work, "@HOME", s.path("home"), "@OUT", s.path("outside"), "@RUN", s.path("run"), "@DATA", s.path("data"),
		"@DIR", s.dir, "@VICTIM", strconv.Itoa(s.victim.Process.Pid), "@TCP", strconv.Itoa(s.ports["tcp"]), "@UDP", strconv.Itoa(s.ports["udp"]),
		"@ABSTRACT", s.canary, "@QUEUE", "rnix-"+s.canary, "@SEGMENT", strconv.Itoa(s.segment), "@COMMON", s.place.Git.Common, "@GIT", s.place.Git.Dir,
	).Replace(line)
}

// state is everything outside that must not change: files with their modes and times, and how the victim runs.
func (s *scene) state(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	note := func(path string) {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			out[path] = err.Error()
			return
		}
		text := fmt.Sprintf("%o %d:%d %d links", st.Mode, st.Uid, st.Gid, st.Nlink)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			content, _ := os.ReadFile(path)
			text += fmt.Sprintf(" %d %q", st.Mtim.Nano(), content)
			xattr := make([]byte, 64)
			if n, _ := unix.Lgetxattr(path, "user.rnix", xattr); n > 0 {
				text += " xattr"
			}
		case unix.S_IFLNK:
			to, _ := os.Readlink(path)
			text += to
		}
		out[path] = text
	}
	for _, root := range []string{s.dir} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case path == s.place.Temp || s.policy.Access(path) == AccessWrite && path != s.place.Work && !s.aboveProtected(path):
				if d != nil && d.IsDir() {
					return fs.SkipDir // the command's own
				}
				return nil
			}
			if s.policy.Access(path) < AccessWrite {
				note(path)
			}
			return nil
		})
	}
	for _, path := range []string{"/etc/rnix-escape", "/usr/rnix-escape", "/rnix-escape", "/etc/cron.d/rnix-escape", "/var/spool/cron/crontabs/rnix-escape",
		"/proc/sys/kernel/core_pattern", "/sys/kernel/uevent_helper", "/proc/sys/kernel/modprobe"} {
		content, err := os.ReadFile(path)
		out[path] = fmt.Sprint(string(content), err == nil)
	}
	for _, p := range s.policy.Protect { // also those that do not exist
		note(p)
	}
	pid := s.victim.Process.Pid
	var nofile unix.Rlimit
	_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &nofile)
	nice, _ := unix.Getpriority(unix.PRIO_PROCESS, pid)
	var cpus unix.CPUSet
	_ = unix.SchedGetaffinity(pid, &cpus)
	attr, err := unix.SchedGetAttr(pid, 0)
	policy := uint32(99)
	if err == nil {
		policy = attr.Policy
	}
	io, _, _ := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(stat), ") ")
	out["victim"] = fmt.Sprintf("alive %v, files %d, nice %d, cpus %v, policy %d, io %d", after != "" && !strings.Contains("ZTtX", after[:1]), nofile.Cur, nice, cpus, policy, io)
	mine, _ := unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())
	out["this process"] = fmt.Sprint("nice ", mine)
	for _, c := range s.packets {
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Read(func(fd uintptr) bool {
			if _, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_DONTWAIT); err == nil {
				s.reached.Add(1)
			}
			return true
		})
	}
	out["network"] = fmt.Sprint(s.reached.Load(), " arrived")
	return out
}

// aboveProtected says whether something protected is in a directory.
func (s *scene) aboveProtected(dir string) bool {
	return slices.ContainsFunc(s.policy.Protect, func(p string) bool { return within(p, dir) })
}

// differences returns what has changed, without what a later state need not have any more.
func differences(before, after map[string]string) []string {
	var out []string
	for path, was := range before {
		if is, ok := after[path]; !ok {
			out = append(out, path+": gone")
		} else if is != was {
			out = append(out, path+": "+is+", was "+was)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			out = append(out, path+": new")
		}
	}
	slices.Sort(out)
	return out
}
