package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// flow is a workflow with a chain, a fan and a node that fails.
const flow = `name: release
intent: Make a release
agents:
  plan: {intent: node plan}
  build: {intent: "node build hang", depends_on: [plan]}
  notes: {intent: node notes, depends_on: [plan]}
  check: {intent: "node check ${item}", depends_on: [plan], foreach: [linux, darwin, windows]}
  publish: {intent: node publish, depends_on: [build, notes, check]}
`

// script has agents that do a little of everything, in turns.
func script(r llmtest.Request) llmtest.Reply {
	results := 0
	for _, m := range r.Messages {
		results += len(m.Results)
	}
	call := func(name, input string) llmtest.Reply {
		return llmtest.Reply{Text: "Next: " + name, ToolCalls: []llmtest.ToolCall{{ID: fmt.Sprintf("c%d-%d", results, time.Now().UnixNano()), Name: name, Input: input}}}
	}
	text := said(r)
	switch {
	case strings.Contains(text, "go on now"):
		return llmtest.Reply{Text: "I was steered."}
	case strings.Contains(text, "hang"):
		return llmtest.Reply{Hang: true}
	case strings.Contains(text, "hostile"):
		if results == 0 {
			return call("shell", `{"command":"cat hostile.txt"}`)
		}
		return llmtest.Reply{Text: hostileText}
	case strings.Contains(text, "build a thing"):
		switch results {
		case 0:
			return call("write_file", `{"path":"thing.txt","content":"one\ntwo\n"}`)
		case 1:
			return call("shell", `{"command":"echo built; sleep 0.3"}`)
		case 2:
			return call("spawn", `{"intent":"a small helper"}`)
		case 3:
			return call("edit_file", `{"path":"thing.txt","old":"two","new":"three"}`)
		case 4:
			return call("shell", `{"command":"false"}`)
		}
	}
	return llmtest.Reply{Text: "Done: " + text[:min(len(text), 60)], Usage: &llmtest.Usage{Input: 1200, Output: 80, CacheRead: 900}}
}

// healthy is a doctor who finds nothing broken.
func healthy(context.Context) []Finding {
	return []Finding{{Check: "disk", Status: "ok", Detail: "112G free at /data"}, {Check: "model", Status: "ok", Detail: "anthropic, the first that is available"},
		{Check: "cursor-agent", Status: "absent", Detail: "not in PATH"}}
}

func TestEveryPageInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	_, url := llmtest.NewAPI(t, script)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.Write("hostile.txt", hostileText+"\n\x1b[2J"+strings.Repeat("y", 5<<20))
	builder := s.Spawn(ipc.SpawnRequest{Intent: "build a thing", ProcSpec: types.ProcSpec{Name: "builder", Model: "claude-sonnet-4-5", Labels: types.Labels{"env": "prod", "title": "a thing"}}})
	s.Wait(builder.PID)
	hostile := s.Spawn(ipc.SpawnRequest{Intent: "hostile " + hostileText, ProcSpec: types.ProcSpec{Name: "mallory", Labels: types.Labels{"note": "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>"}}})
	s.Wait(hostile.PID)
	alive := s.Spawn(ipc.SpawnRequest{Intent: "hang around", ProcSpec: types.ProcSpec{Name: "alive"}})
	for name, text := range map[string]string{"mcp.yaml": "servers: {tracker: {command: /no/such/program}}\n", "agents/served/agent.yaml": "name: served\ndescription: has a server\nmcp: [tracker]\n", "agents/served/instructions.md": "Hang.\n"} {
		file := filepath.Join(s.Home, ".config", "rnix", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	served := s.Spawn(ipc.SpawnRequest{Intent: "hang without a server", Agent: "served"})
	run, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{File: "flow.yaml", Text: flow, Name: "release", Cwd: s.Work, Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work, Doctor: healthy})
	ids, err := json.Marshal(map[string]string{"builder": builder.UUID.String(), "hostile": hostile.UUID.String(), "alive": alive.UUID.String(), "run": run.UUID.String(), "served": served.UUID.String()})
	if err != nil {
		t.Fatal(err)
	}
	d.scenario(chromium, "pages.mjs", nil, "RNIX_IDS="+string(ids))
}
