package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
)

// talkAPI is a model that does what it is told, slowly enough to be watched.
func talkAPI(t *testing.T, s *screen) *llmtest.API {
	api, url := llmtest.NewMessagesAPI(t, func(r llmtest.Request) llmtest.Reply {
		said := r.LastUser()
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: "# Result\n\nIt **works**:\n\n```go\nfunc main() { // " + res.Text[:min(len(res.Text), 9)] + "\n}\n```\n\nDone.", Chunks: 9, Pause: 10 * time.Millisecond}
		}
		call := func(command string) llmtest.Reply {
			return llmtest.Reply{Text: "I look first.", ToolCalls: []llmtest.ToolCall{{Name: "shell", Input: fmt.Sprintf(`{"command":%q}`, command)}}}
		}
		switch {
		case strings.HasSuffix(said, "hang"):
			return llmtest.Reply{Text: "A paragraph that is complete.\n\nAnd half of another", Hang: true}
		case strings.Contains(said, "list"):
			return call("seq 101 120")
		case strings.Contains(said, "wait for it"):
			return call("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do test -e go && break; sleep 0.2; done; echo went")
		case strings.Contains(said, "write the file"):
			return call("echo made > made.txt")
		case strings.Contains(said, "remove"):
			return call("rm -rf build")
		case strings.Contains(said, "hostile"):
			return llmtest.Reply{Text: "Now \x1b[2J\x1b[31mred\x1b]0;title\a \u202eturned `\x1b[H` and\n\n```sh\n\x1b[5;5Hcode\x1bc\n```\n\n" + strings.Repeat("long", 4000) + "\n\nThe end of it."}
		}
		return llmtest.Reply{Text: fmt.Sprintf("You said %d bytes: %s", len(said), said[:min(len(said), 60)]), Chunks: 5, Pause: 20 * time.Millisecond}
	})
	s.env = append(s.env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "ANTHROPIC_MODEL=m")
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.dir), "home", ".config", "rnix", "providers.yaml"), []byte("version: \"1\"\ndefault_provider: anthropic\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return api
}

// whole is all that the terminal has, with what was scrolled out of sight.
func (s *screen) whole() string { s.t.Helper(); return s.tmux("capture-pane", "-p", "-S", "-") }

// once waits until a text is in the terminal, and fails if it is there more than once at the end.
func (s *screen) once(text string) {
	s.t.Helper()
	s.until(func(string) bool { return strings.Count(s.whole(), text) > 0 }, "the terminal lacks "+text)
	if n := strings.Count(s.whole(), text); n != 1 {
		s.t.Errorf("%q is there %d times:\n%s", text, n, s.whole())
	}
}

// A conversation in a terminal: text while it comes, a call on one line, a second message after the end, one while the agent works, an interrupt, and the way back.
func TestAPersonTalksToAnAgent(t *testing.T) {
	s := newScreen(t)
	talkAPI(t, s)
	s.open("80", "24", "rnix")
	s.sees("with anthropic/m", "say what is to be done")
	s.keys("list the numbers", "Enter")
	s.sees("● shell seq 101 120  ok", "… 17 lines more (Ctrl+O)", "│ 120", "func main()", "Done.", "say what is next", "anthropic/m", "PID 1")
	s.once("› list the numbers")
	s.once("I look first.")
	s.once("It works:")
	s.keys("C-o")
	s.sees("─ shell seq 101 120", "\n103\n")

	s.keys("now hang", "Enter") // the same process continues
	s.sees("And half of another", "Esc interrupts")
	s.once("A paragraph that is complete.") // above, while the next one is under way
	s.keys("leave the tests alone", "Enter")
	s.sees("queued: leave the tests alone")
	s.keys("Escape")
	s.sees("interrupted after", "gets it with your next message: leave the tests alone")
	s.once("And half of another")
	s.keys("and the third", "Enter")
	s.sees("You said", "say what is next")
	s.until(func(string) bool { return !strings.Contains(s.text(), "gets it with") }, "what was queued is not taken in")
	s.once("› leave the tests alone")
	s.once("› and the third")

	s.keys("wait for it", "Enter")
	s.sees("shell for i in", "Esc interrupts")
	s.keys("only main.go", "Enter")
	s.sees("queued: only main.go")
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.sees("› only main.go\n\nResult", "say what is next") // it was told before the next prompt
	s.once("› only main.go")

	s.keys("C-c")
	s.sees("Ctrl+C again leaves")
	s.keys("C-c")
	s.sees("come back with: rnix attach 4", "ended with 0")
	if !strings.Contains(s.whole(), "● shell seq 101 120") {
		t.Error("the conversation does not stay in the terminal")
	}

	back := regexp.MustCompile(`come back with: (rnix attach \S+)`).FindStringSubmatch(s.whole())
	s.run(back[1])
	s.sees("PID 4", "Done.", "say what is next")
	s.keys("I am back", "Enter")
	s.sees("You said 9 bytes: I am back", "say what is next")
	s.keys("!seq 3; exit 4", "Enter") // by the person
	s.sees("! seq 3; exit 4  exit 4", "│ 3", "the agent gets what your 1 command printed")
	s.keys("and that", "Enter")
	s.sees("bytes: and that", "[the user has run: seq 3; exit 4 (mark")
	s.leave("C-d")
	s.run("rnix -c 'one more'")
	s.sees("You said 8 bytes: one more", "say what is next")
	s.keys("C-r", "third")
	s.sees("search: third  › and the third")
	s.keys("Enter", "C-u")
	s.leave("C-d")
	if n := s.rnix("ps", "-a", "--json"); strings.Count(n, `"pid"`) != 1 {
		t.Errorf("there are other processes: %s", n)
	}
}

// Two terminals see the same, the first answer to a question counts, and a daemon that is killed is followed by the next one.
func TestTwoPersonsTalkToOneAgentOverACrash(t *testing.T) {
	s := newScreen(t)
	talkAPI(t, s)
	s.open("100", "30", "rnix chat --name both --ask 'shell rm *'")
	s.sees("say what is to be done")
	s.keys("remove the build", "Enter")
	s.sees("? it wants to call shell", "rm -rf build", "y allow")
	first := s.pane()
	s.tmux("split-window", "-h", "/bin/sh")
	second := s.pane()
	s.tmux("resize-window", "-x", "200", "-y", "30")
	s.run("rnix attach both")
	s.sees("› remove the build", "I look first.", "? it wants to call shell", "y allow")
	s.keys("n")
	s.sees("deny; why")
	s.keys("not that one", "Enter")
	s.sees("denied: shell rm -rf build", "● shell rm -rf build  refused", "Done.", "say what is next")
	s.tmux("select-pane", "-t", first)
	s.sees("● shell rm -rf build  refused", "Done.", "say what is next")
	s.keys("what now", "Enter")
	s.sees("You said 8 bytes: what now", "say what is next")
	s.tmux("select-pane", "-t", second)
	s.sees("› what now", "You said 8 bytes: what now") // it was resumed from the other one

	s.keys("wait for it", "Enter")
	s.sees("shell for i in")
	s.tmux("select-pane", "-t", first)
	s.sees("shell for i in")
	daemon := regexp.MustCompile(`"pid": ?(\d+)`).FindStringSubmatch(s.rnix("daemon", "status", "--json"))
	if daemon == nil {
		t.Fatal("no pid of the daemon")
	}
	var pid int
	if _, err := fmt.Sscan(daemon[1], &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pane := range []string{second, first} {
		s.tmux("select-pane", "-t", pane)
		s.once("the daemon went away, and is back")
		s.sees("Done.", "say what is next")
	}
	s.keys("after all", "Enter")
	s.sees("You said 9 bytes: after all")
	s.leave("C-d")
}

// A person goes back to before a message, with the files, goes to another conversation, and chooses one from a list.
func TestAPersonGoesBackInAConversation(t *testing.T) {
	s := newScreen(t)
	api := talkAPI(t, s)
	s.open("100", "40", "rnix chat --name old --sandbox off --budget 500k")
	s.sees("say what is to be done")
	s.keys("/he", "Tab", "Enter")
	s.sees("Esc", "interrupt the agent", "/undo", "@FILE")
	note := filepath.Join(s.dir, "note.txt")
	if err := os.WriteFile(note, []byte("A NOTE"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.keys("look at @no", "Tab")
	s.sees("look at @note.txt")
	s.keys("Enter")
	s.sees("say what is next")
	s.keys("and again @note.txt", "Enter")
	s.sees("You said 131 bytes", "say what is next")
	if r := api.Requests(); !strings.Contains(string(r[len(r)-1].Body), "[end of file note.txt (mark ") || !strings.Contains(string(r[0].Body), "A NOTE") {
		t.Error("the file is not with the message")
	}
	s.keys("write the file", "Enter")
	s.sees("Done.", "say what is next")
	made := filepath.Join(s.dir, "made.txt")
	if _, err := os.Stat(made); err != nil {
		t.Fatal(err)
	}
	s.keys("/diff", "Enter")
	s.sees("+made", "1 file changed")
	s.keys("/budget", "Enter")
	s.sees("500,000 tokens")
	s.keys("/budget 100k", "Enter")
	s.sees("the budget is raised")
	s.keys("/undo", "Enter")
	s.sees("before you said: write the file", "D made.txt", "y yes")
	s.keys("y")
	s.sees("1 removed; take it back with:", "in a fork; Up brings the last")
	s.keys("Up")
	s.sees("› write the file")
	if _, err := os.Stat(made); err == nil {
		t.Error("the file is still there")
	}
	s.keys("C-u", "say another thing", "Enter")
	s.sees("› say another thing", "You said 107 bytes", "say what is next")
	s.once("a fork from the end of step 2")
	s.keys("/export talk.md", "Enter")
	s.sees("written to")
	if b, err := os.ReadFile(filepath.Join(s.dir, "talk.md")); err != nil || !strings.Contains(string(b), "say another thing") || strings.Contains(string(b), "write the file") {
		t.Errorf("the exported conversation: %s, %v", b, err)
	}
	s.keys("/new", "Enter")
	s.sees("a new conversation; the one before is found with: rnix attach ")
	s.keys("/nonsense", "Enter")
	s.sees("unknown command /nonsense; did you mean /new")
	s.keys("/rewind", "Enter")
	s.sees("unknown command /rewind; did you mean /undo")
	s.keys("/resume", "Enter")
	s.sees("which conversation?", "old")
	s.keys("old", "Enter")
	s.sees("PID", "› write the file", "say what is next")
	s.leave("C-d")

	s.run("rnix attach")
	s.sees("which conversation?")
	s.keys("nothing such")
	s.sees("none has this in it")
	s.leave("Escape")
	s.run("rnix resume")
	s.sees("which conversation?")
	s.keys("Enter")
	s.sees("say what is next")
	s.leave("C-d")
}

// pane names the pane in which keys are typed.
func (s *screen) pane() string {
	s.t.Helper()
	return strings.TrimSpace(s.tmux("display-message", "-p", "#{pane_id}"))
}

// Nothing that an agent says or a person pastes is obeyed by the terminal or answers a question; it works in a small terminal, with ASCII alone.
func TestATerminalObeysNothingOfAConversation(t *testing.T) {
	s := newScreen(t)
	api := talkAPI(t, s)
	s.env = append(s.env, "RNIX_ASCII=1", "NO_COLOR=1")
	s.open("80", "24", "rnix")
	s.sees("say what is to be done", "Enter sends | Alt+Enter new line")
	s.keys("be hostile", "Enter")
	s.sees("The end of it.", "say what is next")
	if text := s.whole(); !strings.Contains(text, "> be hostile") || !strings.Contains(text, "Now red <U+202E>turned") {
		t.Errorf("the screen was changed:\n%s", text)
	}
	const row = "0123456789abcde\n"
	whole := ("y\nn\n" + strings.Repeat(row, 1<<16))[:1<<20] // all that a message may have
	paste := func(text string) {
		t.Helper()
		big := filepath.Join(s.dir, "big")
		if err := os.WriteFile(big, []byte(strings.Replace(text, "y\nn\n", "y\nn\n\x1b[31m", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		s.tmux("load-buffer", big)
		s.tmux("paste-buffer", "-p", "-r")
	}
	s.keys("look: ")
	paste(whole + "more")
	s.sees("the paste has 1,048,580 bytes, and a message at most 1,048,576")
	paste(whole)
	s.sees("look: [pasted 65,538 lines]")
	s.keys("Enter")
	s.sees("the message is longer than 1 MiB: put it into a file", "look: [pasted 65,538 lines]")
	s.keys("C-a", "DC", "DC", "DC", "DC", "DC", "DC")
	s.sees("> [pasted 65,538 lines]")
	s.keys("Enter")
	s.sees("You said 1048576", "say what is next")
	if said := api.Requests()[len(api.Requests())-1].LastUser(); said != whole {
		t.Errorf("%d bytes were said, and %d pasted", len(said), len(whole))
	}
	s.tmux("resize-window", "-x", "40", "-y", "10")
	s.keys("say it in a small terminal", "Enter")
	s.sees("You said 26 bytes", "say what is next")
	s.tmux("resize-window", "-x", "120", "-y", "40")
	s.keys("two", "M-Enter", "lines", "Enter")
	s.sees("You said 9 bytes: two lines", "say what is next")
	s.leave("C-d")

	s.run("rnix </dev/null | head -3")
	s.sees("Rnix runs AI agents")
	s.run("TERM=dumb rnix")
	s.sees("needs a terminal that can move its cursor", "rnix run", "ended with 2")
	if _, err := exec.LookPath("rnix"); err != nil {
		t.Fatal(err)
	}
}

// What comes next goes another way: to a copy, to another agent, to another model. Each is what the vendor of the model is asked.
func TestAPersonGoesAnotherWayInAConversation(t *testing.T) {
	s := newScreen(t)
	api := talkAPI(t, s)
	last := func() llmtest.Request { all := api.Requests(); return all[len(all)-1] }
	s.open("100", "40", "rnix chat --name first --sandbox off")
	s.sees("say what is to be done")
	s.keys("say one thing", "Enter")
	s.sees("You said 13 bytes: say one thing", "say what is next", "PID 1")
	if r := last(); r.Model != "m" || !slices.Contains(r.Tools, "shell") || strings.Contains(r.System, "You can read and search; you can change nothing") {
		t.Fatalf("the first request: model %s, tools %v, system %.200s", r.Model, r.Tools, r.System)
	}

	before := s.rnix("log", "first")
	s.keys("/fork", "Enter")
	s.sees("your next message goes to a fork from the end of step 1", "next: a fork of PID 1")
	s.keys("to the fork", "Enter")
	s.sees("a fork from the end of step 1; it works in", "to the fork", "say what is next", "PID 2")
	if r := last(); !strings.Contains(string(r.Body), "say one thing") || !strings.HasSuffix(r.LastUser(), "to the fork") {
		t.Errorf("the fork is told %q, after %s", r.LastUser(), r.Body)
	}
	if after := s.rnix("log", "first"); after != before || !strings.Contains(after, "say one thing") {
		t.Errorf("the first conversation was:\n%s\nand is:\n%s", before, after)
	}
	s.keys("and more", "Enter") // stays with the fork
	s.sees("You said 8 bytes: and more", "say what is next")
	s.keys("/resume first", "Enter")
	s.sees("another conversation", "say one thing", "PID 1")
	s.keys("back at the first", "Enter")
	s.sees("You said 17 bytes: back at the first", "say what is next")
	if r := last(); strings.Contains(string(r.Body), "to the fork") || !strings.Contains(string(r.Body), "say one thing") {
		t.Errorf("the first conversation continues with %s", r.Body)
	}

	s.keys("/agent explorer", "Enter")
	s.sees("a new conversation with the agent explorer; the one before is found with: rnix attach first")
	s.keys("where is it", "Enter")
	s.sees("You said 11 bytes: where is it", "say what is next", "PID")
	if r := last(); !strings.Contains(r.System, "You can read and search; you can change nothing") || slices.Contains(r.Tools, "shell") || !slices.Contains(r.Tools, "read_file") || len(r.Messages) != 1 {
		t.Errorf("the explorer has the tools %v, %d messages and is told %.200s", r.Tools, len(r.Messages), r.System)
	}
	s.keys("/agent", "Enter")
	s.sees("the agent is explorer")

	s.keys("/model m2", "Enter")
	s.sees("unknown model m2", "Say it again to take it")
	s.keys("/model m2", "Enter")
	s.sees("your next message goes to m2", "next: m2")
	s.keys("which model", "Enter")
	s.sees("You said 11 bytes: which model", "say what is next", "anthropic/m2")
	if r := last(); r.Model != "m2" || !strings.Contains(string(r.Body), "where is it") {
		t.Errorf("the next request goes to %s: %s", r.Model, r.Body)
	}
	s.keys("still", "Enter")
	s.sees("You said 5 bytes: still", "say what is next")
	s.keys("/new", "Enter")
	s.sees("a new conversation; the one before")
	s.keys("all anew", "Enter")
	s.sees("You said 8 bytes: all anew", "say what is next")
	all := api.Requests()
	if still, anew := all[len(all)-2], all[len(all)-1]; still.Model != "m2" || anew.Model != "m" || !slices.Contains(anew.Tools, "shell") {
		t.Errorf("then it is %s, and in a new conversation %s with %v", still.Model, anew.Model, anew.Tools)
	}
	s.leave("C-d")
}

// A person leaves while the agent works: it works on, is found again, and has the plan and all its outputs, the earlier ones too.
func TestAnAgentWorksOnWhenAPersonLeaves(t *testing.T) {
	s := newScreen(t)
	api := talkAPI(t, s)
	api.Answer(func(r llmtest.Request) llmtest.Reply {
		results := 0
		for _, m := range r.Messages {
			results += len(m.Results)
		}
		call := func(name, input string) llmtest.Reply {
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: fmt.Sprint("c", results), Name: name, Input: input}}}
		}
		switch results {
		case 0:
			return call("plan", `{"steps":["look at the files","wait for it","say how it went"]}`)
		case 1:
			return call("shell", `{"command":"seq 201 230"}`)
		case 2:
			return call("shell", `{"command":"until test -e go; do sleep 0.2; done; echo went"}`)
		}
		return llmtest.Reply{Text: "It went, and that is all."}
	})
	const plan, waits = "plan, 3 steps: look at the files; wait for it; say how it went", "shell until test"
	s.open("80", "24", "rnix chat --name on")
	s.sees("say what is to be done")
	s.keys("begin", "Enter")
	s.sees("□ wait for it", waits, plan, "Esc interrupts")
	for _, l := range strings.Split(s.text(), "\n") {
		if strings.HasPrefix(l, "plan, ") && len([]rune(l)) > 79 {
			t.Errorf("too long for 80 columns: %s", l)
		}
	}
	for _, leave := range [][]string{{"C-d"}, {"C-c", "C-c"}, {"/quit", "Enter"}} {
		s.keys(leave...)
		s.sees("the agent works on; come back with: rnix attach on", "ended with 0")
		if ps := s.rnix("ps", "on", "--json"); !strings.Contains(ps, `"running"`) {
			t.Fatalf("after %v it is: %s", leave, ps)
		}
		s.run("rnix attach on")
		s.seesNot("come back with")
		s.sees("│ 230", waits, plan, "Esc interrupts")
	}
	s.tmux("resize-window", "-x", "80", "-y", "10")
	s.seesNot(plan)
	s.sees(waits, "anthropic/m")
	s.tmux("resize-window", "-x", "80", "-y", "24")
	s.sees(plan)
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.sees("● shell until test", "It went, and that is all.", "say what is next")
	s.seesNot(plan)

	s.keys("C-o")
	s.sees("─ shell until test -e go; do sleep 0.2; done; echo went  (last)\nwent", "Ctrl+O again prints the output before that one")
	s.keys("C-o")
	s.sees("\n230\n", "Ctrl+O again")
	s.once("─ shell seq 201 230  (2nd last)\n201\n202")
	s.keys("C-o")
	s.sees("─ plan  (3rd last)\nlook at the files\nwait for it\nsay how it went")
	s.keys("C-o")
	s.sees("no earlier output is kept; Ctrl+O begins with the last one again")
	s.leave("C-d")
	s.sees("the conversation stays; come back with: rnix attach on")
}

// words is how many saysWords says.
const words = 240

// saysWords answers with numbered words in paragraphs of thirty, so many at once.
func saysWords(api *llmtest.API, atOnce int, pause time.Duration) {
	var text strings.Builder
	for i := range words {
		fmt.Fprintf(&text, "word%03d ", i)
		if i%30 == 29 {
			text.WriteString("\n\n")
		}
	}
	api.Answer(func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: text.String(), Chunks: words / atOnce, Pause: pause}
	})
}

// eachOnce fails unless each of the numbers from up to below to stands once in what a terminal has shown.
func eachOnce(t *testing.T, all, form string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if one := fmt.Sprintf(form, i); strings.Count(all, one) != 1 {
			t.Errorf("%q is there %d times", one, strings.Count(all, one))
		}
	}
}

// The edge of a terminal is dragged while an answer comes: no word is lost, and none is there twice. tmux wraps what it shows at each of these sizes, and says the last of
// them only to the programs in it. There is room above: each line that is wrapped moves what is drawn up a row, and what goes beyond the top of the screen stays there.
func TestTheEdgeOfATerminalIsDragged(t *testing.T) {
	for name, typed := range map[string]string{"while it only works": "", "while a line is typed": "half a line"} {
		t.Run(name, func(t *testing.T) { drags(t, typed) })
	}
}

func drags(t *testing.T, typed string) {
	t.Helper()
	s := newScreen(t)
	api := talkAPI(t, s)
	saysWords(api, 2, 50*time.Millisecond)
	s.open("100", "40", "seq 1000 1060; rnix")
	s.sees("say what is to be done")
	s.keys("many words", "Enter")
	s.sees("word010")
	if typed != "" {
		s.keys(typed)
		s.sees(typed)
	}
	for w, drag := 100, 0; drag < 4; drag++ {
		for i := range 12 {
			if w -= 7; i%3 == 2 {
				w += 21
			}
			s.tmux("resize-window", "-x", fmt.Sprint(w-20*(i%2)), "-y", "40")
		}
		s.sees(fmt.Sprintf("word%03d", min(50*(drag+1), words-1)))
	}
	if typed != "" {
		s.sees("anthropic/m · 3", typed)
		s.keys("C-c")
	}
	s.sees("say what is next", fmt.Sprintf("word%03d", words-1))
	all := s.tmux("capture-pane", "-p", "-J", "-S", "-")
	eachOnce(t, all, "word%03d", 0, words)
	eachOnce(t, all, "%d\n", 1000, 1061) // what the terminal showed before
	if t.Failed() {
		t.Log(all)
	}
	s.leave("C-d")
}

// A terminal that becomes smaller and larger while an answer comes loses no word of it, and has none twice.
func TestATerminalIsResizedWhileAnAnswerComes(t *testing.T) {
	s := newScreen(t)
	api := talkAPI(t, s)
	saysWords(api, 4, 120*time.Millisecond)
	s.open("100", "30", "rnix")
	s.sees("say what is to be done")
	s.keys("many words", "Enter")
	for _, c := range []struct{ after, w, h string }{{"word020", "60", "30"}, {"word050", "120", "30"}, {"word080", "80", "16"}, {"word110", "50", "24"}, {"word140", "90", "24"}, {"word170", "70", "40"}} {
		s.sees(c.after)
		s.tmux("resize-window", "-x", c.w, "-y", c.h)
	}
	s.sees("say what is next")
	all := s.tmux("capture-pane", "-p", "-J", "-S", "-")
	eachOnce(t, all, "word%03d", 0, words)
	if t.Failed() {
		t.Log(all)
	}
	s.leave("C-d")
}
