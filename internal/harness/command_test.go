package harness

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/types"
)

var here = Place{Dir: "/home/u/private", Env: func(name string) string {
	return map[string]string{"ANTHROPIC_API_KEY": "KEY-A", "CODEX_API_KEY": "KEY-C", "OPENAI_API_KEY": "KEY-O", "ANTHROPIC_BASE_URL": "http://a", "UNRELATED_KEY": "KEY-U"}[name]
}}

// given is a server whose values nobody may see.
var given = agent.MCPServerConfig{Name: "one", Command: "/bin/server", Args: []string{"-v"}, Env: map[string]string{"TOKEN": "SECRET-1"}}

var remote = agent.MCPServerConfig{Name: "two", Type: agent.MCPHTTP, URL: "http://127.0.0.1:9/mcp", Headers: map[string]string{"Authorization": "Bearer SECRET-2"}}

func TestEveryCommandIsComplete(t *testing.T) {
	for _, name := range Names() {
		cli, err := Lookup(name)
		if err != nil || cli.Name() != name {
			t.Fatalf("%s: %v", name, err)
		}
		model := "m"
		if name == "opencode" {
			model = "p/m"
		}
		c, err := cli.Command(agent.Spec{Prompt: "-do \"it\"\nnow", CWD: "/w", Model: model, Effort: "high", BaseInstructions: "BASE", SystemPromptAppend: "APPEND", Resume: "id-1",
			SandboxLevel: SandboxWorkspace, MCPServers: []agent.MCPServerConfig{given, remote}, Env: map[string]string{"MINE": "1", "ANTHROPIC_API_KEY": "MY-KEY"}}, here)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		all := strings.Join(c.Args, "\n")
		files := ""
		for _, f := range c.Files {
			if !filepath.IsLocal(filepath.FromSlash(f.Name)) || len(f.Data) == 0 {
				t.Errorf("%s: file %q", name, f.Name)
			}
			files += string(f.Data) + "\n"
		}
		if c.Program != name || c.KeepStdin != cli.Can().Steer || !strings.Contains(string(c.Stdin), "-do ") {
			t.Errorf("%s: %+v", name, c)
		}
		for _, want := range []string{model, "high", "id-1"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s: %q is not in %q", name, want, c.Args)
			}
		}
		for _, want := range []string{"BASE", "APPEND", "/bin/server"} {
			if !strings.Contains(all+files, want) {
				t.Errorf("%s: %q is lost", name, want)
			}
		}
		for _, secret := range []string{"SECRET", "KEY-", "-do"} {
			if strings.Contains(all, secret) {
				t.Errorf("%s: everybody can see %s in %q", name, secret, c.Args)
			}
		}
		if c.Env["MINE"] != "1" || c.Env["UNRELATED_KEY"] != "" || name != "codex" && c.Env["ANTHROPIC_API_KEY"] != "MY-KEY" {
			t.Errorf("%s: %v", name, c.Env)
		}
		for n, v := range c.Env {
			if (strings.Contains(v, "KEY-") || strings.Contains(v, "SECRET")) && !slices.Contains(c.Secrets, n) {
				t.Errorf("%s: %s is no secret", name, n)
			}
		}
	}
}

func TestWhatNoCommandLineCanDoIsNamed(t *testing.T) {
	good := agent.Spec{Prompt: "p", CWD: "/w"}
	for what, c := range map[string]struct {
		change func(*agent.Spec, *Place)
		cli    string // empty = all
	}{
		"prompt is empty":     {func(s *agent.Spec, _ *Place) { s.Prompt = " \n" }, ""},
		"NUL":                 {func(s *agent.Spec, _ *Place) { s.Prompt = "a\x00" }, ""},
		"\"w\" is not abs":    {func(s *agent.Spec, _ *Place) { s.CWD = "w" }, ""},
		"no id of a session":  {func(s *agent.Spec, _ *Place) { s.Resume = "--help" }, ""},
		"-1 turns":            {func(s *agent.Spec, _ *Place) { s.MaxTurns = -1 }, ""},
		"NaN dollars":         {func(s *agent.Spec, _ *Place) { s.MaxBudgetUSD = math.NaN() }, ""},
		"level \"strict\"":    {func(s *agent.Spec, _ *Place) { s.SandboxLevel = "strict" }, ""},
		"no command":          {func(s *agent.Spec, _ *Place) { s.MCPServers = []agent.MCPServerConfig{{Name: "x"}} }, ""},
		"no url":              {func(s *agent.Spec, _ *Place) { s.MCPServers = []agent.MCPServerConfig{{Name: "x", Type: "http"}} }, ""},
		"type \"sse\"":        {func(s *agent.Spec, _ *Place) { s.MCPServers = []agent.MCPServerConfig{{Name: "x", Type: "sse"}} }, ""},
		"the name \"a b\"":    {func(s *agent.Spec, _ *Place) { s.MCPServers = []agent.MCPServerConfig{{Name: "a b", Command: "c"}} }, ""},
		"two MCP servers":     {func(s *agent.Spec, _ *Place) { s.MCPServers = []agent.MCPServerConfig{given, given} }, ""},
		"switched off at":     {func(s *agent.Spec, _ *Place) { s.NoOwnTools, s.AllowedTools = true, []string{"Bash"} }, ""},
		"\"A=B\" cannot":      {func(s *agent.Spec, _ *Place) { s.Env = map[string]string{"A=B": "x"} }, ""},
		"no directory for":    {func(s *agent.Spec, at *Place) { at.Dir, s.BaseInstructions = "", "x" }, ""},
		"5 turns":             {func(s *agent.Spec, _ *Place) { s.MaxTurns = 5 }, "codex opencode"},
		"2 dollars":           {func(s *agent.Spec, _ *Place) { s.MaxBudgetUSD = 2 }, "codex opencode"},
		"allowed tools (Ba":   {func(s *agent.Spec, _ *Place) { s.AllowedTools = []string{"Bash"} }, "codex"},
		"forbidden tools (We": {func(s *agent.Spec, _ *Place) { s.DisallowedTools = []string{"WebFetch"} }, "codex"},
		"level cannot be":     {func(s *agent.Spec, _ *Place) { s.NoOwnTools, s.SandboxLevel = true, SandboxFull }, "codex"},
		"in the Spec":         {func(_ *agent.Spec, at *Place) { at.MCPConfig = "/f" }, "codex opencode"},
		"provider/model":      {func(s *agent.Spec, _ *Place) { s.Model = "m" }, "opencode"},
		"too long":            {func(s *agent.Spec, _ *Place) { s.SystemPromptAppend = strings.Repeat("x", 1<<18) }, "codex"},
		"\"A-B\" of the": {func(s *agent.Spec, _ *Place) {
			s.MCPServers = []agent.MCPServerConfig{{Name: "x", Command: "c", Env: map[string]string{"A-B": "x"}}}
		}, "codex"},
	} {
		for _, name := range Names() {
			cli, err := Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			s, at := good, here
			c.change(&s, &at)
			cmd, err := cli.Command(s, at)
			if c.cli != "" && !strings.Contains(" "+c.cli+" ", " "+name+" ") {
				if err != nil {
					t.Errorf("%s: %s refuses: %v", what, name, err)
				}
				continue
			}
			if types.CodeOf(err) != types.ErrInvalid || cmd != nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %s: %v", what, name, err)
			}
		}
	}
	for _, cli := range []CLI{claude{}, opencode{}} {
		for _, tool := range []string{" ", "a\nb"} {
			if _, err := cli.Command(agent.Spec{Prompt: "p", CWD: "/w", AllowedTools: []string{tool}}, here); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "no name of a tool") {
				t.Errorf("%s: %q: %v", cli.Name(), tool, err)
			}
		}
	}
	if _, err := Lookup("cursor"); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "claude, codex, opencode") {
		t.Errorf("%v", err)
	}
}

func TestClaudeIsDangerousOnlyWhenToldSo(t *testing.T) {
	for level, want := range map[string]string{"": "--permission-mode=acceptEdits", SandboxWorkspace: "--permission-mode=acceptEdits", SandboxReadOnly: "--permission-mode=dontAsk", SandboxFull: "--dangerously-skip-permissions"} {
		c, err := claude{}.Command(agent.Spec{Prompt: "p", CWD: "/w", Autonomous: true, SandboxLevel: level}, here)
		if err != nil || !slices.Contains(c.Args, want) || level != SandboxFull && slices.Contains(c.Args, "--dangerously-skip-permissions") || !slices.Contains(c.Args, "--strict-mcp-config") {
			t.Errorf("%q: %v %v", level, c, err)
		}
	}
	confined := here
	confined.Confined = true
	for level, want := range map[string]string{"": "--dangerously-skip-permissions", SandboxWorkspace: "--dangerously-skip-permissions", SandboxReadOnly: "--permission-mode=dontAsk"} {
		if c, err := (claude{}).Command(agent.Spec{Prompt: "p", CWD: "/w", Autonomous: true, SandboxLevel: level}, confined); err != nil || !slices.Contains(c.Args, want) {
			t.Errorf("confined, %q: %v %v", level, c, err)
		}
	}
	c, err := claude{}.Command(agent.Spec{Prompt: "p", CWD: "/w", AllowedTools: []string{"Bash(git *)", "Read"}, MCPServers: []agent.MCPServerConfig{given}}, here)
	if err != nil || !slices.Contains(c.Args, "--allowedTools=Bash(git *),Read,mcp__one") || !slices.Contains(c.Args, "--permission-mode=dontAsk") {
		t.Errorf("%v %v", c, err)
	}
	at := here
	at.Trusted = true
	if c, err = (claude{}).Command(agent.Spec{Prompt: "p", CWD: "/w"}, at); err != nil || slices.Contains(c.Args, "--setting-sources=user") {
		t.Errorf("%v %v", c, err)
	}
	at.MCPConfig = "/f/mcp.json"
	c, err = claude{}.Command(agent.Spec{Prompt: "p", CWD: "/w", NoOwnTools: true}, at)
	if err != nil || !slices.Contains(c.Args, "/f/mcp.json") || !slices.Contains(c.Args, "--allowedTools=mcp__rnix") || len(c.Files) > 0 {
		t.Errorf("%v %v", c, err)
	}
}

func TestWhatIsSaidToClaudeIsOneLine(t *testing.T) {
	for _, text := range []string{"", "a\nb\r\n\"c\" \u2028 <é> \x01", strings.Repeat("long ", 1<<18), "\xff"} {
		b, err := claude{}.Steer(text)
		if err != nil || strings.Count(string(b), "\n") != 1 || b[len(b)-1] != '\n' {
			t.Fatalf("%.20q: %v", b, err)
		}
		var in struct{ Message struct{ Content string } }
		if err := json.Unmarshal(b, &in); err != nil || in.Message.Content != strings.ToValidUTF8(text, "\uFFFD") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if b, err := (claude{}).Interrupt(); err != nil || !json.Valid(b) || strings.Count(string(b), "\n") != 1 {
		t.Errorf("%s %v", b, err)
	}
	for _, name := range []string{"codex", "opencode"} {
		cli, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cli.Steer("x"); types.CodeOf(err) != types.ErrUnavailable {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := cli.Interrupt(); types.CodeOf(err) != types.ErrUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}
