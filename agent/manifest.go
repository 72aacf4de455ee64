package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnix/internal/pattern"
	"rnix/internal/permit"
	"rnix/internal/yamlfile"
	"rnix/types"
)

// Problem is one mistake in a file, with its place.
type Problem = yamlfile.Problem

// Problems are the mistakes of one or several files. They are an error that lists one per line, and
// are found in the errors of this package by errors.As.
type Problems = yamlfile.Problems

// The names of an agent's files.
const (
	ManifestFile     = "agent.yaml"
	InstructionsFile = "instructions.md"
)

var (
	namePattern = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	envPattern  = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// ValidName reports whether name can be the name of an agent, a skill, a provider or an MCP server:
// up to 64 letters, digits, "-", "_" and ".", without "..".
func ValidName(name string) bool {
	return namePattern().MatchString(name) && !strings.Contains(name, "..")
}

// LoadManifest reads an agent.yaml; path may also be the directory that holds it. The name defaults
// to the directory's. Errors: NOT_FOUND, INVALID with all Problems of the file.
func LoadManifest(path string) (Manifest, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, ManifestFile)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Manifest{}, types.Errorf(types.ErrInvalid, "LoadManifest", path, "%w", err)
	}
	src, err := yamlfile.ReadFile(path, yamlfile.MaxBytes+1)
	if err != nil {
		return Manifest{}, types.Errorf(codeOf(err), "LoadManifest", path, "%w", yamlfile.Cause(err))
	}
	m, ps := parseManifest(src, path, filepath.Base(filepath.Dir(abs)))
	return m, ps.Err("LoadManifest", path)
}

// ParseManifest reads the text of an agent.yaml. name is that of its directory: the default of the
// key "name", which must not differ from it; "" means that it is not known. The error is of code
// INVALID and holds all Problems.
func ParseManifest(src []byte, name string) (Manifest, error) {
	m, ps := parseManifest(src, ManifestFile, name)
	return m, ps.Err("ParseManifest", name)
}

func parseManifest(src []byte, file, dir string) (Manifest, Problems) {
	var m Manifest
	d := yamlfile.Decode(src, &m, yamlfile.Options{File: file})
	if len(d.Problems()) == 0 || d.Has("") {
		m.check(d, dir)
	}
	return m, d.Problems()
}

// check reports values that cannot be right, and normalises the rest.
func (m *Manifest) check(d *yamlfile.Doc, dir string) {
	switch {
	case m.Name == "" && dir == "":
		d.Problemf("name", "missing; write name: my-agent")
	case m.Name == "":
		m.Name = dir
		fallthrough
	case dir == "" || m.Name == dir:
		if !ValidName(m.Name) {
			d.Problemf("name", "%q cannot be a name; use letters, digits, '-', '_' and '.', at most 64", m.Name)
		}
	default:
		d.Problemf("name", "is %q, but the directory is %q; make them the same, or leave the name out", m.Name, dir)
	}
	if len(m.Description) > 1024 {
		d.Problemf("description", "longer than 1024 bytes; the place for more is %s", InstructionsFile)
	}
	if m.ContextBudget != nil && *m.ContextBudget < 0 {
		*m.ContextBudget = 0
		d.Warnf("context_budget", "is negative and counts as 0, which is unlimited")
	}
	if v := m.BudgetUSD; v != nil && !(*v >= 0 && *v <= 1e6) {
		d.Problemf("budget_usd", "must be between 0, which is unlimited, and 1000000 dollars")
	}
	if m.MaxSteps != nil && *m.MaxSteps < 0 {
		d.Problemf("max_steps", "is negative; write 0 for no limit")
	}
	if len(m.Language) > 64 || strings.ContainsAny(m.Language, "\r\n") {
		d.Problemf("language", "must be one line of at most 64 bytes, such as: English")
	}
	m.Models.check(d)
	m.checkSignals(d)
	m.checkSandbox(d)
	m.checkPermissions(d)
	if after := m.Questions.DefaultAfter.Or(0); after != 0 && (after < time.Second || after > permit.MaxAfter) {
		d.Problemf("questions.default_after", "must be between 1s and a year, or 0 to wait for ever")
	}
	names(d, "skills", m.Skills, "a skill", ValidName)
	names(d, "mcp", m.MCP, "an MCP server", ValidName)
	names(d, "mcp_required", m.MCPRequired, "an MCP server", ValidName)
	for i, name := range m.MCPRequired {
		if at := "mcp_required[" + itoa(i) + "]"; !slices.Contains(m.MCP, name) && !reported(d, at) {
			d.Problemf(at, "%q is not among mcp; name it there too", name)
		}
	}
	names(d, "env", m.Env, "an environment variable; only names stand here, not values", envPattern().MatchString)
	names(d, "devices", m.Devices, "a device path, such as /dev/fs", func(p string) bool {
		return strings.HasPrefix(p, "/") && (p == "/" || filepath.Clean(p) == p)
	})
	for i, p := range m.Devices {
		at := "devices[" + itoa(i) + "]"
		if err := CheckDevice(p, false, Devices()); err != nil && !reported(d, at) {
			d.Warnf(at, "cannot allow %q, so the agent is not started: %v", p, err) // but one that was can go on
		}
	}
}

func (m Models) check(d *yamlfile.Doc) {
	for key, name := range map[string]string{"provider": m.Provider, "fallback_provider": m.FallbackProvider} {
		if name != "" && !ValidName(name) {
			d.Problemf("models."+key, "%q cannot be the name of a provider", name)
		}
	}
	for key, s := range map[string]string{"preferred": m.Preferred, "fallback": m.Fallback, "reasoning_effort": m.ReasoningEffort} {
		if strings.ContainsAny(s, " \t\r\n") || len(s) > 200 {
			d.Problemf("models."+key, "%q must be one word", s)
		}
	}
}

// names reports items of a list that are no names of their kind, or stand there twice.
func names(d *yamlfile.Doc, key string, items []string, kind string, valid func(string) bool) {
	seen := map[string]bool{}
	for i, s := range items {
		at := key + "[" + itoa(i) + "]"
		switch {
		case s == "":
			if !reported(d, at) {
				d.Problemf(at, "is empty")
			}
		case !valid(s):
			d.Problemf(at, "%q cannot be the name of %s", s, kind)
		case seen[s]:
			d.Problemf(at, "%q stands here a second time", s)
		}
		seen[s] = true
	}
}

// reported tells whether something is wrong with the key already.
func reported(d *yamlfile.Doc, key string) bool { return len(d.Problems().Under(key)) > 0 }
