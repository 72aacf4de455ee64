package daemon_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// Budgets of the members of a family: of those that are to be parked, of what parks them, of others, and what is added.
const (
	smallBudget = 1_000_000
	hugeUsage   = 2_000_000
	largeBudget = 1_000_000_000
	moreBudget  = 9_000_000
)

// part is what a member does: it writes a file, starts its child, does one thing, and then its model hangs.
type part struct {
	writes string   // a file that it writes first; "" = none
	spawns string   // input of its spawn call; "" = none
	does   string   // model, tool, or parked
	after  []string // those below it, which ask their models before it is parked: else they would be suspended with it

	hangs context.Context // done when its model was asked what it does not answer
	hung  func()          // says so
}

// actors is the model of all families of a daemon.
type actors struct {
	over  context.Context // of the test
	mu    sync.Mutex
	parts map[string]part // +checklocks:mu
}

func (c *actors) give(name string, p part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.hangs, p.hung = context.WithCancel(c.over)
	c.parts[name] = p
}

func (c *actors) of(name string) part {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parts[name]
}

// hangs reports whether the model of a member was asked what it does not answer.
func (c *actors) hangs(name string) bool { return c.of(name).hangs.Err() != nil }

// member stands before the name of a member in what it is to do.
const member = "I am "

func (c *actors) reply(r llmtest.Request) llmtest.Reply {
	name := ""
	for _, m := range r.Messages {
		if _, rest, ok := strings.Cut(m.Text, member); ok {
			name = strings.Fields(rest)[0]
			break
		}
	}
	p, turn := c.of(name), r.Turns()
	if p.writes != "" {
		if turn == 0 {
			return tool("write_file", fmt.Sprintf(`{"path":%q,"content":"text"}`, p.writes))
		}
		turn--
	}
	if p.spawns != "" {
		if turn == 0 {
			return tool("spawn", p.spawns)
		}
		turn--
	}
	switch {
	case turn == 0 && p.does == "tool":
		return tool("shell", `{"command":"sleep 1000"}`)
	case turn == 0 && p.does == "parked":
		for _, name := range p.after {
			<-c.of(name).hangs.Done()
		}
		parks := tool("list_files", `{}`)
		parks.Usage = &llmtest.Usage{Input: hugeUsage}
		return parks
	}
	if p.hung != nil {
		p.hung()
	}
	return llmtest.Reply{Hang: true}
}

// clan is a family in a daemon.
type clan struct {
	kinship
	place, family string
	name          string // of the family; its members are name-role, and run and node are name and name/node
	uuids         []types.UUID
	pids          []types.PID // before a restart of the daemon
	cells         []square
}

// label is the name of a member.
func (c *clan) label(i int) string {
	switch role := c.chain[i].role; role {
	case "run":
		return c.name
	case "node":
		return c.name + "/node"
	default:
		return c.name + "-" + role
	}
}

// parks returns which member is parked on its budget; -1 = none.
func (c *clan) parks() int {
	switch c.place {
	case "parked":
		return c.target
	case "over parked":
		return c.target + 1
	}
	return -1
}

// does is what a member does once it has started its child.
func (c *clan) does(i int) string {
	switch {
	case i == c.parks():
		return "parked"
	case i == c.target && c.place == "tool":
		return "tool"
	}
	return "model"
}

// budget is that of a member of its own; 0 = none.
func (c *clan) budget(i int) int {
	switch i {
	case c.parks():
		return smallBudget
	case c.target:
		return largeBudget
	}
	return 0
}

// waits reports whether a member waits for its child from the beginning.
func (c *clan) waits(i int) bool {
	return c.chain[i].body || i == c.target && c.place == "waiting"
}

// start starts a family.
func (c *clan) start(t *testing.T, s *testenv.System, m *actors) error {
	last := len(c.chain) - 1
	for i := range c.chain {
		p := part{does: c.does(i)}
		if i == c.target && slices.ContainsFunc(c.cells, func(s square) bool { return s.verb == "diff" }) {
			p.writes = c.name // else it has no files to compare
		}
		for below := i + 1; below <= last; below++ {
			p.after = append(p.after, c.label(below))
		}
		if i < last && !c.chain[i].body {
			p.spawns = fmt.Sprintf(`{"intent":"%s%s","name":"%[2]s","background":%t`, member, c.label(i+1), !c.waits(i))
			if b := c.budget(i + 1); b > 0 {
				p.spawns += fmt.Sprintf(`,"budget":%d`, b)
			}
			p.spawns += "}"
		}
		m.give(c.label(i), p)
	}
	budget := c.budget(0)
	if c.chain[0].body {
		req := ipc.ComposeUpRequest{File: "compose.yaml", Name: c.name, Cwd: s.Work, Env: s.Env,
			Text: fmt.Sprintf("agents:\n  node: {intent: %q, provider: anthropic, model: fake", member+c.label(1))}
		if b := c.budget(1); b > 0 {
			req.Text += fmt.Sprintf(", budget: %d", b)
		}
		req.Text += "}\n"
		if budget > 0 {
			req.Budget = &budget
		}
		_, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, req)
		return err
	}
	req := ipc.SpawnRequest{Intent: member + c.label(0), ProcSpec: types.ProcSpec{Model: "fake", Name: c.label(0)}, Cwd: s.Work, Env: s.Env}
	if budget > 0 {
		req.ContextBudget = &budget
	}
	_, err := ipc.Call(t.Context(), s.Client, ipc.Spawn, req)
	return err
}

// world is a daemon with families in it.
type world struct {
	s     *testenv.System
	m     *actors
	clans []*clan
}

// rows are the processes that ps -a shows.
func (w *world) rows(t *testing.T) []ipc.Proc {
	t.Helper()
	r, err := ipc.Call(t.Context(), w.s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	return r.Procs
}

// fateOf is what a row of ps shows.
func fateOf(p *ipc.Proc) fate {
	switch {
	case p.State == "archived":
		return archived
	case p.Exit != nil && (p.State == "dead" || p.State == "zombie"):
		return endedBy(p.Exit.Code)
	case p.State == "suspended" && !p.PausedAt.IsZero():
		return isPaused
	default:
		return fate(p.State)
	}
}

// fates are what has become of the members of the families.
func (w *world) fates(t *testing.T) func(types.UUID) fate {
	t.Helper()
	by := map[types.UUID]fate{}
	rows := w.rows(t)
	for i := range rows {
		by[rows[i].UUID] = fateOf(&rows[i])
	}
	return func(id types.UUID) fate {
		if f, ok := by[id]; ok {
			return f
		}
		return deleted
	}
}

// populate starts the families, each in the state from which its place is made, and learns who is who.
func (w *world) populate(t *testing.T) {
	t.Helper()
	slots := make(chan struct{}, 8)
	var all sync.WaitGroup
	for _, c := range w.clans {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := c.start(t, w.s, w.m); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
	all.Wait()
	by := map[string]ipc.Proc{}
	reached := func(c *clan, i int) bool {
		p, ok := by[c.label(i)]
		switch {
		case !ok:
			return false
		case c.chain[i].was == suspended && c.parks() >= 0:
			return p.State == "suspended"
		case c.waits(i):
			return p.State == "running"
		case c.does(i) == "tool":
			return p.Doing != nil && p.Doing.Tool == "shell"
		}
		return p.State == "running" && w.m.hangs(c.label(i))
	}
	missing := func() (out []string) {
		for _, p := range w.rows(t) {
			by[p.Name] = p
		}
		for _, c := range w.clans {
			for i := range c.chain {
				if !reached(c, i) {
					p := by[c.label(i)]
					out = append(out, fmt.Sprintf("%s (%s, %s): %s %s %v", c.label(i), c.place, c.family, p.State, p.Wait, p.Exit))
				}
			}
		}
		return out
	}
	w.await(t, missing)
	for _, c := range w.clans {
		for i := range c.chain {
			p := by[c.label(i)]
			c.uuids, c.pids = append(c.uuids, p.UUID), append(c.pids, p.PID)
		}
	}
}

// await waits until nothing is missing.
func (w *world) await(t *testing.T, missing func() []string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("missing: %s", strings.Join(missing(), "\n"))
		}
	}()
	until(t, "all families are as the verbs are to find them", func() bool { return len(missing()) == 0 })
}

// tell sends a signal to whole families. Where one is to end below the others, it alone is killed.
func (w *world) tell(t *testing.T, sig types.Signal, places ...string) {
	t.Helper()
	for _, c := range w.clans {
		if !slices.Contains(places, c.place) {
			continue
		}
		method, to := ipc.SignalTree, c.uuids[0]
		if sig == types.SIGKILL && c.place == "ended below" {
			method, to = ipc.Signal, c.uuids[c.target]
		}
		if _, err := ipc.Call(t.Context(), w.s.Client, method, ipc.SignalRequest{Target: to.String(), Signal: sig}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
}

// inPlace waits until the families of the places are as a verb is to find them.
func (w *world) inPlace(t *testing.T, places ...string) {
	t.Helper()
	w.await(t, func() (out []string) {
		now := w.fates(t)
		for _, c := range w.clans {
			for i, id := range c.uuids {
				if got := now(id); slices.Contains(places, c.place) && got != c.chain[i].was {
					out = append(out, fmt.Sprintf("%s (%s, %s) is %s, want %s", c.label(i), c.place, c.family, got, c.chain[i].was))
				}
			}
		}
		return out
	})
}

// dispose has gc archive or delete the families of a place, which have ended, by making them old.
func (w *world) dispose(t *testing.T, place string, req ipc.GCRequest) {
	t.Helper()
	w.s.Stop()
	w.s.Start()
	w.s.Settle() // writes the small file anew of a history that ended while it got a message
	w.s.Stop()
	for _, c := range w.clans {
		for _, id := range c.uuids {
			if c.place == place {
				rewrite(t, w.s, id, func(p *step.ProcInfo) { p.DeadAt = p.DeadAt.AddDate(-1, 0, 0) })
			}
		}
	}
	w.s.Start()
	w.s.Settle()
	if _, err := ipc.Call(t.Context(), w.s.Client, ipc.GC, req); err != nil {
		t.Fatal(err)
	}
	w.inPlace(t, place)
}

// setUp brings all families to their places. Those of one daemon share its restart.
func (w *world) setUp(t *testing.T) {
	t.Helper()
	_, api := llmtest.NewAPI(t, w.m.reply)
	w.s = testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+api, "RNIX_DAEMON_AUTO_RESUME=false")
	configure(t, w.s, "config.yaml", "concurrency: 256\n")
	w.populate(t)
	w.tell(t, types.SIGPAUSE, "paused", "paused, stop", "ended below")
	w.tell(t, types.SIGKILL, "ended", "ended below")
	w.inPlace(t, "model", "tool", "waiting", "paused", "parked", "over parked", "ended", "ended below")
	switch place := w.clans[0].place; place {
	case "paused, stop", "stopped":
		w.inPlace(t, "paused, stop")
		w.s.Stop()
		w.s.Start()
		w.s.Settle()
		w.inPlace(t, "paused, stop", "stopped")
	case "cut off":
		w.s.Kill()
		w.s.Start()
		w.s.Settle()
		w.inPlace(t, "cut off")
	case "archived", "gone":
		w.tell(t, types.SIGKILL, "archived", "gone")
		for _, c := range w.clans {
			for _, id := range c.uuids {
				if _, err := ipc.Call(t.Context(), w.s.Client, ipc.Wait, ipc.WaitRequest{Target: id.String()}); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.dispose(t, "gone", ipc.GCRequest{Delete: true})
		w.dispose(t, "archived", ipc.GCRequest{})
	}
}

// worldOf says which places share a daemon.
func worldOf(place string) string {
	switch place {
	case "paused, stop", "stopped":
		return "stop"
	case "cut off":
		return "kill -9"
	case "archived", "gone":
		return "gc"
	}
	return "live"
}
