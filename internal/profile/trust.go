package profile

import (
	"os"
	"path/filepath"
	"slices"

	"rnix/agent"
	"rnix/internal/trust"
	"rnix/types"
	"rnix/vfs"
)

// pin is the trust of a person in a project as its files were when the person looked at them.
type pin struct {
	book  trust.Book
	dir   string
	home  string          // the user's
	plain func() *Profile // reads the profile without that trust
}

// holds reports whether the files are still what they were.
func (t *pin) holds() bool {
	state, _, err := t.book.Status(t.dir)
	return err == nil && state == trust.Trusted
}

// trusted reports whether a person has trusted a project with rnix trust. problem is what people should know of that; "" if nothing.
func (r *Reader) trusted(project string) (t *pin, problem string) {
	dir, err := filepath.EvalSymlinks(project)
	if err != nil {
		return nil, ""
	}
	book := trust.In(r.UserDir)
	state, changes, err := book.Status(dir)
	const look = "; nothing of it is trusted until you look at it with: rnix trust "
	switch {
	case err != nil:
		return nil, "whether the project is trusted cannot be told: " + err.Error()
	case state == trust.Changed:
		return nil, "the project has changed since you trusted it (" + trust.Names(changes) + ")" + look + dir
	case state == trust.Trusted:
		return &pin{book: book, dir: dir, home: r.Home}, ""
	}
	return nil, ""
}

// TrustAsked reports whether trust in the project was asked for with what was started, as with --trust-project. What a person has trusted with
// rnix trust is not asked for by anybody: it holds for all.
func (p *Profile) TrustAsked() bool { return p.Trust && p.pin == nil }

// Trusts reports whether the project is trusted at this moment: what rnix trust was asked for holds while its files are what they were.
func (p *Profile) Trusts() bool { return p.Trust && (p.pin == nil || p.pin.holds()) }

// TrustsIn is Trusts for what works in a directory, which may be a copy of the project: its git work tree, or the directory of a fork. What is
// there must be what was looked at too; that something of it is not there is no harm. Settings in a directory below the root are not trusted.
func (p *Profile) TrustsIn(dir string) bool {
	return p.Trusts() && (p.pin == nil || len(p.pin.others(dir, nil)) == 0 && p.pin.plainFrom(dir))
}

// plainFrom reports whether no directory around the root of a project has settings of a command line: none down to dir, and none up to the git
// repository that a project is a part of. Those that work in dir read them there too, and a person has looked at the root's alone.
func (t *pin) plainFrom(dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	root, _ := agent.ProjectRoot(dir, t.home)
	for ; dir != root; dir = filepath.Dir(dir) {
		if trust.HasSettings(dir) {
			return false
		}
	}
	for has := false; ; has = trust.HasSettings(dir) || has {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return !has
		}
		if dir = filepath.Dir(dir); dir == t.home || dir == filepath.Dir(dir) {
			return true // it is in no repository, or in one of the user's home, whose settings are the user's
		}
	}
}

// others returns what of the project around a directory is not as it was looked at, with what an MCP server starts that works there; nothing
// to start is nil.
func (t *pin) others(dir string, s *agent.MCPServer) (out []trust.Change) {
	unseen := []trust.Change{{Path: dir, Kind: "cannot be looked at"}}
	dir, err := filepath.EvalSymlinks(dir)
	was, _, gerr := t.book.Get(t.dir)
	if err != nil || gerr != nil {
		return unseen
	}
	root, _ := agent.ProjectRoot(dir, t.home)
	var scripts []string
	if s != nil {
		scripts = trust.Scripts(root, dir, *s)
	}
	now, err := trust.Look(root, scripts...)
	if err != nil {
		return unseen
	}
	for _, c := range trust.Compare(was.Files, now) {
		if c.Kind != trust.Removed || root == t.dir {
			out = append(out, c)
		}
	}
	return out
}

// Guarded makes transports to MCP servers as make does, but for those that mayServe refuses. Of those that a person has looked at, what they start is
// pinned: it may be changed until they do.
func Guarded(make vfs.TransportFactory) vfs.TransportFactory {
	return func(cfg vfs.MCPConfig) (vfs.MCPTransport, error) {
		pinned, err := mayServe(cfg)
		if err != nil {
			return nil, err
		}
		cfg.Pinned = pinned
		return make(cfg)
	}
}

// mayServe refuses to start an MCP server that the project names if what would be started is not what a person has looked at: the project
// has changed since, or the server is to work in a copy of it that has. PERMISSION, with what is different. It returns what of the project it starts;
// nil if the trust is not that of a person who has looked.
func mayServe(cfg vfs.MCPConfig) (*vfs.Pinned, error) {
	p, ok := cfg.Owner.Profile.(*Profile)
	if !ok || p.pin == nil || cfg.Command == "" {
		return nil, nil
	}
	if !slices.ContainsFunc(p.Servers, func(s agent.MCPEntry) bool { return s.Name == cfg.Name && s.Scope == agent.ScopeProject }) {
		return nil, nil
	}
	if !p.pin.holds() {
		return nil, types.Errorf(types.ErrPermission, "Mount", cfg.Name, "the project has changed since you trusted it; look at it with: rnix trust %s", p.pin.dir)
	}
	if others := p.pin.others(cfg.Dir, &cfg.MCPServer); len(others) > 0 {
		return nil, types.Errorf(types.ErrPermission, "Mount", cfg.Name, "it would work in %s, where not all is what you trusted (%s); look at that, then start it with: rnix run --trust-project \"...\"", cfg.Dir, trust.Names(others))
	}
	return p.pin.of(cfg.Dir, &cfg.MCPServer)
}

// of returns what of the project around a directory an MCP server starts that works there, as it was looked at.
func (t *pin) of(dir string, s *agent.MCPServer) (*vfs.Pinned, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, types.Errorf(types.ErrNotFound, "Mount", s.Name, "%w", err)
	}
	was, known, err := t.book.Get(t.dir)
	if err != nil || !known {
		return nil, types.Errorf(types.ErrPermission, "Mount", s.Name, "whether the project is trusted cannot be told any more; look at it with: rnix trust %s", t.dir)
	}
	root, _ := agent.ProjectRoot(dir, t.home)
	files, unseen := trust.Pin(was.Files, root, dir, *s)
	if unseen != "" {
		return nil, types.Errorf(types.ErrPermission, "Mount", s.Name, "it starts %s, which is not there or which you have not looked at; do so with: rnix trust %s", unseen, t.dir)
	}
	return &vfs.Pinned{Root: root, Files: files}, nil
}

// load returns an agent as the files of the project say now, with the trust that they have.
func load(p *Profile, name string, extraMCP []string) (*agent.Agent, error) {
	ag, err := p.Catalog.Load(name, agent.LoadOptions{WorkDir: p.Cwd, ProjectDir: p.project, Servers: p.Servers, ExtraMCP: extraMCP, OfferedMCP: p.OfferedMCP, OnlyMCP: p.NoMCP, TrustProject: p.Trust})
	if p.pin == nil || p.pin.holds() { // after they were read
		return ag, err
	}
	plain := p.pin.plain()
	plain.NoMCP, plain.OfferedMCP = p.NoMCP, p.OfferedMCP
	return load(plain, name, extraMCP)
}
