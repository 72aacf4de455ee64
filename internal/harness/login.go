package harness

import (
	"path"
	"path/filepath"
	"strings"
)

// Login says what a command line has in a user's home of which it needs some in a home of its own.
type Login struct {
	// Variable names the directory, in place of Dir below the home.
	Variable string
	Dir      string
	// Files of that directory hold the login. The program writes them anew as they are, when it has refreshed what is in them.
	Files []string
	// Tokens are what of an entry whose "type" is "oauth" a program in the sandbox may refresh in such a file, which is a JSON object of entries; nothing
	// else that it writes there reaches the user's. nil = the file is taken as a whole: nothing in it makes the program run anything.
	Tokens []string
	// Facts is a JSON file of the home, or by its last name of the directory that Variable names, of which these keys belong to the login, or say
	// that a person has set the program up; empty = none.
	Facts string
	Keys  []string
	// Hosts are those that the program needs, for its model and for its login, as rules of package hosts.
	Hosts []string
	// Settings are files and directories of the home that hold the user's settings. The program need not write them.
	Settings []string

	gated    bool                                  // keys are left out
	strip    func(name string, text []byte) []byte // see Without
	keyFacts []string                              // of Keys, those that are keys or tell of some
}

// ModelLogin returns what a program that is a model has in a user's home: claude or cursor. It gets its login alone. Settings of the user could have
// it run hooks and servers, and it is to do nothing by itself.
func ModelLogin(program string) Login {
	switch program {
	case "claude":
		l := claude{}.Login()
		l.Settings = nil
		return l
	case "cursor":
		return Login{Dir: ".config/cursor", Files: []string{"auth.json"}, Facts: ".cursor/cli-config.json", Keys: []string{"authInfo", "model", "privacyCache", "network"}}
	}
	return Login{}
}

// IsVariable reports whether a variable of this name says where a command line has its login and settings.
func IsVariable(name string) bool {
	for _, cli := range all {
		if v := cli.Login().Variable; v != "" && v == name {
			return true
		}
	}
	return false
}

// At returns where a file is that has this name in a home, whose directory dir is in place of l.Dir; empty = it is not.
func (l Login) At(home, dir, name string) string {
	if rest, ok := strings.CutPrefix(name, l.Dir+"/"); ok && dir != "" {
		return filepath.Join(dir, rest)
	}
	return filepath.Join(home, name)
}

// below returns names in a directory.
func below(dir string, names ...string) (out []string) {
	for _, name := range names {
		out = append(out, path.Join(dir, name))
	}
	return out
}

func (claude) Login() Login {
	return Login{Variable: "CLAUDE_CONFIG_DIR", Dir: ".claude", Files: []string{".credentials.json"}, Facts: ".claude.json",
		strip: stripClaude, keyFacts: []string{"primaryApiKey", "customApiKeyResponses"},
		Hosts:    []string{"api.anthropic.com:443", "claude.ai:443", "console.anthropic.com:443", "platform.claude.com:443"},
		Keys:     []string{"oauthAccount", "primaryApiKey", "customApiKeyResponses", "hasCompletedOnboarding", "userID"},
		Settings: below(".claude", "settings.json", "CLAUDE.md", "agents", "commands", "hooks", "output-styles", "rules", "skills")}
}

func (codex) Login() Login {
	return Login{Variable: "CODEX_HOME", Dir: ".codex", Files: []string{"auth.json"}, strip: stripCodex,
		Hosts:    []string{"api.openai.com:443", "auth.openai.com:443", "chatgpt.com:443"},
		Settings: below(".codex", "config.toml", "AGENTS.md", "AGENTS.override.md", "prompts", "rules", "agents", "skills")}
}

func (opencode) Login() Login {
	return Login{Dir: ".local/share/opencode", Files: []string{"auth.json"}, strip: stripOpencode,
		Tokens: []string{"access", "refresh", "expires"}, // one of the type "wellknown" sets variables, and names an address whose settings are run
		// The last three are the packages of the user's plugins. Where they are missing it installs some from npm's registry, 31 MB, before it starts.
		Settings: below(".config/opencode", "opencode.json", "opencode.jsonc", "config.json", "AGENTS.md", "agent", "agents", "command", "commands", "mode", "modes", "plugin", "plugins", "skill", "skills", "themes", "tool", "tools",
			"node_modules", "package.json", "package-lock.json")}
}
