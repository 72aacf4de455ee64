package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rnix/agent"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
)

// reach says what may be given to a server or an agent CLI besides what the commands of its process have.
type reach struct {
	place    sandbox.Place
	commands sandbox.Policy
	others   func() []string // the directories in which some agent works or has worked; nil = none
}

// reachOf returns what may be given to what a process has besides its commands, which are confined by a policy.
func reachOf(s *Service, place sandbox.Place, commands sandbox.Policy) reach {
	return reach{place, commands, sync.OnceValue(func() []string { return worked(s) })}
}

// worked returns where agents could have left something: in the directories in which one works or has worked, and in what Rnix has made for them.
func worked(s *Service) []string {
	dirs := []string{homes(s.Data), caches(s.Data), temps(s.Data)}
	if s.Index != nil {
		list := s.Index.List()
		for i := range list {
			dirs = append(dirs, list[i].WorkDir)
		}
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	for i, dir := range dirs {
		dirs[i] = resolved(dir)
	}
	return dirs
}

// gives reports whether a path that a server's command line names is given to it to read: nothing that holds or is a credential, or the home, or
// that has to do with Rnix, unless the commands read it, too.
func (r reach) gives(path string) bool {
	to, planted, err := r.follow(path, sandbox.AccessRead)
	switch {
	case err != nil || planted != "":
		return false
	case r.commands.Allows(to, sandbox.AccessRead):
		return true
	case sandbox.IsSecret(r.place.Home, to) || lies(r.place.Home, to):
		return false
	}
	return !slices.ContainsFunc(r.place.Private, func(dir string) bool { return lies(resolved(dir), to) || lies(to, resolved(dir)) })
}

// check refuses paths of an entry that lead where the commands have put them. A person has said the path, not where it leads.
func (r reach) check(need sandbox.Paths) error {
	for access, paths := range map[sandbox.Access][]string{sandbox.AccessRead: need.Read, sandbox.AccessWrite: need.Write} {
		for _, path := range paths {
			if to, planted, err := r.follow(path, access); err != nil || planted != "" {
				return types.Errorf(types.ErrConflict, "Start", path, "the sandbox of an MCP server cannot give it what a symbolic link leads to that commands of an agent can have made (%s, which leads to %s); remove the link, or name the place itself", planted, to)
			}
		}
	}
	return nil
}

// follow returns where a path leads, and the first link on the way that the commands of this agent or of another could have made and behind which is what
// they do not have themselves; empty = none.
func (r reach) follow(path string, access sandbox.Access) (to, planted string, err error) {
	to, links, err := sandbox.Follow(sandbox.Disk{}, path)
	if err != nil || r.commands.Allows(to, access) {
		return to, "", err
	}
	for _, link := range links {
		if r.commands.Allows(filepath.Dir(link), sandbox.AccessWrite) || r.foreign(link, to) {
			return to, link, nil
		}
	}
	return to, "", nil
}

// astray returns the first link on the way from a path to where it leads that some agent can have made; empty = none.
func (r reach) astray(path, to string) string {
	_, links, _ := sandbox.Follow(sandbox.Disk{}, path) // whoever asks has followed it
	for _, link := range links {
		if r.foreign(link, to) {
			return link
		}
	}
	return ""
}

// foreign reports whether a link lies where some agent works or has worked, and leads out of there.
func (r reach) foreign(link, to string) bool {
	return r.others != nil && slices.ContainsFunc(r.others(), func(dir string) bool { return dir != "" && lies(link, dir) && !lies(to, dir) })
}

// honest reports whether a path is to be read where it leads.
func (r reach) honest(path string) bool {
	_, planted, err := r.follow(path, sandbox.AccessRead)
	return err == nil && planted == ""
}

// outside refuses a server that is not confined where commands, which are, can change what it runs: they would get out by it.
func (r reach) outside(m *agent.MCPServer, environ []string) error {
	if path := r.changed(m, environ); path != "" {
		return types.Errorf(types.ErrPermission, "Start", path, "the MCP server %s is not confined, but commands of the agent, which are, can change what it runs; let its entry name a program elsewhere by its path, or switch its sandbox on", m.Name)
	}
	return nil
}

// changed returns the first file that a server's command line names, its program or another, which commands can change or replace; empty = none.
func (r reach) changed(m *agent.MCPServer, environ []string) string {
	if path, ok := m.Env["PATH"]; ok { // the program is looked up there
		environ = append(slices.Clone(environ), "PATH="+path)
	}
	program := m.Command
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		program = filepath.Join(r.place.Work, program)
	} else if found, err := proc.LookPath(program, environ); err == nil {
		program = found
	}
	for _, path := range append([]string{program}, m.Args...) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.place.Work, path)
		}
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			continue
		}
		to, links, err := sandbox.Follow(sandbox.Disk{}, path)
		changes := err != nil || r.commands.Allows(to, sandbox.AccessWrite)
		for _, link := range links {
			changes = changes || r.commands.Allows(filepath.Dir(link), sandbox.AccessWrite)
		}
		if changes {
			return path
		}
	}
	return ""
}

// lies reports whether a path is a directory or in it.
func lies(path, dir string) bool {
	return strings.HasPrefix(path+"/", strings.TrimSuffix(dir, "/")+"/")
}
