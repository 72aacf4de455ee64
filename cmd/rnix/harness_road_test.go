package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
)

// replays gives a user providers that answer what they are told, by name.
func (u *user) replays(answers map[string]string) {
	u.t.Helper()
	dir := filepath.Join(u.Home, ".config", "rnix")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		u.t.Fatal(err)
	}
	list := "providers:\n"
	for name, text := range answers {
		list += fmt.Sprintf("  - {name: %s, driver: replay, script: %s.yaml}\n", name, name)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte("version: \"1\"\nresponses:\n"+text), 0o600); err != nil {
			u.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "providers.yaml"), []byte(list), 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// text reads a file of the work directory.
func (u *user) text(name string) string {
	u.t.Helper()
	b, err := os.ReadFile(filepath.Join(u.Work, name))
	if err != nil {
		u.t.Error(err)
	}
	return string(b)
}

// The commands that a real command line runs by itself in the sandbox reach the daemon, and act for its process. Nobody else comes in there.
func TestCommandsOfRealCommandLinesReachTheDaemon(t *testing.T) {
	for _, cell := range soak.Cells(t, "command lines whose commands reach the daemon, and levels of confinement", clis(), []string{"bwrap", "landlock"}) {
		name, level := cell[0], cell[1]
		cli := own[name]
		t.Run(name+"/"+level, func(t *testing.T) {
			u := newUser(t, name, nil)
			boxed(t, u, level)
			other := `{content: "", tool_calls: [{name: shell, id: call-1, input: {command: "RNIX_CHANNEL= RNIX_ROAD=$(cat road) rnix ps >other 2>&1; echo >gate"}}]}`
			u.replays(map[string]string{"sleeper": "  - {content: \"\", delay: 1h}\n", "kid": "  - {content: said by a child}\n", "other": "  - " + other + "\n  - {content: done}\n"})
			u.must("run", "-d", "--name", "victim", "--provider", "sleeper", "sleep")
			script := `rnix() { PROGRAM "$@"; } # codex starts a login shell, which has a PATH of its own
echo "$RNIX_ROAD" >asked; mv asked road
rnix ps >ps 2>&1; echo ps $? >codes
RNIX_CHANNEL= rnix ps >alone 2>&1; echo alone $? >>codes
rnix run -q --name kid --provider kid say >ran 2>&1; echo run $? >>codes
rnix run -q --provider kid one | rnix run -q --provider kid - >piped 2>&1; echo pipe $? >>codes
(setsid sh -c 'PROGRAM ps >left 2>&1; echo left $? >done' &) ; until [ -s done ]; do sleep 0.1; done; cat done >>codes
rnix send "$RNIX_UUID" hello >sent 2>&1; echo send $? >>codes
rnix kill victim >killed 2>&1; echo kill $? >>codes
rnix daemon stop >stopped 2>&1; echo stop $? >>codes
RNIX_CHANNEL= RNIX_DATA_DIR=$PWD/own rnix daemon start --foreground >started 2>&1; echo start $? >>codes
until [ -e gate ]; do sleep 0.3; done
cat codes
`
			if err := os.WriteFile(filepath.Join(u.Work, "ask.sh"), []byte(strings.ReplaceAll(script, "PROGRAM", u.exe)), 0o600); err != nil {
				t.Fatal(err)
			}
			u.Answer(func(r llmtest.Request) llmtest.Reply {
				if r.N == 0 {
					return cli.run(r, "sh ask.sh")
				}
				return llmtest.Reply{Text: "it has asked"}
			})
			u.must(append([]string{"run", "-d", "--name", "p"}, append(cli.args, "ask")...)...)
			u.exists("road")
			address, dir, _ := strings.Cut(strings.TrimSpace(u.text("road")), ":/")
			if !strings.HasPrefix(address, "127.0.0.1:") || "/"+dir != filepath.Join(u.Home, "data") {
				t.Errorf("the road is %s of /%s", address, dir)
			}
			if got := answerAt(t, address); !strings.Contains(got, "403") || !strings.Contains(got, "runs inside no agent") {
				t.Errorf("a program outside is answered: %s", got)
			}
			u.must("run", "--net", "open", "--provider", "other", "connect there")
			if got := u.text("other"); !strings.Contains(got, "has none that runs") {
				t.Errorf("another agent is told: %s", got)
			}
			if out := u.must("wait", "p"); !strings.Contains(out, "it has asked") {
				t.Errorf("%s\n%s", out, u.must("log", "p"))
			}
			if got, want := u.text("codes"), "ps 0\nalone 0\nrun 0\npipe 0\nleft 0\nsend 0\nkill 11\nstop 11\nstart 11\n"; got != want {
				t.Errorf("the codes are\n%swant\n%s", got, want)
			}
			for file, want := range map[string]string{"ps": "victim", "alone": "victim", "left": "victim", "ran": "said by a child", "piped": "said by a child", "killed": "may act on its own subtree only", "started": "runs inside an agent"} {
				if got := u.text(file); !strings.Contains(got, want) {
					t.Errorf("%s: %s, want %s", file, got, want)
				}
			}
			if all := u.must("ps", "-a", "--json"); !strings.Contains(all, `"ppid":2,`) {
				t.Errorf("what it has started is not its child: %s", all)
			}
			if got := answerAt(t, address); got != "" {
				t.Errorf("something listens there when it has ended: %s", got)
			}
			u.must("kill", "victim")
		})
	}
}

// A command line that is killed takes its road along, and so does a daemon that is; the next one of either has another.
func TestARoadEndsWithItsCommandLine(t *testing.T) {
	u := newUser(t, "claude", nil)
	boxed(t, u, "bwrap")
	u.Answer(func(r llmtest.Request) llmtest.Reply { // one that was interrupted has a result, too
		if _, err := os.Stat(filepath.Join(u.Work, "gate")); err == nil {
			return llmtest.Reply{Text: "done"}
		}
		return own["claude"].run(r, `echo "$RNIX_ROAD" >asked; mv asked road; until [ -e gate ]; do sleep 0.3; done`)
	})
	begin := func(args ...string) (address string) {
		u.must(args...)
		u.exists("road")
		address, _, _ = strings.Cut(strings.TrimSpace(u.text("road")), ":/")
		if err := os.Remove(filepath.Join(u.Work, "road")); err != nil {
			t.Fatal(err)
		}
		if answerAt(t, address) == "" {
			t.Errorf("nothing listens at %s", address)
		}
		return address
	}
	ended := func(address string) {
		if !testenv.Within(time.Minute, func() bool { return answerAt(t, address) == "" }) {
			t.Fatalf("it listens at %s for ever", address)
		}
	}
	address := begin("run", "-d", "--harness", "claude", "--name", "p", "ask")
	u.must("kill", "-KILL", "p")
	ended(address)
	address = begin("resume", "p")
	if err := syscall.Kill(u.daemon(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(address)
	address = begin("daemon", "start") // which resumes it
	u.write("gate")
	if out := u.must("wait", "p"); !strings.Contains(out, "done") {
		t.Errorf("%s\n%s", out, u.must("log", "p"))
	}
	ended(address)
}

// answerAt is what a program outside of all agents is answered at an address; empty if nobody listens there.
func answerAt(t *testing.T, address string) string {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, time.Minute)
	if err != nil {
		return ""
	}
	defer c.Close() // it was read to the end
	answer, _ := io.ReadAll(c)
	return string(answer)
}
