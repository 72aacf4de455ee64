package compose

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"rnix/agent"
	"rnix/internal/sandbox"
)

func parse(t *testing.T, text string, vars map[string]string) (*File, Problems) {
	t.Helper()
	return Parse(Source{Name: "compose.yaml", Text: []byte(text), Vars: vars, ReadFile: os.ReadFile})
}

func plan(t *testing.T, text string) *Plan {
	t.Helper()
	f, ps := parse(t, text, nil)
	if err := ps.Errors(); len(err) > 0 {
		t.Fatal(err)
	}
	return f.Plan()
}

const whole = `version: "1.0"
name: review
intent: Review the change
model: m
budget: 200k
budget_usd: 2.5
timeout: 1h
max_parallel: 4
vars: {target: main, n: 3}
agents:
  merge:
    intent: Merge the reviews of ${target}
    depends_on: {review: completed}
    allow: []
    output:
      schema: {type: object, required: [verdict]}
  list:
    intent: List the files
    output: {schema: {type: array}}
  review:
    intent: Review ${item.path}, number ${index}; it costs $${5}
    foreach: {from: list, max: 20}
    retries: {max: 2, on: [timeout, output], backoff: {initial: 2s, factor: 3, max: 10s}}
    skills: [code-review]
    max_steps: 0
  fix:
    intent: Say why
    depends_on: {merge: failed}
`

func TestAWorkflowIsReadAsItIsWritten(t *testing.T) {
	f, ps := parse(t, whole, map[string]string{"target": "dev"})
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	p := f.Plan()
	if got := strings.Join(p.Order, " "); got != "list review merge fix" {
		t.Errorf("order %s", got)
	}
	r := f.Agents["review"]
	if c, _ := r.Needs("list"); c != OnSucceeded || *f.Budget != 200_000 || *f.BudgetUSD != 2.5 || f.Timeout.Or(0) != time.Hour || p.Width != 4 {
		t.Errorf("%+v", f)
	}
	if f.Agents["merge"].Allow == nil || r.Allow != nil || *r.MaxSteps != 0 {
		t.Error("nothing and not said are not the same")
	}
	for n, want := range map[int]time.Duration{1: 2 * time.Second, 2: 6 * time.Second, 3: 10 * time.Second, 90: 10 * time.Second} {
		if got := r.Retries.Backoff.before(n); got != want {
			t.Errorf("before attempt %d again: %v, want %v", n, got, want)
		}
	}
	n, err := r.Render(&Scope{Vars: f.Vars, Item: map[string]any{"path": "a.go"}, Index: 7})
	if err != nil || n.Intent != "Review a.go, number 7; it costs ${5}" {
		t.Errorf("%q %v", n.Intent, err)
	}
	if strings.Join(p.Sinks(), " ") != "fix" {
		t.Errorf("sinks %v", p.Sinks())
	}
}

func TestMistakesAreNamedWithTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"agents:\n  a:\n    intnet: x\n":                                                  `compose.yaml:3:5: agents.a.intnet: unknown key; did you mean "intent"?`,
		"agents:\n  a: {intent: x, depends_on: [bb]}\n  b: {intent: x}\n":                 `compose.yaml:2:31: agents.a.depends_on[0]: there is no node "bb"; did you mean "b"?`,
		"agents:\n  a: {intent: x, depends_on: {b: done}}\n  b: {intent: x}\n":            `compose.yaml:2:34: agents.a.depends_on.b: "done" is not a condition; write one of: completed, succeeded, failed`,
		"agents:\n  a: {intent: x, depends_on: [b]}\n  b: {intent: x, depends_on: [a]}\n": `compose.yaml:2:30: agents.a.depends_on: the nodes wait for each other: a -> b -> a`,
		"agents:\n  a: {intent: x, depends_on: [a]}\n":                                    `the nodes wait for each other: a -> a`,
		"agents:\n  a:\n":                 `compose.yaml:2:5: agents.a: the node says nothing; it needs an intent`,
		"agents: {}\n":                    `there are no nodes`,
		"name: x\n":                       `there are no nodes`,
		"":                                `the file is empty`,
		"agents:\n  a: {intent: \" \"}\n": `compose.yaml:2:15: agents.a.intent: missing; say what the node is to do`,
		"agents:\n  a: {intent: 'do ${thing}'}\n":                                     "compose.yaml:2:15: agents.a.intent: ${thing} has no value; give it one with --var thing=..., or set a default below vars",
		"vars: {target: x}\nagents:\n  a: {intent: 'do ${taget}'}\n":                  "did you mean ${target}?",
		"agents:\n  a: {intent: 'do ${item}'}\n":                                      "${item} stands for something only",
		"agents:\n  a: {intent: 'do ${nodes.b.output}'}\n":                            "name them in depends_on",
		"agents:\n  a: {intent: 'do ${x'}\n":                                          "has no closing brace",
		"agents:\n  a: {intent: 'do ${x y}'}\n":                                       "is not a reference",
		"agents:\n  a: {intent: x, foreach: {from: b, files: c}}\n  b: {intent: x}\n": "write a list, or from: NODE, or files: PATTERN",
		"agents:\n  a: {intent: x, foreach: {from: c}}\n  b: {intent: x}\n":           `compose.yaml:2:34: agents.a.foreach.from: there is no node "c"`,
		"agents:\n  a: {intent: x, foreach: {form: b}}\n  b: {intent: x}\n":           `did you mean "from"?`,
		"agents:\n  a: {intent: x, foreach: one}\n":                                   "this is a text, but must be a list, or keys and values",
		"agents:\n  a: {intent: x, retries: {max: 1, on: [budget]}}\n":                `compose.yaml:2:41: agents.a.retries.on[0]: "budget" is not a failure that can be tried again`,
		"agents:\n  a: {intent: x, retries: {max: -1}}\n":                             "from 0 to 100 attempts more",
		"agents:\n  a: {intent: x, output: {schema: {type: nonsense}}}\n":             "compose.yaml:2:35: agents.a.output.schema: not a JSON Schema: there is no type",
		"agents:\n  a: {intent: x, output: {schema: {$ref: 'file:///etc/passwd'}}}\n": "not a JSON Schema",
		"agents:\n  a: {intent: x, output: {schema: gone.json}}\n":                    "gone.json: no such file",
		"agents:\n  a: {intent: x, timeout: 5}\n":                                     "compose.yaml:2:27: agents.a.timeout: 5 has no unit",
		"agents:\n  a: {intent: x, allow: [dev/fs]}\n":                                `compose.yaml:2:26: agents.a.allow[0]: cannot allow "dev/fs": device paths begin with a slash`,
		"agents:\n  a:\n    intent: x\n    deny: [/dev/shell, /dev/fs/sub]\n":         `compose.yaml:4:24: agents.a.deny[1]: cannot deny "/dev/fs/sub": rights end at the device, so this would have no effect: name all of /dev/fs`,
		"agents:\n  a: {intent: x, deny: [/dev/shell/..]}\n":                          `cannot deny "/dev/shell/..": want /dev, without`,
		"agents:\n  a: {intent: x, deny: [/sys/nonsense]}\n":                          `cannot deny "/sys/nonsense": there is no such device`,
		"agents:\n  a: {intent: x, sandbox: {level: off}}\n":                          "compose.yaml:2:35: agents.a.sandbox.level: a node cannot switch the sandbox off; a person does, for all nodes, with: rnix compose up --sandbox off",
		"agents:\n  a: {intent: x, sandbox: {level: loose}}\n":                        `compose.yaml:2:35: agents.a.sandbox.level: "loose" is not known; write auto, bwrap or landlock`,
		"agents:\n  a: {intent: x, sandbox: {lvel: auto}}\n":                          `compose.yaml:2:28: agents.a.sandbox.lvel: unknown key; did you mean "level"?`,
		"agents:\n  a:\n    intent: x\n    network: some\n":                           `compose.yaml:4:14: agents.a.network: "some" is not known; write none, hosts or open`,
		"agents:\n  a: {intent: x, sandbox: {hosts: [a b]}}\n":                        `agents.a.sandbox.hosts[0]: "a b" is no host`,
		"agents:\n  a: {intent: x, network: open, sandbox: {hosts: [npm]}}\n":         `agents.a.sandbox.hosts: are named, but the network is open`,
		"agents:\n  a: {intent: x, network: none, sandbox: {net: open}}\n":            `compose.yaml:2:27: agents.a.network: is "none", and sandbox.net is "open"; leave one of them out`,
		"budget: lots\nagents:\n  a: {intent: x}\n":                                   "compose.yaml:1:9: budget: want a number of tokens",
		"budget_usd: -1\nagents:\n  a: {intent: x}\n":                                 "compose.yaml:1:13: budget_usd: is -1",
		"max_parallel: 99\nagents:\n  a: {intent: x}\n":                               "from 1 to 32 nodes can run at once",
		"version: 2\nagents:\n  a: {intent: x}\n":                                     `compose.yaml:1:10: version: this is a number, but must be a text`,
		"version: '2'\nagents:\n  a: {intent: x}\n":                                   `this program reads version "1.0"`,
		"agents:\n  a: {intent: x}\nnodes:\n  b: {intent: x}\n":                       "the nodes stand below agents already",
		"agents:\n  a/b: {intent: x}\n":                                               `"a/b" cannot be the name of a node`,
		"agents:\n  a: {intent: x}\n  b: {intent: x, depends_on: {a: failed}}\n  c: {intent: x, depends_on: {a: succeeded, b: succeeded}}\n": "agents.c.depends_on: it can never run",
	} {
		_, ps := parse(t, text, nil)
		if got := ps.Error(); !strings.Contains(got, want) || len(ps.Errors()) == 0 {
			t.Errorf("%q gave\n%s\nwant %s", text, got, want)
		}
	}
}

func TestANodeSaysHowItsCommandsAreConfined(t *testing.T) {
	f, ps := parse(t, "agents:\n  a: {intent: x, network: none, sandbox: {level: bwrap}}\n  b: {intent: x, sandbox: {net: open}}\n  c: {intent: x}\n  d: {intent: x, sandbox: {hosts: [npm]}}\n", nil)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	raw, err := json.Marshal(f) // as the history of a run keeps it
	if err != nil {
		t.Fatal(err)
	}
	kept := new(File)
	if err := Unmarshal(raw, kept); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]agent.Sandbox{"a": {Level: sandbox.LevelBwrap, Net: sandbox.NetNone}, "b": {Net: sandbox.NetOpen}, "c": {}, "d": {Net: sandbox.NetHosts, Hosts: []string{"npm"}}} {
		if n := f.Agents[name]; !reflect.DeepEqual(n.Sandbox, want) || n.Network != "" || !reflect.DeepEqual(kept.Agents[name].Sandbox, want) {
			t.Errorf("%s: %+v, %q, and is kept as %+v", name, n.Sandbox, n.Network, kept.Agents[name].Sandbox)
		}
	}
	if n := strings.Count(string(raw), `"sandbox"`); n != 3 {
		t.Errorf("what was not said is kept: %s", raw)
	}
}

func TestAVariableThatNothingUsesIsNamed(t *testing.T) {
	_, ps := parse(t, "vars: {target: x}\nagents:\n  a: {intent: '${target}'}\n", map[string]string{"taget": "y"})
	if !strings.Contains(ps.Error(), `"taget" is given and nothing uses it; did you mean target?`) {
		t.Error(ps)
	}
	f, ps := parse(t, "agents:\n  a: {intent: '${target}'}\n", map[string]string{"target": "${item} and more"})
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	if n, err := f.Agents["a"].Render(&Scope{Vars: f.Vars, Index: -1}); err != nil || n.Intent != "${item} and more" {
		t.Errorf("a value is a text and no reference: %q %v", n.Intent, err)
	}
}

func TestAnOutputIsWhatItsSchemaSays(t *testing.T) {
	p := plan(t, "agents:\n  a:\n    intent: x\n    output: {schema: {type: array, items: {type: object, required: [path]}}}\n")
	o := p.File.Agents["a"].Output
	for in, want := range map[string]string{
		`[{"path":"a"}]`:                    "",
		"```json\n[{\"path\": \"b\"}]\n```": "",
		`[{"pat":"a"}]`:                     `at /items: required: missing properties: ["path"]`,
		`{"path":"a"}`:                      `it has type "object", want "array"`,
		"I have looked at it":               "not JSON",
		"":                                  "not JSON",
	} {
		out, err := o.Check(in)
		if want == "" && (err != nil || !strings.HasPrefix(out, "[")) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q %v, want %q", in, out, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "mem://") {
			t.Errorf("%v", err)
		}
	}
	if items, err := Items("a", "```\n[1.50, {\"a\": 12345678901234567890}]\n```", 5); err != nil || Text(items[0]) != "1.50" || Text(items[1]) != `{"a":12345678901234567890}` {
		t.Errorf("%v %v", items, err)
	}
	for _, bad := range []string{"", "null x", "{}", "[1] [2]", "[1,2,3,4,5,6]"} {
		if _, err := Items("a", bad, 5); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestAnItemThatIsLongIsCutAndSaysSo(t *testing.T) {
	n := Node{Intent: "see ${item}"}
	out, err := n.Render(&Scope{Item: strings.Repeat("é", 5000), Index: 0})
	if err != nil || len(out.Intent) > maxItemText+200 || !strings.Contains(out.Intent, `the whole item is the input "item"`) {
		t.Errorf("%d bytes, %v", len(out.Intent), err)
	}
	if _, err := (&Node{Intent: "${item.a.b}"}).Render(&Scope{Item: map[string]any{"a": "x"}, Index: 0}); err == nil || !strings.Contains(err.Error(), `no field "b"`) {
		t.Error(err)
	}
}

func TestGraphsAreDrawn(t *testing.T) {
	p := plan(t, whole)
	for format, want := range map[string]string{
		"text":    "review (for each item of list) [done]\n  <- list\n",
		"dot":     "\"merge\" -> \"fix\" [label=\"failed\", style=dashed];",
		"mermaid": "n1 -. completed .-> n2",
	} {
		got, err := p.Draw(format, func(string) string { return "done" })
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s:\n%s%v", format, got, err)
		}
	}
	if _, err := p.Draw("png", nil); err == nil {
		t.Error("png")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("agents:\n  a: {intent: '${item.x}', foreach: [1, {x: 2}, [3]], depends_on: {a: failed}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, ps := Parse(Source{Name: "f", Text: []byte(text), AnyVars: true})
		if len(ps.Errors()) == 0 {
			p := file.Plan()
			if len(p.Order) != len(file.Agents) {
				t.Errorf("%d of %d nodes are planned", len(p.Order), len(file.Agents))
			}
			if _, err := NewState(p, nil, nil); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestMoreResultsThanAnAgentTakesAreFoundInTheFile(t *testing.T) {
	list := "[" + strings.Repeat("x, ", 599) + "x]"
	text := "agents:\n  a: {intent: a, foreach: " + list + "}\n  b: {intent: b, foreach: " + list + "}\n  c: {intent: c, foreach: {from: b}}\n" +
		"  one: {intent: one, depends_on: [a]}\n  both: {intent: both, depends_on: [a, b, one]}\n  far: {intent: far, depends_on: [a, c]}\n"
	_, ps := Parse(Source{Name: "compose.yaml", Text: []byte(text)})
	if len(ps.Errors()) != 2 {
		t.Fatalf("%v", ps)
	}
	for i, want := range []string{"compose.yaml:6:36: agents.both.depends_on: it would be given 1201 results (600 of a, 600 of b), and an agent takes at most 1024 inputs",
		"compose.yaml:7:34: agents.far.depends_on: it would be given 1200 results (600 of a, 600 of c)"} {
		if got := ps[i].String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
