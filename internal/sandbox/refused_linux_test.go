//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// refusedPlan is how commands of an agent in /home/u/p are confined.
func refusedPlan(rung Rung) Plan {
	place := Place{Work: "/home/u/p", Home: "/home/u", Temp: "/home/u/data/tmp/1", Private: []string{"/home/u/data"}, Git: Git{Top: "/home/u/p", Dir: "/home/u/p/.git", Common: "/home/u/p/.git"}}
	return Plan{Policy: Standard(place), Rung: rung}
}

func refusedFiles() fakeFiles {
	return tree("/home/u/p/.git/hooks/", "/home/u/p/link -> /etc/hosts", "/etc/hosts", "/etc/secret", "/etc/run.txt", "/opt/", "/usr/local/bin/", "/home/u/.ssh/id", "/home/u/secretlink -> /etc/hosts", "/var/run -> /run", "/run/")
}

// told returns refusals in the form "wanted target".
func told(out []Refusal) (list []string) {
	for _, r := range out {
		list = append(list, strings.TrimSpace(string(r.Wanted)+" "+r.Target))
	}
	return list
}

const both, byBwrap, byLandlock = "both", "bwrap", "landlock"

// refusedCases are what programs really print, and what was refused then.
var refusedCases = []struct {
	rung, command, output string
	want                  []string // nil = the command's own error
}{
	// what is hidden
	{byBwrap, "cat ~/.ssh/id", "cat: /home/u/.ssh/id: No such file or directory", []string{"read /home/u/.ssh/id"}},
	{byLandlock, "cat ~/.ssh/id", "cat: /home/u/.ssh/id: Permission denied", []string{"read /home/u/.ssh/id"}},
	{byLandlock, "cat ~/.ssh/none", "cat: /home/u/.ssh/none: No such file or directory", nil},
	{byBwrap, "ls ~/.ssh", "ls: cannot access '/home/u/.ssh': No such file or directory", []string{"read /home/u/.ssh"}},
	{byLandlock, "ls ~/.ssh", "ls: cannot open directory '/home/u/.ssh': Permission denied", []string{"read /home/u/.ssh"}},
	{byBwrap, "cat ../secret.txt", "cat: ../secret.txt: No such file or directory", []string{"read /home/u/secret.txt"}},
	{byBwrap, "cat ./../secret.txt", "cat: ./../secret.txt: No such file or directory", []string{"read /home/u/secret.txt"}},
	{byBwrap, "cd sub && cat ../secret.txt", "cat: ../secret.txt: No such file or directory", nil},
	{byBwrap, "cd sub && cat ../../secret.txt", "cat: ../../secret.txt: No such file or directory", []string{"read /home/u/secret.txt"}},
	{byBwrap, "cd $SUB && cat ../../secret.txt", "cat: ../../secret.txt: No such file or directory", nil},
	{byBwrap, "go test ./...", "    x_test.go:12: open ../testdata/x: no such file or directory", nil},
	{byBwrap, "cd ~/other && make", "bash: line 1: cd: /home/u/other: No such file or directory", []string{"read /home/u/other"}},
	{byBwrap, "~/tools/x", "bash: line 1: /home/u/tools/x: No such file or directory", []string{"read /home/u/tools/x"}},
	{byBwrap, "python3 -c 'open(1)'", "FileNotFoundError: [Errno 2] No such file or directory: '/home/u/x y'", []string{"read /home/u/x y"}},
	{byBwrap, "python3 ~/x.py", "python3: can't open file '/home/u/x.py': [Errno 2] No such file or directory", []string{"read /home/u/x.py"}},
	{byBwrap, "node x", "Error: ENOENT: no such file or directory, open '/home/u/x'", []string{"read /home/u/x"}},
	{byBwrap, "go run .", "open /home/u/x: no such file or directory", []string{"read /home/u/x"}},
	{byBwrap, "cat /home/u/secretlink", "cat: /home/u/secretlink: No such file or directory", []string{"read /home/u/secretlink"}},
	{byBwrap, "cat /home/u/data/key", "cat: /home/u/data/key: No such file or directory", []string{"read /home/u/data/key"}},
	{byBwrap, "git status", "warning: unable to access '/home/u/.config/x/attributes': Permission denied", []string{"read /home/u/.config/x/attributes"}},

	// what is not written
	{byBwrap, "echo x > /etc/xx", "bash: line 4: /etc/xx: Read-only file system", []string{"write /etc/xx"}},
	{byLandlock, "echo x > /etc/xx", "bash: line 4: /etc/xx: Permission denied", []string{"write /etc/xx"}},
	{byLandlock, "echo x 2>&1 >>'/etc/xx'", "bash: line 4: /etc/xx: Permission denied", []string{"write /etc/xx"}},
	{byLandlock, "/etc/run.txt", "bash: line 4: /etc/run.txt: Permission denied", nil},
	{both, "touch /etc/xx", "touch: cannot touch '/etc/xx': %s", []string{"write /etc/xx"}},
	{both, "mkdir /opt/yy", "mkdir: cannot create directory ‘/opt/yy’: %s", []string{"write /opt/yy"}},
	{both, "cp a /usr/local/bin", "cp: cannot create regular file '/usr/local/bin/a': %s", []string{"write /usr/local/bin/a"}},
	{byBwrap, "mv a /usr/local/bin", "mv: inter-device move failed: 'a' to '/usr/local/bin/a'; unable to remove target: Read-only file system", []string{"write /usr/local/bin/a"}},
	{both, "rm /etc/hosts", "rm: cannot remove '/etc/hosts': %s", []string{"write /etc/hosts"}},
	{both, "ln -s a /etc/l", "ln: failed to create symbolic link '/etc/l': %s", []string{"write /etc/l"}},
	{both, "sed -i s/a/b/ /etc/hosts; false", "sed: couldn't open temporary file /etc/sedxtvKvk: %s", []string{"write /etc/sedxtvKvk"}},
	{both, "tee /etc/xx", "tee: /etc/xx: %s", []string{"write /etc/xx"}},
	{both, "dd of=/etc/xx", "dd: failed to open '/etc/xx': %s", []string{"write /etc/xx"}},
	{both, "sh -c 'echo x >/etc/xx'", "sh: 1: cannot create /etc/xx: %s", []string{"write /etc/xx"}},
	{both, "git init /opt/repo", "fatal: cannot mkdir /opt/repo: %s", []string{"write /opt/repo"}},
	{both, "git -C /opt init", "/opt/.git: %s", []string{"write /opt/.git"}},
	{both, "./x.py", "OSError: [Errno 30] %s: '/etc/xx'", []string{"write /etc/xx"}},
	{byBwrap, "node x", "Error: EROFS: read-only file system, open '/etc/xx'", []string{"write /etc/xx"}},
	{byLandlock, "node x", "Error: EACCES: permission denied, mkdir '/opt/zz'", []string{"write /opt/zz"}},
	{byLandlock, "node x", "Error: EACCES: permission denied, rename '/home/u/p/a' -> '/opt/zz'", []string{"write /opt/zz"}},
	{byLandlock, "node x", "Error: spawn EACCES: permission denied, spawn '/etc/run.txt'", nil},
	{byBwrap, "npm i", "npm error rofs EROFS: read-only file system, mkdir '/usr/lib/node_modules'", []string{"write /usr/lib/node_modules"}},
	{both, "go install", "go: writing stat cache: mkdir /home/u/cache: %s", []string{"write /home/u/cache"}},
	{both, "cargo build", "error: could not create home directory: '/home/u/.rust': %s (os error 13)", []string{"write /home/u/.rust"}},
	{both, "cargo build", "error: failed to create directory `/opt/target`\n\nCaused by:\n  %s (os error 30)", []string{"write /opt/target"}},
	{both, "tar xf a", "tar: /opt/x: Cannot mkdir: %s", []string{"write /opt/x"}},
	{byBwrap, "java X", "java.io.FileNotFoundException: /etc/xx (Read-only file system)", []string{"write /etc/xx"}},
	{byBwrap, "echo y >.git/hooks/x", "bash: line 17: .git/hooks/x: Read-only file system", []string{"write /home/u/p/.git/hooks/x"}},
	{byBwrap, "git config a.b c", "error: could not write config file /home/u/p/.git/config: Device or resource busy", []string{"write /home/u/p/.git/config"}},
	{byBwrap, "umount x", "umount: /home/u/p/x: Device or resource busy", nil},
	{byBwrap, "echo x >link", "bash: line 1: link: Read-only file system", []string{"write /etc/hosts"}},
	{byBwrap, "cd /etc; echo x >made", "bash: line 1: made: Read-only file system", []string{"write /etc/made"}},
	{byBwrap, "touch /etc/a /etc/b /etc/a", "touch: cannot touch '/etc/a': Read-only file system\ntouch: cannot touch '/etc/b': Read-only file system\ntouch: cannot touch '/etc/a': Read-only file system", []string{"write /etc/a", "write /etc/b"}},
	{byLandlock, "touch /tmp/x1", "touch: cannot touch '/tmp/x1': Permission denied", []string{"write /tmp/x1"}},
	{byLandlock, "python3 x", "PermissionError: [Errno 13] Permission denied: '/etc/hosts'", []string{"write /etc/hosts"}},
	{byLandlock, "python3 x", "PermissionError: [Errno 13] Permission denied: '/etc/secret'", nil}, // which its user may not read

	// errors of its own
	{both, "cat none", "cat: none: No such file or directory", nil},
	{both, "cat /etc/none", "cat: /etc/none: No such file or directory", nil},
	{both, "cat /etc/secret", "cat: /etc/secret: Permission denied", nil},
	{byBwrap, "touch /etc/xx", "touch: cannot touch '/etc/xx': Permission denied", nil}, // a mount that is read-only says otherwise
	{both, "./x", "bash: line 1: ./x: Permission denied", nil},
	{both, "echo x >dir/x", "bash: line 1: dir/x: Permission denied", nil},
	{byBwrap, "cat /tmp/none", "cat: /tmp/none: No such file or directory", nil},
	{both, "cat /dev/fd/63", "cat: /dev/fd/63: No such file or directory", nil},
	{both, "cat /proc/1/environ", "cat: /proc/1/environ: Permission denied", nil},
	{both, "ssh x", "git@github.com: Permission denied (publickey).", nil},
	{both, "false", "Permission denied", nil},
	{both, "grep -rn denied .", "doc/x.md:12:cat: /home/u/.ssh/id: Permission denied", nil},
	{both, "cat log; false", "touch: cannot touch '/etc/xx': Read-only file system\ncurl: (6) Could not resolve host: example.com", nil},
	{both, "git log | head; false", "ls: cannot open directory '/home/u/.ssh': Permission denied", nil},
	{byBwrap, "grep 'a|b' ~/.ssh/id | head; false", "grep: /home/u/.ssh/id: No such file or directory", []string{"read /home/u/.ssh/id"}},
	{both, "git diff x; make", "+touch: cannot touch '/etc/xx': Read-only file system", nil},

	// the network
	{both, "curl x", "curl: (6) Could not resolve host: example.com", []string{"network example.com"}},
	{both, "curl x", "the proxy of the sandbox lets commands reach a.test:80, and could not connect to it: lookup a.test on 10.0.0.1:53: no such host", nil},
	{both, "curl x", "curl: (7) Failed to connect to 1.2.3.4 port 80 after 0 ms: Couldn't connect to server", []string{"network 1.2.3.4:80"}},
	{byBwrap, "curl x", "curl: (7) Failed to connect to localhost port 1 after 0 ms: Couldn't connect to server", nil},
	{byLandlock, "curl x", "curl: (7) Failed to connect to localhost port 1 after 0 ms: Couldn't connect to server", []string{"network localhost:1"}},
	{byBwrap, "node x", "Error: connect ECONNREFUSED 127.0.0.1:5432", nil},
	{byBwrap, "node x", "Error: connect ENETUNREACH 1.2.3.4:80 - Local (0.0.0.0:0)", []string{"network 1.2.3.4:80"}},
	{byLandlock, "node x", "Error: connect EPERM 1.2.3.4:80 - Local (undefined:undefined)", []string{"network 1.2.3.4:80"}},
	{both, "node x", "  [cause]: Error: getaddrinfo EAI_AGAIN example.com\n    code: 'EAI_AGAIN',", []string{"network example.com"}},
	{both, "npm view x", "npm error code EAI_AGAIN\nnpm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org", []string{"network registry.npmjs.org"}},
	{both, "wget x", "Resolving example.com (example.com)... failed: Temporary failure in name resolution.\nwget: unable to resolve host address ‘example.com’", []string{"network example.com"}},
	{both, "ssh x", "ssh: Could not resolve hostname github.com: Temporary failure in name resolution", []string{"network github.com"}},
	{byBwrap, "ssh x", "ssh: connect to host 1.2.3.4 port 22: Network is unreachable", []string{"network 1.2.3.4:22"}},
	{byLandlock, "ssh x", "socket: Operation not permitted\nssh: connect to host 1.2.3.4 port 22: failure", []string{"network 1.2.3.4:22"}},
	{both, "git clone x", "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com", []string{"network github.com"}},
	{both, "git clone x", "fatal: unable to access 'https://1.2.3.4/a/b/': Failed to connect to 1.2.3.4 port 443 after 0 ms: Couldn't connect to server", []string{"network 1.2.3.4:443"}},
	{byBwrap, "cat </dev/tcp/1.2.3.4/80; x", "bash: connect: Network is unreachable\nbash: line 37: /dev/tcp/1.2.3.4/80: Network is unreachable", []string{"network 1.2.3.4:80"}},
	{byLandlock, "cat </dev/tcp/1.2.3.4/80; x", "bash: socket: Operation not permitted\nbash: line 37: /dev/tcp/1.2.3.4/80: Operation not permitted", []string{"network 1.2.3.4:80"}},
	{both, "pip download x", "WARNING: Retrying after connection broken by 'NewConnectionError('<X>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/requests/", []string{"network"}},
	{both, "python3 x", "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded with url: / (Caused by NameResolutionError(\"<X>: Failed to resolve 'pypi.org' ([Errno -3] Temporary failure in name resolution)\"))", []string{"network pypi.org"}},
	{byBwrap, "python3 x", "OSError: [Errno 101] Network is unreachable", []string{"network"}},
	{both, "go get x", `go: x@v1: Get "https://proxy.golang.org/x/@v/v1.info": dial tcp: lookup proxy.golang.org on 127.0.0.53:53: read udp 127.0.0.1:4->127.0.0.53:53: read: connection refused`, []string{"network proxy.golang.org"}},
	{byBwrap, "go get x", `dial tcp 1.2.3.4:443: connect: network is unreachable`, []string{"network 1.2.3.4:443"}},
	{byBwrap, "go test", `dial tcp [::1]:443: connect: connection refused`, nil},
	{both, "cargo build", "warning: spurious network error (3 tries remaining): [6] Could not resolve hostname (Could not resolve host: index.crates.io)", []string{"network index.crates.io"}},
	{both, "hostname -i", "hostname: Name or service not known", nil},
	{both, "sudo x", "sudo: unable to resolve host rnix: Name or service not known", nil},

	// the rest
	{both, "psql", `psql: error: connection to server on socket "/var/run/postgresql/.s.PGSQL.5432" failed: could not create socket: Operation not permitted`, []string{"socket /var/run/postgresql/.s.PGSQL.5432"}},
	{both, "docker ps", "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get \"http://x\": dial unix /var/run/docker.sock: socket: operation not permitted", []string{"socket /var/run/docker.sock"}},
	{both, "docker ps", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", []string{"socket /var/run/docker.sock"}},
	{byBwrap, "chromium --headless", "[14:14:1126/202417.514862:FATAL:chrome/browser/process_singleton_posix.cc:297] Check failed: . socket() failed: Operation not permitted (1)", []string{"socket"}},
	{both, "sudo true", `sudo: The "no new privileges" flag is set, which prevents sudo from running as root.`, []string{"rights the rights of other users (sudo, su)"}},
	{both, "unshare -r", "unshare: unshare failed: Operation not permitted", []string{"rights namespaces and mounts"}},
	{both, "mount x", "mount: /mnt: permission denied.", []string{"rights namespaces and mounts"}},
	{both, "strace x", "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted\nstrace: PTRACE_SETOPTIONS: Operation not permitted", []string{"rights the tracing of programs (ptrace)"}},
}

// mayRead says what the user of the commands may read.
func mayRead(path string) bool { return path != "/etc/secret" }

func TestWhatWasRefusedIsFoundInWhatProgramsPrint(t *testing.T) {
	for _, c := range refusedCases {
		for _, rung := range []Rung{RungBwrap, RungLandlock} {
			if c.rung != both && c.rung != string(rung) {
				continue
			}
			output := c.output
			if strings.Contains(output, "%s") {
				output = fmt.Sprintf(output, map[Rung]string{RungBwrap: "Read-only file system", RungLandlock: "Permission denied"}[rung])
			}
			o := Outcome{Command: c.command, Dir: "/home/u/p", Code: 1, Output: "some other line\n" + output + "\n", Reads: mayRead}
			plan := refusedPlan(rung)
			if got := told(plan.Refused(o, refusedFiles())); !slices.Equal(got, c.want) {
				t.Errorf("%s: %s\n%s\ngives %q, want %q", rung, c.command, output, got, c.want)
			}
			for name, free := range map[string]Plan{"off": {Policy: Everything()}, "wide": {Policy: Policy{Version: Version, Level: LevelAuto, Write: []string{"/"}, Net: NetOpen, Sockets: []string{"/"}}, Rung: rung, Network: true, Unix: true}} {
				if got := told(free.Refused(o, refusedFiles())); len(got) > 0 && !strings.HasPrefix(got[0], "rights ") {
					t.Errorf("%s, %s: %q", name, output, got)
				}
			}
		}
	}
}

func TestCommandThatSucceedsWasRefusedNothing(t *testing.T) {
	plan, line := refusedPlan(RungBwrap), "touch: cannot touch '/etc/xx': Read-only file system\n"
	for command, want := range map[string]int{"./x": 0, "./x arg 'a;b'": 0, "./x | tail": 1, "./x; true": 1, "./x\nls": 1, "./x && y": 0, "./x\n": 0, "./x || y": 1, "python3 - <<E\nE": 1, "": 0} {
		if got := plan.Refused(Outcome{Command: command, Dir: "/home/u/p", Output: line}, refusedFiles()); len(got) != want {
			t.Errorf("%q: %q", command, told(got))
		}
	}
	if got := told(plan.Refused(Outcome{Dir: "/home/u/p", Code: 159}, refusedFiles())); !slices.Equal(got, []string{"rights system calls of another architecture"}) {
		t.Errorf("ended by the filter: %q", got)
	}
}

func TestRefusalSaysWhatAPersonCanDo(t *testing.T) {
	for target, want := range map[string]string{
		"read /home/u/x": "under sandbox.read", "read /home/u/.ssh/id": "under sandbox.read", "read /var/spool/cron": "--sandbox off", "write /opt/x": "under sandbox.write", "write /home/u/p/.git/config": "--sandbox off", "write /home/u/p/.git/hooks/x": "--sandbox off",
		"write /tmp/x": "$TMPDIR", "network x.test:443": "--net open", "network ": "--net open", "socket /run/x": "--sandbox off", "rights namespaces": "--sandbox off",
	} {
		plan := refusedPlan(RungLandlock)
		wanted, path, _ := strings.Cut(target, " ")
		r := Refusal{Wanted: Wanted(wanted), Target: path, Advice: plan.advice(Wanted(wanted), path)}
		if text := r.Text(); !strings.Contains(text, "trying again does not help, ") || !strings.Contains(text, want) || !strings.Contains(text, path) || !strings.HasPrefix(text, "the sandbox ") {
			t.Errorf("%s: %s", target, text)
		}
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	var all strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&all, "touch: cannot touch '/etc/x%d': Read-only file system\n", i)
	}
	plan := refusedPlan(RungBwrap)
	if got := plan.Refused(Outcome{Command: "x", Dir: "/home/u/p", Code: 1, Output: all.String()}, refusedFiles()); len(got) != mostRefusals {
		t.Errorf("%d", len(got))
	}
	begin := time.Now()
	plan.Refused(Outcome{Command: strings.Repeat("'\"`$(", 1<<13), Dir: "/home/u/p", Code: 1, Output: strings.Repeat("'", 1<<15) + "\n" + strings.Repeat("lookup a: no such host 'a' ", 40) + "\n"}, refusedFiles())
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestCommandLineIsReadAsAShellDoes(t *testing.T) {
	for text, want := range map[string]commandLine{
		"A=1 /bin/cat 'a b' \"c|d\" e\\ f 2>/dev/null # x | y": {programs: []string{"cat"}, words: []string{"/dev/null", "a b", "c|d", "e f"}, into: []string{"/dev/null"}, known: true, reads: true},
		"cd sub && ls|wc -l": {programs: []string{"cd", "ls", "wc"}, words: []string{"sub", "-l"}, start: "sub", known: true, hides: true, reads: true},
		"cd a; cd b;\n":      {programs: []string{"cd", "cd"}, words: []string{"a", "b"}, dirs: []string{"a", "b"}, known: true, hides: true},
		"cd \"$D\"; x":       {programs: []string{"cd", "x"}, words: []string{"$D"}, hides: true},
		"make -C sub":        {programs: []string{"make"}, words: []string{"-C", "sub"}},
		"git commit -m x":    {programs: []string{"git", "git commit -m x"}, words: []string{"commit", "-m", "x"}, known: true},
		"git diff":           {programs: []string{"git"}, words: []string{"diff"}, known: true, reads: true},
		"cat x; make":        {programs: []string{"cat", "make"}, words: []string{"x"}, known: true, hides: true},
	} {
		got := parseLine(text)
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%q:\n%+v, want\n%+v", text, got, want)
		}
	}
}

// What is said to be refused, the plan refuses, whatever a command prints.
func FuzzRefused(f *testing.F) {
	for _, c := range refusedCases {
		f.Add(c.command, c.output, c.rung == byLandlock)
	}
	files := refusedFiles()
	f.Fuzz(func(t *testing.T, command, output string, landlock bool) {
		rung := RungBwrap
		if landlock {
			rung = RungLandlock
		}
		plan := refusedPlan(rung)
		out := plan.Refused(Outcome{Command: command, Dir: "/home/u/p", Code: 1, Output: output, Reads: mayRead}, files)
		seen := map[string]bool{}
		for _, r := range out {
			key := string(r.Wanted) + " " + r.Target
			if seen[key] || len(seen) >= mostRefusals {
				t.Errorf("twice, or too many: %q", told(out))
			}
			seen[key] = true
			path := filepath.IsAbs(r.Target) && filepath.Clean(r.Target) == r.Target
			switch r.Wanted {
			case WantedRead:
				if !path || plan.Policy.Allows(r.Target, AccessRead) {
					t.Errorf("%q may be read", r.Target)
				}
			case WantedWrite:
				if !path || plan.Policy.Allows(r.Target, AccessWrite) {
					t.Errorf("%q may be written", r.Target)
				}
			case WantedNet:
				if r.Target != "" && plan.Policy.Reaches(r.Target) || rung == RungBwrap && isLoopback(r.Target) {
					t.Errorf("%q is reached", r.Target)
				}
			case WantedSocket:
				if !path && r.Target != "" {
					t.Errorf("%q is no path", r.Target)
				}
			case WantedRights:
			default:
				t.Errorf("%q is not known", r.Wanted)
			}
			if r.Text() == "" || strings.Contains(r.Text(), "\n") {
				t.Errorf("%q", r.Text())
			}
		}
	})
}
