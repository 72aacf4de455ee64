//go:build amd64 || arm64

package sandbox

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write the golden files")

// fakeFiles is a file system: paths that end with "/" are directories, "a -> b" are links.
type fakeFiles map[string]string

func tree(paths ...string) fakeFiles {
	f := fakeFiles{"/": ""}
	for _, p := range paths {
		path, to, link := strings.Cut(p, " -> ")
		switch {
		case link:
			f[path] = to
		case strings.HasSuffix(path, "/"):
			f[strings.TrimSuffix(path, "/")] = ""
		default:
			f[path] = "file"
		}
		for _, dir := range ancestors(strings.TrimSuffix(path, "/")) {
			if _, ok := f[dir]; !ok {
				f[dir] = ""
			}
		}
	}
	return f
}

func (f fakeFiles) Kind(path string) Kind {
	switch to, ok := f[path]; {
	case !ok:
		return Missing
	case to == "":
		return Directory
	case to == "file":
		return Other
	}
	return Link
}

func (fakeFiles) Held(string) bool { return false }

func (f fakeFiles) Target(path string) string { return f[path] }

func (f fakeFiles) List(dir string) []string {
	var out []string
	for path := range maps.Keys(f) {
		if path != "/" && filepath.Dir(path) == dir {
			out = append(out, filepath.Base(path))
		}
	}
	slices.Sort(out)
	return out
}

// machine has a home with secrets, one of them behind a link, a project and a linked work tree.
func machine() fakeFiles {
	return tree("/bin -> usr/bin", "/usr/bin/sh", "/etc/passwd", "/dev/null", "/dev/shm/", "/proc/1/", "/tmp/mine/", "/run/", "/var/tmp/", "/var/log/",
		"/h/me/.ssh -> dotfiles/ssh", "/h/me/dotfiles/ssh/id_rsa", "/h/me/dotfiles/vimrc", "/h/me/.netrc", "/h/me/.bashrc", "/h/me/go/pkg/",
		"/h/me/.rnix/data/steps", "/h/me/src/.git/HEAD", "/h/me/src/.git/hooks/", "/h/me/src/.git/config", "/h/me/src/.git/objects/", "/h/me/src/.git/info/",
		"/h/me/src/.git/refs/", "/h/me/src/.git/logs/", "/h/me/src/.git/worktrees/x/commondir", "/h/me/src/main.go", "/h/me/src/.vscode/",
		"/h/me/.rnix/data/tree/.git", "/h/me/.rnix/data/tree/main.go")
}

func TestPlans(t *testing.T) {
	project := Place{Work: "/h/me/src", Home: "/h/me", Temp: "/tmp/mine", Private: []string{"/h/me/.rnix/data"}, Git: Git{Top: "/h/me/src", Dir: "/h/me/src/.git", Common: "/h/me/src/.git"}}
	linked := project
	linked.Work, linked.Git = "/h/me/.rnix/data/tree", Git{Dir: "/h/me/src/.git/worktrees/x", Common: "/h/me/src/.git"}
	bwrap, landlock := Host{Bwrap: Proof{Proved: true}, Pins: true, Program: "/usr/bin/bwrap"}, Host{Landlock: Proof{Proved: true}}
	open := Standard(project)
	open.Net = NetOpen
	narrow := Policy{Version: Version, Level: LevelAuto, Net: NetNone, Read: []string{"/usr"}, Write: []string{"/h/me/src"}, Hide: []string{"/h/me/src/.git/config"}}
	for _, c := range []struct {
		name   string
		policy Policy
		host   Host
	}{
		{"bwrap-project", Standard(project), bwrap}, {"bwrap-linked", Standard(linked), bwrap}, {"bwrap-open", open, bwrap}, {"bwrap-narrow", narrow, bwrap},
		{"landlock-project", Standard(project), landlock}, {"landlock-linked", Standard(linked), landlock}, {"landlock-open", open, landlock},
	} {
		plan, err := MakePlan(c.policy, c.host, machine())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		golden(t, c.name, describe(plan))
	}
}

// describe writes a plan with an option of bubblewrap in each line.
func describe(p Plan) string {
	var b strings.Builder
	for _, arg := range p.Argv {
		if strings.HasPrefix(arg, "--") && b.Len() > 0 {
			b.WriteString("\n")
		} else if b.Len() > 0 {
			b.WriteString(" ")
		}
		b.WriteString(arg)
	}
	for _, r := range p.Rules {
		fmt.Fprintln(&b, r.Access, r.Path)
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"held", p.Held}, {"watched", p.Watched}, {"gap", p.Gaps}} {
		for _, item := range list.items {
			fmt.Fprintf(&b, "\n%s: %s", list.name, item)
		}
	}
	return strings.TrimSpace(b.String()) + "\n"
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		write(t, file, got)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -update writes it anew\n%s", name, diff)
	}
}

// play runs a filter for one call, as the kernel does.
func play(t *testing.T, program []unix.SockFilter, arch uint32, number int, args ...uint64) uint32 {
	t.Helper()
	data := func(offset uint32) uint32 {
		switch {
		case offset == offNumber:
			return uint32(number)
		case offset == offArch:
			return arch
		}
		arg := (offset - offArgs) / 8
		if int(arg) >= len(args) {
			return 0
		}
		if offset == argOffset(int(arg), true) {
			return uint32(args[arg] >> 32)
		}
		return uint32(args[arg])
	}
	var a uint32
	for i := 0; i < len(program); i++ {
		in := program[i]
		yes := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = data(in.K)
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			yes = a == in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			yes = a >= in.K
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			yes = a > in.K
		default:
			t.Fatalf("unknown instruction %+v", in)
		}
		if yes {
			i += int(in.Jt)
		} else {
			i += int(in.Jf)
		}
	}
	t.Fatal("the program has no end")
	return 0
}

func TestFilters(t *testing.T) {
	const high = 1 << 32
	type row struct {
		rung             Rung
		network, sockets bool
		number           int
		args             []uint64
		want             uint32
	}
	rows := []row{
		{RungBwrap, false, false, unix.SYS_READ, nil, allow},
		{RungBwrap, false, false, unix.SYS_PTRACE, nil, denied},
		{RungBwrap, false, false, unix.SYS_IO_URING_SETUP, nil, unknown},
		{RungBwrap, false, false, newestCall + 1, nil, unknown},
		{RungBwrap, false, false, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, 1, 0}, denied},
		{RungBwrap, false, true, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, 1, 0}, allow},
		{RungBwrap, false, false, unix.SYS_SOCKET, []uint64{unix.AF_INET6, 1, 0}, allow}, // of its own loopback
		{RungLandlock, true, false, unix.SYS_SOCKET, []uint64{unix.AF_INET6, 1, 0}, allow},
		{RungLandlock, false, false, unix.SYS_SOCKET, []uint64{unix.AF_INET, 1, 0}, denied},
		{RungLandlock, false, false, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, 3, unix.NETLINK_ROUTE}, allow},
		{RungLandlock, false, false, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, 3, unix.NETLINK_SOCK_DIAG}, denied},
		{RungLandlock, true, true, unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, 1, 0}, denied},
		{RungLandlock, true, true, unix.SYS_SOCKET, []uint64{high | unix.AF_INET, 1, 0}, allow}, // the kernel looks at 32 bits, too
		{RungBwrap, false, false, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, allow},
		{RungBwrap, false, false, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, denied},
		{RungBwrap, false, false, unix.SYS_SOCKETPAIR, []uint64{unix.AF_INET, unix.SOCK_STREAM, 0}, denied},
		{RungBwrap, false, false, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_FS}, allow},
		{RungBwrap, false, false, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_NEWUSER}, denied},
		{RungBwrap, false, false, unix.SYS_UNSHARE, []uint64{unix.CLONE_FILES}, allow},
		{RungBwrap, false, false, unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWTIME}, denied},
		{RungBwrap, false, false, unix.SYS_IOCTL, []uint64{0, unix.TCGETS}, allow},
		{RungBwrap, false, false, unix.SYS_IOCTL, []uint64{0, high | unix.TIOCSTI}, denied},
		{RungBwrap, false, false, unix.SYS_PRLIMIT64, []uint64{0, 7, high, 0}, allow},
		{RungBwrap, false, false, unix.SYS_PRLIMIT64, []uint64{5, 7, 0, 1}, allow},
		{RungBwrap, false, false, unix.SYS_PRLIMIT64, []uint64{5, 7, high, 0}, denied},
		{RungBwrap, false, false, unix.SYS_PRLIMIT64, []uint64{5, 7, 1, 0}, denied},
		{RungBwrap, false, false, unix.SYS_FCHMODAT, []uint64{0, 0, 0o755}, allow},
		{RungBwrap, false, false, unix.SYS_FCHMODAT, []uint64{0, 0, 0o4755}, denied},
		{RungBwrap, false, false, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY, 0o4755}, allow}, // the mode is not looked at
		{RungBwrap, false, false, unix.SYS_OPENAT, []uint64{0, 0, unix.O_DIRECTORY, 0o4755}, allow},
		{RungBwrap, false, false, unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT, 0o4755}, denied},
		{RungBwrap, false, false, unix.SYS_OPENAT, []uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o4755}, denied},
		{RungBwrap, false, false, unix.SYS_SHMGET, nil, allow},
		{RungLandlock, false, false, unix.SYS_SHMGET, nil, unknown},
		{RungLandlock, false, false, unix.SYS_SETXATTR, nil, noAttr},
		{RungLandlock, false, false, unix.SYS_SCHED_SETAFFINITY, []uint64{0}, allow},
		{RungLandlock, false, false, unix.SYS_SCHED_SETAFFINITY, []uint64{9}, denied},
	}
	for _, n := range slices.Concat(never, neverHere) {
		rows = append(rows, row{RungBwrap, true, true, n, nil, denied}, row{RungLandlock, true, true, n, nil, denied})
	}
	for _, r := range rows {
		if got := play(t, filter(filtered{r.rung, r.network, r.sockets, false}), auditArch, r.number, r.args...); got != r.want {
			t.Errorf("%s, network %v, sockets %v: call %d %v gives %x, want %x", r.rung, r.network, r.sockets, r.number, r.args, got, r.want)
		}
	}
	for _, c := range []struct {
		flags uint64
		want  uint32
	}{{unix.CLONE_VM | unix.CLONE_SIGHAND | unix.CLONE_THREAD, allow}, {unix.CLONE_VM | unix.CLONE_VFORK, denied}, {0, denied}, {unix.CLONE_THREAD | unix.CLONE_NEWUSER, denied}} {
		if got := play(t, filter(filtered{rung: RungLandlock, single: true}), auditArch, unix.SYS_CLONE, c.flags); got != c.want {
			t.Errorf("clone %x where one process is given gives %x, want %x", c.flags, got, c.want)
		}
	}
	program := filter(filtered{RungBwrap, true, true, true})
	if got := play(t, program, auditArch^1, unix.SYS_READ); got != kill {
		t.Errorf("another architecture gives %x", got)
	}
	if x32Bit != 0 {
		if got := play(t, program, auditArch, x32Bit|unix.SYS_READ); got != kill {
			t.Errorf("x32 gives %x", got)
		}
	}
	if len(program) > unix.BPF_MAXINSNS {
		t.Errorf("%d instructions, and the kernel takes %d", len(program), unix.BPF_MAXINSNS)
	}
}
