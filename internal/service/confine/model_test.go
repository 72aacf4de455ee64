package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/drivers/llm"
	"rnix/internal/config"
	"rnix/internal/harness"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
)

// model starts a model, for the time of a test.
func (w *world) model(t *testing.T, command string) (llm.Confined, error) {
	t.Helper()
	c, err := w.Model(w.caller, "claude", command)
	if c.Done != nil {
		t.Cleanup(c.Done)
	}
	return c, err
}

// install puts a program into a directory that every command can read, and returns its path.
func (w *world) install(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	put(t, path, "#!/bin/sh\n")
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestModelSeesItsLoginAndNothingOfItsProcess(t *testing.T) {
	for program, command := range map[string]string{"claude": "claude", "cursor": "agent"} {
		t.Run(program, func(t *testing.T) {
			w := newWorld(t)
			w.can(sandbox.RungBwrap)
			l := harness.ModelLogin(program)
			login := filepath.Join(w.Home, l.Dir, l.Files[0])
			put(t, login, `{"token":"1"}`)
			put(t, filepath.Join(w.Home, l.Facts), `{"`+l.Keys[0]+`":{"id":1},"mcpServers":{"x":1},"permissions":{"allow":["Shell(**)"]}}`)
			put(t, filepath.Join(w.Home, ".claude", "settings.json"), "settings")
			put(t, filepath.Join(w.Home, ".cursor", "mcp.json"), "servers")
			put(t, filepath.Join(w.Home, "given", "read", "x"), "")
			put(t, filepath.Join(w.Home, "given", "write", "x"), "")
			path := w.install(t, filepath.Join(w.Home, ".local", "bin"), command)
			for _, name := range []string{"certs/ca.pem", "certs/key.pem", ".ssh/id", "src/p/ca.pem"} {
				put(t, filepath.Join(w.Home, name), "")
			}
			w.caller.Env = append(w.caller.Env, "NODE_EXTRA_CA_CERTS="+w.Home+"/certs/ca.pem", "SSL_CERT_FILE="+w.Home+"/.ssh/id", "SSL_CERT_DIR="+w.work+":"+w.Data+":"+w.Home)
			w.profile.Sandbox.Paths = sandbox.Paths{Read: []string{filepath.Join(w.Home, "given", "read")}, Write: []string{filepath.Join(w.Home, "given", "write")}}
			w.profile.Sandbox.Also = []sandbox.Paths{{Read: []string{filepath.Join(w.Home, "given")}, Write: []string{filepath.Join(w.Home, "given", "write")}}}
			w.caller.Scratch, w.caller.Inputs, w.caller.ReadRoots = filepath.Join(w.Data, "scratch"), filepath.Join(w.Data, "inputs"), []string{filepath.Join(w.Home, "roots")}
			w.caller.Env = append(w.caller.Env, "HOME="+w.Home, "XDG_CONFIG_HOME="+w.Home+"/.config", "PATH="+w.work+"/bin:/usr/bin")
			c, err := w.Model(w.caller, program, "")
			if err != nil || c.Program != path || c.Without != l.Variable || c.Dir != w.Temp(w.caller.UUID)+"."+short("model "+program) {
				t.Fatalf("%+v %v", c, err)
			}
			own := ""
			for _, kv := range c.Box.Env {
				if home, ok := strings.CutPrefix(kv, "HOME="); ok {
					own = home
				}
				if strings.HasPrefix(kv, "XDG_CONFIG") || strings.HasPrefix(kv, "PATH=") && strings.Contains(kv, w.work) || strings.HasPrefix(kv, "XDG_CACHE_HOME=") && !strings.Contains(kv, c.Dir) {
					t.Errorf("its environment has %s", kv)
				}
			}
			if has(t, filepath.Join(own, l.Dir, l.Files[0])) != `{"token":"1"}` || has(t, filepath.Join(own, l.Facts)) != `{"`+l.Keys[0]+`":{"id":1}}` {
				t.Errorf("its login: %s", has(t, filepath.Join(own, l.Facts)))
			}
			for _, name := range []string{".claude/settings.json", ".cursor/mcp.json", "go"} {
				if _, err := os.Lstat(filepath.Join(own, name)); err == nil {
					t.Errorf("%s is in its home", name)
				}
			}
			p := c.Box.Plan.Policy
			if p.Net != sandbox.NetOpen {
				t.Errorf("network %s", p.Net)
			}
			for path, want := range map[string]sandbox.Access{
				own + "/x": sandbox.AccessWrite, c.Dir + "/x": sandbox.AccessWrite, path: sandbox.AccessRead, "/usr/bin/env": sandbox.AccessRead, "/bin/rnix": sandbox.AccessRead,
				w.work + "/x": sandbox.AccessNone, w.work + "/.git/config": sandbox.AccessNone, login: sandbox.AccessNone, w.Home + "/.ssh/id": sandbox.AccessNone,
				w.Data + "/x": sandbox.AccessNone, w.caller.Scratch: sandbox.AccessNone, w.caller.Inputs: sandbox.AccessNone, w.Home + "/roots/x": sandbox.AccessNone, cacheOf(w.Data, w.work): sandbox.AccessNone,
				w.Home + "/certs/ca.pem": sandbox.AccessRead, w.Home + "/certs/key.pem": sandbox.AccessNone, w.work + "/ca.pem": sandbox.AccessNone,
				w.Home + "/given/read/x": sandbox.AccessRead, w.Home + "/given/write/x": sandbox.AccessNone, w.Temp(w.caller.UUID): sandbox.AccessNone,
			} {
				if got := p.Access(path); got != want {
					t.Errorf("%s: %v, want %v", path, got, want)
				}
			}
			put(t, filepath.Join(own, l.Dir, l.Files[0]), `{"token":"2"}`)
			if c.Done(); has(t, login) != `{"token":"2"}` {
				t.Error("the user's login was not refreshed")
			}
			w.profile.Providers = config.Providers{List: []config.Provider{{Name: "m", Driver: program + "-cli"}, {Name: "http", Driver: config.DriverAnthropic}, {Name: "cli", Driver: config.DriverClaudeAgent}}}
			if plan, err := w.ExplainModel(1, "m"); err != nil || !slices.Equal(plan.Policy.Write, p.Write) || !slices.Equal(plan.Policy.Hide, p.Hide) {
				t.Errorf("%+v %v", plan.Policy, err)
			}
			if plan, err := w.ExplainModel(1, "cli"); err != nil || plan.Policy.Net != sandbox.NetOpen || !plan.Policy.Allows(w.work+"/x", sandbox.AccessWrite) || !plan.Policy.Allows(w.Home+"/certs/ca.pem", sandbox.AccessRead) {
				t.Errorf("an agent CLI: %+v %v", plan.Policy, err)
			}
			if _, err := w.ExplainModel(1, "http"); types.CodeOf(err) != types.ErrNotFound {
				t.Errorf("a model that is no program: %v", err)
			}
			w.profile.Sandbox.Level = sandbox.LevelOff
			if c, err := w.Model(w.caller, program, ""); err != nil || c.Dir != "" || c.Box.Plan.Rung != sandbox.RungNone {
				t.Errorf("without a sandbox: %+v %v", c, err)
			}
		})
	}
}

func TestModelIsNotConfinedOnlyWhereThatIsSaid(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungNone)
	if _, err := w.Model(w.caller, "claude", ""); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "--sandbox off") {
		t.Errorf("where nothing can be confined: %v", err)
	}
	w.profile.Sandbox.Optional = true
	if c, err := w.Model(w.caller, "claude", ""); err != nil || c.Dir != "" {
		t.Errorf("where it need not be: %+v %v", c, err)
	}
	if _, err := w.Box(proc.Spec{Kind: proc.KindLLM, Owner: 1}); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("one that does not say how: %v", err)
	}
	if _, err := w.Box(proc.Spec{Kind: proc.KindLLM}); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("one of a person that does not say how: %v", err)
	}
}

// A model has the network and a login: commands, which have neither, must not choose what runs as one.
func TestModelIsNoProgramThatCommandsCanChange(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	bin := filepath.Join(w.work, "bin")
	planted, tools := w.install(t, bin, "claude"), filepath.Join(w.Home, "tools")
	w.caller.Env = []string{"PATH=" + bin + ":" + tools}
	if _, err := w.model(t, ""); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), planted) {
		t.Errorf("there is none but in the work directory: %v", err)
	}
	if _, err := w.model(t, planted); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("it is named: %v", err)
	}
	real := w.install(t, tools, "claude")
	c, err := w.model(t, "")
	if err != nil || c.Program != real || !slices.Contains(c.Box.Env, "PATH="+tools) {
		t.Errorf("there is another: %+v %v", c, err)
	}
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(planted, real); err != nil {
		t.Fatal(err)
	}
	if _, err := w.model(t, ""); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("one that leads there: %v", err)
	}
	link := filepath.Join(w.work, "link")
	if err := os.Symlink("/usr/bin", link); err != nil {
		t.Fatal(err)
	}
	w.caller.Env = []string{"PATH=" + link + ":" + w.install(t, filepath.Join(w.Home, "other"), "claude")[:len(w.Home)+len("/other")]}
	if c, err := w.model(t, ""); err != nil || !slices.Contains(c.Box.Env, "PATH="+filepath.Join(w.Home, "other")) {
		t.Errorf("a link that commands can turn elsewhere: %+v %v", c, err)
	}
	if c, err := w.model(t, w.install(t, w.Home, "claude")); err != nil || c.Box.Plan.Policy.Access(w.Home+"/claude") != sandbox.AccessRead || c.Box.Plan.Policy.Access(w.Home+"/x") != sandbox.AccessNone {
		t.Errorf("one that lies in the home itself: %+v %v", c, err)
	}
	w.profile.Sandbox.Within = []string{} // they write nothing
	w.caller.Env = []string{"PATH=" + bin}
	if c, err := w.model(t, ""); err != nil || c.Program != planted || c.Box.Plan.Policy.Access(planted) != sandbox.AccessRead || c.Box.Plan.Policy.Access(w.work+"/x") != sandbox.AccessNone {
		t.Errorf("one that no command writes: %+v %v", c, err)
	}
}

func TestModelRunsWhereverItsProcessWorks(t *testing.T) {
	for _, c := range []struct {
		place sandbox.Place
		want  []string
	}{
		{sandbox.Place{Work: "/srv/p/sub", Git: sandbox.Git{Top: "/srv/p", Dir: "/srv/p/.git", Common: "/srv/p/.git"}}, []string{"/srv/p/sub", "/srv/p", "/srv/p/.git"}},
		{sandbox.Place{Work: "/srv/p"}, []string{"/srv/p"}},
		{sandbox.Place{Work: "/"}, nil},
		{sandbox.Place{Work: "/usr"}, nil},
		{sandbox.Place{Work: "/usr/local/src"}, []string{"/usr/local/src"}},
		{sandbox.Place{Work: "/home/u/bin", Tools: []string{"/home/u/bin"}}, nil},
	} {
		if got := unseen(c.place); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.place, got, c.want)
		}
	}
}
