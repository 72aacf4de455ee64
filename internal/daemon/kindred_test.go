package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/cli"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// relative is an agent of a family: what it does in a turn depends on its place in the family and on what it was told.
// It appends a line of its own to a file in each of its turns, starts its children, waits for all of them, and is done.
type relative struct {
	name  string
	turns int // in which it does nothing but append a line
	front []*relative
	back  []*relative
	up    *relative
}

// all returns a relative and all below it, parents first.
func (m *relative) all() []*relative {
	out := []*relative{m}
	for _, c := range slices.Concat(m.front, m.back) {
		out = append(out, c.all()...)
	}
	return out
}

// kindred is the model of families, and the daemon in which they live.
type kindred struct {
	t *testing.T
	s *testenv.System

	mu sync.Mutex
	// +checklocks:mu
	members map[string]*relative // by name, which is also the first word of the intent
	// +checklocks:mu
	gates map[string]chan struct{} // what the model waits for before it answers a relative
	// +checklocks:mu
	said map[string]bool // marks of calls that the model has asked for
	// +checklocks:mu
	told map[string]string // by mark, what the model was told last
	// +checklocks:mu
	delay func(name string) time.Duration // nil = none
}

// kindredMark names a line that a relative appends: of which relative, and in which turn.
var kindredMark = regexp.MustCompile(`\b[a-z]\d+(?:x\d+)*\.\d+\b`)

var kindredName = regexp.MustCompile(`^[a-z]\d+(?:x\d+)*`)

// newKindred is a daemon with a model that plays members.
func newKindred(t *testing.T, env ...string) *kindred {
	c := &kindred{t: t, members: map[string]*relative{}, gates: map[string]chan struct{}{}, said: map[string]bool{}, told: map[string]string{}}
	_, url := llmtest.NewAPI(t, c.reply)
	c.s = testenv.New(t, append([]string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + url}, env...)...)
	t.Cleanup(func() { c.open() }) // before the daemon is stopped
	return c
}

// grow adds a family to what the model knows.
func (c *kindred) grow(m *relative) *relative {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range m.all() {
		for _, kid := range slices.Concat(x.front, x.back) {
			kid.up = x
		}
		c.members[x.name] = x
	}
	return m
}

// shut has the model think about what a relative asks until open.
func (c *kindred) shut(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.gates[name] = make(chan struct{})
	}
}

// open ends shut, for all.
func (c *kindred) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, gate := range c.gates {
		close(gate)
		delete(c.gates, name)
	}
}

func (c *kindred) reply(r llmtest.Request) llmtest.Reply {
	name := kindredName.FindString(r.Messages[0].Text) // what the user says after it stands right behind it
	c.mu.Lock()
	gate, m := c.gates[name], c.members[name]
	c.hear(r)
	reply := llmtest.Reply{Text: name + " is unknown"}
	if m != nil {
		reply = m.answer(r)
	}
	for _, call := range reply.ToolCalls {
		if mark := kindredMark.FindString(call.Input); mark != "" && call.Name == "shell" {
			c.said[mark] = true
		}
	}
	if c.delay != nil {
		reply.Delay = c.delay(name)
	}
	c.mu.Unlock()
	if gate != nil {
		<-gate
	}
	reply.Usage = &llmtest.Usage{Input: 100, Output: 10}
	return reply
}

// hear notes what the model is told of the calls that it has asked for.
//
// +checklocks:c.mu
func (c *kindred) hear(r llmtest.Request) {
	marks := map[string]string{}
	for _, m := range r.Messages {
		for _, call := range m.Calls {
			if call.Name == "shell" {
				marks[call.ID] = kindredMark.FindString(call.Input)
			}
		}
		for _, res := range m.Results {
			if mark := marks[res.ID]; mark != "" {
				c.told[mark] = res.Text
				if res.IsError {
					c.told[mark] = "error: " + res.Text
				}
			}
		}
	}
}

// answer is what a relative does next.
func (m *relative) answer(r llmtest.Request) llmtest.Reply {
	turn := turnOf(r)
	line := llmtest.ToolCall{Name: "shell", Input: fmt.Sprintf(`{"command":"sleep 0.01; echo %s.%d >> effects"}`, m.name, turn)}
	spawn := func(kid *relative, back bool) llmtest.ToolCall {
		return llmtest.ToolCall{Name: "spawn", Input: fmt.Sprintf(`{"intent":%q,"name":%q,"background":%t,"budget":1000000}`, kid.name, kid.name, back)}
	}
	var calls []llmtest.ToolCall
	switch work := turn - 1 - len(m.front); {
	case turn == 1:
		calls = append(calls, line)
		for _, kid := range m.back {
			calls = append(calls, spawn(kid, true))
		}
	case work <= 0:
		calls = append(calls, line, spawn(m.front[turn-2], false))
	case work <= m.turns:
		calls = append(calls, line)
	case len(m.back) > 0 && waitsOn(r):
		calls = append(calls, llmtest.ToolCall{Name: "wait", Input: `{}`})
	default:
		return llmtest.Reply{Text: m.name + " is done"}
	}
	for i := range calls {
		calls[i].ID = fmt.Sprintf("call_%d", ids.Add(1))
	}
	return llmtest.Reply{ToolCalls: calls}
}

// waitsOn reports whether a relative has yet to hear the end of a child: it has not waited, or has been told of one that had not ended.
func waitsOn(r llmtest.Request) bool {
	waits, last := map[string]bool{}, ""
	for _, m := range r.Messages {
		for _, call := range m.Calls {
			waits[call.ID] = call.Name == "wait"
		}
		for _, res := range m.Results {
			if waits[res.ID] {
				last = res.Text
			}
		}
	}
	return last == "" || strings.Contains(last, `"state":"running"`) || strings.Contains(last, `"state":"suspended"`) || strings.Contains(last, "outcome is unknown")
}

// start starts the head of a family.
func (c *kindred) start(m *relative) {
	c.s.Spawn(ipc.SpawnRequest{Intent: m.name, ProcSpec: types.ProcSpec{Name: m.name, Model: "fake"}})
}

// rnix runs a command as a person does, and returns its exit code and all that it has said.
func (c *kindred) rnix(args ...string) (code int, text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	code = cli.Main(ctx, cli.Host{Name: "rnix", Version: "test", Args: args, In: strings.NewReader(""), Out: &out, Err: &out, Environ: c.s.Env, Dir: c.s.Work})
	return code, strings.TrimSpace(out.String())
}

// family lists the processes of members by name.
func (c *kindred) family() map[string]ipc.Proc {
	c.t.Helper()
	l, err := ipc.Call(context.Background(), c.s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		c.t.Fatal(err)
	}
	out := map[string]ipc.Proc{}
	for _, p := range l.Procs {
		if was, twice := out[p.Name]; twice {
			c.t.Errorf("%s is there twice: PID %d and PID %d", p.Name, was.PID, p.PID)
		}
		out[p.Name] = p
	}
	return out
}

// runs waits until members are there and run.
func (c *kindred) runs(names ...string) {
	c.t.Helper()
	until(c.t, fmt.Sprint(names, " run"), func() bool {
		f := c.family()
		return !slices.ContainsFunc(names, func(n string) bool { return f[n].State != "running" })
	})
}

// crash kills the daemon and starts it again.
func (c *kindred) crash() {
	c.t.Helper()
	kill(c.t, c.s)
	c.s.Start()
	c.s.Settle()
}

// standsPaused reports whether a person's pause holds a process.
func standsPaused(p ipc.Proc) bool {
	return p.State == "suspended" && strings.HasPrefix(p.Wait, "paused")
}

// unmoved is how long a family that does nothing at all is looked at before it is said to stand still.
const unmoved = 6 * time.Second

// ends waits until all members of a family have ended, or none of them does anything any more, and says of those that have
// not how they stand.
func (c *kindred) ends(top *relative) (left []string) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	was, since, began := "", time.Now(), time.Now()
	for {
		f := c.family()
		left = nil
		for _, m := range top.all() {
			if p, there := f[m.name]; there && p.State != "dead" {
				left = append(left, fmt.Sprintf("%s (PID %d) is %s, step %d, %q", m.name, p.PID, p.State, p.Step, p.Wait))
			}
		}
		now := strings.Join(left, "; ")
		switch {
		case len(left) == 0:
			return nil
		case now != was:
			was, since = now, time.Now()
		case time.Since(since) > unmoved, time.Since(began) > 2*time.Minute:
			return left
		}
		<-tick.C
	}
}

// effects counts the lines that members have appended.
func (c *kindred) effects() map[string]int {
	b, err := os.ReadFile(filepath.Join(c.s.Work, "effects"))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	out := map[string]int{}
	for _, line := range strings.Fields(string(b)) {
		out[line]++
	}
	return out
}

// judge compares the lines that are there with what the models were told: of a call that has run, one; of one that has not, or
// of which nobody knows, at most one. A relative that a person ended may not have heard of its last one.
func (c *kindred) judge(ended func(name string) bool) (wrong []string) {
	count := c.effects()
	c.mu.Lock()
	defer c.mu.Unlock()
	for mark := range c.said {
		name, _, _ := strings.Cut(mark, ".")
		text, told := c.told[mark]
		n := count[mark]
		switch {
		case n > 1:
			wrong = append(wrong, fmt.Sprintf("%s was appended %d times", mark, n))
		case !told && !ended(name):
			wrong = append(wrong, fmt.Sprintf("%s was asked for, and the model was never told what became of it", mark))
		case told && n == 0 && !strings.HasPrefix(text, "error: ") && !strings.Contains(text, "outcome is unknown"):
			wrong = append(wrong, fmt.Sprintf("%s was not appended, and the model was told %q", mark, text))
		}
	}
	for mark := range count {
		if !c.said[mark] {
			wrong = append(wrong, fmt.Sprintf("%s was appended and never asked for", mark))
		}
	}
	slices.Sort(wrong)
	return wrong
}
