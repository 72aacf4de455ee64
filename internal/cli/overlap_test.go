package cli

import (
	"slices"
	"strings"
	"testing"

	"rnix/ipc"
	"rnix/types"
)

// Many trees that have changed the same file are one line, not one for each two of them.
func TestOverlapsAreALineForTheSameTrees(t *testing.T) {
	tree := func(pid types.PID, repo string, with map[types.PID][]string) ipc.Worktree {
		w := ipc.Worktree{PID: pid, Repo: repo}
		for _, other := range []types.PID{1, 2, 3, 4, 5} {
			if paths := with[other]; paths != nil {
				w.Overlaps = append(w.Overlaps, ipc.Overlap{PID: other, Paths: paths})
			}
		}
		return w
	}
	got := overlaps([]ipc.Worktree{
		tree(1, "/a", map[types.PID][]string{2: {"x", "y"}, 3: {"x"}}), tree(2, "/a", map[types.PID][]string{1: {"x", "y"}, 3: {"x"}}), tree(3, "/a", map[types.PID][]string{1: {"x"}, 2: {"x"}}),
		tree(4, "/b", map[types.PID][]string{5: {"x"}}), tree(5, "/b", map[types.PID][]string{4: {"x"}}),
	})
	want := []string{"PID 1, PID 2 and PID 3 have all changed: x", "PID 1 and PID 2 have both changed: y", "PID 4 and PID 5 have both changed: x"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := overlaps([]ipc.Worktree{tree(1, "/a", nil)}); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// Ps says how to resume the newest process that waits for a budget, and counts the others.
func TestPsSaysOnceHowThoseWithoutBudgetGoOn(t *testing.T) {
	f := newFake(t).serve()
	for pid, wait := range []string{"budget: 5 of 5 tokens are used", "paused", "budget: 9 of 5 tokens are used", "budget: 7 of 5 tokens are used"} {
		f.procs = append(f.procs, ipc.Proc{ProcStatus: types.ProcStatus{PID: types.PID(pid + 1), UUID: id(byte(pid + 1))}, State: suspended, Wait: wait})
	}
	r := f.run("ps")
	if n := strings.Count(r.err, "is resumed with"); n != 1 || !strings.Contains(r.err, "PID 4 is resumed with: ") || !strings.Contains(r.err, "; 2 more wait for a budget") {
		t.Errorf("%s", r.err)
	}
}
