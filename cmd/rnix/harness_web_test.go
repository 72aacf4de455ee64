package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
)

// pageApp has the scenarios of the page, and the packages that they need.
const pageApp = "../../internal/web/app"

// A real agent CLI asks before it uses a tool of its own. It waits for what a person clicks on the page, goes on, and is told why something was denied.
func TestRealCommandLinesAreAnsweredInABrowser(t *testing.T) {
	chromium := testenv.Chromium(t)
	for _, name := range []string{"node_modules/playwright-core", "e2e/asks_cli.mjs"} {
		if _, err := os.Stat(filepath.Join(pageApp, name)); err != nil {
			t.Skip("needs the packages of internal/web/app: npm ci there, or ./test")
		}
	}
	for _, name := range soak.Pick(t, "agent CLIs", []string{"claude"}, []string{"claude", "codex", "opencode"}) {
		t.Run(name, func(t *testing.T) { clicked(t, chromium, name) })
	}
}

// clicked has a person answer what a real agent CLI asks.
func clicked(t *testing.T, chromium, name string) {
	u := newUser(t, name, nil)
	args := []string{"--harness", name}
	call := func(c string) llmtest.Reply { return use("Bash", map[string]any{"command": c, "description": "x"}) }
	if h, ok := hooked[name]; ok {
		args, call = h.flags, h.command
		u.opencodeConfig()
	}
	u.Answer(vendortest.Play(call("echo allowed >>made"), call("echo refused >>made"), llmtest.Reply{Text: "the end"}))

	web := u.command("web", "--port", "0", "--no-open", "--json")
	said, err := web.StdoutPipe()
	if err == nil {
		err = web.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = web.Process.Signal(syscall.SIGINT)
		_ = web.Wait() // it says that it was interrupted
	}()
	var ready struct {
		Link string `json:"link"`
	}
	line, err := bufio.NewReader(said).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil || ready.Link == "" {
		t.Fatalf("%s %v", line, err)
	}

	page := exec.CommandContext(t.Context(), "node", filepath.Join(pageApp, "e2e", "asks_cli.mjs"))
	page.Env = append(os.Environ(), "RNIX_LINK="+ready.Link, "RNIX_CHROMIUM="+chromium)
	page.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the browser is a child of node
	page.Cancel = func() error { return syscall.Kill(-page.Process.Pid, syscall.SIGKILL) }
	var wrong strings.Builder
	page.Stderr = &wrong
	in, err := page.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := page.StdoutPipe()
	if err == nil {
		err = page.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if word, asks := strings.CutPrefix(lines.Text(), "@"); asks {
			_, _ = io.WriteString(in, u.told(word, args)+"\n") // if it has ended, Wait says so
		}
	}
	_ = in.Close()
	if err := page.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, wrong.String(), u.must("log", "p"))
	}
}

// told answers what the scenario of the page asks.
func (u *user) told(word string, args []string) string {
	switch word {
	case "run":
		if out, code := u.rnix(append(append([]string{"run", "-d", "--name", "p", "--ask", "shell"}, args...), "do it")...); code != 0 {
			return out
		}
		return "done"
	case "read made": // "" if there is no such file
		b, _ := os.ReadFile(filepath.Join(u.Work, "made"))
		return strings.TrimSpace(string(b))
	case "wait":
		out, _ := u.command("wait", "-q", "p").Output() // what was denied has its exit code
		return strings.TrimSpace(string(out))
	case "told": // whether the model has heard why
		for _, r := range u.Requests() {
			if res, ok := r.LastResult(); ok && strings.Contains(res.Text, "not on a Friday") {
				return "yes"
			}
		}
	}
	return "no"
}
