package compose

import (
	"slices"
	"testing"
)

func TestNodesThatNothingStopsAreNamedOnce(t *testing.T) {
	for text, want := range map[string][]string{
		"agents:\n  a: {intent: x}\n  b: {intent: y, depends_on: [a]}\n":                                            nil,
		"agents:\n  a: {intent: x}\n  z: {intent: x}\n  b: {intent: y, depends_on: {a: completed, z: succeeded}}\n": nil,
		"agents:\n  a: {intent: x}\n  b: {intent: y, depends_on: {a: completed}}\n":                                 {"b runs even if all that it waits for fails: each of its conditions is completed"},
		"agents:\n  a: {intent: x}\n  b: {intent: y, depends_on: {a: completed}}\n  c: {intent: y, depends_on: {a: completed, b: completed}}\n": {
			"b, c run even if all that they wait for fails: each of their conditions is completed"},
	} {
		f, ps := Parse(Source{Name: "compose.yaml", Text: []byte(text)})
		if err := ps.Err("", ""); err != nil {
			t.Fatal(err)
		}
		if got := f.Notes(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
