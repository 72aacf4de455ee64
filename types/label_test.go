package types

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestALabelThatNobodyCanSearchForIsRefused(t *testing.T) {
	long, value := strings.Repeat("k", 63), strings.Repeat("v", 255)
	for text, want := range map[string]string{
		"env=prod": "", "a=": "", "7=x": "", "example.com/a_b-c.d=x": "", "q=a=b": "", "t=two words, \"quoted\"": "", "t=世界": "", long + "=" + value: "",
		"env": "want KEY=VALUE, or KEY= for an empty value", "": "want KEY=VALUE", "=x": `invalid label key ""`, " a=x": "invalid label key", "a b=x": "invalid label key",
		"-a=x": "invalid label key", "_a=x": "invalid label key", "ä=x": "invalid label key", "aä=x": "invalid label key", "a\x1b[2J=x": `invalid label key "a\x1b[2J"`, "__proto__=x": "invalid label key",
		long + "k=x": "want 1 to 63", "a=" + value + "v": "has 256 bytes; want at most 255", "a=x\ny": `invalid value "x\ny" of the label a`, "a=\x1b[2J": "printable",
		"a=\u202eevil": "printable", "a=\xff": "printable", "a=\x00": "printable", "a=b\tc": "printable", strings.Repeat("x ", 1<<20) + "=x": "invalid label key",
	} {
		err := Labels{}.Set(text)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || CodeOf(err) != ErrInvalid || len(err.Error()) > 400) {
			t.Errorf("%.80q: %v", text, err)
		}
		key, v, ok := strings.Cut(text, "=")
		if err := (Labels{key: v}).Check(); ok && (err == nil) != (want == "") {
			t.Errorf("%.80q: Check says %v", text, err)
		}
		if err := CheckSelectors([]string{"good", text}); ok && (err == nil) != (want == "") {
			t.Errorf("%.80q: CheckSelectors says %v", text, err)
		}
	}
}

func TestAProcessHasAtMost32Labels(t *testing.T) {
	l := Labels{}
	for i := range MaxLabels {
		if err := l.Set(fmt.Sprintf("k%d=v", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if err := l.Set("k0=w"); err == nil || !strings.Contains(err.Error(), "given twice") || l["k0"] != "v" {
		t.Errorf("%v, %q", err, l["k0"])
	}
	if err := l.Set("more=v"); err == nil || !strings.Contains(err.Error(), "at most 32 labels") {
		t.Error(err)
	}
	l["more"] = "v"
	if err := l.Check(); err == nil || !strings.Contains(err.Error(), "at most 32 labels, and 33 are given") {
		t.Error(err)
	}
}

func TestAllSelectorsMustMatch(t *testing.T) {
	l := Labels{"env": "prod", "empty": "", "eq": "a=b"}
	for selectors, want := range map[string]bool{
		"": true, "env": true, "env=prod": true, "env=pro": false, "env=": false, "en": false, "empty": true, "empty=": true, "eq=a=b": true, "eq=a": false,
		"env=prod empty": true, "env=prod other": false, "env=prod env=test": false,
	} {
		if got := l.Match(strings.Fields(selectors)); got != want {
			t.Errorf("%q: %v", selectors, got)
		}
	}
	if Labels(nil).Match([]string{"env"}) || !Labels(nil).Match(nil) {
		t.Error("a process without labels")
	}
}

func TestLabelsAreOneLineInOrder(t *testing.T) {
	l := Labels{"b": "two words", "a": "x", "c": "", "d": `say "hi"`, "e": `back\slash`}
	if got := l.String(); got != `a=x b="two words" c= d="say \"hi\"" e=back\slash` {
		t.Error(got)
	}
	if b, err := json.Marshal(ProcStatus{}); err != nil || strings.Contains(string(b), "labels") || Labels(nil).String() != "" {
		t.Errorf("a process without labels: %s %v", b, err)
	}
}
