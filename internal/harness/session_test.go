package harness_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/agent"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness"
	"rnix/internal/harness/vendortest"
	"rnix/internal/proc"
)

// session is one run of a real command line, as its Command says.
type session struct {
	t     *testing.T
	cli   harness.CLI
	cmd   *harness.Command
	child *proc.Child
	lines harness.Lines

	mu     sync.Mutex
	events []agent.Event // +checklocks:mu
	// +checklocks:mu
	grown  chan struct{} // closed and made anew with each event
	read   chan struct{} // closed when the output has ended
	stderr *proc.Ring
	open   bool // standard input
}

// place is where the sessions of a vendor's user run.
func place(t *testing.T, v *vendortest.Vendor, name string) harness.Place {
	t.Helper()
	dir := filepath.Join(v.Home, "private")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return harness.Place{Program: vendortest.Program(t, name), Dir: dir, Env: v.Getenv}
}

// start starts a new session and reads what it says. The CLI's own retries are off.
func start(t *testing.T, v *vendortest.Vendor, name string, s agent.Spec) *session {
	t.Helper()
	return startAfter(t, v, name, s, agent.UsageEvent{})
}

// startAfter is start for a session that has used something before.
func startAfter(t *testing.T, v *vendortest.Vendor, name string, s agent.Spec, before agent.UsageEvent) *session {
	t.Helper()
	cli, err := harness.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return startAt(t, v, cli, place(t, v, name), s, before)
}

// startAt is startAfter at a place.
func startAt(t *testing.T, v *vendortest.Vendor, cli harness.CLI, at harness.Place, s agent.Spec, before agent.UsageEvent) *session {
	t.Helper()
	if s.CWD == "" {
		s.CWD = v.Work
	}
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	s.Env["CLAUDE_CODE_MAX_RETRIES"] = "0"
	cmd, err := cli.Command(s, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range cmd.Files {
		path := filepath.Join(at.Dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := proc.NewManager(filepath.Join(t.TempDir(), "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	var vars []string
	for n, value := range cmd.Env {
		vars = append(vars, n+"="+value)
	}
	r := &session{t: t, cli: cli, cmd: cmd, lines: cli.Lines(before), grown: make(chan struct{}), read: make(chan struct{}), stderr: proc.NewRing(0), open: true}
	r.child, err = m.Start(context.WithoutCancel(t.Context()), proc.Spec{
		Kind: proc.KindLLM, Path: cmd.Program, Args: cmd.Args, Dir: s.CWD, Env: v.Environ(), Credentials: vars,
		StdinPipe: true, StdoutPipe: true, Stderr: r.stderr, Grace: 3 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	go r.follow() // ends with the output of the child, which the manager ends
	r.write(cmd.Stdin)
	if !cmd.KeepStdin {
		r.close()
	}
	return r
}

func (r *session) write(b []byte) {
	r.t.Helper()
	if _, err := r.child.Stdin().Write(b); err != nil {
		r.t.Error(err)
	}
}

func (r *session) close() {
	if r.open {
		r.open = false
		_ = r.child.Stdin().Close() // the child may be gone
	}
}

func (r *session) follow() {
	defer close(r.read)
	out := r.child.Stdout()
	defer out.Close()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			events := r.lines.Line(line)
			r.mu.Lock()
			r.events = append(r.events, events...)
			close(r.grown)
			r.grown = make(chan struct{})
			r.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// await waits for the first event from the nth on that match wants, and returns its number.
func (r *session) await(from int, what string, match func(agent.Event) bool) int {
	r.t.Helper()
	late := time.After(time.Minute)
	for {
		r.mu.Lock()
		events, grown := r.events, r.grown
		r.mu.Unlock()
		for i := from; i < len(events); i++ {
			if match(events[i]) {
				return i
			}
		}
		select {
		case <-grown:
		case <-r.read:
			r.mu.Lock()
			more := len(r.events) > len(events)
			r.mu.Unlock()
			if !more {
				r.t.Fatalf("the program ended before %s: %s\n%s", what, show(events), r.stderr)
			}
		case <-late:
			r.t.Fatalf("no %s: %s\n%s", what, show(events), r.stderr)
		}
	}
}

// turn waits for the end of a turn.
func (r *session) turn(from int) (agent.ResultEvent, int) {
	r.t.Helper()
	i := r.await(from, "a result", func(e agent.Event) bool { _, ok := e.(agent.ResultEvent); return ok })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[i].(agent.ResultEvent), i
}

// end ends the session, after the turn in hand if it can be spoken to, and returns all of its events, with
// what its end means, and how it ended.
func (r *session) end() ([]agent.Event, harness.Exit) {
	r.t.Helper()
	if r.open {
		r.turn(0)
		r.close()
	}
	return r.ended()
}

// ended waits for the end of the program.
func (r *session) ended() ([]agent.Event, harness.Exit) {
	r.t.Helper()
	select {
	case <-r.read:
	case <-time.After(5 * time.Minute): // a real CLI, on a machine that has other work
		r.t.Fatal("the program does not end")
	}
	info := r.child.Wait()
	r.close()
	exit := harness.Exit{Code: info.Code, Signal: int(info.Signal), Stderr: r.stderr.String()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.lines.End(exit); e != nil {
		return append(r.events, e), exit
	}
	return r.events, exit
}

// show is events as lines.
func show(events []agent.Event) string {
	var out []string
	for _, e := range events {
		b, err := agent.MarshalEvent(e)
		if err != nil {
			return err.Error()
		}
		out = append(out, string(b))
	}
	return "\n" + strings.Join(out, "\n")
}

// kinds are the kinds of events in order, without parts of texts and what the program says of itself.
func kinds(events []agent.Event) (out []agent.EventKind) {
	for _, e := range events {
		if a, ok := e.(agent.AssistantTextEvent); ok && a.Delta || agent.KindOf(e) == agent.EventSystem {
			continue
		}
		out = append(out, agent.KindOf(e))
	}
	return out
}

// last returns the last event of a type.
func last[E agent.Event](events []agent.Event) (e E) {
	for _, x := range slices.Backward(events) {
		if y, ok := x.(E); ok {
			return y
		}
	}
	return e
}

// each returns the events of a type.
func each[E agent.Event](events []agent.Event) (out []E) {
	for _, x := range events {
		if y, ok := x.(E); ok {
			out = append(out, y)
		}
	}
	return out
}

// used is what each answer of the stand-in says that it has cost.
var used = &llmtest.Usage{Input: 100, Output: 10, CacheRead: 20, CacheWrite: 5}

// say answers with a text.
func say(text string) llmtest.Reply { return llmtest.Reply{Text: text, Chunks: 2, Usage: used} }

// call answers with the call of a tool.
func call(tool string, input map[string]any) llmtest.Reply {
	b, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return llmtest.Reply{Text: "I call " + tool, ToolCalls: []llmtest.ToolCall{{Name: tool, Input: string(b)}}, Usage: used}
}
