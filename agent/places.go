package agent

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"rnix/internal/yamlfile"
	"rnix/types"
)

// Places say where agents, skills and MCP servers are looked for. All paths are absolute; an empty
// one is left out.
type Places struct {
	ProjectDir    string // the project's root, which holds .rnix
	UserConfigDir string // such as ~/.config/rnix
	Home          string
	BuiltIn       fs.FS // agents/ and skills/; nil = what is in the program
	// TrustProject lets the project's agents and skills replace the user's and the built-in ones, whatever rights
	// they ask for, and lets its agents hand variables of the user to their commands.
	TrustProject bool
	Defaults     Defaults // the limits of an agent that does not set its own
	Most         Defaults // the highest limits that an agent of an untrusted project can set; 0 = any
}

// The scopes, in the order in which they are looked through.
const (
	ScopeProject = "project"
	ScopeUser    = "user"
	ScopeBuiltIn = "built-in"
)

// place is a directory of agents or skills.
type place struct {
	scope string
	fsys  fs.FS
	at    string // within fsys
	dir   string // for people; "" for what is in the program
}

// path returns the path for people of a file in the place.
func (p place) path(elem ...string) string {
	if p.dir == "" {
		return p.scope + ":" + path.Join(append([]string{p.at}, elem...)...)
	}
	return filepath.Join(append([]string{p.dir}, elem...)...)
}

// roots are the directories that symbolic links may not lead out of. Close releases them.
type roots struct{ project, user, home *os.Root }

// open opens the directories that exist. One that exists and cannot be opened is a problem.
func (p Places) open() (roots, Problems) {
	var ps Problems
	open := func(dir string) *os.Root {
		if dir == "" {
			return nil
		}
		r, err := os.OpenRoot(dir)
		if err != nil && !yamlfile.Missing(err) {
			ps = append(ps, Problem{File: dir, Message: yamlfile.Cause(err).Error()})
		}
		if err != nil {
			return nil
		}
		return r
	}
	rs := roots{project: open(p.ProjectDir), home: open(p.Home)}
	if p.Home == "" || !contains(filepath.Clean(p.Home), filepath.Clean(p.UserConfigDir)) || p.UserConfigDir == "" {
		rs.user = open(p.UserConfigDir)
	}
	return rs, ps
}

func (r roots) Close() {
	for _, root := range []*os.Root{r.project, r.user, r.home} {
		if root != nil {
			root.Close()
		}
	}
}

// agents and skills return the places in the order in which they are looked through.
func (p Places) agents(r roots) []place {
	var out []place
	out = add(out, ScopeProject, r.project, p.ProjectDir, ".rnix/agents")
	out = p.addUser(out, r, "agents")
	return append(out, place{scope: ScopeBuiltIn, fsys: p.builtIn(), at: "agents"})
}

func (p Places) skills(r roots) []place {
	var out []place
	for _, at := range []string{".rnix/skills", ".agents/skills", ".claude/skills"} {
		out = add(out, ScopeProject, r.project, p.ProjectDir, at)
	}
	out = p.addUser(out, r, "skills")
	for _, at := range []string{".agents/skills", ".config/agents/skills"} {
		out = add(out, ScopeUser, r.home, p.Home, at)
	}
	return append(out, place{scope: ScopeBuiltIn, fsys: p.builtIn(), at: "skills"})
}

func (p Places) builtIn() fs.FS {
	if p.BuiltIn != nil {
		return p.BuiltIn
	}
	return BuiltIn()
}

// addUser adds a directory of the user's configuration. Links may lead anywhere in the home
// directory, because many keep their configuration elsewhere in it and link to it.
func (p Places) addUser(out []place, r roots, at string) []place {
	if r.user != nil {
		return add(out, ScopeUser, r.user, p.UserConfigDir, at)
	}
	if r.home == nil || p.UserConfigDir == "" {
		return out
	}
	rel, err := filepath.Rel(p.Home, p.UserConfigDir)
	if err != nil || !filepath.IsLocal(rel) { // it is not in the home directory, and not there
		return out
	}
	return add(out, ScopeUser, r.home, p.Home, path.Join(filepath.ToSlash(rel), at))
}

func add(out []place, scope string, root *os.Root, dir, at string) []place {
	if root == nil {
		return out
	}
	return append(out, place{scope: scope, fsys: yamlfile.Inside(root), at: at, dir: filepath.Join(dir, filepath.FromSlash(at))})
}

// maxEntries bounds how many agents or skills one directory may hold.
const maxEntries = 512

// each calls f for every directory in the place, by name, with its path within fsys.
func (p place) each(f func(name, at string)) Problems {
	entries, err := fs.ReadDir(p.fsys, p.at)
	if err != nil {
		if yamlfile.Missing(err) {
			return nil
		}
		return Problems{{File: p.path(), Message: "skipped: " + yamlfile.Cause(err).Error()}}
	}
	var ps Problems
	if len(entries) > maxEntries {
		ps = append(ps, Problem{File: p.path(), Message: "holds more than " + itoa(maxEntries) + " entries; the rest is not read"})
		entries = entries[:maxEntries]
	}
	for _, e := range entries {
		at := path.Join(p.at, e.Name())
		if e.Name()[0] == '.' {
			continue
		}
		st, err := fs.Stat(p.fsys, at)
		switch {
		case err != nil:
			ps = append(ps, Problem{File: p.path(e.Name()), Message: "skipped: " + linkText(err)})
		case st.IsDir():
			f(e.Name(), at)
		}
	}
	return ps
}

// linkText says what is wrong with an entry that cannot be followed.
func linkText(err error) string {
	if yamlfile.Missing(err) {
		return "the symbolic link leads to nothing"
	}
	return yamlfile.Cause(err).Error()
}

// invalid is an error of code INVALID.
func invalid(syscall, device, format string, args ...any) error {
	return types.Errorf(types.ErrInvalid, syscall, device, format, args...)
}
