package compose

import (
	"strings"
	"testing"
)

func parsed(t *testing.T, node string) (*File, Problems) {
	t.Helper()
	return Parse(Source{Name: "w.yaml", Text: []byte("agents:\n  a:\n    intent: x\n" + node)})
}

func TestANodeCanHaveAWorkTreeOfItsOwn(t *testing.T) {
	for text, want := range map[string]Worktree{
		"    worktree: true\n":                                            {Own: true},
		"    worktree: {branch: topic/x, base: v1}\n":                     {Own: true, Branch: "topic/x", Base: "v1"},
		"    worktree:\n      base: main\n":                               {Own: true, Base: "main"},
		"    foreach: [1, 2]\n    worktree: {branch: \"fix-${index}\"}\n": {Own: true, Branch: "fix-${index}"},
	} {
		f, ps := parsed(t, text)
		if len(ps) > 0 || f.Agents["a"].Worktree == nil || *f.Agents["a"].Worktree != want {
			t.Errorf("%s: %+v, %v", text, f.Agents["a"].Worktree, ps)
		}
	}
	for _, text := range []string{"", "    worktree: false\n", "    worktree:\n"} {
		if f, ps := parsed(t, text); len(ps) > 0 || f.Agents["a"].Worktree != nil {
			t.Errorf("%s: %+v, %v", text, f.Agents["a"].Worktree, ps)
		}
	}
	f, _ := parsed(t, "    foreach: [1, 2]\n    worktree: {branch: \"fix-${index}\"}\n")
	n := f.Agents["a"]
	one, err := n.Render(&Scope{Index: 1, Item: 2})
	if err != nil || one.Worktree.Branch != "fix-1" || n.Worktree.Branch != "fix-${index}" {
		t.Errorf("%+v of %+v, %v", one.Worktree, n.Worktree, err)
	}
	if text, err := f.Plan().Draw("text", nil); err != nil || !strings.Contains(text, "its own work tree, on fix-${index}") {
		t.Errorf("%s %v", text, err)
	}
}

func TestAWorkTreeThatCannotBeIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"    worktree: yes please\n":                        "w.yaml:4:15: agents.a.worktree: this is a text, but must be true, false, or keys and values",
		"    worktree: {brunch: x}\n":                       "w.yaml:4:16: agents.a.worktree.brunch: unknown key; did you mean \"branch\"?",
		"    worktree: {branch: -x}\n":                      "cannot be the name of a branch",
		"    worktree: {branch: a b}\n":                     "cannot be the name of a branch",
		"    worktree: {branch: \"\"}\n":                    "is empty",
		"    worktree: {base: --all}\n":                     "cannot be the name of a commit",
		"    worktree: {base: \"${nope}\"}\n":               "${nope} has no value",
		"    foreach: [1]\n    worktree: {branch: topic}\n": "put ${index} into the name",
		"    worktree: {branch: \"fix-${index}\"}\n":        "stands for something only",
	} {
		_, ps := parsed(t, text)
		if got := strings.Join(ps.Strings(), "\n"); !strings.Contains(got, want) || !strings.HasPrefix(got, "w.yaml:") {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
