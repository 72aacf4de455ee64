package confine

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/drivers/llm"
	"rnix/internal/config"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"

	clis "rnix/internal/harness"
)

// Model returns how a program is confined that is a model: claude or cursor. It answers and does nothing else, so of the place where its process works
// it sees nothing: it reads the system and itself, writes a home of its own and temporary files, and has the network. command is its path or name; empty =
// its usual name.
func (s *Service) Model(c vfs.Caller, program, command string) (llm.Confined, error) {
	m, err := modelOf(s, &c, program, command)
	if err != nil || m.settings.Off() {
		return llm.Confined{Box: open.Box}, err
	}
	if err := furnish(s, &m.guest); err != nil {
		return llm.Confined{}, err
	}
	box, err := s.box(m.settings, m.place, m.made, m.env, &c, "the model "+program)
	if err != nil || box.Plan.Rung == sandbox.RungNone {
		return llm.Confined{Box: open.Box}, err
	}
	return llm.Confined{Box: &box, Program: m.path, Dir: m.place.Temp, Without: m.login.Variable, Done: watch(s, &m.guest)}, nil
}

// model is a guest that is a model.
type model struct {
	guest
	path string
	env  []string
}

// modelOf returns where a model runs and how it is confined. It makes nothing.
func modelOf(s *Service, c *vfs.Caller, program, command string) (m model, err error) {
	m.guest, err = guestOf(s, c, "model\x00"+program, clis.ModelLogin(program))
	if err != nil || m.settings.Off() {
		return m, err
	}
	if command == "" {
		command = llm.CommandOf(program)
	}
	place := m.place
	place.Tools = nil // Landlock does not keep commands from writing what is in PATH and in their work directory
	planted := reach{place: place, commands: m.settings.Policy(place, m.made)}
	env := planted.withoutPlanted(c.Env)
	if m.path, err = planted.find(command, c.Env, env); err != nil {
		return m, err
	}
	m.env = m.environ(env)
	m.place.Tools = append(tools(&vfs.Caller{Env: env}, m.user, s.Private), s.Self) // and not what is given to the process
	if filepath.IsAbs(m.path) {
		m.needs(m.path)
	}
	m.trusts(env)
	m.place.Temp += "." + short("model "+program)
	m.place.Cache = "" // it lies in the temporary files
	m.settings = silent(m.settings, m.home, unseen(m.place))
	m.made = false
	return m, nil
}

// silent returns the settings of a program that writes a home of its own and nothing else of what the commands with settings s do.
func silent(s sandbox.Settings, home string, hide []string) sandbox.Settings {
	s.Write, s.Within, s.Also = nil, []string{}, slices.Clone(s.Also)
	for i := range s.Also {
		s.Also[i].Write = nil
	}
	return with(s, sandbox.Settings{Net: sandbox.NetOpen, Paths: sandbox.Paths{Write: []string{home}, Hide: hide}})
}

// system are the directories without which no program runs.
var system = strings.Fields("/usr /etc /bin /sbin /lib /lib64 /nix")

// unseen returns what a model does not see of where its process works: the directory and its repository, unless programs are there that it needs.
func unseen(place sandbox.Place) (hide []string) {
	for _, dir := range []string{place.Work, place.Git.Top, place.Git.Dir, place.Git.Common} {
		needed := func(path string) bool { return lies(path, dir) }
		if dir != "" && !slices.ContainsFunc(system, needed) && !slices.Contains(place.Tools, dir) && !slices.Contains(hide, dir) {
			hide = append(hide, dir)
		}
	}
	return hide
}

// withoutPlanted returns an environment whose PATH has no directory in which commands could have put a program: started by one with the network and a
// login, it would have both.
func (r reach) withoutPlanted(env []string) []string {
	env = slices.Clone(env)
	for i, kv := range env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		dirs := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) || r.planted(filepath.Clean(dir)) })
		env[i] = "PATH=" + strings.Join(dirs, string(filepath.ListSeparator))
	}
	return env
}

// planted reports whether commands can write a directory, or lead elsewhere who goes there.
func (r reach) planted(dir string) bool {
	to, links, err := sandbox.Follow(sandbox.Disk{}, dir)
	return err != nil || r.commands.Allows(to, sandbox.AccessWrite) ||
		slices.ContainsFunc(links, func(link string) bool { return r.commands.Allows(filepath.Dir(link), sandbox.AccessWrite) })
}

// find returns the path of a model's program, in an environment without what commands can have put there, or its name if it is nowhere.
func (r reach) find(command string, all, env []string) (string, error) {
	path := llm.FindCommand(command, env)
	found, err := proc.LookPath(path, env)
	if err != nil {
		if found, err = proc.LookPath(path, all); err != nil {
			return path, nil // the start says so
		}
	}
	if changes := r.changed(&agent.MCPServer{Command: found}, env); changes != "" {
		return "", types.Errorf(types.ErrPermission, "Start", changes, "commands of the agent can change this program, which would run as its model, with the network and your login; install it elsewhere, or name another by its path (command) in providers.yaml")
	}
	return found, nil
}

// ExplainModel returns how the model of a process is confined that is a program, or an agent CLI. NOT_FOUND if it is none.
func (s *Service) ExplainModel(pid types.PID, provider string) (sandbox.Plan, error) {
	c, pr, err := providerOf(s, pid, provider)
	if err != nil {
		return sandbox.Plan{}, err
	}
	if pr.Program()+pr.Harness() == "" {
		return sandbox.Plan{}, types.Errorf(types.ErrNotFound, "Sandbox", provider, "the model of process %d is no program that runs here", pid)
	}
	g, err := guestBy(s, &c, &pr)
	if err != nil || g.settings.Off() {
		return sandbox.Plan{Policy: sandbox.Everything()}, err
	}
	return s.plan(g.settings, g.place, g.made)
}

// providerOf returns a process and a provider that it has; the zero provider if it has none of that name.
func providerOf(s *Service, pid types.PID, name string) (vfs.Caller, config.Provider, error) {
	c, p, err := profileOf(s.Caller, pid)
	if err == nil {
		for _, pr := range p.Providers.List {
			if pr.Name == name {
				return c, pr, nil
			}
		}
	}
	return c, config.Provider{}, err
}

// programOfModel returns the program that the model of a process is, or an agent CLI; "" if it is none.
func programOfModel(s *Service, pid types.PID, provider string) string {
	_, pr, err := providerOf(s, pid, provider)
	if err != nil {
		return ""
	}
	return cmp.Or(pr.Program(), pr.Harness())
}

// guestBy returns what a provider starts for a process.
func guestBy(s *Service, c *vfs.Caller, pr *config.Provider) (guest, error) {
	if name := pr.Harness(); name != "" {
		cli, err := clis.Lookup(name)
		if err != nil {
			return guest{}, err
		}
		return cliOf(s, c, cli, cmp.Or(pr.Command, name), "", pr.Sandbox == clis.SandboxReadOnly)
	}
	m, err := modelOf(s, c, pr.Program(), pr.Command)
	return m.guest, err
}
