package proc

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/internal/sandbox"
)

// Whoever has confined a child is told how it has ended, what it said last, and what it changed that could not be protected.
func TestWhoConfinesAChildIsToldOfItsEnd(t *testing.T) {
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		var told atomic.Int32
		var exit ExitInfo
		var said string
		box.Ended = func(e ExitInfo, s string) {
			told.Add(1)
			exit, said = e, s
		}
		var errs bytes.Buffer
		spec := boxed("echo out; echo first >&2; mkdir .claude/x .vscode 2>/dev/null; mkdir -p .claude; echo last >&2; exit 7", nil, work, box)
		spec.Stderr = &errs
		child := start(t, m, spec)
		got := child.Wait()
		if told.Load() != 1 || exit.Code != 7 || got.Code != 7 || said != "first\nlast\n" || errs.String() != said {
			t.Errorf("told %d times: %+v %q, and its own writer has %q", told.Load(), exit, said, errs.String())
		}
		if box.Plan.Rung == sandbox.RungLandlock && (len(exit.Changed) == 0 || !strings.HasPrefix(exit.Changed[0], filepath.Join(work, "."))) {
			t.Errorf("it is not told what was changed: %v", exit.Changed)
		}
		var both bytes.Buffer // one writer for both streams is the caller's alone
		spec = boxed("echo out; echo err >&2", nil, work, box)
		spec.Stdout, spec.Stderr = &both, &both
		start(t, m, spec).Wait()
		if told.Load() != 2 || said != "" || exit.Code != 0 {
			t.Errorf("told %d times: %+v %q", told.Load(), exit, said)
		}
	})
}
