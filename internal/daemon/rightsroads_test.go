package daemon_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// roads are the ways on which a command in an agent's shell, or in an agent CLI, tries to start an agent.
var roads = []string{
	"spawn", "compose", "supervise", "add", // the wire
	"parent", "fork", // as a child of boss, and as a copy of it
	"device",           // a shell that the daemon starts for whoever writes to its device
	"mcp", "run", "sh", // the program
}

// closedRoads are those that lead nowhere.
var closedRoads = []string{"parent", "fork"}

// boss is the intent and the name of an agent with all rights, which is there all the time and does nothing.
const boss = "boss"

// cliProvider is the provider, and the agent, that is an agent CLI; first and second are those that are models, which agents have too.
const (
	cliProvider = "cli"
	first       = "anthropic"
	second      = "second"
)

// providers are all that there are.
var providers = []string{first, second, cliProvider}

// want is an agent that another one wants to be there.
type want struct {
	intent      string
	allow, deny []string // nil = not said
	provider    string   // of its model; cliProvider = it is an agent CLI
}

// fields are what a request, a workflow and a supervisor say of it.
func (w want) fields() map[string]any {
	f := map[string]any{"intent": w.intent, "provider": w.provider}
	if w.provider != cliProvider {
		f["model"] = "fake"
	}
	if w.allow != nil {
		f["allow"] = w.allow
	}
	if w.deny != nil {
		f["deny"] = w.deny
	}
	return f
}

// input is what a model says of it to the tool spawn. Without an agent it has the model of its parent.
func (w want) input(rnd *rand.Rand) map[string]any {
	f := w.fields()
	delete(f, "model")
	delete(f, "provider")
	if w.provider != first || rnd.IntN(2) == 0 {
		f["agent"] = w.provider
	}
	return f
}

// flags are what a command line says of it.
func (w want) flags() string {
	out := "--detach --provider " + w.provider
	if w.provider != cliProvider {
		out += " --model fake"
	}
	if w.allow != nil {
		out += " --allow '" + strings.Join(w.allow, ",") + "'"
	}
	if len(w.deny) > 0 {
		out += " --deny " + strings.Join(w.deny, ",")
	}
	return out + ` "` + w.intent + `"`
}

// command starts an agent on a road.
func (g *grower) command(road string, w want) string {
	env := []string{"HOME=" + g.s.Home, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + g.url}
	rnix := "env GORACE=atexit_sleep_ms=0 " + strings.Join(env, " ") + " " + g.program + " "
	call := func(method string, body map[string]any) string {
		if method != "supervise_add" { // which has them of its supervisor
			body["cwd"], body["env"] = g.s.Work, env
		}
		return fmt.Sprintf("curl -s --unix-socket %s -d @- http://x/v1/%s <<'END'\n%s\nEND\n", g.socket, method, asJSON(g.t, body))
	}
	node, name := w.fields(), "n"+seedOf(w.intent)
	supervisor := func(strategy string) string { // JSON is YAML
		node["name"], node["restart"] = "a", "temporary"
		return asJSON(g.t, map[string]any{"version": "1", "supervisors": []any{map[string]any{"name": name, "strategy": strategy, "children": []any{node}}}})
	}
	switch road {
	case "spawn":
		return call("spawn", node)
	case "parent":
		node["parent"] = boss
		return call("spawn", node)
	case "fork":
		return call("resume", map[string]any{"target": boss, "fork": true, "new_input": w.intent})
	case "compose":
		return call("compose_up", map[string]any{"text": asJSON(g.t, map[string]any{"version": "1", "name": name, "agents": map[string]any{"a": node}})})
	case "supervise":
		return call("supervise_up", map[string]any{"source": supervisor("one_for_one")})
	case "add":
		return call("supervise_up", map[string]any{"source": supervisor("simple_one_for_one")}) + call("supervise_add", map[string]any{"target": name, "intent": w.intent})
	case "device":
		script := asJSON(g.t, map[string]string{"command": g.command("spawn", w)})
		return call("write_path", map[string]any{"path": "/dev/shell", "data": base64.StdEncoding.EncodeToString([]byte(script))})
	case "mcp":
		return g.bin("mcp") + " " + rnix + "mcp serve <<'END'\n" + mcpCall(g.t, "spawn", node) + "\nEND\n"
	case "run":
		return rnix + "run " + w.flags() + "\n"
	case "sh":
		return rnix + "sh <<'END'\nspawn " + w.flags() + "\nEND\n"
	}
	g.t.Errorf("no road %q", road)
	return ""
}

// mcpCall is a call of a tool, as an MCP client sends it behind its greeting.
func mcpCall(t *testing.T, tool string, arguments any) string {
	return asJSON(t, map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments}})
}

// bin is where a program of newGrower's is.
func (g *grower) bin(name string) string { return filepath.Join(g.s.Dir, name) }

// mcpClient runs an MCP server, the command behind it, and has it answer the call on its standard input.
const mcpClient = `#!/bin/sh
d=$(mktemp -d "${0%/*}/call.XXXXXX") && mkfifo "$d/in" "$d/out" || exit 1
"$@" <"$d/in" >"$d/out" &
exec 3>"$d/in" 4<"$d/out"
echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}' >&3
read -r greeting <&4
echo '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&3
cat >&3
read -r answer <&4
printf '%s\n' "$answer"
exec 3>&- 4<&-
wait
rm -r "$d"
`

// codexClient plays codex. It asks the test at URL what it does, as a script, in which kernel calls a tool of the kernel.
const codexClient = `#!/bin/sh
own=yes
for a; do
	case $a in
	shell_tool) own= ;; # is disabled
	mcp_servers.rnix.command=*) program=${a#*=\"} program=${program%\"} ;;
	mcp_servers.rnix.args=*) file=${a##*,\"} file=${file%\"]} ;;
	esac
done
kernel() { GORACE=atexit_sleep_ms=0 "${0%/*}/mcp" "$program" mcp serve --session "$file"; }
echo '{"type":"thread.started","thread_id":"t-1"}'
eval "$(curl -s --data-binary @- "URL/?own=$own&uuid=$RNIX_UUID")" >&2
echo '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"done"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":1}}'
`

// newGrower starts a system with a model, and an agent CLI that is none.
func newGrower(t *testing.T) *grower {
	t.Helper()
	g := &grower{t: t, told: map[string]types.UUID{}, acts: map[types.UUID]bool{}, models: map[types.UUID]map[string]bool{}, copies: map[types.UUID]bool{}}
	var err error
	if g.program, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	_, g.url = llmtest.NewAPI(t, g.reply)
	clis := httptest.NewServer(http.HandlerFunc(g.act))
	t.Cleanup(clis.Close)
	g.s = testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+g.url, "RNIX_DAEMON_AUTO_RESUME_MAX=1000")
	sockets, _ := filepath.Glob(filepath.Join(g.s.Dir, "rnix", "*.sock"))
	g.socket = sockets[0]
	config := filepath.Join(g.s.Home, ".config", "rnix")
	for path, text := range map[string]string{
		g.bin("mcp"):   mcpClient,
		g.bin("codex"): strings.ReplaceAll(codexClient, "URL", clis.URL),
		filepath.Join(config, "providers.yaml"): fmt.Sprintf("default_provider: anthropic\nproviders:\n  - {name: %s, driver: codex-agent, command: %s}\n"+
			"  - {name: %s, driver: anthropic, api_key_env: ANTHROPIC_API_KEY, base_url: %s}\n", cliProvider, g.bin("codex"), second, g.url),
		filepath.Join(config, "agents", cliProvider, "agent.yaml"): fmt.Sprintf("name: %s\nmodels: {provider: %s}\n", cliProvider, cliProvider),
		filepath.Join(config, "agents", first, "agent.yaml"):       fmt.Sprintf("name: %s\nmodels: {provider: %s, preferred: fake}\n", first, first),
		filepath.Join(config, "agents", second, "agent.yaml"):      fmt.Sprintf("name: %s\nmodels: {provider: %s, preferred: fake}\n", second, second),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// act tells an agent CLI what to do. It grows as every agent does, and has the kernel's tools; what stands in its shell runs in the
// kernel's, or, if it has tools of its own, in itself.
func (g *grower) act(w http.ResponseWriter, r *http.Request) {
	prompt, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was killed
	}
	own := r.FormValue("own") != ""
	var id types.UUID
	if err := id.UnmarshalText([]byte(r.FormValue("uuid"))); err != nil {
		g.t.Errorf("an agent CLI does not know whose it is: %v", err)
	} else if own {
		g.mu.Lock()
		g.acts[id] = true
		g.mu.Unlock()
	}
	var text string
	for line := range strings.Lines(string(prompt)) {
		if strings.HasPrefix(line, "grow ") {
			text = strings.TrimSpace(line)
		}
	}
	for n, c := range g.grow(text) {
		if command, ok := c.input["command"].(string); ok && own && n%2 == 0 {
			_, _ = io.WriteString(w, command)
			continue
		}
		_, _ = fmt.Fprintf(w, "kernel <<'END'\n%s\nEND\n", mcpCall(g.t, c.tool, c.input))
	}
}

// everyRoad starts an agent that takes every road, and an agent CLI that starts others by the kernel's tool, in the kernel's shell and
// by tools of its own. Neither has all rights. It returns the seeds of those that have to come of it. A third one takes every road too, for agents
// with a model that it may not use, and a fourth one starts one that does.
func (g *grower) everyRoad() (seeds []string) {
	for n, root := range []struct {
		ways []string
		spec types.ProcSpec
	}{
		{append([]string{"tool"}, roads...), types.ProcSpec{Model: "fake", DeniedDevices: []string{"/dev/fs", "/sys/signal"}}},
		{[]string{"tool", "mcp", "spawn"}, types.ProcSpec{Provider: cliProvider, DeniedDevices: []string{"/proc", "/sys/signal"}}},
	} {
		seed := fmt.Sprintf("e%dx", n)
		g.s.Spawn(ipc.SpawnRequest{Intent: "grow 1 " + seed + " by " + strings.Join(root.ways, " "), ProcSpec: root.spec})
		for i, way := range root.ways {
			if !slices.Contains(closedRoads, way) {
				seeds = append(seeds, seed+string(rune('a'+i)))
			}
		}
	}
	g.s.Spawn(ipc.SpawnRequest{Intent: "grow 1 e2x on " + second + " by tool " + strings.Join(roads, " "),
		ProcSpec: types.ProcSpec{Provider: first, Model: "fake", DeniedDevices: []string{"/dev/llm/" + second}}})
	g.s.Spawn(ipc.SpawnRequest{Intent: "grow 2 e3x over on " + second + " by tool " + strings.Join(roads, " "),
		ProcSpec: types.ProcSpec{Provider: first, Model: "fake", AllowedDevices: []string{"/dev/shell", "/sys", "/dev/llm/" + first}}})
	return append(seeds, "e3xa")
}

// arrived checks that somebody came of each seed, so that the property is about every road.
func (g *grower) arrived(seeds []string) {
	g.t.Helper()
	there := map[string]bool{}
	for _, p := range procsOf(g.t, g.s) {
		there[seedOf(p.Intent)] = true
	}
	for _, seed := range seeds {
		if !there[seed] {
			g.t.Errorf("nobody came of the seed %s: see the roads by their order", seed)
		}
	}
}
