//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// place makes a work directory beside a directory that no command may see, with a secret in it.
func place(t testing.TB) Place {
	t.Helper()
	dir := directory(t)
	p := Place{Work: filepath.Join(dir, "work"), Temp: filepath.Join(dir, "temp"), Private: []string{filepath.Join(dir, "data")}}
	write(t, filepath.Join(dir, "data", "secret"), "secret")
	for _, d := range []string{p.Work, p.Temp} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// shell runs a command line in a box.
func shell(t testing.TB, policy Policy, h Host, dir, line string, env ...string) (output, []string) {
	t.Helper()
	return shellWith(t, policy, h, dir, line, append([]string{"PATH=" + os.Getenv("PATH")}, env...))
}

func shellWith(t testing.TB, policy Policy, h Host, dir, line string, env []string) (output, []string) {
	t.Helper()
	plan, err := MakePlan(policy, h, Disk{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := plan.Open(Command{Path: "/bin/sh", Args: []string{"-c", line}, Env: env, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	out, err := start(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := b.Close()
	if err != nil {
		t.Fatal(err)
	}
	return out, changed
}

func TestCommandRunsWithItsEnvironmentDirectoryAndStatus(t *testing.T) {
	eachRung(t, func(t *testing.T, h Host, _ Rung) {
		p := place(t)
		write(t, filepath.Join(p.Work, "in"), "x")
		out, _ := shell(t, Standard(p), h, p.Work, `cat in; pwd; printf "$A"; echo y >out; exit 7`, "A=\xff=")
		if want := "x" + p.Work + "\n\xff="; out.stdout != want || out.status != 7 || out.stderr != "" {
			t.Errorf("%d %q %q, want 7 %q", out.status, out.stdout, out.stderr, want)
		}
		if text, err := os.ReadFile(filepath.Join(p.Work, "out")); string(text) != "y\n" {
			t.Errorf("%q %v", text, err)
		}
		names, err := os.ReadDir(p.Work)
		if err != nil || len(names) != 2 {
			t.Errorf("left in the work directory: %v %v", names, err)
		}
	})
}

func TestNothingRunsWhereTheCommandIsHidden(t *testing.T) {
	eachRung(t, func(t *testing.T, h Host, _ Rung) {
		p := place(t)
		program := filepath.Join(p.Private[0], "program")
		write(t, program, "#!/bin/sh\ntouch "+p.Work+"/ran\n")
		if err := os.Chmod(program, 0o755); err != nil {
			t.Fatal(err)
		}
		plan, err := MakePlan(Standard(p), h, Disk{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := plan.Open(Command{Path: program, Dir: p.Work})
		if err != nil {
			t.Fatal(err)
		}
		out, err := start(t.Context(), b, nil)
		if types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "the command was not started in the sandbox: "+program+": ") || out.status != NotRun || out.stderr != "" {
			t.Errorf("%d %q %v", out.status, out.stderr, err)
		}
		if _, err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(p.Work, "ran")); err == nil {
			t.Error("it ran")
		}
	})
}

// TestProcessLeftBehindStaysConfined starts one that outlives its command. With bubblewrap it ends with the command; with Landlock
// it goes on, and may not do more than before.
func TestProcessLeftBehindStaysConfined(t *testing.T) {
	eachRung(t, func(t *testing.T, h Host, rung Rung) {
		p := place(t)
		outside := filepath.Join(filepath.Dir(p.Work), "outside")
		for _, name := range []string{"go", "done"} {
			if err := unix.Mkfifo(filepath.Join(p.Work, name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// It has opened both pipes when the command ends, and does what it wants when it is told so.
		out, _ := shell(t, Standard(p), h, p.Work, `(setsid sh -c 'exec 3<>go 4<>done; echo >ready; read x <&3; echo x >../outside; echo done >&4' >/dev/null 2>&1 &)
			until test -e ready; do :; done`)
		if out.status != 0 {
			t.Fatalf("%d %s", out.status, out.stderr)
		}
		tell, err := os.OpenFile(filepath.Join(p.Work, "go"), os.O_WRONLY|unix.O_NONBLOCK, 0)
		if rung == RungBwrap {
			for err == nil && t.Context().Err() == nil { // it has been killed, and is about to end
				_ = tell.Close()
				tell, err = os.OpenFile(filepath.Join(p.Work, "go"), os.O_WRONLY|unix.O_NONBLOCK, 0)
			}
			if !errors.Is(err, unix.ENXIO) {
				t.Error("it has outlived the command:", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer tell.Close()
		answer, err := os.OpenFile(filepath.Join(p.Work, "done"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Close()
		if _, err := tell.WriteString("x\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := answer.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(outside); err == nil {
			t.Error("it has written outside")
		}
	})
}

func TestNamesAreHeldTogetherAndGivenBack(t *testing.T) {
	h := probed(t, RungBwrap)
	p := place(t)
	plan, err := MakePlan(Standard(p), h, Disk{})
	if err != nil {
		t.Fatal(err)
	}
	open := func() *Box {
		t.Helper()
		b, err := plan.Open(Command{Path: "/bin/true", Dir: p.Work})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	held := func() int {
		t.Helper()
		names, err := os.ReadDir(p.Work)
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	closed := func(b *Box) {
		t.Helper()
		if changed, err := b.Close(); len(changed) > 0 || err != nil {
			t.Error(changed, err)
		}
	}
	first := open()
	second := open()
	if held() != len(plan.Held) || held() == 0 {
		t.Errorf("%d names are held, want %d", held(), len(plan.Held))
	}
	closed(first)
	if held() != len(plan.Held) {
		t.Error("the second box has lost its names")
	}
	closed(second)
	closed(second)
	if held() != 0 {
		t.Errorf("%d names are left", held())
	}
	// As a crash leaves them, and as a person makes one.
	closedLater := open()
	for _, held := range closedLater.held {
		_ = held.lock.Close()
	}
	mine := filepath.Join(p.Work, ".vscode")
	if err := os.Chmod(mine, 0o755); err != nil {
		t.Fatal(err)
	}
	closed(open())
	if names, err := os.ReadDir(p.Work); err != nil || len(names) != 1 || names[0].Name() != ".vscode" {
		t.Errorf("left: %v %v, want what a person has made", names, err)
	}
}

func TestOnlyWhatCanBeEnforcedIsPlanned(t *testing.T) {
	dir := directory(t)
	work := filepath.Join(dir, "work")
	write(t, filepath.Join(work, "keys", "key"), "x")
	both := Host{Bwrap: Proof{Proved: true}, Landlock: Proof{Proved: true}}
	std := Standard(Place{Work: work})
	for want, c := range map[string]struct {
		host   Host
		change func(*Policy)
	}{
		"cannot confine commands on this host (bubblewrap: left out; Landlock: left out); see: rnix doctor": {both.Without(RungBwrap).Without(RungLandlock), func(*Policy) {}},
		"bubblewrap: left out":                        {both.Without(RungBwrap), func(p *Policy) { p.Level = LevelBwrap }},
		"Landlock: not probed":                        {Host{Bwrap: Proof{Proved: true}}, func(p *Policy) { p.Level = LevelLandlock }},
		"cannot limit the network to single hosts":    {both.Without(RungBwrap), func(p *Policy) { p.Net, p.Hosts = NetHosts, []string{"a.test"} }},
		"cannot allow single Unix sockets: bwrap":     {both, func(p *Policy) { p.Sockets = []string{"/run/s"} }},
		"cannot allow single Unix sockets: landl":     {both.Without(RungBwrap), func(p *Policy) { p.Sockets = []string{"/"} }},
		"cannot hide " + work + "/keys with Landlock": {both.Without(RungBwrap), func(p *Policy) { p.Hide = append(p.Hide, work+"/keys") }},
	} {
		p := std
		c.change(&p)
		if plan, err := MakePlan(p, c.host, Disk{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %v, want %q", plan.Rung, err, want)
		}
	}
	for level, want := range map[Level]Rung{LevelAuto: RungBwrap, LevelLandlock: RungLandlock, LevelBwrap: RungBwrap, LevelOff: RungNone} {
		p := std
		p.Level = level
		if plan, err := MakePlan(p, both, Disk{}); err != nil || plan.Rung != want {
			t.Errorf("level %s: %q %v, want %q", level, plan.Rung, err, want)
		}
	}
	if b, err := (Plan{}).Open(Command{Path: "/bin/true", Dir: "/"}); err == nil {
		t.Errorf("the zero plan gives %+v", b)
	}
}

func TestLinkThatTheCommandCouldReplaceIsRefused(t *testing.T) {
	p := place(t)
	if err := os.Symlink(p.Temp, filepath.Join(p.Work, ".claude")); err != nil {
		t.Fatal(err)
	}
	_, err := MakePlan(Standard(p), Host{Bwrap: Proof{Proved: true}}, Disk{})
	if err == nil || !strings.Contains(err.Error(), ".claude: cannot protect, nor let be written, what is behind a symbolic link") {
		t.Error(err)
	}
}

func TestOpenNetworkReachesTheLoopback(t *testing.T) {
	eachRung(t, func(t *testing.T, h Host, _ Rung) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		p := place(t)
		p.Tools = []string{self(t)}
		policy := Standard(p)
		policy.Net = NetOpen
		_, port, _ := net.SplitHostPort(l.Addr().String())
		out, _ := shell(t, policy, h, p.Work, `"`+self(t)+`" `+attackWord+" tcp "+port)
		if !strings.Contains(out.stdout, escaped) {
			t.Errorf("not reached: %s%s", out.stdout, out.stderr)
		}
	})
}

func TestBubblewrapsFailuresAreExplained(t *testing.T) {
	for said, want := range map[string]string{
		"bwrap: setting up uid map: Permission denied":                             "apparmor_parser -r /etc/apparmor.d/bwrap",
		"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted":             "profile bwrap /usr/bin/bwrap flags=(unconfined)",
		"bwrap: No permissions to create new namespace, likely because the kernel": "seccomp=unconfined",
		"bwrap: Can't mount proc on /newroot/proc: Operation not permitted":        "systempaths=unconfined",
	} {
		if p := explainBwrap(said + "\n"); p.Proved || !strings.Contains(p.Fix, want) || !strings.Contains(p.Reason, said) {
			t.Errorf("%s: %+v", said, p)
		}
	}
	if p := explainBwrap("bwrap: something\nmore"); p.Reason != "bubblewrap failed: bwrap: something" || p.Fix != "" {
		t.Errorf("%+v", p)
	}
}

func TestBubblewrapIsNotTakenFromTheWorkDirectory(t *testing.T) {
	dir := directory(t)
	for _, name := range []string{"work/bwrap", "bin/bwrap"} {
		write(t, filepath.Join(dir, name), "#!/bin/sh\n")
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "links"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "work/bwrap"), filepath.Join(dir, "links/bwrap")); err != nil {
		t.Fatal(err)
	}
	path := ".:" + dir + "/none:" + dir + "/work:" + dir + "/links:" + dir + "/bin"
	if got := FindBwrap(path, filepath.Join(dir, "work")); got != dir+"/bin/bwrap" {
		t.Error(got)
	}
}
