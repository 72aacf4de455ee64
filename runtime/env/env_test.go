package env

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rnix/agent"
)

func TestTheSessionGoesBeforeTheBaseAndTheOrderIsThatOfNames(t *testing.T) {
	got := NewComposer().Compose(map[string]string{"B": "base", "A": "1", "EMPTY": ""}, agent.Spec{Env: map[string]string{"B": "spec", "C": ""}})
	if want := []string{"A=1", "B=spec", "C=", "EMPTY="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBlockedNamesDoNotPassUnlessTheSessionSetsThem(t *testing.T) {
	base := map[string]string{"PATH": "/bin"}
	for _, k := range AgentEnvBlocklist {
		base[k] = "host"
	}
	for name, c := range map[string]*Composer{"new": NewComposer(), "nil": nil, "zero": {}} {
		if got := c.Compose(base, agent.Spec{}); !slices.Equal(got, []string{"PATH=/bin"}) {
			t.Errorf("%s: %q", name, got)
		}
		got := c.Compose(base, agent.Spec{Env: map[string]string{"ANTHROPIC_API_KEY": "session"}})
		if !slices.Equal(got, []string{"ANTHROPIC_API_KEY=session", "PATH=/bin"}) {
			t.Errorf("%s: on purpose: %q", name, got)
		}
	}
}

func TestAListOfItsOwnTakesThePlaceOfTheUsualOne(t *testing.T) {
	base := map[string]string{"MINE": "1", "OPENAI_API_KEY": "k"}
	if got := (&Composer{Blocklist: []string{"MINE"}}).Compose(base, agent.Spec{}); !slices.Equal(got, []string{"OPENAI_API_KEY=k"}) {
		t.Errorf("custom: %q", got)
	}
	if got := (&Composer{Blocklist: []string{}}).Compose(base, agent.Spec{}); !slices.Equal(got, []string{"MINE=1", "OPENAI_API_KEY=k"}) {
		t.Errorf("none: %q", got)
	}
	var none *Composer
	if !none.IsBlocked("OPENAI_API_KEY") || none.IsBlocked("openai_api_key") || none.IsBlocked("PATH") || (&Composer{Blocklist: []string{}}).IsBlocked("OPENAI_API_KEY") {
		t.Error("IsBlocked says otherwise")
	}
}

func TestTheBlocklistIsThisOne(t *testing.T) {
	want := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "OPENCLAW_GATEWAY_TOKEN", "RNIX_GATEWAY_UPSTREAM_API_KEY",
		"RNIX_GATEWAY_UPSTREAM_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY", "AMP_API_KEY", "RNIX_PI_KEY",
		"CODE_INTEL_HOST_JWT_SECRET", "RNIX_CREDENTIAL_CAPABILITY"}
	if !slices.Equal(AgentEnvBlocklist, want) {
		t.Errorf("%q", AgentEnvBlocklist)
	}
	for _, k := range want {
		if !Blocked(k) {
			t.Errorf("Inherit lets %s pass", k)
		}
	}
}

var doors = []string{"RNIX_OWNER", "RNIX_SESSION_TOKEN", "ATTACH_TOKEN", "ATTACH_TOKEN_FILE", "ATTACH_URL", "RNIX_SESSION_SHIM",
	"RNIX_SESSION_SHIM_SOCKET", "RNIX_SESSION_SHIM_OF_TOMORROW", "RNIX_INJECTED_ENV_KEYS"}

func TestWhatARunnerKeepsToItselfPassesNowhere(t *testing.T) {
	all, lines := map[string]string{"OK": "1"}, []string{"OK=1"}
	for _, k := range doors {
		all[k] = "x"
		lines = append(lines, k+"=x")
		if !IsRunnerOnly(k) || !Blocked(k) || InjectedEnvKeysFrom([]string{InjectedEnvKeysVar + "=" + k}).Allows(k) {
			t.Errorf("%s is let pass", k)
		}
	}
	for name, got := range map[string][]string{
		"no blocklist":   (&Composer{Blocklist: []string{}}).Compose(all, agent.Spec{Env: all}),
		"child":          ComposeChildEnv(lines, all),
		"filter":         FilterRunnerOnly(append(lines, "ATTACH_TOKEN")),
		"inherit":        Inherit(append(lines, "PATH=/b"), doors, all),
		"even if listed": Inherit(lines, append([]string{"OK"}, doors...), nil),
	} {
		if s := strings.Join(got, "\n"); !strings.Contains(s, "OK=1") || strings.Contains(s, "=x") || strings.Contains(s, "ATTACH") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := FilterRunnerOnlyMap(all); len(got) != 1 || len(all) != len(doors)+1 {
		t.Errorf("map: %v, and what was handed in is %v", got, all)
	}
	for _, k := range []string{"RNIX_SESSION_ID", "RNIX_WORKER_ID", "RNIX_PROJECT_ID", "RNIX_UUID"} {
		if IsRunnerOnly(k) {
			t.Errorf("%s is taken away", k)
		}
	}
	if got := FilterRunnerOnly([]string{"SAFE=a=b", "ATTACH_URL", "bare"}); !slices.Equal(got, []string{"SAFE=a=b", "bare"}) {
		t.Errorf("%q", got)
	}
	if FilterRunnerOnlyMap(nil) != nil || FilterHostOwnedMap(nil) != nil {
		t.Error("nil is not kept")
	}
}

func TestAChildHasItsParentsVariablesInOrderAndTheExplicitOnesLast(t *testing.T) {
	parent := []string{"Z=1", "A=2", "Z=3", "OPENAI_API_KEY=host", "ATTACH_TOKEN=t", "bare", "=C:=x", "NUL=a\x00b"}
	got := ComposeChildEnv(parent, map[string]string{"Z": "4", "B": "", "ATTACH_URL": "u"}, map[string]string{"Z": "5", "GEMINI_API_KEY": "on purpose", "X=Y": "no"})
	if want := []string{"Z=1", "A=2", "Z=3", "B=", "GEMINI_API_KEY=on purpose", "Z=5"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	var many []string
	for i := range 4096 {
		many = append(many, "V"+strconv.Itoa(i)+"=x")
	}
	if got := ComposeChildEnv(many); !slices.Equal(got, many) {
		t.Errorf("%d of %d are left", len(got), len(many))
	}
}

func TestAReadTokenIsNotInheritedButMayBeStated(t *testing.T) {
	const line = SessionReadToken + "=x"
	spec := agent.Spec{Env: map[string]string{SessionReadToken: "x"}}
	for name, c := range map[string]struct {
		got  []string
		want bool
	}{
		"compose, base": {NewComposer().Compose(map[string]string{SessionReadToken: "x"}, agent.Spec{}), false},
		"compose, spec": {NewComposer().Compose(nil, spec), true},
		"child, parent": {ComposeChildEnv([]string{line}), false},
		"child, said":   {ComposeChildEnv([]string{line}, spec.Env), true},
	} {
		if slices.Contains(c.got, line) != c.want {
			t.Errorf("%s: %q", name, c.got)
		}
	}
}

func TestInjectedNamesPassAndNothingElse(t *testing.T) {
	for value, want := range map[string]string{
		"":                                    "",
		"OPENAI_API_KEY":                      "OPENAI_API_KEY",
		" OPENAI_API_KEY , AMP_API_KEY ":      "AMP_API_KEY OPENAI_API_KEY",
		"OPENAI_*":                            "",
		"*":                                   "",
		"openai_api_key":                      "",
		",,":                                  "",
		"ATTACH_TOKEN,RNIX_INJECTED_ENV_KEYS": "",
		"OPENAI_API_KEY=x":                    "",
		"RNIX_SESSION_READ_TOKEN":             "",
	} {
		base := map[string]string{InjectedEnvKeysVar: value, "OPENAI_API_KEY": "v", "AMP_API_KEY": "v", "ATTACH_TOKEN": "v", SessionReadToken: "v"}
		lines := []string{InjectedEnvKeysVar + "=OPENAI_API_KEY,AMP_API_KEY", "AMP_API_KEY=v", "ATTACH_TOKEN=v", "OPENAI_API_KEY=v", SessionReadToken + "=v", InjectedEnvKeysVar + "=" + value}
		for name, got := range map[string][]string{"Compose": NewComposer().Compose(base, agent.Spec{}), "ComposeChildEnv": ComposeChildEnv(lines)} {
			if s := strings.ReplaceAll(strings.Join(got, " "), "=v", ""); s != want {
				t.Errorf("%s with %q: %q, want %q", name, value, s, want)
			}
		}
	}
}

func TestAListOfInjectedNamesIsReadNameByName(t *testing.T) {
	for value, want := range map[string]string{
		"": "", ",": "", " ": "", "A": "A", "A,B": "A B", " A ,\tB\n": "A B", "A,A": "A", "a,A": "A a", "A*,B": "B", "A=1,B": "B", "A B": "", "1A": "", "ATTACH_URL,B": "B",
	} {
		set := ParseInjectedEnvKeys(value)
		var got []string
		for k := range set {
			if set.Allows(k) {
				got = append(got, k)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	if InjectedEnvKeysFrom([]string{"A=1"}).Allows("A") || InjectedEnvKeySet(nil).Allows("A") || InjectedEnvKeysFromMap(nil).Allows("A") {
		t.Error("what nobody has named passes")
	}
	if set := InjectedEnvKeysFrom([]string{InjectedEnvKeysVar + "=A", InjectedEnvKeysVar + "=B"}); set.Allows("A") || !set.Allows("B") {
		t.Errorf("not the last one counts: %v", set)
	}
}

func TestAWorkItemSetsNothingOfTheHosts(t *testing.T) {
	in := map[string]string{"RNIX_CONFINEMENT": "off", "RNIX_CONFINEMENT=off": "", "RNIX_CONFINEMENT_READ": "host", "RNIX_CONFINEMENT_READ_PATHS": "/",
		"RNIX_DATA_DIR": "/x", "RNIX_API_URL": "u", "A.B": "x", "1X": "x", "": "x", "FINE_1": "y"}
	if got := FilterHostOwnedMap(in); len(got) != 1 || got["FINE_1"] != "y" || len(in) != 10 {
		t.Errorf("%v", got)
	}
}

func TestNamesOfVariables(t *testing.T) {
	for key, want := range map[string]bool{"A": true, "_": true, "a1_B": true, "": false, "1A": false, "A-B": false, "A=B": false, "A\x00": false, "Ä": false, "A B": false} {
		if ValidEnvKey(key) != want {
			t.Errorf("%q: %v", key, !want)
		}
	}
}

func TestLooksSensitive(t *testing.T) {
	for key, want := range map[string]bool{"GITHUB_TOKEN": true, "my_secret": true, "DB_PASSWORD": true, "PGPASSWD": true, "SSH_PRIVATE_KEY": true,
		"OPENAI_API_KEY": true, "PATH": false, "KEYBOARD": false, "HOME": false} {
		if LooksSensitive(key) != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
}

// What the lists say is worth what a child sees.
func TestARealChildSeesWhatWasComposedAndNothingElse(t *testing.T) {
	for _, k := range append(slices.Clone(AgentEnvBlocklist), doors...) {
		t.Setenv(k, "canary")
	}
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip("needs cat")
	}
	host := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		host[k] = v
	}
	for name, environ := range map[string][]string{
		"Compose":         NewComposer().Compose(host, agent.Spec{Env: map[string]string{"SESSION": "mine"}}),
		"ComposeChildEnv": ComposeChildEnv(os.Environ(), map[string]string{"SESSION": "mine"}),
		"Inherit":         Inherit(os.Environ(), nil, map[string]string{"SESSION": "mine"}),
	} {
		cmd := exec.CommandContext(t.Context(), cat, "/proc/self/environ")
		cmd.Env = environ
		out, err := cmd.Output()
		if err != nil {
			t.Skip("needs /proc")
		}
		if s := string(out); strings.Contains(s, "canary") || !strings.Contains(s, "SESSION=mine\x00") {
			t.Errorf("%s: the child sees %q", name, s)
		}
	}
}
