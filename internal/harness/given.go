package harness

import (
	"encoding/json"
	"strings"
)

// Gated returns a command line whose home in the sandbox has no key: the model gateway has those (Login.Given).
func Gated(c CLI) CLI { return gated{c} }

type gated struct{ CLI }

// Login is that of the command line, without keys.
func (g gated) Login() Login {
	l := g.CLI.Login()
	l.gated = true
	return l
}

// Keyless reports whether keys are left out of what is given.
func (l Login) Keyless() bool { return l.gated }

// Without returns what is given of a file of a login, or of settings, that has a name as in Files or Settings: text itself where there is no key in it,
// nil where nothing is left.
func (l Login) Without(name string, text []byte) []byte {
	if !l.gated || l.strip == nil {
		return text
	}
	return l.strip(name, text)
}

// WithoutFacts takes the facts that are keys, or tell of some, from those that are given.
func (l Login) WithoutFacts(facts map[string]json.RawMessage) {
	if l.gated {
		for _, key := range l.keyFacts {
			delete(facts, key)
		}
	}
}

// edited returns a JSON object with what change has left of it; text itself if change reports that nothing was to be changed, or it is no object.
func edited(text []byte, change func(map[string]any) bool) []byte {
	var all map[string]any
	if json.Unmarshal(plainJSON(text), &all) != nil || !change(all) {
		return text
	}
	out, err := json.MarshalIndent(all, "", "  ")
	if err != nil { // it was read as JSON
		return nil
	}
	return append(out, '\n')
}

// stripClaude takes the keys from the variables that settings set.
func stripClaude(name string, text []byte) []byte {
	if !strings.HasSuffix(name, "settings.json") {
		return text
	}
	return edited(text, func(all map[string]any) (changed bool) {
		env, _ := all["env"].(map[string]any)
		for variable := range env {
			if isKey(variable) {
				delete(env, variable)
				changed = true
			}
		}
		return changed
	})
}

// stripCodex gives no login that is a key.
func stripCodex(name string, text []byte) []byte {
	if name != "auth.json" {
		return text
	}
	var auth struct {
		Mode   string          `json:"auth_mode"`
		Key    string          `json:"OPENAI_API_KEY"`
		Tokens json.RawMessage `json:"tokens"`
	}
	tokens := json.Unmarshal(text, &auth) == nil && len(auth.Tokens) > 0 && string(auth.Tokens) != "null"
	if auth.Key != "" && (!tokens || strings.EqualFold(auth.Mode, "apikey")) {
		return nil
	}
	return text
}

// stripOpencode takes the keys from entries and from the options of providers.
func stripOpencode(_ string, text []byte) []byte {
	return edited(text, func(all map[string]any) (changed bool) {
		for id, v := range all {
			if entry, ok := v.(map[string]any); ok && entry["type"] == "api" {
				delete(all, id)
				changed = true
			}
		}
		providers, _ := all["provider"].(map[string]any)
		for _, v := range providers {
			p, _ := v.(map[string]any)
			options, _ := p["options"].(map[string]any)
			if key, ok := options["apiKey"].(string); ok && !strings.HasPrefix(key, "{env:") {
				delete(options, "apiKey")
				changed = true
			}
		}
		return changed
	})
}
