package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/internal/plumbing"
	"rnix/runtime/worktree"
	"rnix/types"
)

// What adds, removes or half makes a work tree, and what reads all of them, waits for others that are at it, and changes nothing if it has to give up.
func TestWorkTreesAreTouchedInsideOfTheGate(t *testing.T) {
	t.Parallel()
	h := newStowHome(t)
	stowStates["on a branch with commits"](h)
	d, err := h.desks.readDesk(h.to)
	must(t, err)
	waits := func(what string, do func(ctx context.Context) error) {
		t.Helper()
		leave, err := worktree.Enter(t.Context(), d.Common, true)
		must(t, err)
		defer leave()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := do(ctx); !strings.Contains(fmt.Sprint(err), "others add or remove work trees there") {
			t.Errorf("%s: %v", what, err)
		}
	}
	waits("the end of a branch", func(ctx context.Context) error { _, err := h.desks.dropBranch(ctx, d); return err })
	waits("the end of what was cut off", func(ctx context.Context) error { return h.desks.cutOff(ctx, d) })
	must(t, withStower(t.Context(), h.Keeper, h.id, func(s stower) error {
		n, _, err := s.pack(t.Context(), d)
		must(t, err)
		must(t, s.write(n))
		must(t, s.shut(n))
		waits("an archive", func(ctx context.Context) error { return n.unregister(ctx) })
		if plumbing.Registration(d.Common, h.to) == "" {
			t.Error("an archive that was given up has made git forget the work tree")
		}
		coming(s, h, n)
		waits("what comes back", func(ctx context.Context) error { return s.relink(ctx, n) })
		// Since it was looked at, its branch can be moved, or checked out elsewhere.
		head := n.Head
		n.Head = strings.Repeat("0", len(head))
		if err := s.relink(t.Context(), n); types.CodeOf(err) != types.ErrConflict || plumbing.Registration(d.Common, h.to) != "" {
			t.Errorf("a branch that was moved: %v", err)
		}
		n.Head = head
		h.user(h.repo, "worktree", "add", "-q", filepath.Join(h.dir(), "other"), n.Branch)
		if err := s.relink(t.Context(), n); types.CodeOf(err) != types.ErrConflict || plumbing.Registration(d.Common, h.to) != "" {
			t.Errorf("two work trees on %s: %v", n.Branch, err)
		}
		return os.Remove(h.to)
	}))
}
