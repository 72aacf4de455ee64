package trace

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rnix/internal/step"
	"rnix/types"
)

// exported is a run with a failing call and a child, as OTLP/JSON.
func exported(t *testing.T, content bool) (text []byte, spans []Span) {
	t.Helper()
	x := tell(t, 1, noon).begin().ask(s, "shell", "spawn").start(0, "shell", 0, false).pass(s).result(0, "shell", s, "exit \"1\"\x00\xff").
		start(1, "spawn", 2, false)
	child := with(tell(t, 2, x.now).begin().ask(s).done(), 1)
	src := x.pass(2*s).result(1, "spawn", 2*s, "").done().exit(1, "it failed").source()
	src.Content, child.Content = content, content
	tr := of(t, x.now, src, child)
	var b bytes.Buffer
	if err := WriteOTLP(&b, types.UUID{0xab, 15: 1}, tr.Spans, "rnix", "1.2"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), tr.Spans
}

// TestWhatIsExportedIsOTLPInJSON checks the mapping of OTLP to JSON: names in lowerCamelCase, ids in
// hexadecimal, 64-bit integers as strings, enumerations as numbers.
func TestWhatIsExportedIsOTLPInJSON(t *testing.T) {
	text, spans := exported(t, false)
	if bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("it is not one line:\n%s", text)
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	known := strings.Fields("resourceSpans resource attributes scopeSpans scope spans name version traceId spanId parentSpanId kind startTimeUnixNano " +
		"endTimeUnixNano status code message key value stringValue boolValue intValue doubleValue arrayValue values")
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				if !slices.Contains(known, k) {
					t.Errorf("OTLP has no field %q", k)
				}
				look(x)
			}
		case []any:
			for _, x := range v {
				look(x)
			}
		}
	}
	look(all)
	list := at(all, "resourceSpans", 0, "scopeSpans", 0, "spans").([]any)
	if len(list) != len(spans) {
		t.Fatalf("%d of %d spans", len(list), len(spans))
	}
	ids := map[string]bool{}
	for i, x := range list {
		want := &spans[i]
		id, _ := at(x, "spanId").(string)
		up, _ := at(x, "parentSpanId").(string)
		if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(id) || ids[id] || at(x, "traceId") != "ab000000000000000000000000000001" || i > 0 != ids[up] {
			t.Errorf("ids of %v", x)
		}
		ids[id] = true
		start, err1 := strconv.ParseInt(at(x, "startTimeUnixNano").(string), 10, 64)
		end, err2 := strconv.ParseInt(at(x, "endTimeUnixNano").(string), 10, 64)
		if err1 != nil || err2 != nil || start != want.Start.UnixNano() || end-start != int64(want.Dur) {
			t.Errorf("times of %v", x)
		}
		if k := at(x, "kind"); k != 1.0 && (k != 3.0 || want.Kind != Model) {
			t.Errorf("kind of %v", x)
		}
		code, _ := at(x, "status").(map[string]any)["code"].(float64)
		if (code == 2) != (want.Status == Failed) || math.Trunc(code) != code {
			t.Errorf("status of %v", x)
		}
		for _, a := range at(x, "attributes").([]any) {
			if v := at(a, "value").(map[string]any); len(v) != 1 {
				t.Errorf("an attribute has %d values: %v", len(v), a)
			} else if n, ok := v["intValue"]; ok {
				if _, err := strconv.ParseInt(n.(string), 10, 64); err != nil {
					t.Errorf("%v", a)
				}
			}
		}
	}
}

// at follows keys and indexes into decoded JSON.
func at(v any, way ...any) any {
	for _, w := range way {
		switch w := w.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[w]
		case int:
			l, _ := v.([]any)
			if w >= len(l) {
				return nil
			}
			v = l[w]
		}
	}
	return v
}

// names are the attributes of the span with a name.
func attributesOf(t *testing.T, text []byte, name string) map[string]any {
	t.Helper()
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, x := range at(all, "resourceSpans", 0, "scopeSpans", 0, "spans").([]any) {
		if at(x, "name") != name {
			continue
		}
		out := map[string]any{}
		for _, a := range at(x, "attributes").([]any) {
			for _, v := range at(a, "value").(map[string]any) {
				out[at(a, "key").(string)] = v
			}
		}
		return out
	}
	t.Fatalf("no span %q in %s", name, text)
	return nil
}

func TestNamesAreThoseOfTheConventions(t *testing.T) {
	text, _ := exported(t, false)
	for name, want := range map[string]map[string]any{
		"invoke_agent p1": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "p1", "gen_ai.request.model": "m", "error.type": "_OTHER", "rnix.exit_code": "1"},
		"chat m":          {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "8", "gen_ai.usage.output_tokens": "2", "gen_ai.response.model": "m", "rnix.cost_usd": 0.5},
		"execute_tool shell": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "shell", "gen_ai.tool.call.id": "c0", "error.type": string(types.ErrDriver),
			"rnix.verdict": string(step.LedgerFailed)},
		"invoke_agent p2": {"rnix.open": true},
	} {
		got := attributesOf(t, text, name)
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s: %s is %v, want %v", name, k, got[k], v)
			}
		}
	}
}

func TestSpansOfAgentsAreCalledAfterTheAgentAndNotAfterTheProcess(t *testing.T) {
	spans := []Span{{ID: "a", Kind: Process, Name: "night", Agent: "assistant"}, {ID: "b", Kind: Process, Name: "review", Body: "compose"}}
	var b bytes.Buffer
	if err := WriteOTLP(&b, types.UUID{1}, spans, "rnix", "1"); err != nil {
		t.Fatal(err)
	}
	for name, process := range map[string]string{"invoke_agent assistant": "night", "invoke_workflow review": "review"} {
		got := attributesOf(t, b.Bytes(), name)
		key := map[bool]string{true: "gen_ai.workflow.name", false: "gen_ai.agent.name"}[strings.HasPrefix(name, "invoke_workflow")]
		if got[key] != strings.Fields(name)[1] || got["rnix.name"] != process {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestContentIsExportedOnlyIfItIsAskedFor(t *testing.T) {
	text, _ := exported(t, false)
	for _, secret := range []string{"I look.", "do it", `"out"`} {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%q is in %s", secret, text)
		}
	}
	text, _ = exported(t, true)
	if a := attributesOf(t, text, "execute_tool shell"); a["gen_ai.tool.call.arguments"] != "{}" || a["gen_ai.tool.call.result"] != "out" {
		t.Errorf("%v", a)
	}
	a := attributesOf(t, text, "chat m")
	if in, _ := a["gen_ai.input.messages"].(string); !strings.Contains(in, "do it") {
		t.Errorf("%v", a)
	}
	if out, _ := a["gen_ai.output.messages"].(string); !strings.Contains(out, `"role":"assistant"`) || !strings.Contains(out, "I look.") {
		t.Errorf("%v", a)
	}
}

func TestTextsOfALongTraceAreBoundedAndCounted(t *testing.T) {
	x := tell(t, 1, noon).begin()
	const calls = maxContents/maxContent + 100
	long := strings.Repeat("x", 2*maxContent)
	for range calls {
		x.ask(0, "shell").start(0, "shell", 0, false).answers(0, "shell", long).done()
	}
	src := x.exit(0, "fine").source()
	src.Content = true
	tr := of(t, x.now, src)
	sum, with, without := 0, 0, 0
	for i := range tr.Spans {
		s := &tr.Spans[i]
		if n := len(s.Output); n > maxContent+100 {
			t.Errorf("a text has %d bytes", n)
		} else if sum += n + len(s.Input); s.Kind == Tool && n > 0 {
			with++
		} else if s.Kind == Tool {
			without++
		}
	}
	if sum > maxContents || sum < maxContents-2*maxContent || with+without != calls || without == 0 || tr.Withheld < without {
		t.Errorf("%d bytes, %d calls with their answer and %d without, %d texts left out", sum, with, without, tr.Withheld)
	}
}
