package compose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/types"
)

const worksFile = `
agents:
  z: {intent: x, worktree: true}
  a: {intent: x, worktree: true}
  plain: {intent: x, depends_on: [a]}
  fan: {intent: x, foreach: [1, 2], worktree: true}
  bad: {intent: x, depends_on: [z], worktree: true}
  end: {intent: x, depends_on: {plain: completed, fan: succeeded, bad: completed, z: succeeded}, worktree: {conflicts: resolve}}
  tell: {intent: x, depends_on: [end]}
`

func TestANodeBeginsWithTheWorkAboveItInTheOrderOfThePlan(t *testing.T) {
	f, ps := Parse(Source{Name: "w.yaml", Text: []byte(worksFile)})
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	s, err := NewState(f.Plan(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(Key{"fan", -1}, Note{Phase: Expanded, Items: []any{1, 2}})
	for i, k := range []Key{{"z", -1}, {"a", -1}, {"plain", -1}, {"fan", 0}, {"fan", 1}} {
		s.Apply(k, Note{Phase: Succeeded, UUID: types.UUID{15: byte(i + 1)}})
	}
	s.Apply(Key{"bad", -1}, Note{Phase: Failed, UUID: types.UUID{15: 9}})
	names := func(works []Work) string {
		var out []string
		for _, w := range works {
			out = append(out, w.Key.String())
		}
		return strings.Join(out, " ")
	}
	for node, want := range map[string]string{"z": "", "plain": "a", "bad": "z", "end": "z a fan[0] fan[1]", "tell": "z a fan[0] fan[1]"} {
		if got := names(Works(s, node)); got != want {
			t.Errorf("%s begins with %q, want %q", node, got, want)
		}
	}
	s.Apply(Key{"end", -1}, Note{Phase: Succeeded, UUID: types.UUID{15: 7}})
	if got := names(Works(s, "tell")); got != "end" {
		t.Errorf("tell begins with %q", got)
	}
	if got := f.Plan().Last(); !slices.Equal(got, []string{"end"}) {
		t.Errorf("the last is %q", got)
	}
	if got := strings.Join(f.Notes(), "\n"); !strings.Contains(got, "plain does not see the files of a,") || !strings.Contains(got, "tell does not see the files of end,") || strings.Contains(got, "fan does") {
		t.Errorf("notes: %s", got)
	}
}

func TestAConflictIsNotTriedAgain(t *testing.T) {
	f, ps := Parse(Source{Name: "w.yaml", Text: []byte("agents:\n  a: {intent: x, worktree: true, retries: {max: 5}}\n")})
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	s, err := NewState(f.Plan(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, now := Key{"a", -1}, time.Now()
	s.Apply(k, s.Began(k, types.NewUUID(), now))
	s.Apply(k, s.Over(k, Outcome{Kind: Conflict, Why: "both", Files: []string{"f"}}, now))
	if st := s.Report()[0]; st.Phase != Failed || st.Kind != Conflict || !slices.Equal(st.Files, []string{"f"}) {
		t.Errorf("%+v", st)
	}
	if _, ps := Parse(Source{Name: "w.yaml", Text: []byte("agents:\n  a: {intent: x, worktree: {conflicts: guess}}\n")}); !strings.Contains(strings.Join(ps.Strings(), "\n"), `"guess" is not a way to deal with conflicts; write one of: stop, resolve`) {
		t.Error(ps)
	}
}
