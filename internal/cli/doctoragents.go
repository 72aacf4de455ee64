package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// agentProgram is the command line of an agent that providers use.
type agentProgram struct {
	name   string
	others []string // names under which it is installed too
	use    string   // what it is needed for
	login  string   // the command that logs in
	keys   []string // variables that do instead of a login
	// file returns where its login lies; empty = nobody can tell without asking the network.
	file func(getenv func(string) string) string
}

// agentPrograms are those that doctor looks for.
func agentPrograms() []agentProgram {
	under := func(getenv func(string) string, variable, home string, path ...string) string {
		dir := getenv(variable)
		if dir == "" && getenv("HOME") != "" {
			dir = filepath.Join(getenv("HOME"), home)
		}
		if dir == "" {
			return ""
		}
		return filepath.Join(append([]string{dir}, path...)...)
	}
	return []agentProgram{
		{name: "claude", use: "only needed for the provider claude and for --harness claude", login: "claude, then /login",
			keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
			file: func(env func(string) string) string {
				return under(env, "CLAUDE_CONFIG_DIR", ".claude", ".credentials.json")
			}},
		{name: "cursor-agent", others: []string{"agent"}, use: "only needed for the provider cursor"},
		{name: "codex", use: "only needed for --harness codex", login: "codex login", keys: []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
			file: func(env func(string) string) string { return under(env, "CODEX_HOME", ".codex", "auth.json") }},
		{name: "opencode", use: "only needed for --harness opencode", login: "opencode auth login",
			keys: []string{"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"},
			file: func(env func(string) string) string {
				return under(env, "XDG_DATA_HOME", ".local/share", "opencode", "auth.json")
			}},
	}
}

// checkAgents looks for the command lines of agents: where they are, which version that is, and whether they have a login. It
// runs none of them and asks no network.
func checkAgents(getenv func(string) string) []check {
	var out []check
	for _, p := range agentPrograms() {
		c := checkProgram(getenv("PATH"), absent, p.name, p.use, p.others...)
		if c.Status == fine {
			if v := packageVersion(c.Detail); v != "" {
				c.Detail += ", version " + v
			}
			if p.file != nil {
				said, there := p.credentials(getenv)
				c.Detail += ", " + said
				if !there {
					c.Status, c.Mend = warned, "log in: "+p.login
				}
			}
		}
		out = append(out, c)
	}
	return out
}

// credentials says with what the program reaches its vendor, as far as files and variables tell it.
func (p *agentProgram) credentials(getenv func(string) string) (said string, there bool) {
	for _, k := range p.keys {
		if getenv(k) != "" {
			return "with the key in " + k, true
		}
	}
	file := p.file(getenv)
	if file == "" {
		return "without HOME it is not known where its login is", false
	}
	data, err := os.ReadFile(file)
	var login map[string]json.RawMessage
	switch {
	case os.IsNotExist(err):
		return "no login is found: there is no " + file, false
	case err != nil:
		return "its login cannot be read: " + err.Error(), false
	case json.Unmarshal(data, &login) != nil || len(login) == 0:
		return "no login is found: " + file + " has no login in it", false
	}
	return "logged in (" + file + ")", true
}

// maxManifest bounds a package.json that is read, in bytes.
const maxManifest = 1 << 20

// packageVersion returns the version of the npm package that a program belongs to; empty = it belongs to none.
func packageVersion(program string) string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil || !strings.Contains(real, "/node_modules/") {
		return ""
	}
	for dir := filepath.Dir(real); filepath.Base(dir) != "node_modules" && dir != "/"; dir = filepath.Dir(dir) {
		name := filepath.Join(dir, "package.json")
		if st, err := os.Stat(name); err != nil || st.Size() > maxManifest {
			continue
		}
		data, err := os.ReadFile(name)
		var m struct{ Version string }
		if err == nil && json.Unmarshal(data, &m) == nil && m.Version != "" {
			return m.Version
		}
	}
	return ""
}
