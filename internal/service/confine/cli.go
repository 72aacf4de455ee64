package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/drivers/harness"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"

	clis "rnix/internal/harness"
)

// CLI returns how an agent's command line is confined that is started for a process: as the commands of the process are, but with the network,
// since it calls its model, and with a home of its own, which all agents of one repository or directory share. In this it finds its login.
func (s *Service) CLI(c vfs.Caller, cli clis.CLI, program, dir string, readOnly bool) (harness.Confined, error) {
	place, settings, made, err := s.ofCaller(&c)
	if err != nil || settings.Off() {
		return open, err
	}
	whose := cli.Name() + "\x00" + project(place)
	if readOnly { // what it puts there, such as a hook, is not run by those that may write
		whose += "\x00read-only"
	}
	home := filepath.Join(homes(s.Data), short(whose))
	var dirOf string // of its login; the commands need not have the variable
	if p, ok := c.Profile.(*profile.Profile); ok && cli.Login().Variable != "" {
		if dirOf, _ = p.Lookup(cli.Login().Variable); !filepath.IsAbs(dirOf) {
			dirOf = ""
		}
	}
	reach := reach{place: place, commands: settings.Policy(place, made)}
	furnish := func() ([]string, error) {
		s.home.Lock()
		defer s.home.Unlock()
		if err := s.makeDirs(home); err != nil {
			return nil, err
		}
		return furnish(cli.Login(), place.Home, dirOf, home, reach)
	}
	read, err := furnish()
	if err != nil {
		return open, err
	}
	if path, err := proc.LookPath(program, c.Env); err == nil && reach.honest(path) {
		place.Tools = append(place.Tools, programOf(path), programOf(resolved(path)))
	}
	settings = with(settings, sandbox.Settings{Net: sandbox.NetOpen, Paths: sandbox.Paths{Read: append(read, dir), Write: []string{home}}})
	if readOnly {
		settings.Within, made = []string{}, false
		place.Tools = append(place.Tools, place.Work)
	}
	place.Temp += "." + short(cli.Name())
	env := slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", cli.Login().Variable}, name)
	})
	box, err := s.box(settings, place, made, append(env, "HOME="+home))
	if err != nil || box.Plan.Rung == sandbox.RungNone {
		return open, err
	}
	return harness.Confined{Box: &box, Home: home, Done: func() {
		if _, err := furnish(); err != nil {
			s.Log.Warn("the login of an agent CLI", "cli", cli.Name(), "err", err)
		}
	}}, nil
}

// furnish gives a home of its own what it is to have of a user's: the login, and, to read, the settings of the program and the tools that every command
// has. It returns what is to be read of the user's home besides. Nothing is shown to which commands have led.
func furnish(l clis.Login, user, dir, home string, reach reach) (read []string, err error) {
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "Start", home, "%w", err)
	}
	defer root.Close() // nothing was written to it
	if err := login(root, l, user, dir); err != nil {
		return nil, err
	}
	shows := map[string]string{}
	for _, to := range sandbox.HomeTools(user) {
		if reach.honest(to) {
			shows[strings.TrimPrefix(to, filepath.Clean(user)+"/")] = resolved(to) // a link beside it is not there in the sandbox
		}
	}
	for _, name := range l.Settings {
		if to := l.At(user, dir, name); reach.honest(to) {
			shows[name], read = resolved(to), append(read, to, resolved(to))
		}
	}
	return read, shown(root, shows)
}

// open is what is not confined.
var open = harness.Confined{Box: &proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}}}

// programOf returns what a program that is a file of its own needs to be read: of one that npm has installed, the packages beside it.
func programOf(path string) string {
	if i := strings.Index(path, "/node_modules/"); i >= 0 {
		return path[:i+len("/node_modules")]
	}
	return filepath.Dir(path)
}
