package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/internal/hosts"
	"rnix/internal/sandbox"
	"rnix/types"
)

func vars(kv ...string) Lookup {
	m := map[string]string{}
	for i := 0; i+1 < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

// sources writes the files, named like "user/config.yaml" and "project/providers.yaml".
func sources(t *testing.T, files map[string]string, env ...string) Sources {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = strings.Replace(name, "project/", "project/.rnix/", 1)
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Sources{UserDir: filepath.Join(dir, "user"), ProjectDir: filepath.Join(dir, "project"), Home: "/home/u", Lookup: vars(env...)}
}

// expect checks that the problems contain each text, and are no more.
func expect(t *testing.T, ps Problems, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(ps.Error(), w) {
			t.Errorf("missing %q in\n%v", w, ps)
		}
	}
	if len(ps) != len(want) {
		t.Errorf("%d problems, want %d:\n%v", len(ps), len(want), ps)
	}
}

func TestNothingSaidMeansTheDefaults(t *testing.T) {
	for _, s := range []Sources{{}, sources(t, nil), sources(t, map[string]string{"user/config.yaml": "# nothing\n", "project/config.yaml": "shell:\n"})} {
		c := Load(s)
		want := Config{
			DataDir: Value[string]{"", "default"}, DefaultAgent: Value[string]{"assistant", "default"}, MaxSteps: Value[int]{0, "default"},
			ContextBudget: Value[int]{0, "default"}, Durability: Value[Durability]{"full", "default"},
			ShellTimeout: Value[agent.Duration]{agent.Duration(2 * time.Minute), "default"}, ReadRoots: Value[[]string]{nil, "default"}, Concurrency: Value[int]{4, "default"}, FailedSteps: Value[int]{40, "default"},
			GC:         GC{Value[int]{30, "default"}, Value[int]{0, FromDefault}, Value[int]{500, "default"}, Value[int]{3600, "default"}, Value[GCMode]{"archive", "default"}},
			Resume:     Resume{Value[bool]{true, "default"}, Value[int]{DefaultAutoResumeMax, "default"}},
			Checkpoint: Checkpoint{Value[int]{5, "default"}, Value[int]{30, "default"}},
			Snapshots:  Snapshots{Value[bool]{true, "default"}, Value[Bytes]{1 << 30, "default"}, Value[int]{100_000, "default"}},
			Disk:       Disk{Value[Bytes]{1 << 30, "default"}, Value[Bytes]{256 << 20, "default"}},
			Limits:     Limits{Value[int]{8, "default"}, Value[int]{32, "default"}, Value[int]{256, "default"}, Value[int]{1 << 20, "default"}, Value[int]{240, "default"}},
			Budget:     Budget{Value[float64]{0, "default"}, Value[float64]{0, "default"}},
			Heartbeat: Heartbeat{Value[bool]{true, "default"}, Value[agent.Duration]{agent.Duration(30 * time.Minute), "default"},
				Value[HeartbeatPolicy]{"warn", "default"}, Value[agent.Duration]{agent.Duration(30 * time.Second), "default"}, Value[int]{2, "default"}},
			Platform: Platform{Value[string]{"", "default"}, Value[string]{"RNIX_PLATFORM_TOKEN", "default"}, Value[string]{"", "default"}, Value[agent.Duration]{0, "default"}},
			Sandbox: Sandbox{Value[sandbox.Level]{"auto", "default"}, Value[sandbox.Net]{"none", "default"}, Value[[]string]{nil, "default"}, Value[bool]{true, "default"},
				Value[[]string]{nil, "default"}, Value[[]string]{nil, "default"}, Value[[]string]{nil, "default"}, Value[types.Memory]{0, "default"}, Value[types.Tasks]{0, "default"}},
			Notify: Notify{Value[[]string]{[]string{"ask", "failed", "suspended", "done"}, "default"}, Value[[]string]{nil, "default"}, Value[bool]{false, "default"},
				Value[string]{"", "default"}, Value[string]{"", "default"}, Value[agent.Duration]{agent.Duration(5 * time.Second), "default"}},
			Search: Search{Engine: Value[string]{"", "default"}, URL: Value[string]{"", "default"}}, WebPort: Value[int]{0, "default"},
		}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Error(diff)
		}
	}
}

func TestEveryValueSaysWhereItComesFrom(t *testing.T) {
	s := sources(t, map[string]string{
		"user/config.yaml":    "data_dir: ~/data\nmax_steps: 50\nread_roots: [/usr/share, ~/docs/]\nshell: {timeout: 5m}\ndurability: none\n",
		"project/config.yaml": "default_agent: mine\nmax_steps: 20\nshell:\n  timeout: 30s\ndurability: full\nconcurrency: 2\n",
	}, "RNIX_CONTEXT_BUDGET", "1000", "RNIX_MAX_STEPS", "90", "RNIX_SHELL_TIMEOUT", "")
	c := Load(s)
	user, project := filepath.Join(s.UserDir, "config.yaml"), filepath.Join(s.ProjectDir, ".rnix", "config.yaml")
	want := Config{
		DataDir: Value[string]{"/home/u/data", user + ":1"}, DefaultAgent: Value[string]{"mine", project + ":1"},
		MaxSteps: Value[int]{90, "environment RNIX_MAX_STEPS"}, ContextBudget: Value[int]{1000, "environment RNIX_CONTEXT_BUDGET"},
		Durability: Value[Durability]{"full", project + ":5"}, ShellTimeout: Value[agent.Duration]{agent.Duration(30 * time.Second), project + ":4"},
		ReadRoots: Value[[]string]{[]string{"/usr/share", "/home/u/docs"}, user + ":3"}, Concurrency: Value[int]{2, project + ":6"}, FailedSteps: Value[int]{40, "default"},
	}
	want.storageDefaults()
	want.limitsDefaults()
	want.budgetDefaults()
	want.heartbeatDefaults()
	want.platformDefaults()
	want.sandboxDefaults()
	want.Notify, want.Search, want.WebPort = notifyDefaults(), searchDefaults(), Value[int]{0, FromDefault}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

func TestAProjectCannotLoosenAnything(t *testing.T) {
	s := sources(t, map[string]string{
		"user/config.yaml":    "max_steps: 10\ncontext_budget: 100\nbudget_usd: 2.5\nbudget: {unknown_price_usd_per_mtok: 15}\nsandbox: {level: landlock, net: none, read: [/r], write: [/w], hide: [/h], memory: 1GiB}\n",
		"project/config.yaml": "data_dir: /tmp\nread_roots: [/]\nmax_steps: 0\ncontext_budget: 200\ndurability: none\nshell: {timeout: \"0\"}\nconcurrency: 9\nbudget_usd: 3\nbudget: {unknown_price_usd_per_mtok: 0.1}\nsandbox: {level: \"off\", net: open, require: false, read: [/], write: [/], memory: 2GiB, processes: 4096}\n",
	})
	c := Load(s)
	expect(t, c.Problems, "data_dir: a project cannot set this", "read_roots: a project cannot set this", "max_steps: a project may only tighten",
		"context_budget: a project may only", "budget_usd: a project may only", "budget.unknown_price_usd_per_mtok: a project cannot set this", "durability: a project may only", "shell.timeout: a project may only", "concurrency: a project may only",
		"sandbox.level: a project may only", "sandbox.net: a project may only", "sandbox.require: a project cannot set this", "sandbox.read: a project cannot set this", "sandbox.write: a project cannot set this", "sandbox.memory: a project may only tighten", "sandbox.processes: a project may only tighten")
	c.Problems = nil
	if diff := cmp.Diff(Load(Sources{UserDir: s.UserDir}), c); diff != "" {
		t.Error(diff)
	}
}

func TestAProjectTightensTheSandbox(t *testing.T) {
	s := sources(t, map[string]string{
		"user/config.yaml":    "sandbox: {level: auto, net: open, require: false, write: [~/cache], hide: [/h], memory: 4GiB, processes: none}\n",
		"project/config.yaml": "sandbox: {level: bwrap, net: none, hide: [/p], memory: 512MiB, processes: 4096}\n",
	}, "RNIX_SANDBOX_NET", "", "RNIX_SANDBOX_LEVEL", "")
	c := Load(s)
	got, want := c.Sandbox.Settings(), sandbox.Settings{Level: "bwrap", Net: "none", Optional: true, Paths: sandbox.Paths{Write: []string{"/home/u/cache"}, Hide: []string{"/h", "/p"}}, Bounds: types.Bounds{Memory: 512 << 20, Processes: 4096}}
	if diff := cmp.Diff(want, got); diff != "" || len(c.Problems) > 0 {
		t.Error(diff, c.Problems)
	}
	c = Load(sources(t, map[string]string{
		"user/config.yaml":    "sandbox: {net: hosts, hosts: [npm, '*.x.test']}\n",
		"project/config.yaml": "sandbox: {hosts: [npm, a.x.test:80]}\n",
	}))
	if got := hosts.RulesOf(c.Sandbox.Settings().Hosts).Strings(); len(c.Problems) > 0 || c.Sandbox.Net.V != sandbox.NetHosts || !slices.Equal(got, []string{"a.x.test:80", "registry.npmjs.org:443", "registry.yarnpkg.com:443"}) {
		t.Errorf("%q %v", got, c.Problems)
	}
	c = Load(sources(t, map[string]string{
		"user/config.yaml":    "sandbox: {net: open}\n",
		"project/config.yaml": "sandbox: {hosts: [a.test]}\n",
	}))
	if got := hosts.RulesOf(c.Sandbox.Settings().Hosts).Strings(); len(c.Problems) > 0 || c.Sandbox.Net.V != sandbox.NetHosts || !slices.Equal(got, []string{"a.test"}) {
		t.Errorf("%s %q %v", c.Sandbox.Net.V, got, c.Problems)
	}
	c = Load(sources(t, map[string]string{
		"user/config.yaml":    "sandbox: {net: none, hosts: [a.test, 'b c']}\n",
		"project/config.yaml": "sandbox: {net: hosts, hosts: [b.test]}\n",
	}))
	expect(t, c.Problems, `sandbox.hosts[1]: "b c" is no host`, "sandbox.net: a project may only", "sandbox.hosts: a project may only")
	if c.Sandbox.Net.V != sandbox.NetNone || len(c.Sandbox.Hosts.V) > 0 {
		t.Errorf("%+v", c.Sandbox)
	}
	c = Load(sources(t, map[string]string{"user/config.yaml": "sandbox: {level: loose, net: some, hide: [x], memory: 1}\n"}, "RNIX_SANDBOX_REQUIRE", "perhaps", "RNIX_SANDBOX_PROCESSES", "7"))
	if s := c.Sandbox.Settings(); s.Level != "auto" || s.Net != "none" || s.Optional || len(Mistakes(c.Problems)) != 6 || s.Bounds != (types.Bounds{}) {
		t.Errorf("%+v %v", s, c.Problems)
	}
}

func TestAWrongFileNeverLoosens(t *testing.T) {
	c := Load(sources(t, map[string]string{"user/config.yaml": "max_steps: 5\nmax_step: 9\ndata_dir: here\nconcurrency: 0\ndurability: some\ncontext_budget: -1\ndefault_agent: a/b\nread_roots: [x]\n"},
		"RNIX_MAX_STEPS", "many", "RNIX_SHELL_TIMEOUT", "5"))
	if c.MaxSteps.V != 5 || c.Concurrency.V != DefaultConcurrency || c.DataDir.V != "" || len(c.ReadRoots.V) != 0 {
		t.Errorf("%+v", c)
	}
	expect(t, c.Problems, `config.yaml:2:1: max_step: unknown key; did you mean "max_steps"?`, `config.yaml:3:11: data_dir: "here" must be an absolute path`,
		"config.yaml:4:14: concurrency: 0 must be between", "durability: \"some\" is not known", "context_budget: is negative", "default_agent: ", "read_roots[0]: ",
		`environment: RNIX_MAX_STEPS: "many" is not a whole number`, "environment: RNIX_SHELL_TIMEOUT: 5 has no unit")
	broken := Load(sources(t, map[string]string{"user/config.yaml": "max_steps: [", "project/config.yaml": "max_steps: 3\n"}))
	if broken.MaxSteps.V != 3 || len(broken.Problems) != 1 {
		t.Errorf("%+v", broken)
	}
}

func TestTheStarterFilesAreRightAndNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, ".rnix", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("max_steps: 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	made, kept, err := Init(dir, Template())
	if err != nil || len(made) != 3 || len(kept) != 1 || kept[0] != ".rnix/config.yaml" {
		t.Fatalf("%v %v %v", made, kept, err)
	}
	if b, _ := os.ReadFile(mine); string(b) != "max_steps: 7\n" {
		t.Errorf("overwritten: %s", b)
	}
	p := agent.Places{ProjectDir: dir}
	if _, err := agent.Discover(p).Load("project", agent.LoadOptions{WorkDir: dir}); err != nil {
		t.Error(err)
	}
	if ps := agent.Discover(p).Problems(); len(ps) != 0 {
		t.Error(ps)
	}
	if entries, ps := agent.LoadMCP(p, nil, true); len(entries) != 0 || len(ps) != 0 {
		t.Error(entries, ps)
	}
	if made, kept, err := Init(dir, Template()); err != nil || len(made) != 0 || len(kept) != 4 {
		t.Errorf("a second time: %v %v %v", made, kept, err)
	}
	fresh := t.TempDir()
	if _, _, err := Init(fresh, Template()); err != nil {
		t.Fatal(err)
	}
	if c := Load(Sources{ProjectDir: fresh}); len(c.Problems) != 0 {
		t.Error(c.Problems)
	}
	outside := t.TempDir()
	trap := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(trap, ".rnix")); err != nil {
		t.Fatal(err)
	}
	if made, _, err := Init(trap, Template()); err == nil || len(made) != 0 {
		t.Errorf("wrote through a link: %v", made)
	}
}

// TestTheExamplesInTheStarterFilesAreRight reads them with their comment marks taken off.
func TestTheExamplesInTheStarterFilesAreRight(t *testing.T) {
	uncommented := func(text string) string {
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			if rest, ok := strings.CutPrefix(l, "#"); ok && strings.Contains(l, ": ") || strings.HasSuffix(l, ":") {
				lines[i] = strings.TrimPrefix(rest, " ")
			}
		}
		return strings.Join(lines, "\n")
	}
	files := map[string]string{}
	for name, text := range Template() {
		text, own, _ := strings.Cut(text, "# Only your own config.yaml")
		if strings.HasSuffix(name, ".yaml") {
			files[name] = uncommented(text)
		}
		if _, own, _ = strings.Cut(own, "\n"); own != "" {
			if c := Load(sources(t, map[string]string{"user/config.yaml": uncommented(own)})); len(c.Problems) != 0 || c.Search.Engine.V != "brave" || c.WebPort.V != 7718 {
				t.Errorf("%s, for the user: %v\n%s", name, c.Problems, own)
			}
		}
	}
	dir := t.TempDir()
	if _, _, err := Init(dir, files); err != nil {
		t.Fatal(err)
	}
	if c := Load(Sources{ProjectDir: dir}); len(c.Problems) != 0 || c.MaxSteps.V != 100 || c.Concurrency.V != 2 {
		t.Errorf("%+v\n%s", c, files[".rnix/config.yaml"])
	}
	entries, ps := agent.LoadMCP(agent.Places{ProjectDir: dir}, vars("TRACKER_TOKEN", "x", "SEARCH_TOKEN", "y"), true)
	if len(entries) != 2 || len(ps) != 0 {
		t.Errorf("%+v %v\n%s", entries, ps, files[".rnix/mcp.yaml"])
	}
	m, err := agent.LoadManifest(filepath.Join(dir, ".rnix/agents/project"))
	if err != nil || m.Models.Fallback != "other-model" || len(m.Devices) != 3 {
		t.Errorf("%+v %v\n%s", m, err, files[".rnix/agents/project/agent.yaml"])
	}
}
