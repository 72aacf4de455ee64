package confine

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/internal/trust"
	"rnix/types"
	"rnix/vfs"
)

// Server returns how an MCP server is confined that is started with an environment: as the commands of its process are, but for what its entry
// says, with the network unless that says otherwise, and with temporary files and caches of its own. A person has looked at each entry: it is
// in the user's own files, or in a project's that is trusted.
func (s *Service) Server(cfg vfs.MCPConfig, env []string) (*proc.Box, error) {
	settings, place, made, err := ofServer(s, &cfg)
	if err != nil {
		return &proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}}, err
	}
	var own []string                      // of this start alone
	if cfg.Owner.UUID == (types.UUID{}) { // a person has asked for it, and there is no history with which its files would go
		place.Temp += "." + strings.ToLower(rand.Text())
		own = append(own, place.Temp)
	}
	free := func() {
		for _, dir := range own {
			if err := removeAll(dir); err != nil {
				s.Log.Warn("what was made for an MCP server cannot be removed", "server", cfg.Name, "path", dir, "err", err)
			}
		}
	}
	box := proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}}
	var start *proc.Start
	if cfg.Pinned != nil && len(cfg.Pinned.Files) > 0 {
		dir := place.Temp + "." + strings.ToLower(rand.Text())
		own, place.Tools = append(own, dir), append(place.Tools, dir)
		start, err = s.pinned(&cfg, dir)
	}
	if err == nil && !settings.Off() {
		box, err = s.box(settings, place, made, env, &cfg.Owner, "the MCP server "+cfg.Name)
	}
	if box.Start, box.Free = start, free; err != nil {
		free()
	}
	s.Refusals.heeded(&box, cfg.Owner, "the MCP server "+cfg.Name)
	return &box, err
}

// pinned returns what is started in place of files that a person has looked at, which can be changed until it is: copies of them, in a directory
// that nothing in the sandbox writes.
func (s *Service) pinned(cfg *vfs.MCPConfig, dir string) (*proc.Start, error) {
	if err := s.makeDirs(dir); err != nil {
		return nil, err
	}
	if err := trust.Copy(dir, cfg.Pinned); err != nil {
		return nil, err
	}
	path, args := trust.Instead(dir, cfg.Pinned, "", cfg.Args)
	return &proc.Start{Path: path, Args: args}, nil
}

// ofServer returns where an MCP server runs and how it is confined.
func ofServer(s *Service, cfg *vfs.MCPConfig) (settings sandbox.Settings, place sandbox.Place, made bool, err error) {
	c := cfg.Owner
	c.WorkDir = cmp.Or(cfg.Dir, c.WorkDir)
	place, settings, made, err = s.ofCaller(&c)
	if err != nil {
		return settings, place, made, err
	}
	name := "mcp " + cfg.Name
	place.Temp += "." + short(name)
	place.Cache = cacheOf(s.Data, name+"\x00"+project(place))
	if settings.Off() {
		return settings, place, made, nil
	}
	reach := reachOf(s, place, settings.Policy(place, made))
	if cfg.Sandbox.Level == sandbox.LevelOff {
		if c.PID != 0 { // else a person has just asked for it
			err = reach.outside(&cfg.MCPServer, c.Env)
		}
		return sandbox.Settings{Level: sandbox.LevelOff}, place, made, err
	}
	need := cfg.Sandbox.Paths(place.Home, place.Work)
	if err := reach.check(need); err != nil {
		return settings, place, made, err
	}
	for _, dir := range []string{place.Work, place.Git.Top, place.Git.Common} { // also where it is not to write it
		if dir != "" && reach.commands.Allows(dir, sandbox.AccessRead) {
			place.Tools = append(place.Tools, dir)
		}
	}
	place.Tools = append(place.Tools, named(&cfg.MCPServer, reach)...)
	says := cfg.Sandbox
	if says.Net == "" && reach.changed(&cfg.MCPServer, c.Env) != "" { // commands would have the network by it that they have not
		says.Net, says.Hosts = settings.Net, nil
		for _, said := range settings.Hosts {
			says.Hosts = append(says.Hosts, said.Host)
		}
		if says.Net != sandbox.NetHosts {
			says.Hosts = nil
		}
	}
	return serverSettings(settings, says, place), place, made, nil
}

// serverSettings returns the settings of an MCP server whose entry says need, for a process with settings s.
func serverSettings(s sandbox.Settings, need agent.ServerSandbox, place sandbox.Place) sandbox.Settings {
	if s.Off() {
		return s
	}
	if need.Level == sandbox.LevelAuto && s.Level == sandbox.LevelBwrap { // a project can say auto
		need.Level = ""
	}
	net := cmp.Or(need.Net, sandbox.NetOpen)
	if need.Net == "" && len(need.Hosts) > 0 {
		net = sandbox.NetHosts
	}
	if net == sandbox.NetHosts {
		s.Hosts = nil // its entry says them
	}
	s = with(s, sandbox.Settings{Level: need.Level, Net: net, Hosts: agent.SaidHosts("its entry", need.Hosts), Paths: need.Paths(place.Home, place.Work)})
	if !need.WritesWork() { // names in it would be held for as long as the server runs
		s.Within = []string{}
	}
	return s
}

// with returns s with what o says, also where s allows no more than several allow.
func with(s, o sandbox.Settings) sandbox.Settings {
	also := slices.Clone(s.Also)
	for i, has := range also {
		also[i] = sandbox.Settings{Paths: has}.With(sandbox.Settings{Paths: o.Paths}).Paths
	}
	s = s.With(o)
	s.Also = also
	return s
}

// named returns what the command line of a server names, and the PATH of its entry, which it is to read: directories, and of files the project that
// they belong to. What holds credentials, or belongs to Rnix, its entry has to say.
func named(m *agent.MCPServer, reach reach) (out []string) {
	args := append([]string{m.Command}, m.Args...)
	for i, arg := range append(args, filepath.SplitList(m.Env["PATH"])...) {
		if i > 0 && strings.HasPrefix(arg, "-") { // --dir=/path
			_, arg, _ = strings.Cut(arg, "=")
		}
		info, err := os.Stat(arg)
		if err != nil || !filepath.IsAbs(arg) || !reach.honest(filepath.Clean(arg)) {
			continue
		}
		for _, path := range []string{filepath.Clean(arg), resolved(arg)} {
			of := path
			if !info.IsDir() {
				of = projectOf(path, reach.place.Home)
			}
			switch {
			case reach.gives(of):
				out = append(out, of)
			case !info.IsDir() && reach.gives(path):
				out = append(out, path)
			}
		}
	}
	return out
}

// projectFiles are in the directory at the top of a program that is started from its sources.
var projectFiles = strings.Fields("package.json pyproject.toml setup.py go.mod Cargo.toml .git")

// projectOf returns the directory of the project that a file belongs to, below the home: else, that of the file.
func projectOf(file, home string) string {
	for dir := filepath.Dir(file); dir != "/" && dir != home; dir = filepath.Dir(dir) {
		for _, name := range projectFiles {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return dir
			}
		}
	}
	return filepath.Dir(file)
}

// ExplainServer returns how an MCP server of a process is confined. NOT_FOUND if the process's configuration has none of that name.
func (s *Service) ExplainServer(pid types.PID, name string) (sandbox.Plan, error) {
	c, p, err := profileOf(s.Caller, pid)
	if err != nil {
		return sandbox.Plan{}, err
	}
	i := slices.IndexFunc(p.Servers, func(e agent.MCPEntry) bool { return e.Name == name })
	if i < 0 {
		return sandbox.Plan{}, types.Errorf(types.ErrNotFound, "Sandbox", name, "process %d has no MCP server of this name; see: rnix mcp list", pid)
	}
	settings, place, made, err := ofServer(s, &vfs.MCPConfig{MCPServer: p.Servers[i].MCPServer, Owner: c})
	if err != nil || settings.Off() {
		return sandbox.Plan{Policy: sandbox.Everything()}, err
	}
	return s.plan(settings, place, made)
}

// short returns a name for a file that stands for a text.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}
