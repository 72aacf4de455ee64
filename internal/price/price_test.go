package price

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func TestBuiltInTableIsSound(t *testing.T) {
	table, ps := Parse(builtIn, "built-in")
	if len(ps) > 0 || len(table.lines) < 50 {
		t.Fatalf("%d lines; %v", len(table.lines), ps)
	}
	for i := range table.lines {
		l := &table.lines[i]
		if l.from.IsZero() || l.from.After(now) || l.rate.CacheRead > l.rate.Input || l.rate.Output < l.rate.Input {
			t.Errorf("%s: %+v", l.source, l)
		}
		for _, m := range l.models { // no line hides behind another
			name := strings.ReplaceAll(m, "*", "")
			if r, source, ok := table.Lookup([]string{l.providers[0]}, name, now); !ok || r != l.rate {
				t.Errorf("%s of %s is found at %s", m, l.source, source)
			}
		}
	}
}

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		names  string
		model  string
		input  int64 // in dollars; -1 = not known
		output int64
	}{
		{"anthropic", "claude-opus-5-5", 4, 20},
		{"anthropic", "claude-opus-5-5-20260801", 4, 20},
		{"gateway anthropic", "claude-sonnet-4-5-20250929", 3, 15},
		{"claude claude-cli", "claude-opus-4-20250514", 15, 75},
		{"openai", "gpt-5.2-pro-2025-12-11", 21, 168},
		{"anthropic", "claude-opus-9", -1, 0},
		{"openai", "claude-opus-5-5", -1, 0},
		{"openai", "", -1, 0},
		{"", "claude-opus-5-5", -1, 0},
		{"offline", "rules", 0, 0},
		{"script replay", "anything", 0, 0},
	} {
		r, _, ok := BuiltIn().Lookup(strings.Fields(c.names), c.model, now)
		if ok != (c.input >= 0) || ok && (r.Input != c.input*int64(Dollar) || r.Output != c.output*int64(Dollar)) {
			t.Errorf("%s %s: %+v %t", c.names, c.model, r, ok)
		}
	}
}

const mine = `
version: "1"
from: 2026-01-01
prices:
  - {provider: local, model: "*", input: 0, output: 0}
  - {provider: local, model: big*, input: 1, output: 2, from: 2026-06-01}
  - {provider: local, model: big*, input: 3, output: 4, from: "2026-10-01"}
  - {provider: "*", model: [x-*-mini, y], input: 5, output: 6, cache_read: 0.5, over: {tokens: 100, input: 10, output: 12}}
`

func TestLatestLineThatHasBegunCounts(t *testing.T) {
	table, ps := Parse([]byte(mine), "prices.yaml")
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	for _, c := range []struct {
		provider, model, at string
		input               int64 // in dollars; -1 = not known
	}{
		{"local", "big-1", "2025-12-31", -1}, {"local", "big-1", "2026-02-01", 0}, {"local", "big-1", "2026-07-01", 1}, {"local", "big-1", "2026-10-01", 3},
		{"other", "x-a-mini", "2026-10-01", 5}, {"other", "x-mini", "2026-10-01", -1}, {"other", "y", "2026-10-01", 5}, {"other", "yy", "2026-10-01", -1},
	} {
		at, _ := time.Parse(time.DateOnly, c.at)
		r, source, ok := Book{table, BuiltIn()}.Lookup([]string{c.provider}, c.model, at)
		if ok != (c.input >= 0) || ok && (r.Input != c.input*int64(Dollar) || !strings.HasPrefix(source, "prices.yaml:")) {
			t.Errorf("%+v: %+v from %q, %t", c, r, source, ok)
		}
	}
}

func TestMistakesInATableAreNamedWithTheirPlace(t *testing.T) {
	table, ps := Parse([]byte("version: \"2\"\nprices:\n  - {model: a, input: 1, output: 1}\n  - {provider: p, input: -1, output: 1e9}\n  - {provider: p, model: m, input: 1, output: .nan, from: soon, over: {input: 1, output: 1}}\n  - {provider: p, model: m, input: 1, output: 1, over: {input: 1, output: 1}}\n  - {provider: p, model: ok, input: 1, output: 1}\n"), "f.yaml")
	text := ps.Error()
	for _, want := range []string{"f.yaml:1:10: version", "f.yaml:3:5: prices[0].provider", "prices[1].model", "f.yaml:4:26: prices[1].input", "prices[1].output", "prices[2].from", "f.yaml:6:", "prices[3].over.tokens", "soon"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if len(table.lines) != 1 || table.lines[0].models[0] != "ok" {
		t.Errorf("%+v", table.lines)
	}
	if _, ps := Parse(nil, "f.yaml"); len(ps) > 0 {
		t.Error(ps)
	}
}

func TestCost(t *testing.T) {
	table, _ := Parse([]byte(mine), "prices.yaml")
	r, _, _ := table.Lookup([]string{"any"}, "y", now)
	for _, c := range []struct {
		t    Tokens
		want USD
	}{
		{Tokens{}, 0},
		{Tokens{Input: 100}, 500_000},
		{Tokens{Input: 101}, 1_010_000}, // the whole request at the higher rate
		{Tokens{Input: 50, CacheRead: 50, Output: 1_000_000}, 250_000 + 25_000 + 6*Dollar},
		{Tokens{Output: -5}, 0},
		{Tokens{Output: 1 << 40}, Max},
		{Tokens{Input: math.MaxInt, Output: math.MaxInt}, Max},
	} {
		if got := r.Cost(c.t); got != c.want {
			t.Errorf("%+v costs %d, want %d", c.t, got, c.want)
		}
	}
	if in, out := r.Worst(false); in != 10_000 || out != 12_000 {
		t.Errorf("%d %d", in, out)
	}
	cheap := Rate{Input: 1}
	if cheap.Cost(Tokens{Input: 1}) != 1 {
		t.Error("a cost has become nothing")
	}
	flat := Flat(15)
	if flat.Cost(Tokens{Input: 1, Output: 1, CacheRead: 1, CacheWrite: 1}) != 60_000 {
		t.Error(flat)
	}
}

func TestAmounts(t *testing.T) {
	for s, want := range map[string]USD{"2.50": 2_500_000_000, "$1": Dollar, "0.1": 100_000_000, "0": 0, "0.000001": 1000, "1000000": Max} {
		if got, err := ParseUSD(s); err != nil || got != want {
			t.Errorf("%s is %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "$", "-1", "1e3", "inf", "NaN", "0x1", "1,5", "2000000", "+1"} {
		if got, err := ParseUSD(s); err == nil {
			t.Errorf("%q is taken as %s", s, got)
		}
	}
	for u, want := range map[USD]string{0: "$0", Dollar: "$1.00", 1_250_000_000: "$1.25", 123_456_789: "$0.123", 4_200_000: "$0.0042", 1: "<$0.000001", 1000: "$0.000001"} {
		if got := u.String(); got != want {
			t.Errorf("%d is %q, want %q", u, got, want)
		}
	}
	if FromFloat(math.NaN()) != Max || FromFloat(math.Inf(1)) != Max || FromFloat(-1) != 0 {
		t.Error("what is no number")
	}
}

func TestModelsAreThoseThatAPriceNames(t *testing.T) {
	own, ps := Parse([]byte("prices:\n  - {provider: mine, model: [large, \"small*\", \"*\", \"a*b\", \"old-20*\"], input: 1, output: 2}\n  - {provider: mine, model: later, from: 2999-01-01, input: 1, output: 2}\n  - {provider: other, model: not, input: 1, output: 2}\n"), "prices.yaml")
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	if got := fmt.Sprint(Book{own, own, BuiltIn()}.Models([]string{"mine"}, time.Now())); got != "[large small]" {
		t.Errorf("%s", got)
	}
	if got := BuiltIn().Models([]string{"anthropic"}, time.Now()); len(got) < 5 || strings.Contains(fmt.Sprint(got), "*") {
		t.Errorf("%v", got)
	}
}
