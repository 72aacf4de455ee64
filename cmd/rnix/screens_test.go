package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rnix/internal/testenv"
)

// screen is a terminal in which somebody types: a real one, in tmux, with the real program and a daemon of its own.
type screen struct {
	t    *testing.T
	sock string // of tmux
	env  []string
	dir  string
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux")
	}
	t.Parallel()
	dir, err := os.MkdirTemp("", "rnix") // a short name: sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, sock: filepath.Join(dir, "tmux"), dir: filepath.Join(dir, "work")}
	home, run, data := filepath.Join(dir, "home"), filepath.Join(dir, "run"), filepath.Join(dir, "data")
	for _, d := range []string{filepath.Join(home, ".config", "rnix"), run, s.dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"providers.yaml": screenProviders, "script.yaml": screenScript} {
		if err := os.WriteFile(filepath.Join(home, ".config", "rnix", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "RNIX_DATA_DIR=" + data, "XDG_RUNTIME_DIR=" + run, "TMUX_TMPDIR=" + dir,
		"LANG=C.UTF-8", "TERM=xterm-256color", "SHELL=/bin/sh", "PS1=$ ", "GORACE=atexit_sleep_ms=0", "TZ=UTC"}
	t.Cleanup(func() {
		_ = s.tmuxErr("kill-server")
		stopDaemon(t, s.env, data, dir)
	})
	return s
}

const screenProviders = `version: "1"
default_provider: script
providers:
  - {name: script, driver: replay, script: script.yaml}
`

const screenScript = `version: "1"
conversations:
  - prompt: Bring the parser
    responses:
      - content: I look at what there is, and wait for the others.
        tool_calls: [{name: shell, input: {command: "sleep 300"}}]
        usage: {input_tokens: 3200, output_tokens: 240}
  - prompt: Run the tests
    responses:
      - content: The whole suite first.
        tool_calls: [{name: shell, input: {command: "echo ok"}}]
        usage: {input_tokens: 2100, output_tokens: 90}
      - content: One is slow; I watch it.
        tool_calls: [{name: shell, input: {command: "sleep 301"}}]
        usage: {input_tokens: 2300, output_tokens: 60}
  - prompt: Review each commit
    responses:
      - tool_calls: [{name: shell, input: {command: "sleep 302"}}]
        usage: {input_tokens: 1800, output_tokens: 40}
  - prompt: Say something
    responses:
      - content: "Done. \e[31mred\e[0m \u202Eturned\e]0;title\a <script>alert(1)</script>"
        usage: {input_tokens: 700, output_tokens: 30}
`

func (s *screen) tmuxErr(args ...string) error {
	c := exec.Command("tmux", append([]string{"-S", s.sock, "-f", "/dev/null"}, args...)...)
	c.Env, c.Dir = s.env, s.dir
	return c.Run()
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	c := exec.Command("tmux", append([]string{"-S", s.sock, "-f", "/dev/null"}, args...)...)
	c.Env, c.Dir = s.env, s.dir
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// rnix runs a command beside the terminal, and returns its standard output.
func (s *screen) rnix(args ...string) string {
	s.t.Helper()
	c := exec.Command("rnix", args...)
	c.Env, c.Dir = s.env, s.dir
	out, err := c.Output()
	if err != nil {
		s.t.Fatalf("rnix %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// follows runs the command that stands on the screen once, with more words, beside the terminal.
func (s *screen) follows(pattern, more string) {
	s.t.Helper()
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(s.text(), -1)
	if len(found) != 1 {
		s.t.Fatalf("%d commands match %s:\n%s", len(found), pattern, s.text())
	}
	words := strings.Fields(found[0][1] + " " + more)
	s.rnix(words[1:]...)
}

// open starts a terminal with a command in a shell.
func (s *screen) open(w, h string, command string) {
	s.t.Helper()
	s.tmux("new-session", "-d", "-x", w, "-y", h, "/bin/sh")
	s.tmux("set-option", "-g", "status", "off")
	s.tmux("set-option", "-g", "window-size", "manual")
	s.tmux("resize-window", "-x", w, "-y", h)
	s.run(command)
}

// run types a command, which says at its end how it has ended.
func (s *screen) run(command string) {
	s.t.Helper()
	s.keys("clear; "+command+"; echo ended with $?", "Enter")
}

// leave presses a key that ends the program, and waits until the shell has the terminal again.
func (s *screen) leave(key string) {
	s.t.Helper()
	s.keys(key)
	s.sees("ended with 0")
}

func (s *screen) keys(keys ...string) {
	s.t.Helper()
	s.tmux(append([]string{"send-keys"}, keys...)...)
}

func (s *screen) text() string { s.t.Helper(); return s.tmux("capture-pane", "-p") }

// waits until the screen has all of the texts.
func (s *screen) sees(want ...string) {
	s.t.Helper()
	s.until(func(text string) bool {
		for _, w := range want {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	}, "the screen lacks one of "+strings.Join(want, " | "))
}

func (s *screen) seesNot(not string) {
	s.t.Helper()
	s.until(func(text string) bool { return !strings.Contains(text, not) }, "the screen still has "+not)
}

func (s *screen) until(ok func(string) bool, otherwise string) {
	s.t.Helper()
	text := ""
	if !testenv.Within(2*time.Minute, func() bool { text = s.text(); return ok(text) }) {
		s.t.Fatalf("%s:\n%s", otherwise, text)
	}
}

// picture writes what is on the screen to docs, as text and as a drawing, if that is wanted.
func (s *screen) picture(name string) {
	s.t.Helper()
	if !*update {
		return
	}
	dir := filepath.Join("..", "..", "docs", "screens")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	tidy := strings.NewReplacer(filepath.Dir(s.dir), "~")
	for ext, text := range map[string]string{".txt": tidy.Replace(s.text()), ".svg": drawing(tidy.Replace(s.tmux("capture-pane", "-p", "-e")))} {
		if err := os.WriteFile(filepath.Join(dir, name+ext), []byte(text), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestAPersonSeesAndSteersInATerminal types what somebody types, into a real terminal, and looks at what is there.
func TestAPersonSeesAndSteersInATerminal(t *testing.T) {
	s := newScreen(t)
	s.rnix("daemon", "start")
	s.rnix("run", "-d", "--name", "lead", "Bring the parser up to the new grammar")
	s.rnix("run", "-d", "--name", "tests", "--parent", "lead", "Run the tests and mend what fails")
	s.rnix("run", "-d", "--name", "review", "--parent", "lead", "Review each commit")
	s.rnix("run", "-d", "--name", "hello", "Say something")

	s.open("80", "24", "rnix top")
	s.sees("rnix top", "3 running", "lead", "├ ● tests", "└ ● review", "s shell", "? help")
	s.picture("top")
	s.keys("p") // lead, and all below it
	s.sees("with 2 below it", "├ ⏸ tests", "3 suspended")
	s.picture("top_paused")
	s.keys("p")
	s.sees("resumed as PID", "├ ● tests")
	s.keys("?")
	s.sees("In top", "open the dashboard on the process")
	s.picture("help")
	s.keys("q")
	s.keys("/", "review", "Enter")
	s.keys("Enter") // the dashboard, on review
	s.sees("1 Detail", "name       review", "Review each commit")
	s.tmux("resize-window", "-x", "120", "-y", "30")
	s.sees("step 1/50", "MAY USE")
	s.picture("dashboard")

	// what is pasted is text, and only Enter sends it
	s.keys("s")
	s.sees("say to PID 3 (review):")
	s.tmux("set-buffer", "Leave the tests alone\nand look at main.go only")
	s.tmux("paste-buffer", "-p")
	s.sees("Leave the tests alone⏎and look at main.go only")
	s.keys("Enter")
	s.sees("gets it before its next prompt")

	s.keys("K")
	s.sees("end PID 3 (review)?", "y yes")
	s.picture("kill")
	s.keys("n")
	s.seesNot("y yes")
	s.keys("K", "K") // at once
	s.sees("PID 3 (review) was killed", "killed")

	// history: the ended ones, on which everything works as on the living; the text of an agent does nothing
	s.keys("H")
	s.sees("✓ hello", "✗ review")
	s.keys("G")
	s.sees("name       hello", "Done. red <U+202E>turned <script>alert(1)</script>")
	s.picture("history")
	s.keys("F")
	s.sees("a copy of PID 4 (hello) resumes after step: 1")
	s.keys("C-u", "0", "Enter")
	s.sees("is a copy of PID 4 (hello)")

	// the daemon goes and comes back: the view stays
	s.rnix("daemon", "stop")
	s.sees("the daemon is gone since", "lead")
	s.follows(`elsewhere: (rnix daemon start) `, "")
	s.seesNot("the daemon is gone since")
	s.rnix("run", "-d", "--name", "again", "Bring the parser up to the new grammar")
	s.rnix("run", "-d", "--name", "check", "--parent", "again", "Run the tests and mend what fails")
	s.sees("✓ hello", "● again", "└ ● check")
	s.leave("q")

	// the same again: it begins as it was left, also in ASCII, and on one that has ended long ago
	s.run("RNIX_ASCII=1 NO_COLOR=1 rnix dashboard 4")
	s.sees("[D] hello", "name       hello", "[R] again", "`-[R] check", "? help")
	s.picture("dashboard_ascii")
	for _, r := range s.text() {
		if r > 0x7f {
			t.Errorf("%q is drawn in ASCII", r)
		}
	}
	s.tmux("resize-window", "-x", "30", "-y", "6")
	s.sees("hello")
	s.tmux("resize-window", "-x", "200", "-y", "50")
	s.sees("name       hello")
	s.leave("q")
	s.run("rnix top")
	s.sees("RSS NAME", "● check")
	s.picture("top_wide")
	s.leave("C-c")
}

// TestTheMouseChoosesAndScrolls sends what a terminal sends for a click and for the wheel.
func TestTheMouseChoosesAndScrolls(t *testing.T) {
	s := newScreen(t)
	s.rnix("daemon", "start")
	s.rnix("run", "-d", "--name", "lead", "Bring the parser up to the new grammar")
	s.rnix("run", "-d", "--name", "tests", "Run the tests and mend what fails")
	s.open("100", "20", "rnix dashboard")
	s.sees("name       lead")
	s.keys("-l", "\x1b[<0;5;3M\x1b[<0;5;3m") // the second row of the list
	s.sees("name       tests")
	s.keys("-l", "\x1b[<65;70;8M") // the wheel over the right side
	s.seesNot("name       tests")
	s.leave("q")
}

const screenFlow = `name: release
intent: Say what is new
agents:
  plan: {intent: Say something of the plan}
  notes: {intent: Say something for the notes, depends_on: [plan]}
  check: {intent: "Say something of ${item}", depends_on: [plan], foreach: [linux, darwin]}
  publish: {intent: Review each commit, depends_on: [notes, check]}
`

// TestEveryPaneInATerminal looks at all there is to one process, with real keys.
func TestEveryPaneInATerminal(t *testing.T) {
	s := newScreen(t)
	if err := os.WriteFile(filepath.Join(s.dir, "compose.yaml"), []byte(screenFlow), 0o600); err != nil {
		t.Fatal(err)
	}
	s.rnix("daemon", "start")
	s.rnix("run", "-d", "--name", "tests", "Run the tests and mend what fails")
	s.rnix("compose", "up", "-d")
	s.open("120", "36", "rnix dashboard tests")
	s.sees("name       tests", "step       2/50")
	for _, p := range []struct {
		key, name string
		sees      []string
	}{
		{"2", "steps", []string{"echo ok"}}, {"3", "log", []string{"The whole suite first."}}, {"4", "conversation", []string{"Run the tests and mend", "One is slow"}},
		{"5", "files", []string{"0 files"}}, {"6", "context", []string{"tools", "intent"}}, {"8", "cost", []string{"COST BY MODEL", "BUDGETS"}}, {"9", "mail", []string{"nothing: it has got all", "GROUPS"}}, {"0", "forks", []string{"1 process of one family"}}, {"-", "trace", []string{"PATH", "shell"}},
	} {
		s.keys(p.key)
		s.sees(p.sees...)
		s.picture("pane_" + p.name)
	}
	s.keys("2")
	s.sees("tool_call: shell")
	s.keys("Enter", "Enter") // to the right side, and its first step opened
	s.sees("The whole suite first.", "echo ok")
	s.picture("pane_step")
	s.keys("7")
	s.sees("no run of a workflow")
	s.follows(`with: (rnix compose up)`, "-d --name second")
	s.leave("q")
	s.run("rnix dashboard second")
	s.keys("7")
	s.sees("plan", "notes", "check", "publish")
	s.picture("pane_graph")
	s.leave("q")
}
