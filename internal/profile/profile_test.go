package profile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/hosts"
	"rnix/internal/price"
	"rnix/internal/sandbox"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/runtime/env"
	"rnix/types"
)

// host is a directory with a user's configuration and a project.
type host struct {
	t       *testing.T
	dir     string
	learned []env.Secret
	Reader
}

func newHost(t *testing.T) *host {
	h := &host{t: t, dir: t.TempDir()}
	h.Reader = Reader{UserDir: filepath.Join(h.dir, "config"), Home: filepath.Join(h.dir, "home"), Lookup: func(string) (string, bool) { return "", false },
		Learn: func(s []env.Secret) { h.learned = append(h.learned, s...) }}
	h.write("home/p/.rnix/agents/own/agent.yaml", "name: own\ndescription: d\n")
	return h
}

func (h *host) write(path, text string) {
	h.t.Helper()
	path = filepath.Join(h.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// read reads the configuration in the project, with a few variables besides.
func (h *host) read(trust bool, vars ...string) *Profile {
	h.t.Helper()
	p, err := h.Read(filepath.Join(h.dir, "home/p"), append([]string{"HOME=" + h.Home}, vars...), trust)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func TestMistakeInTheConfigurationForbidsEachStartUntilItIsCorrected(t *testing.T) {
	h := newHost(t)
	project := filepath.Join(h.dir, "home/p")
	environ := []string{"HOME=" + h.Home}
	h.write("config/config.yaml", "limit: {depth: 2}\n") // it means limits
	h.Start()
	if _, err := h.ForStart("Spawn", project, environ, false); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "limit") {
		t.Errorf("with a mistake: %v", err)
	}
	if p := h.read(false); len(p.Mistakes) == 0 || len(p.Problems) < len(p.Mistakes) {
		t.Errorf("who only looks is not told: %+v", p.Problems)
	}
	if h.Outdated() {
		t.Error("outdated, while the mistake is still there")
	}
	h.write("config/config.yaml", "limits: {depth: 2}\n")
	if _, err := h.ForStart("Spawn", project, environ, false); types.CodeOf(err) != types.ErrUnavailable || !h.Outdated() {
		t.Errorf("a daemon without its limits starts something: %v, outdated %v", err, h.Outdated())
	}
	h.Start()
	if _, err := h.ForStart("Spawn", project, environ, false); err != nil || h.Outdated() {
		t.Errorf("corrected, and read again: %v", err)
	}
}

func TestDirectoryOfAClientIsOne(t *testing.T) {
	h := newHost(t)
	h.write("file", "")
	for cwd, code := range map[string]types.ErrCode{"home/p": types.ErrInvalid, h.dir + "/file": types.ErrInvalid, h.dir + "/none": types.ErrNotFound} {
		if _, err := h.Read(cwd, []string{"HOME=" + h.Home}, false); types.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", cwd, err, code)
		}
	}
	if p, err := h.Read("", []string{"HOME=" + h.Home}, false); err != nil || p.Cwd != h.Home {
		t.Errorf("without a directory: %+v, %v", p, err)
	}
}

func TestSecretsAreLearnedWithTheConfigurationThatNamesThem(t *testing.T) {
	h := newHost(t)
	h.write("config/providers.yaml", "providers:\n  - {name: mine, driver: openai-compat, base_url: http://127.0.0.1:1, api_key_env: MINE, default_model: m}\n")
	h.write("home/p/.rnix/mcp.yaml", "servers:\n  s: {command: a, env: {S_TOKEN: of-a-stranger-01}}\n")
	h.read(false, "MINE=0123456789abcdef", "A_PASSWORD=correct-horse-battery")
	knows := func(value string) bool {
		return slices.ContainsFunc(h.learned, func(s env.Secret) bool { return s.Value == value })
	}
	if !knows("0123456789abcdef") || !knows("correct-horse-battery") {
		t.Error("a provider's key, or a variable that sounds like a secret, is not known to be one")
	}
	if knows("of-a-stranger-01") {
		t.Error("what a project says that is not trusted is taken out of every text")
	}
	if h.read(true); !knows("of-a-stranger-01") {
		t.Error("what an MCP server is given is not known to be secret")
	}
}

func TestHistoryKeepsNamesOfVariablesAndFindsTheSameAgain(t *testing.T) {
	h := newHost(t)
	p := h.read(true, "KEY=do-not-keep-this", "KEY=do-not-keep-this", "RNIX_X=1")
	p.Asked, p.Member, p.Names = config.Wish{Provider: "anthropic", Model: "m"}, Member{Session: "s1", Issue: "i"}, []string{"KEY"}
	if err := p.GiveTools(config.ToolsKernel); err != nil {
		t.Fatal(err)
	}
	ag := &agent.Agent{MCPConfigs: []agent.MCPServer{{Name: "db", Command: "run-db"}}}
	raw, err := p.Settings(ag, []string{"db"})
	if err != nil || strings.Contains(string(raw), "do-not-keep") {
		t.Fatalf("%s, %v", raw, err)
	}
	if raw, err = WithTree(raw, &workspace.Tree{Dir: "/tree"}); err != nil {
		t.Fatal(err)
	}
	s := SettingsIn(&step.Settled{Settings: raw, ProcInfo: step.ProcInfo{ProcStatus: types.ProcStatus{WorkDir: "/elsewhere"}}})
	if s.Cwd != p.Cwd || s.Wish() != p.Asked || s.Member != p.Member || s.Tools != config.ToolsKernel || !slices.Equal(s.MCP, []string{"db"}) || s.Tree == nil || s.Tree.Dir != "/tree" {
		t.Errorf("%+v", s)
	}
	if got := s.Missing([]string{"HOME=/"}); !slices.Equal(got, []string{"KEY"}) {
		t.Errorf("missing: %q", got)
	}
	if name := s.Changed(ag); name != "" {
		t.Errorf("%s is what it was", name)
	}
	ag.MCPConfigs[0].Args = []string{"--evil"}
	if name := s.Changed(ag); name != "db" {
		t.Error("a server that runs something else now keeps the trust of before")
	}
	for _, old := range []string{"", "null", "[1]"} { // of a history that keeps none, or is damaged
		if s := SettingsIn(&step.Settled{Settings: json.RawMessage(old), ProcInfo: step.ProcInfo{ProcStatus: types.ProcStatus{WorkDir: "/elsewhere"}}}); s.Cwd != "/elsewhere" || s.Trust {
			t.Errorf("%q: %+v", old, s)
		}
	}
}

func TestChildHasNothingThatIsItsParentsAlone(t *testing.T) {
	p := &Profile{Cwd: "/w", Names: []string{"N"}, Member: Member{Session: "s"}, Recorded: true, NoMCP: true}
	c := p.ForChild()
	if c.Names != nil || c.Member != (Member{}) || c.Recorded || c.Cwd != "/w" || !c.NoMCP || !p.Recorded || p.Member.Session != "s" {
		t.Errorf("child %+v of %+v", c, p)
	}
	if plain := (&Profile{Cwd: "/w"}); plain.ForChild() != plain {
		t.Error("a profile that has nothing of its own is copied")
	}
	if q := p.Trusting(); !q.Trust || p.Trust || q.Trusting() != q {
		t.Errorf("trust of one supervisor reaches another: %+v, %+v", q, p)
	}
}

func TestAnAgentHandsOnNoVariableThatItHasNot(t *testing.T) {
	h := newHost(t)
	ag := &agent.Agent{}
	ag.Env = []string{"OWN"}
	p := h.read(false, "A=1", "B=2")
	p.Names = []string{"A", "B"}
	if got := p.Variables(ag); !slices.Equal(got, []string{"OWN", "A", "B"}) {
		t.Errorf("of a person: %q", got)
	}
	p.Bind(nil, []string{"A", "C"}, sandbox.Usual())
	raw, err := p.Settings(ag, nil)
	if err != nil {
		t.Fatal(err)
	}
	again := h.read(false, "A=1", "B=2")
	again.Names = p.Names
	again.BindAs(p)
	kept := SettingsIn(&step.Settled{Settings: raw})
	for when, got := range map[string][]string{"at the start": p.Variables(ag), "read again": again.Variables(ag), "resumed": (&Profile{Names: kept.Names, Lent: kept.Lent}).Variables(ag)} {
		if !slices.Equal(got, []string{"OWN", "A"}) {
			t.Errorf("%s: %q", when, got)
		}
	}
	p.Bind(nil, nil, sandbox.Usual())
	if raw, err = p.Settings(ag, nil); err != nil || SettingsIn(&step.Settled{Settings: raw}).Lent == nil {
		t.Errorf("an agent without variables is forgotten: %s, %v", raw, err)
	}
}

func TestAgentCannotSetThePricesByWhichItsBudgetIsKept(t *testing.T) {
	h := newHost(t)
	above := h.read(false, unknownPrice+"3")
	p := h.read(false, unknownPrice+"0.01")
	p.CostAs(above)
	rate, _ := p.priceOf("nosuch", "nosuch", "nosuch", true)
	if rate != price.Flat(3) {
		t.Errorf("%+v", rate)
	}
	again, err := h.Read(p.Cwd, p.Env, false)
	if err != nil {
		t.Fatal(err)
	}
	if rate, _ := again.priceOf("nosuch", "nosuch", "nosuch", true); rate != price.Flat(3) {
		t.Errorf("when the configuration is read again: %+v", rate)
	}
	if rate, from := p.priceOf("nosuch", "nosuch", "nosuch", false); from != "" {
		t.Errorf("a price that is assumed where none is needed: %+v", rate)
	}
}

// TestAnAgentWithoutNetworkStartsModelsAndNoAgentCLI has each combination of who starts an agent CLI.
func TestAnAgentWithoutNetworkStartsModelsAndNoAgentCLI(t *testing.T) {
	cli, model := &config.Provider{Name: "codex", Driver: "codex-agent"}, &config.Provider{Name: "anthropic", Driver: "anthropic"}
	if cli.Harness() == "" || model.Harness() != "" {
		t.Fatalf("%q %q", cli.Harness(), model.Harness())
	}
	for _, c := range []struct {
		level  sandbox.Level
		within []string
		want   types.ErrCode
	}{
		{sandbox.LevelAuto, nil, ""}, {sandbox.LevelAuto, []string{}, types.ErrPermission}, {sandbox.LevelAuto, []string{"/w"}, types.ErrPermission}, {sandbox.LevelOff, []string{"/w"}, ""},
	} {
		p := &Profile{Sandbox: sandbox.Settings{Level: c.level, Net: sandbox.NetNone, Within: c.within}}
		if err := Starts(p, cli); types.CodeOf(err) != c.want {
			t.Errorf("%s %q: %v", c.level, c.within, err)
		}
		if p.CLI = true; Starts(p, cli) != nil {
			t.Errorf("%s %q: an agent CLI may not start one", c.level, c.within)
		}
		p.CLI = false
		for _, model := range []*config.Provider{model, {Name: "claude", Driver: config.DriverClaude}, {Name: "cursor", Driver: config.DriverCursor}} {
			if err := Starts(p, model); err != nil {
				t.Errorf("%s, %s %q: %v", model.Name, c.level, c.within, err)
			}
		}
	}
}

func TestSandboxOfWhatIsStarted(t *testing.T) {
	p := &Profile{Sandbox: sandbox.Usual()}
	if err := AskSandbox(p, "off", "open", types.Bounds{Memory: 1 << 30}, nil); err != nil || !p.Sandbox.Off() || p.Sandbox.Net != sandbox.NetOpen {
		t.Errorf("a person: %+v %v", p.Sandbox, err)
	}
	for _, wrong := range [][2]string{{"loose", ""}, {"", "some"}} {
		if err := AskSandbox(p, wrong[0], wrong[1], types.Bounds{}, nil); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	ag := &agent.Agent{}
	ag.Name, ag.Sandbox = "tight", agent.Sandbox{Level: sandbox.LevelBwrap, Net: sandbox.NetNone, Processes: 100}
	if err := Confine(p, ag, "", "", types.Bounds{}, nil); err != nil || p.Sandbox.Level != sandbox.LevelBwrap || p.Sandbox.Net != sandbox.NetNone {
		t.Errorf("an agent that is tighter: %+v %v", p.Sandbox, err)
	}
	ag.Sandbox = agent.Sandbox{Net: sandbox.NetOpen}
	if err := Confine(p, ag, "auto", "open", types.Bounds{Memory: 2 << 30, Processes: -1}, nil); err != nil || p.Sandbox.Level != sandbox.LevelBwrap || p.Sandbox.Net != sandbox.NetNone || len(p.Problems) != 1 || p.Sandbox.Bounds != (types.Bounds{Memory: 1 << 30, Processes: 100}) {
		t.Errorf("an agent that is looser: %+v %q %v", p.Sandbox, p.Problems, err)
	}
	// what a person, a node or an agent wants of the network and does not get is said, once
	for _, c := range []struct {
		level      sandbox.Level
		has        sandbox.Net
		asked, own sandbox.Net
		want       string
	}{
		{sandbox.LevelAuto, sandbox.NetNone, sandbox.NetOpen, "", "the process asks for the network, which"},
		{sandbox.LevelAuto, sandbox.NetNone, sandbox.NetOpen, sandbox.NetOpen, "the agent a asks for the network, which"},
		{sandbox.LevelAuto, sandbox.NetOpen, sandbox.NetOpen, "", ""},
		{sandbox.LevelAuto, sandbox.NetOpen, sandbox.NetNone, "", ""},
		{sandbox.LevelOff, sandbox.NetOpen, sandbox.NetOpen, "", ""},
		{sandbox.LevelOff, sandbox.NetOpen, sandbox.NetNone, "", "the process is to have no network, and"},
		{sandbox.LevelOff, sandbox.NetNone, "", sandbox.NetNone, "the agent a is to have no network, and"},
		{sandbox.LevelOff, sandbox.NetNone, "", "", ""},
	} {
		p, ag := &Profile{Sandbox: sandbox.Settings{Level: c.level, Net: c.has}, Problems: []string{"other"}}, &agent.Agent{}
		ag.Name, ag.Sandbox.Net = "a", c.own
		if err := Confine(p, ag, "", string(c.asked), types.Bounds{}, nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Problems[1:], "\n"); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || strings.Contains(got, "\n") {
			t.Errorf("%+v: %q", c, got)
		}
	}
	child, err := Confined(p, &agent.Agent{}, sandbox.Settings{Level: sandbox.LevelBwrap, Net: sandbox.NetOpen, Within: []string{"/w"}})
	if err != nil || child.Sandbox.Level != sandbox.LevelBwrap || child.Sandbox.Net != sandbox.NetNone || len(child.Sandbox.Within) != 1 || p.Sandbox.Within != nil {
		t.Errorf("a child: %+v %v", child.Sandbox, err)
	}
}

func TestHostsOfWhatIsStarted(t *testing.T) {
	for name, c := range map[string]struct {
		has     sandbox.Settings
		net     string
		allow   []string // by a person
		only    []string // of a node
		own     []string // of the agent
		want    sandbox.Net
		reaches string
		not     string
		problem string
	}{
		"a person adds":                {has: sandbox.Settings{Hosts: hosts.Say("", "b.test")}, allow: []string{"a.test:81"}, want: sandbox.NetHosts, reaches: "a.test:81 b.test:80", not: "c.test:80"},
		"those of the files count":     {has: sandbox.Settings{Hosts: hosts.Say("", "b.test")}, net: "hosts", want: sandbox.NetHosts, reaches: "b.test:80", not: "a.test:80"},
		"an agent tightens":            {has: sandbox.Settings{Net: sandbox.NetHosts, Hosts: hosts.Say("", "npm", "b.test")}, own: []string{"b.test", "npm"}, want: sandbox.NetHosts, reaches: "b.test:80 registry.npmjs.org:443"},
		"an agent wants more":          {has: sandbox.Settings{Net: sandbox.NetHosts, Hosts: hosts.Say("", "b.test")}, own: []string{"*.test"}, want: sandbox.NetHosts, reaches: "b.test:80", not: "a.test:80", problem: "the agent a asks for hosts that its commands do not reach: *.test"},
		"an agent has no network":      {has: sandbox.Settings{Net: sandbox.NetNone}, own: []string{"a.test"}, want: sandbox.NetNone, not: "a.test:80", problem: "the agent a asks for hosts that its commands do not reach: a.test"},
		"an agent of an open one":      {has: sandbox.Settings{Net: sandbox.NetOpen}, own: []string{"a.test"}, want: sandbox.NetHosts, reaches: "a.test:80", not: "b.test:80"},
		"a node tightens":              {has: sandbox.Settings{Net: sandbox.NetOpen}, only: []string{"a.test"}, own: []string{"*"}, want: sandbox.NetHosts, reaches: "a.test:80", not: "b.test:80", problem: "the agent a asks for hosts that its commands do not reach: *"},
		"a node reaches none":          {has: sandbox.Settings{Net: sandbox.NetHosts, Hosts: hosts.Say("", "a.test")}, only: []string{}, want: sandbox.NetHosts, not: "a.test:80"},
		"what is off is not tightened": {has: sandbox.Settings{Level: sandbox.LevelOff, Net: sandbox.NetOpen}, want: sandbox.NetOpen},
	} {
		p, ag := &Profile{Sandbox: sandbox.Usual().With(c.has)}, &agent.Agent{}
		ag.Name, ag.Sandbox.Hosts = "a", c.own
		if ag.Sandbox.Hosts != nil {
			ag.Sandbox.Net = sandbox.NetHosts // as a file that was read says
		}
		var net string
		if c.only != nil {
			net = "hosts"
		}
		err := AskSandbox(p, "", c.net, types.Bounds{}, c.allow)
		if err == nil {
			err = Confine(p, ag, "", net, types.Bounds{}, c.only)
		}
		policy := sandbox.Policy{Net: p.Sandbox.Net, Hosts: hosts.RulesOf(p.Sandbox.Hosts).Strings()}
		for i, list := range []string{c.not, c.reaches} {
			for host := range strings.FieldsSeq(list) {
				if policy.Reaches(host) != (i == 1) {
					t.Errorf("%s: %s is reached: %v; %+v", name, host, i == 0, p.Sandbox)
				}
			}
		}
		if got := strings.Join(p.Problems, "; "); err != nil || p.Sandbox.Net != c.want || !strings.HasPrefix(got, c.problem) || (got == "") != (c.problem == "") {
			t.Errorf("%s: %+v %v, %q", name, p.Sandbox, err, got)
		}
	}
	p := &Profile{Sandbox: sandbox.Usual()}
	for _, wrong := range [][2]string{{"open", "a.test"}, {"none", "a.test"}, {"", "a b"}} {
		if err := AskSandbox(p, "", wrong[0], types.Bounds{}, wrong[1:]); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestWhatAConfinedAgentStartsHasTheHomeAndProgramsOfThatAgent(t *testing.T) {
	h := newHost(t)
	above := h.read(false, "PATH=/usr/bin", "HTTPS_PROXY=http://above", "OWN=1", "CODEX_HOME=/mine", "OPENAI_BASE_URL=http://above/v1")
	below := sandbox.Usual()
	below.Within = []string{above.Cwd}
	value := func(p *Profile, name string) string { v, _ := p.Lookup(name); return v }

	p := h.read(false, "HOME="+h.dir+"/fake", "PATH="+h.dir+"/evil:/usr/bin", "GOFLAGS=-toolexec=evil", "RNIX_MAX_STEPS=3", "ANTHROPIC_BASE_URL=http://evil", "OPENAI_BASE_URL=http://evil/v1", "CLAUDE_CONFIG_DIR=/evil", "CODEX_HOME=/evil", "LENT=1")
	p.Bind(above, []string{"LENT", "ANTHROPIC_BASE_URL", "CODEX_HOME", "CLAUDE_CONFIG_DIR"}, below)
	for name, want := range map[string]string{"HOME": h.Home, "PATH": "/usr/bin", "HTTPS_PROXY": "http://above", "GOFLAGS": "", "OWN": "", "RNIX_MAX_STEPS": "3", "ANTHROPIC_BASE_URL": "", "OPENAI_BASE_URL": "http://above/v1", "CLAUDE_CONFIG_DIR": "", "CODEX_HOME": "/mine", "LENT": "1"} {
		if got := value(p, name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
		if n := strings.Count("\n"+strings.Join(p.Env, "\n"), "\n"+name+"="); want != "" && n != 1 || want == "" && n > 0 {
			t.Errorf("%s is there %d times: %q", name, n, p.Env)
		}
	}
	for _, pr := range p.Providers.List {
		if strings.Contains(pr.BaseURL, "evil") || pr.Name == "openai" && pr.BaseURL != "http://above/v1" {
			t.Errorf("%s is at %s", pr.Name, pr.BaseURL)
		}
	}
	again := h.read(false, "PATH="+h.dir+"/evil")
	again.BindAs(p)
	if got := value(again, "PATH"); got != "/usr/bin" {
		t.Errorf("read again, PATH is %q", got)
	}
	t.Setenv("PATH", "/bin")
	p = h.read(false, "PATH="+h.dir+"/evil")
	p.Bind(nil, nil, below)
	if got := value(p, "PATH"); got != "/bin" {
		t.Errorf("below an agent that is gone, PATH is %q", got)
	}
	below.Level = sandbox.LevelOff
	p = h.read(false, "PATH="+h.dir+"/own")
	p.Bind(above, nil, below)
	if got := value(p, "PATH"); got != h.dir+"/own" {
		t.Errorf("below an agent that is not confined, PATH is %q", got)
	}
}

func TestKeysInFilesAreSecretAndHidden(t *testing.T) {
	h := newHost(t)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("sk-0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("config/providers.yaml", "providers:\n  - {name: anthropic, api_key_file: "+file+"}\n")
	p := h.read(false)
	if !slices.ContainsFunc(h.learned, func(s env.Secret) bool { return s.Value == "sk-0123456789abcdef" }) {
		t.Error("the key is no secret")
	}
	if !slices.Contains(p.Sandbox.Hide, file) {
		t.Errorf("commands can read it: %v is hidden", p.Sandbox.Hide)
	}
	if key, _ := p.Lookup("ANTHROPIC_API_KEY"); key != "sk-0123456789abcdef" {
		t.Errorf("the key is %q", key)
	}
}

// The key of the search engine is a key like those of providers: secret, hidden, and there for what a confined agent starts.
func TestTheKeyOfTheSearchEngineIsOneLikeThoseOfProviders(t *testing.T) {
	h := newHost(t)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("bs-0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("config/config.yaml", "web: {search: {engine: brave, api_key_file: "+file+"}}\n")
	above := h.read(false)
	if !slices.ContainsFunc(h.learned, func(s env.Secret) bool { return s.Value == "bs-0123456789abcdef" }) {
		t.Error("the key is no secret")
	}
	if !slices.Contains(above.Sandbox.Paths.Hide, file) {
		t.Errorf("its file is not hidden: %q", above.Sandbox.Paths.Hide)
	}
	below := sandbox.Usual()
	below.Within = []string{above.Cwd}
	p := h.read(false, "PATH=/usr/bin")
	p.Bind(above, nil, below)
	for name, of := range map[string]*Profile{"a person's": above, "a child's": p} {
		if key, ok := Secret(of)("BRAVE_API_KEY"); !ok || key != "bs-0123456789abcdef" {
			t.Errorf("%s: %q, %v", name, key, ok)
		}
	}
}
