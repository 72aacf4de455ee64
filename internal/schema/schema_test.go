package schema

import (
	"strings"
	"testing"
)

func TestAResultFitsOrSaysWhyNot(t *testing.T) {
	doc, err := Parse([]byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"n":1}`:                      "",
		"```json\n{\"n\":1}\n```":      "",
		"  {\"n\": 1}\n":               "",
		"It is 1.":                     "the result is not JSON",
		"":                             "the result is not JSON",
		`{"n":1} and more`:             "the result is not JSON",
		`{"n":"1"}`:                    "does not fit its schema",
		`{}`:                           "missing properties",
		"Here:\n```json\n{\"n\":1}```": "the result is not JSON",
	} {
		clean, err := Fit(doc, text)
		if want == "" && (err != nil || clean != strings.TrimSpace(Bare(text))) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v", text, clean, err)
		}
	}
	if !strings.Contains(Ask(doc), `"required":["n"]`) {
		t.Error(Ask(doc))
	}
}
