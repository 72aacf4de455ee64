package confine

import (
	"os"
	"testing"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
)

func TestADataDirectoryThatIsGoneIsNotMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	if err := os.Rename(w.Data, w.Data+".moved"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Box(proc.Spec{Kind: proc.KindShell, Owner: 1, Path: "sh", Dir: w.work}); types.CodeOf(err) != types.ErrStorage {
		t.Error(err)
	}
	if _, err := os.Lstat(w.Data); err == nil {
		t.Error("it is there again")
	}
}
