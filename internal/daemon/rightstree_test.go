package daemon_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
var rightPaths = []string{"/dev/fs", "/dev/shell", "/dev/workspace", "/dev/llm", "/dev", "/proc", "/sys/spawn", "/sys/signal", "/sys", "/mnt", "/mnt/mcp/files/tools/read"}

// grower is agents who start others in every way that they are offered, with rights at random: by their tool, and from their shell
// over the wire, alone, in a workflow and below a supervisor.
type grower struct {
	t      *testing.T
	url    string
	s      *testenv.System
	socket string
	told   map[string]types.UUID // who was told to grow by a person, by the seed
}

// seedOf is the seed in an intent. That of an agent is that of who started it, and a digit.
func seedOf(intent string) string {
	depth, seed := 0, ""
	_, _ = fmt.Sscanf(intent, "grow %d %s", &depth, &seed)
	return seed
}

// reply answers "grow DEPTH SEED": an agent that was told how its calls went has done.
func (g *grower) reply(r llmtest.Request) llmtest.Reply {
	depth, seed, text := 0, "", ""
	for _, m := range r.Messages {
		if strings.HasPrefix(m.Text, "grow ") {
			text = m.Text
		}
	}
	last := r.Messages[len(r.Messages)-1]
	if n, _ := fmt.Sscanf(text, "grow %d %s", &depth, &seed); n != 2 || depth == 0 || !strings.HasPrefix(last.Text, "grow ") {
		return llmtest.Reply{Text: "done"}
	}
	h := fnv.New64()
	h.Write([]byte(text))
	rnd := rand.New(rand.NewPCG(h.Sum64(), 0))
	var out llmtest.Reply
	for way := range 2 {
		intent := fmt.Sprintf("grow %d %s%d", depth-1, seed, way)
		var call llmtest.Reply
		switch {
		case slices.Contains(r.Tools, "shell") && rnd.IntN(3) > 0:
			call = tool("shell", asJSON(g.t, map[string]string{"command": g.command(rnd, intent)}))
		case slices.Contains(r.Tools, "spawn"):
			in := map[string]any{"intent": intent}
			if allow := g.list(rnd); allow != nil {
				in["allow"] = allow
			}
			if deny := g.list(rnd); deny != nil {
				in["deny"] = deny
			}
			call = tool("spawn", asJSON(g.t, in))
		default:
			continue
		}
		out.ToolCalls = append(out.ToolCalls, call.ToolCalls...)
	}
	if len(out.ToolCalls) == 0 {
		out.Text = "done"
	}
	return out
}

// list is up to two paths, or nothing at all.
func (g *grower) list(rnd *rand.Rand) []string {
	var out []string
	for range rnd.IntN(3) {
		out = append(out, rightPaths[rnd.IntN(len(rightPaths)-1)])
	}
	return out
}

// command starts an agent from a shell.
func (g *grower) command(rnd *rand.Rand, intent string) string {
	env := []string{"HOME=" + g.s.Home, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + g.url}
	node := map[string]any{"intent": intent, "model": "fake"}
	if allow := g.list(rnd); allow != nil {
		node["allow"] = allow
	}
	if deny := g.list(rnd); deny != nil {
		node["deny"] = deny
	}
	if rnd.IntN(4) == 0 {
		node["allow"] = []string{} // nothing
	}
	body := map[string]any{"cwd": g.s.Work, "env": env}
	method := []string{"spawn", "compose_up", "supervise_up"}[rnd.IntN(3)]
	name := "n" + strings.ReplaceAll(strings.TrimPrefix(intent, "grow "), " ", "-")
	yaml := func(v any) string { return asJSON(g.t, v) } // which is YAML
	switch method {
	case "spawn":
		for k, v := range node {
			body[k] = v
		}
	case "compose_up":
		body["text"] = yaml(map[string]any{"version": "1", "name": name, "agents": map[string]any{"a": node}})
	case "supervise_up":
		node["name"], node["restart"] = "a", "temporary"
		body["source"] = yaml(map[string]any{"version": "1", "supervisors": []any{map[string]any{"name": name, "children": []any{node}}}})
	}
	return fmt.Sprintf("curl -s --unix-socket %s -d @- http://x/v1/%s <<'END'\n%s\nEND\n", g.socket, method, asJSON(g.t, body))
}

// still waits until no agent works any more.
func (g *grower) still() {
	g.t.Helper()
	until(g.t, "all have done their work", func() bool {
		for _, p := range procsOf(g.t, g.s) {
			if p.Kind == "" && p.State != "dead" && p.State != "suspended" {
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
	by := maps.Clone(g.told)
	for id, p := range procs {
		rights[id] = g.rights(id)
		if seed := seedOf(p.Intent); seed != "" {
			by[seed] = id
		}
	}
	for id, p := range procs {
		seed := seedOf(p.Intent)
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
	g := &grower{t: t, told: map[string]types.UUID{}}
	_, g.url = llmtest.NewAPI(t, g.reply)
	g.s = testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+g.url, "RNIX_DAEMON_AUTO_RESUME_MAX=1000")
	sockets, _ := filepath.Glob(filepath.Join(g.s.Dir, "rnix", "*.sock"))
	g.socket = sockets[0]
	var roots []ipc.SpawnResponse
	for n := range soak.Number(t, "RNIX_RIGHTS_TREES", "trees of agents", 6, 200) {
		roots = append(roots, g.s.Spawn(ipc.SpawnRequest{Intent: fmt.Sprintf("grow 3 s%d-%dx", seed%1000, n), ProcSpec: types.ProcSpec{Model: "fake", AllowedDevices: g.list(rnd), DeniedDevices: slices.DeleteFunc(g.list(rnd), func(p string) bool { return p == "/dev" || p == "/dev/llm" })}}))
	}
	<-time.After(time.Duration(rnd.IntN(150)) * time.Millisecond) // the moment of the kill is what is tried
	g.s.Kill()
	g.s.Start()
	g.s.Settle()
	g.still()
	n := g.narrower("after a kill")
	for id, p := range procsOf(t, g.s) {
		if p.Kind != "" || p.State != "dead" || rnd.IntN(2) == 0 {
			continue
		}
		req := ipc.ResumeRequest{Target: id.String(), Env: g.s.Env, NewInput: fmt.Sprintf("grow 2 r%dx", p.PID), Fork: rnd.IntN(2) == 0}
		r, err := ipc.Call(t.Context(), g.s.Client, ipc.Resume, req)
		if err != nil {
			continue // what may not open its model
		}
		g.told[seedOf(req.NewInput)] = r.UUID
		for _, path := range rightPaths {
			if req.Fork && g.rights(r.UUID).Permits(path) && !g.rights(id).Permits(path) {
				t.Errorf("the fork of PID %d may open %s", p.PID, path)
			}
		}
	}
	g.still()
	m := g.narrower("after resumes and forks")
	if t.Logf("%d and then %d pairs of who started whom, of %d", n, m, len(procsOf(t, g.s))); m < len(roots)/2 {
		t.Errorf("%d pairs: this test is about nothing", m)
	}
}
