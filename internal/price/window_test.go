package price

import (
	"strings"
	"testing"
	"time"
)

func TestBuiltInWindowsAreSound(t *testing.T) {
	all, ps := parseWindows(builtInWindows, "built-in")
	if len(ps) > 0 || len(all) < 15 {
		t.Fatalf("%d lines; %v", len(all), ps)
	}
	for i := range all {
		w := &all[i]
		if w.from.IsZero() || w.prompt < 64_000 {
			t.Errorf("%v: %+v", w.models, w)
		}
		for _, m := range w.models { // no line hides behind another, and each is of a model that the program knows otherwise
			name := strings.ReplaceAll(m, "*", "")
			if n, _ := Window([]string{w.providers[0]}, name); n != w.prompt {
				t.Errorf("%s has %d, and its line says %d", m, n, w.prompt)
			}
			if _, _, ok := BuiltIn().Lookup([]string{w.providers[0], "claude-cli"}, name, now); !ok {
				t.Errorf("%s has no price", m)
			}
		}
	}
}

func TestWindow(t *testing.T) {
	for _, c := range []struct {
		names, model string
		want         int
		from         string
	}{
		{"anthropic", "claude-opus-5-5", 1_000_000, "platform.claude.com/docs/en/models, read 2026-11-30"},
		{"mine anthropic", "claude-sonnet-4-5-20250929", 200_000, "platform.claude.com/docs/en/models, read 2026-11-30"},
		{"openai", "gpt-5", 272_000, "the MIT-licensed table genai-prices (400000 tokens, of which 128000 are for the answer), read 2026-11-30"},
		{"openai", "gpt-4o", 128_000, "the MIT-licensed table genai-prices, read 2026-11-30"},
		{"openai", "gpt-5-pro", 0, ""},
		{"openai", "gpt-5-chat-latest", 0, ""},
		{"anthropic", "gpt-5", 0, ""},
		{"openai", "claude-opus-5-5", 0, ""},
		{"anthropic", "", 0, ""},
		{"", "claude-opus-5-5", 0, ""},
		{"claude-agent", "claude-opus-5-5", 0, ""},
	} {
		if n, from := Window(strings.Fields(c.names), c.model); n != c.want || from != c.from {
			t.Errorf("%s %s: %d, %q; want %d, %q", c.names, c.model, n, from, c.want, c.from)
		}
	}
}

func TestAWrongLineOfWindowsIsNamed(t *testing.T) {
	all, ps := parseWindows([]byte("from: 2026-01-01\nwindows:\n  - {provider: p, model: m, window: 10, answer: 10, source: s}\n  - {provider: p, model: m, window: 10}\n  - {provider: p, model: m, window: 10, source: s}\n"), "w.yaml")
	if len(ps) != 2 || len(all) != 1 || !strings.Contains(ps.Error(), "w.yaml:3") || all[0].from != time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) {
		t.Errorf("%v %v", all, ps)
	}
}
