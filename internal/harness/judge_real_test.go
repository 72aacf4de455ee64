package harness_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness"
	"rnix/internal/harness/vendortest"
	"rnix/internal/soak"
)

// A call about which a real command line cannot ask is not made: the program that it asks by is not there, fails, says something else, or is ended.
func TestRealHooksThatFailRefuse(t *testing.T) {
	all := soak.Pick(t, "hooks of opencode that are killed", 0, 1) > 0 // its plugin takes that for one that fails, and opencode starts slowly
	for name, command := range map[string]llmtest.Reply{
		"codex":    call("exec_command", map[string]any{"cmd": "echo x >made"}),
		"opencode": call("bash", map[string]any{"command": "echo x >made", "description": "x"}),
	} {
		for why, judge := range map[string][]string{"missing": {"/nonexistent/rnix"}, "failing": {"/bin/sh", "-c", "echo it is broken >&2; exit 1"}, "killed": {"/bin/sh", "-c", "kill -9 $$"}} {
			if name == "opencode" && why == "killed" && !all {
				continue
			}
			t.Run(name+"/"+why, func(t *testing.T) {
				v := vendortest.New(t, vendortest.Play(command, say("done")))
				cli := judged(t, v, name)
				at := place(t, v, name)
				at.Judged, at.Judge, at.Confined = true, judge, true
				events, _ := startAt(t, v, cli, at, agent.Spec{Prompt: "go"}, agent.UsageEvent{}).end()
				if _, err := os.Lstat(filepath.Join(v.Work, "made")); err == nil || !last[agent.ResultEvent](events).Success || len(v.Requests()) != 2 {
					t.Errorf("%v %s", err, show(events))
				}
				if res, _ := v.Requests()[1].LastResult(); why == "failing" && !strings.Contains(res.Text, "it is broken") {
					t.Errorf("%s", res.Text)
				}
			})
		}
	}
}

// judged returns a command line with a user's settings that allow everything.
func judged(t *testing.T, v *vendortest.Vendor, name string) harness.CLI {
	t.Helper()
	cli, err := harness.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"model": "fake/m1", "permission": map[string]string{"*": "allow", "bash": "allow"}, "provider": map[string]any{"fake": map[string]any{
		"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": map[string]string{"baseURL": v.URL + "/v1", "apiKey": "{env:OPENAI_API_KEY}"},
		"models": map[string]any{"m1": map[string]any{"name": "m1", "limit": map[string]int{"context": 100000, "output": 1000}}}}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(v.UsedOpencode(t), "opencode.json"), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cli
}

// An opencode that cannot load its plugin has no tools, whatever its user's settings allow.
func TestRealOpencodeHasNoToolsWithoutItsPlugin(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(call("bash", map[string]any{"command": "echo x >made", "description": "x"}), say("done")))
	cli := judged(t, v, "opencode")
	at := place(t, v, "opencode")
	at.Judged, at.Judge, at.Confined = true, []string{"/bin/true"}, true
	events, _ := startAt(t, v, breaking{cli}, at, agent.Spec{Prompt: "go"}, agent.UsageEvent{}).end()
	if _, err := os.Lstat(filepath.Join(v.Work, "made")); err == nil || len(v.Requests()[0].Tools) > 0 {
		t.Errorf("%v %v %s", err, v.Requests()[0].Tools, show(events))
	}
}

// breaking is an opencode whose plugin cannot be read.
type breaking struct{ harness.CLI }

func (b breaking) Command(s agent.Spec, at harness.Place) (*harness.Command, error) {
	c, err := b.CLI.Command(s, at)
	if err != nil {
		return nil, err
	}
	for i := range c.Files {
		if c.Files[i].Name == "judge.js" {
			c.Files[i].Data = []byte("this is (no program")
		}
	}
	return c, nil
}
