package daemon_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// rightPaths are what rights are made of, and what is asked about.
var rightPaths = []string{"/dev/fs", "/dev/shell", "/dev/workspace", "/dev/llm", "/dev", "/proc", "/sys/spawn", "/sys/signal", "/sys", "/mnt",
	"/dev/llm/" + first, "/dev/llm/" + second, "/mnt/mcp/files/tools/read"}

// grower is agents who start others in every way that they are offered, with rights at random: by their tool, and from their shell
// on every road that there is; agents with a model, and agent CLIs.
type grower struct {
	t       *testing.T
	url     string
	s       *testenv.System
	socket  string
	program string                // plays rnix: see TestMain
	told    map[string]types.UUID // who was told to grow by a person, by the seed

	mu sync.Mutex
	// +checklocks:mu
	acts map[types.UUID]bool // agent CLIs that had tools of their own

	models map[types.UUID]map[string]bool // the providers that each has had
	copies map[types.UUID]bool            // what a person has made a fork, which has no parent
}

// seedOf is the seed in an intent. That of an agent is that of who started it, and a letter or a digit.
func seedOf(intent string) string {
	depth, seed := 0, ""
	_, _ = fmt.Sscanf(intent, "grow %d %s", &depth, &seed)
	return seed
}

// reply is what a model answers: an agent that was told how its calls went has done.
func (g *grower) reply(r llmtest.Request) llmtest.Reply {
	last := r.Messages[len(r.Messages)-1].Text
	if r.Messages[0].Text == boss && !strings.HasPrefix(last, "grow ") {
		return llmtest.Reply{Hang: true}
	}
	var out llmtest.Reply
	for _, c := range g.grow(last) {
		if slices.Contains(r.Tools, c.tool) {
			out.ToolCalls = append(out.ToolCalls, toolCall(c.tool, c.input))
		}
	}
	if len(out.ToolCalls) == 0 {
		out.Text = "done"
	}
	return out
}

// call is what an agent does to start another: with its tool spawn, or with a command in its shell.
type call struct {
	tool  string
	input map[string]any
}

// grow returns what an agent does that is told "grow DEPTH SEED". With " by WAY ..." behind it, it takes these ways, and says nothing of
// rights; with " on PROVIDER by WAY ...", with the model of this provider. With " over REST" behind it, it starts one with a list in which no model
// stands, whom it tells the rest.
func (g *grower) grow(text string) (out []call) {
	depth, seed := 0, ""
	if n, _ := fmt.Sscanf(text, "grow %d %s", &depth, &seed); n != 2 || depth == 0 {
		return nil
	}
	h := fnv.New64()
	h.Write([]byte(text))
	rnd := rand.New(rand.NewPCG(h.Sum64(), 0))
	if _, rest, ok := strings.Cut(text, " over "); ok {
		w := want{intent: fmt.Sprintf("grow 1 %sa %s", seed, rest), provider: first, allow: []string{"/dev/shell", "/sys"}}
		return []call{g.start("tool", rnd, w)}
	}
	if _, ways, ok := strings.Cut(text, " by "); ok {
		for n, way := range strings.Fields(ways) {
			w := want{intent: fmt.Sprintf("grow 0 %s%c", seed, 'a'+n), provider: providers[(n+2)%3]}
			if before, on, ok := strings.Cut(text, " on "); ok && len(before) > 0 {
				w.provider = strings.Fields(on)[0]
			}
			out = append(out, g.start(way, rnd, w))
		}
		return out
	}
	for n := range 2 {
		w := want{intent: fmt.Sprintf("grow %d %s%d", depth-1, seed, n), allow: g.list(rnd), deny: g.list(rnd), provider: providers[rnd.IntN(len(providers))]}
		if rnd.IntN(4) == 0 {
			w.allow = []string{} // nothing
		}
		way := "tool"
		if rnd.IntN(3) > 0 {
			way = roads[rnd.IntN(len(roads))]
		}
		out = append(out, g.start(way, rnd, w))
	}
	return out
}

// start starts an agent with the tool, or on a road.
func (g *grower) start(way string, rnd *rand.Rand, w want) call {
	if way == "tool" {
		return call{"spawn", w.input(rnd)}
	}
	return call{"shell", map[string]any{"command": g.command(way, w)}}
}

// list is up to two paths, or nothing at all.
func (g *grower) list(rnd *rand.Rand) []string {
	var out []string
	for range rnd.IntN(3) {
		out = append(out, rightPaths[rnd.IntN(len(rightPaths)-1)])
	}
	return out
}

// still waits until no agent works any more.
func (g *grower) still() {
	g.t.Helper()
	until(g.t, "all have done their work", func() bool {
		for _, p := range procsOf(g.t, g.s) {
			if p.Kind == "" && p.Intent != boss && p.State != "dead" && p.State != "suspended" {
				return false
			}
		}
		return true
	})
}

// narrower checks that nobody may do what the one above it may not, nor what the agent may not that wanted it to be there, which may
// have ended long ago. It returns how many were looked at.
func (g *grower) narrower(when string) (n int) {
	g.t.Helper()
	rights := map[types.UUID]kernel.Rights{}
	procs := procsOf(g.t, g.s)
	g.note(procs)
	by := maps.Clone(g.told)
	bosses := 0
	for id, p := range procs {
		rights[id] = g.rights(id)
		if p.Intent == boss {
			bosses++
		}
		if seed := seedOf(p.Intent); seed != "" {
			by[seed] = id
		}
	}
	if bosses != 1 { // its copies have its intent, whatever they were told
		g.t.Errorf("%s: there are %d of %s: forks that an agent has made", when, bosses, boss)
	}
	g.mu.Lock()
	for id := range g.acts {
		for _, path := range []string{"/dev/shell", "/dev/fs", "/dev/workspace"} {
			if own, ok := rights[id]; ok && !own.Permits(path) {
				g.t.Errorf("%s: PID %d (%q), an agent CLI, has tools of its own, and may not open %s: %+v", when, procs[id].PID, procs[id].Intent, path, own)
			}
		}
	}
	g.mu.Unlock()
	for id, p := range procs {
		seed := seedOf(p.Intent)
		if seed != "" && !strings.HasSuffix(seed, "x") && by[seed[:len(seed)-1]] == (types.UUID{}) {
			g.t.Errorf("%s: PID %d (%q) was started by a process that nobody has told to: a fork that an agent has made", when, p.PID, p.Intent)
		}
		g.lent(when, procs, rights, by, &p)
		for _, from := range []types.UUID{p.ParentUUID, by[seed[:max(len(seed)-1, 0)]]} {
			above, ok := rights[from]
			if !ok || from == id {
				continue
			}
			n++
			for _, path := range rightPaths {
				if own := rights[id]; own.Permits(path) && !above.Permits(path) {
					g.t.Errorf("%s: PID %d (%s %q, %s) may open %s, and PID %d, which started it, may not: %+v, %+v", when, p.PID, p.Kind, p.Intent, p.State, path, procs[from].PID, own, above)
				}
			}
		}
	}
	return n
}

// note keeps with which models processes are.
func (g *grower) note(procs map[types.UUID]ipc.Proc) {
	for id, p := range procs {
		if g.models[id] == nil {
			g.models[id] = map[string]bool{}
		}
		g.models[id][p.Provider] = true
	}
}

// lent checks that each agent that wanted a process to be there, and each that wanted that one, up to the first, may lend it its model, or has
// had that itself.
func (g *grower) lent(when string, procs map[types.UUID]ipc.Proc, rights map[types.UUID]kernel.Rights, by map[string]types.UUID, p *ipc.Proc) {
	if p.Kind != "" || g.copies[p.UUID] {
		return
	}
	for a := p; ; {
		seed := seedOf(a.Intent)
		from, ok := by[seed[:max(len(seed)-1, 0)]]
		if !ok || from == a.UUID {
			return
		}
		above := procs[from]
		if r := rights[from]; !g.models[from][p.Provider] && !lends(r, "/dev/llm/"+p.Provider) {
			g.t.Errorf("%s: PID %d (%q, %s) has the model %s, and PID %d (%q), above it, has it not and may not lend it: %+v", when, p.PID, p.Intent, p.State, p.Provider, above.PID, above.Intent, r)
		}
		a = &above
	}
}

// lends reports whether one with these rights may start others with the model at path.
func lends(r kernel.Rights, path string) bool {
	named := slices.ContainsFunc(r.Allowed, func(a string) bool { return strings.HasPrefix(a+"/", "/dev/llm/") })
	if !named {
		r.Allowed = nil
	}
	return r.Permits(path)
}

func (g *grower) rights(id types.UUID) kernel.Rights {
	d, err := ipc.Call(g.t.Context(), g.s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: id.String()})
	if err != nil {
		g.t.Fatal(err)
	}
	return kernel.Rights{Allowed: d.AllowedDevices, Denied: d.DeniedDevices}
}

// No way in which an agent starts another gives that a right which it has not itself, over restarts of the daemon, resumes and
// forks.
func TestNobodyHasARightThatWhoStartedItHasNot(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	g := newGrower(t)
	g.s.Spawn(ipc.SpawnRequest{Intent: boss, ProcSpec: types.ProcSpec{Name: boss, Model: "fake"}})
	var roots []ipc.SpawnResponse
	for n := range soak.Number(t, "RNIX_RIGHTS_TREES", "trees of agents", 3, 200) {
		spec := types.ProcSpec{Model: "fake", AllowedDevices: g.list(rnd), DeniedDevices: slices.DeleteFunc(g.list(rnd), func(p string) bool { return p == "/dev" || p == "/dev/llm" })}
		if n%3 == 2 {
			spec.Provider, spec.Model = cliProvider, ""
		}
		if n%3 == 1 { // for sure one that may not lend the second model, and one that may lend the first
			spec.AllowedDevices, spec.DeniedDevices = []string{"/dev/shell", "/sys", "/dev/llm/" + first}, nil
		}
		roots = append(roots, g.s.Spawn(ipc.SpawnRequest{Intent: fmt.Sprintf("grow 3 s%d-%dx", seed%1000, n), ProcSpec: spec}))
	}
	<-time.After(time.Duration(rnd.IntN(150)) * time.Millisecond) // the moment of the kill is what is tried
	g.s.Kill()
	g.s.Start()
	g.s.Settle()
	g.still()
	n, refused := g.narrower("after a kill"), 0
	for id, p := range procsOf(t, g.s) {
		if p.Kind != "" || p.State != "dead" || rnd.IntN(2) == 0 {
			continue
		}
		req := ipc.ResumeRequest{Target: id.String(), Env: g.s.Env, NewInput: fmt.Sprintf("grow 2 r%dx", p.PID), Fork: rnd.IntN(2) == 0}
		if p.Provider != cliProvider && rnd.IntN(2) == 0 { // a session of an agent CLI is its own
			req.Provider, req.Model = providers[rnd.IntN(2)], "fake"
		}
		r, err := ipc.Call(t.Context(), g.s.Client, ipc.Resume, req)
		if err != nil {
			if req.Provider != "" && types.CodeOf(err) == types.ErrPermission {
				refused++
			}
			continue
		}
		g.copies[r.UUID] = req.Fork
		g.told[seedOf(req.NewInput)] = r.UUID
		for _, path := range rightPaths {
			if req.Fork && g.rights(r.UUID).Permits(path) && !g.rights(id).Permits(path) {
				t.Errorf("the fork of PID %d may open %s", p.PID, path)
			}
		}
	}
	seeds := g.everyRoad()
	g.still()
	m := g.narrower("after resumes and forks")
	g.arrived(seeds)
	for id, p := range procsOf(t, g.s) { // each child with each model: a history that is resumed is a road, too
		if p.Kind != "" || p.State != "dead" || p.ParentUUID == (types.UUID{}) || p.Provider == cliProvider {
			continue
		}
		if _, err := ipc.Call(t.Context(), g.s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), Env: g.s.Env, NewInput: "go on", Provider: second, Model: "fake"}); types.CodeOf(err) == types.ErrPermission {
			refused++
		}
	}
	g.still()
	g.narrower("after resumes with another model")
	if refused == 0 {
		t.Error("no resume was refused a model")
	}
	if t.Logf("%d and then %d pairs of who started whom, of %d; %d resumes with a model that was refused", n, m, len(procsOf(t, g.s)), refused); m < len(roots)/2 {
		t.Errorf("%d pairs: this test is about nothing", m)
	}
}
