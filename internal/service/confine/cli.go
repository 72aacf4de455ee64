package confine

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/drivers/harness"
	"rnix/internal/hosts"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"

	clis "rnix/internal/harness"
)

// guest is a program of a vendor that runs for a process: an agent CLI, or a model. It has the network, since it calls its vendor, and a home of its
// own, which all processes of one repository or directory share that may do the same. In this it finds its login.
type guest struct {
	settings sandbox.Settings // of the commands of its process, until they are made those of the program
	place    sandbox.Place    // likewise
	made     bool
	reach    reach // of the commands
	login    clis.Login
	dir      string // in place of login.Dir; empty = it is there
	home     string // its own
	user     string // the home of the user
	owner    types.UUID
	tools    bool // its home shows what commands read of the user's
}

// guestOf returns a guest of a process before it is made other than its commands. program tells it apart from others.
func guestOf(s *Service, c *vfs.Caller, program string, login clis.Login) (g guest, err error) {
	g = guest{login: login, owner: c.UUID}
	g.place, g.settings, g.made, err = s.ofCaller(c)
	if err != nil || g.settings.Off() {
		return g, err
	}
	g.user, g.home = g.place.Home, homeOf(s, c, g.place, g.settings, g.made, program)
	g.reach = reachOf(s, g.place, g.settings.Policy(g.place, g.made))
	if p, ok := c.Profile.(*profile.Profile); ok && login.Variable != "" { // the commands need not have the variable
		if g.dir, _ = p.Lookup(login.Variable); !filepath.IsAbs(g.dir) {
			g.dir = ""
		}
	}
	return g, nil
}

// needs lets a guest read where its program is.
func (g *guest) needs(path string) {
	if !g.reach.honest(path) {
		return
	}
	for _, path := range []string{path, resolved(path)} {
		of := programOf(path)
		if lies(g.user, of) { // all of the home
			of = path
		}
		g.place.Tools = append(g.place.Tools, of)
	}
}

// trusts lets a guest read the certificates that its environment names, with which it calls its vendor through a proxy; none that commands could write.
func (g *guest) trusts(env []string) {
	for _, kv := range env {
		name, list, _ := strings.Cut(kv, "=")
		if !slices.Contains([]string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"}, name) {
			continue
		}
		for _, path := range filepath.SplitList(list) {
			if to := resolved(path); filepath.IsAbs(path) && g.reach.gives(path) && !g.reach.commands.Allows(to, sandbox.AccessWrite) {
				g.place.Tools = append(g.place.Tools, filepath.Clean(path), to)
			}
		}
	}
}

// environ returns an environment in which a program finds a home of its own, and no other.
func (g *guest) environ(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", g.login.Variable}, name)
	})
	return append(env, "HOME="+g.home)
}

// furnish makes the home of a guest as it is to be.
func furnish(s *Service, g *guest) error {
	wants, err := readFacts(g.login, g.user, g.dir) // before the lock: it may have to wait
	if err != nil {
		return err
	}
	s.home.Lock()
	defer s.home.Unlock()
	if err := takeHome(&s.Own, g.home, g.owner); err != nil {
		return err
	}
	return g.furnish(wants)
}

// furnish gives a home that is there what it is to have of the user's, of whose facts these are.
func (g *guest) furnish(wants facts) error {
	root, err := os.OpenRoot(g.home)
	if err != nil {
		return types.Errorf(types.ErrStorage, "Start", g.home, "%w", err)
	}
	defer root.Close() // nothing was written to it
	if err := login(root, g.login, g.user, g.dir, wants); err != nil {
		return err
	}
	shows, _ := g.shows()
	if err := g.stripped(root, shows); err != nil {
		return err
	}
	return shown(root, shows)
}

// stripped gives a home copies of those settings that have keys in them, without these, in place of what it would show.
func (g *guest) stripped(root *os.Root, shows map[string]string) error {
	for _, name := range g.login.Settings {
		to, ok := shows[name]
		if !ok || !g.login.Keyless() {
			continue
		}
		text, err := readUsers(to)
		if err != nil { // a directory
			continue
		}
		given := g.login.Without(name, text)
		if bytes.Equal(given, text) {
			continue
		}
		delete(shows, name)
		if err = straight(root, name); err == nil {
			err = remove(root, name)
		}
		if err == nil {
			err = writeOwn(root, name, given)
		}
		if err != nil {
			return types.Errorf(types.ErrStorage, "Start", name, "the settings cannot be given to the agent CLI in the sandbox without their keys: %w", err)
		}
	}
	return nil
}

// shows returns what of a user's home the home of a guest shows, by its names there: the settings of the program and, of a CLI, the tools that every
// command has. read are the settings, which commands do not read. Nothing is shown to which commands have led.
func (g *guest) shows() (shows map[string]string, read []string) {
	shows = map[string]string{}
	for _, to := range sandbox.HomeTools(g.user) {
		if g.tools && g.reach.honest(to) {
			shows[strings.TrimPrefix(to, filepath.Clean(g.user)+"/")] = resolved(to) // a link beside it is not there in the sandbox
		}
	}
	for _, name := range g.login.Settings {
		if to := g.login.At(g.user, g.dir, name); g.reach.honest(to) {
			if shows[name] = resolved(to); !keyed(g.login, name, to) {
				read = append(read, to, resolved(to))
			}
		}
	}
	return shows, read
}

// keyed reports whether a file of settings has keys in it that are left out.
func keyed(l clis.Login, name, path string) bool {
	if !l.Keyless() {
		return false
	}
	text, err := readUsers(path)
	return err == nil && !bytes.Equal(l.Without(name, text), text)
}

// CLI returns how an agent's command line is confined that is started for a process: as the commands of the process are, but for what a guest has. dir is
// its private directory, to read.
func (s *Service) CLI(c vfs.Caller, cli clis.CLI, program, dir string, readOnly bool) (harness.Confined, error) {
	g, err := cliOf(s, &c, cli, program, dir, readOnly)
	if err != nil || g.settings.Off() {
		return open, err
	}
	if err := furnish(s, &g); err != nil {
		return open, err
	}
	box, err := s.box(g.settings, g.place, g.made, g.environ(c.Env), &c, "the agent CLI "+cli.Name())
	if err != nil || box.Plan.Rung == sandbox.RungNone {
		return open, err
	}
	s.Refusals.heeded(&box, c, "the agent CLI "+cli.Name())
	return harness.Confined{Box: &box, Home: g.home, Done: watch(s, &g)}, nil
}

// cliOf returns where an agent's command line runs and how it is confined. It makes nothing.
func cliOf(s *Service, c *vfs.Caller, cli clis.CLI, program, dir string, readOnly bool) (guest, error) {
	key := cli.Name()
	if readOnly { // what it puts there, such as a hook, is not run by those that may write
		key += "\x00read-only"
	}
	g, err := guestOf(s, c, key, cli.Login())
	if err != nil || g.settings.Off() {
		return g, err
	}
	g.tools = true
	if path, err := proc.LookPath(program, c.Env); err == nil {
		g.needs(path)
	}
	g.trusts(c.Env)
	_, read := g.shows()
	if dir != "" {
		read = append(read, dir)
	}
	net, said := sandbox.NetOpen, []hosts.Said(nil)
	if g.settings.Net == sandbox.NetHosts {
		net, said = sandbox.NetHosts, agent.SaidHosts("the agent CLI "+cli.Name(), g.login.Hosts)
	}
	g.settings = with(g.settings, sandbox.Settings{Net: net, Hosts: said, Paths: sandbox.Paths{Read: read, Write: []string{g.home}}})
	if readOnly {
		g.settings.Within, g.made = []string{}, false
		g.place.Tools = append(g.place.Tools, g.place.Work)
	}
	g.place.Temp += "." + short(cli.Name())
	return g, nil
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
