package agent

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"rnix/types"
)

func TestAManifestIsReadWhole(t *testing.T) {
	m, err := ParseManifest([]byte(`name: full
description: does everything
models: {provider: anthropic, preferred: big, fallback: small, fallback_provider: openai, reasoning_effort: high}
context_budget: 1000
max_steps: 0
skills: [a, b]
devices: []
mcp: [m]
env: [CI, GOFLAGS]
step_timeout: 90s
project_doc: false
language: Deutsch
`), "full")
	if err != nil {
		t.Fatal(err)
	}
	budget, steps, no := 1000, 0, false
	want := Manifest{
		Name: "full", Description: "does everything",
		Models:        Models{Provider: "anthropic", Preferred: "big", Fallback: "small", FallbackProvider: "openai", ReasoningEffort: "high"},
		ContextBudget: &budget, MaxSteps: &steps, Skills: []string{"a", "b"}, Devices: []string{}, MCP: []string{"m"},
		Env: []string{"CI", "GOFLAGS"}, StepTimeout: Duration(90 * time.Second), ProjectDoc: &no, Language: "Deutsch",
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back Manifest
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("json round trip: %s", diff)
	}
}

func TestNoDevicesIsNotAllDevices(t *testing.T) {
	all, err1 := ParseManifest([]byte("description: x\n"), "a")
	none, err2 := ParseManifest([]byte("devices: []\n"), "a")
	if err1 != nil || err2 != nil || all.Devices != nil || none.Devices == nil || len(none.Devices) != 0 {
		t.Errorf("%v %v %#v %#v", err1, err2, all.Devices, none.Devices)
	}
	b, _ := json.Marshal(none)
	var back Manifest
	if err := json.Unmarshal(b, &back); err != nil || back.Devices == nil {
		t.Errorf("%s reads back as all devices", b)
	}
	if _, err := ParseManifest([]byte("devices:\n"), "a"); err == nil {
		t.Error("a device list without value was accepted")
	}
}

func TestExplicitZeroIsNotAbsence(t *testing.T) {
	zero, _ := ParseManifest([]byte("max_steps: 0\ncontext_budget: -5\nstep_timeout: \"0\"\n"), "a")
	if zero.MaxSteps == nil || *zero.MaxSteps != 0 || zero.ContextBudget == nil || *zero.ContextBudget != 0 {
		t.Errorf("%+v", zero)
	}
	if got := zero.StepTimeout.Or(time.Minute); got != 0 {
		t.Errorf("step timeout %v, want off", got)
	}
	absent, _ := ParseManifest([]byte("language: English\n"), "a")
	if absent.MaxSteps != nil || absent.StepTimeout.Or(time.Minute) != time.Minute {
		t.Errorf("%+v", absent)
	}
}

func TestEveryMistakeOfAManifestIsNamedWithItsPlace(t *testing.T) {
	_, err := ParseManifest([]byte(`name: other
max_step: 3
models:
  provder: x
  preferred: a b
skills: [../x, a, a]
devices: [fs]
env: [A=b]
step_timeout: 30
max_steps: -1
max_steps: 2
`), "mine")
	var ps Problems
	if types.CodeOf(err) != types.ErrInvalid || !errors.As(err, &ps) {
		t.Fatalf("err %v", err)
	}
	for _, want := range []string{
		`agent.yaml:1:7: name: is "other", but the directory is "mine"`,
		`agent.yaml:2:1: max_step: unknown key; did you mean "max_steps"?`,
		`agent.yaml:4:3: models.provder: unknown key; did you mean "provider"?`,
		`agent.yaml:5:14: models.preferred: "a b" must be one word`,
		`agent.yaml:6:10: skills[0]: "../x" cannot be the name of a skill`,
		`agent.yaml:6:19: skills[2]: "a" stands here a second time`,
		`agent.yaml:7:11: devices[0]: "fs" cannot be the name of a device path`,
		`agent.yaml:8:7: env[0]: `,
		`agent.yaml:9:15: step_timeout: 30 has no unit; write 30s or 30m, for example`,
		`agent.yaml:10:12: max_steps: is negative`,
		`agent.yaml:11:1: max_steps: the key stands here a second time`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	for _, src := range []string{"", "# only words\n", "- a\n", "x", "a: &a [*a]"} {
		if _, err := ParseManifest([]byte(src), "a"); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", src, err)
		}
	}
	if _, err := ParseManifest([]byte("description: x\n"), ""); err == nil {
		t.Error("an agent without any name was accepted")
	}
}

func TestLoadManifestTakesTheNameOfItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "helper")
	write(t, dir, "agent.yaml", "description: x\n")
	for _, path := range []string{dir, filepath.Join(dir, "agent.yaml")} {
		if m, err := LoadManifest(path); err != nil || m.Name != "helper" {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if _, err := LoadManifest(filepath.Join(dir, "none.yaml")); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("err %v", err)
	}
	if _, err := LoadManifest(os.DevNull); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("err %v", err)
	}
}

func TestDurationsReadBack(t *testing.T) {
	for text, want := range map[string]Duration{"": 0, "0": Off, "0s": Off, "5m": Duration(5 * time.Minute), "1h30m": Duration(90 * time.Minute)} {
		var d, back Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d != want {
			t.Errorf("%q: %v, %v", text, d, err)
		}
		if err := back.UnmarshalText([]byte(d.String())); err != nil || back != d {
			t.Errorf("%q reads back as %v", d, back)
		}
	}
	for _, text := range []string{"5", "-5m", "soon", "1e3"} {
		if err := new(Duration).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q accepted", text)
		}
	}
	out, err := yaml.Marshal(Manifest{Name: "a", StepTimeout: Duration(time.Minute)})
	if err != nil || !strings.Contains(string(out), "step_timeout: 1m0s") {
		t.Errorf("%s %v", out, err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte("name: a\nmodels: {provider: x}\nskills: [a]\nmax_steps: 0\nstep_timeout: 5m\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := ParseManifest(src, "a")
		if err != nil {
			return
		}
		if m.ContextBudget != nil && *m.ContextBudget < 0 || m.MaxSteps != nil && *m.MaxSteps < 0 || m.Name != "a" {
			t.Fatalf("accepted %+v", m)
		}
		out, err := json.Marshal(m)
		var back Manifest
		if err == nil {
			err = json.Unmarshal(out, &back)
		}
		if again, _ := json.Marshal(back); err != nil || string(again) != string(out) || (back.Devices == nil) != (m.Devices == nil) {
			t.Fatalf("%v: %s became %s", err, out, again)
		}
	})
}
