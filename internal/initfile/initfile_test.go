package initfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/internal/sandbox"
)

func TestAFileSaysWhatIsKeptRunning(t *testing.T) {
	f := Parse([]byte(`version: "1"
supervisors:
  - name: night
    strategy: one_for_all
    max_restarts: 0
    max_window: 1h30m
    required: true
    cwd: src
    context_budget: 100
    budget_usd: 1.5
    children:
      - name: a
        intent: tidy up
        agent: clerk
        provider: p
        model: m
        restart: transient
        backoff: {initial: 24h, factor: 2, max: 48h}
        shutdown: kill
        env: [CI]
        mcp: [tracker]
        allow: []
        deny: [/dev/shell]
        sandbox: {level: bwrap}
        network: none
      - name: low
        shutdown: infinity
        supervisor:
          cwd: ~/low
          children:
            - {name: w, intent: work, shutdown: 3s}
`), "init.yaml")
	if ps := f.Problems(); len(ps) > 0 {
		t.Fatal(ps)
	}
	f.Settle("/base", "/home/me")
	s := f.Supervisors[0]
	a, low := s.Children[0], s.Children[1]
	for i, ok := range []bool{
		s.Name == "night" && s.Required && *s.MaxRestarts == 0 && time.Duration(s.MaxWindow) == 90*time.Minute && *s.BudgetUSD == 1.5,
		s.Cwd == "/base/src" && a.Cwd == "/base/src" && low.Supervisor.Cwd == "/home/me/low" && low.Supervisor.Children[0].Cwd == "/home/me/low",
		a.Shutdown == Kill && low.Shutdown == Infinity && time.Duration(low.Supervisor.Children[0].Shutdown) == 3*time.Second,
		time.Duration(a.Backoff.Initial) == 24*time.Hour && a.Backoff.Factor == 2 && a.Allow != nil && len(a.Allow) == 0,
		reflect.DeepEqual(a.Sandbox, agent.Sandbox{Level: sandbox.LevelBwrap, Net: sandbox.NetNone}) && a.Network == "" && reflect.ValueOf(low.Supervisor.Children[0].Sandbox).IsZero(),
	} {
		if !ok {
			t.Errorf("%d: %+v", i, s)
		}
	}
	b, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	var again Supervisor
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	again.Required = true // where it stands, and not what it is
	if diff := cmp.Diff(s, again); diff != "" {
		t.Errorf("the history keeps something else: %s", diff)
	}
}

func TestEveryMistakeHasItsPlace(t *testing.T) {
	for source, want := range map[string]string{
		"supervisors: [{children: [{name: a, intent: x}]}]":                                                               "1:15: supervisors[0].name: missing",
		"supervisors: [{name: s}]":                                                                                        "1:15: supervisors[0].children: missing; a supervisor needs at least one child",
		"supervisors: [{name: s, children: [{name: a}]}]":                                                                 "1:36: supervisors[0].children[0].intent: missing; say what the agent is to do",
		"supervisors: [{name: s, children: [{name: \"7\", intent: x}]}]":                                                  "1:43: supervisors[0].children[0].name: \"7\" cannot be a name: a number would be taken for a PID",
		"supervisors: [{name: s, children: [{name: a, intent: x}, {name: a, intent: x}]}]":                                "1:65: supervisors[0].children[1].name: child 1 is called \"a\" too; give each its own name",
		"supervisors: [{name: s, children: [{name: a, intent: x}]}, {name: s, children: [{name: a, intent: x}]}]":         "1:67: supervisors[1].name: supervisor 1 is called \"s\" too; give each its own name",
		"supervisors: [{name: s, strategy: simple_one_for_one, children: [{name: a}, {name: b}]}]":                        "1:65: supervisors[0].children: simple_one_for_one takes one child, of which all others are made, and here are 2",
		"supervisors: [{name: s, strategy: all, children: [{name: a, intent: x}]}]":                                       `1:35: supervisors[0].strategy: "all" is not known; use one_for_one, one_for_all, rest_for_one, simple_one_for_one`,
		"supervisors: [{name: s, max_restarts: -1, children: [{name: a, intent: x}]}]":                                    "1:39: supervisors[0].max_restarts: -1 must be between 0 and 1000",
		"supervisors: [{name: s, max_window: 0, children: [{name: a, intent: x}]}]":                                       "1:37: supervisors[0].max_window: must be more than 0",
		"supervisors: [{name: s, children: [{name: a, intent: x, backoff: {max: 1s}}]}]":                                  "1:66: supervisors[0].children[0].backoff: initial is missing, so there is no delay to grow",
		"supervisors: [{name: s, children: [{name: a, intent: x, backoff: {initial: 2s, max: 1s}}]}]":                     "1:85: supervisors[0].children[0].backoff.max: is less than initial (2s)",
		"supervisors: [{name: s, children: [{name: a, intent: x, backoff: {initial: 2s, factor: 0.5}}]}]":                 "1:88: supervisors[0].children[0].backoff.factor: must be 1 or more",
		"supervisors: [{name: s, children: [{name: a, intent: x, shutdown: soon}]}]":                                      `1:67: supervisors[0].children[0].shutdown: "soon" is not a duration; write it like 30s, 5m or 1h; or kill, or infinity`,
		"supervisors: [{name: s, children: [{name: a, intent: x, env: [A=b]}]}]":                                          `1:63: supervisors[0].children[0].env[0]: "A=b" cannot be an environment variable; only names stand here, not values`,
		"supervisors: [{name: s, children: [{name: a, intent: x, allow: [dev]}]}]":                                        `1:65: supervisors[0].children[0].allow[0]: cannot allow "dev": device paths begin with a slash`,
		"supervisors: [{name: s, deny: [/dev/fs/sub], children: [{name: a, intent: x}]}]":                                 `1:32: supervisors[0].deny[0]: cannot deny "/dev/fs/sub": rights end at the device`,
		"supervisors: [{name: s, children: [{name: a, intent: x, deny: [\"\"]}]}]":                                        `1:64: supervisors[0].children[0].deny[0]: cannot deny "": it is empty`,
		"supervisors: [{name: s, children: [{name: a, agent: x, supervisor: {children: [{name: b, intent: x}]}}]}]":       "1:53: supervisors[0].children[0].agent: a child is an agent or a supervisor; this one has the key supervisor, and there this may stand",
		"supervisors: [{name: s, children: [{name: a, supervisor: {name: x, children: [{name: b, intent: x}]}}]}]":        "1:65: supervisors[0].children[0].supervisor.name: a supervisor below another has the name of its child; take this one out",
		"supervisors: [{name: s, children: [{name: a, supervisor: {required: true, children: [{name: b, intent: x}]}}]}]": "1:69: supervisors[0].children[0].supervisor.required: only a supervisor at the top can be required; those below start with it",
		"supervisors: [{name: s, children: [{name: a, intent: x, sandbox: {level: off}}]}]":                               "1:74: supervisors[0].children[0].sandbox.level: a child of a supervisor cannot switch the sandbox off; a person does, for all agents, with sandbox: {level: off} in config.yaml",
		"supervisors: [{name: s, children: [{name: a, intent: x, network: some}]}]":                                       `1:66: supervisors[0].children[0].network: "some" is not known; write none, hosts or open`,
		"supervisors: [{name: s, children: [{name: a, network: none, supervisor: {children: [{name: b, intent: x}]}}]}]":  "1:55: supervisors[0].children[0].network: a child is an agent or a supervisor; this one has the key supervisor, and there this may stand",
		"services: [{type: web}]": `1:19: services[0].type: there is no service of type "web", nor any other that has to be started: take it out`,
		"version: \"2\"":          `1:10: version: "2" is not known; write "1"`,
		"supervisors: {}":         "1:14: supervisors: this is a map, but must be a list",
		"supervisors: [{name: s, budget_usd: -1, children: [{name: a, intent: x}]}]": "1:37: supervisors[0].budget_usd: must be between 0, which is no limit, and ",
	} {
		ps := Parse([]byte(source), "f").Problems().Errors()
		if len(ps) != 1 || !strings.HasPrefix(ps[0].String(), "f:"+want) {
			t.Errorf("%s\n got %s\nwant f:%s", source, ps.Error(), want)
		}
	}
}

func TestServicesOfOthersAreToldToDoNothing(t *testing.T) {
	f := Parse([]byte("services: [{name: s, type: mcp_manager, required: true, config: {a: 1}}]\nsupervisors: [{name: s, children: [{name: a, intent: x}]}]\n"), "f")
	ps := f.Problems()
	if len(ps) != 1 || !ps[0].Warning || !strings.Contains(ps[0].String(), "needs no start") || f.Bad(0) {
		t.Errorf("%v", ps)
	}
}

func TestAMistakeOfOneSupervisorIsNotOneOfAnother(t *testing.T) {
	f := Parse([]byte("supervisors: [{name: s, children: [{name: a, intent: x}]}, {name: t}]\n"), "f")
	if f.Bad(0) || !f.Bad(1) || len(f.Whole()) != 0 {
		t.Errorf("%v", f.Problems())
	}
	if f := Parse([]byte("supervisors: [\n"), "f"); len(f.Whole()) != 1 || !f.Bad(0) {
		t.Errorf("%v", f.Problems())
	}
}

func TestNestingHasAnEnd(t *testing.T) {
	source := "{name: w, intent: x}"
	for range maxDepth + 1 {
		source = "{name: c, supervisor: {children: [" + source + "]}}"
	}
	f := Parse([]byte("supervisors: [{name: s, children: ["+source+"]}]"), "f")
	if ps := f.Problems(); len(ps) != 1 || !strings.Contains(ps[0].Message, "nested deeper than 6 levels") {
		t.Errorf("%v", ps)
	}
}

func TestWhatCannotBeReadAsYAMLMayStillSayThatItIsRequired(t *testing.T) {
	for text, want := range map[string]bool{"a:\n\t- x\n  required: true\n": true, "- required:  true # yes": true, "required: false": false, "# required: true": false, "": false} {
		if got := SaysRequired([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "supervisors: []", "supervisors: [{name: s, children: [{name: a, intent: x, backoff: {initial: 1s}}]}]", "services: [{type: x}]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		file := Parse([]byte(source), "f")
		file.Settle("/b", "/h")
		if len(file.Problems().Errors()) > 0 {
			return
		}
		for i := range file.Supervisors {
			b, err := json.Marshal(&file.Supervisors[i])
			if err != nil {
				t.Fatal(err)
			}
			var again Supervisor
			if err := json.Unmarshal(b, &again); err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			c, err := json.Marshal(&again)
			if err != nil || string(b) != string(c) {
				t.Fatalf("%s is kept as %s (%v)", b, c, err)
			}
		}
		_ = fmt.Sprint(file.Problems())
	})
}
