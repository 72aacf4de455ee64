package kernel

import (
	"testing"

	"pgregory.net/rapid"
)

func TestEmptyIntersectionAllowsNothing(t *testing.T) {
	parent := Rights{}.Narrow([]string{"/dev/fs"})
	child := parent.Narrow([]string{"/dev/shell"})
	if child.Allowed == nil {
		t.Fatal("no rights became all rights")
	}
	for _, p := range []string{"/dev/fs", "/dev/shell", "/dev/workspace", "/", "/proc"} {
		if child.Permits(p) {
			t.Errorf("%s is allowed", p)
		}
	}
}

func TestPrefixIsNotParent(t *testing.T) {
	r := Rights{}.Narrow([]string{"/dev/fs/"})
	for path, want := range map[string]bool{
		"/dev/fs": true, "/dev/fs/a": true, "/dev/fsx": false, "/dev": false, "/dev/fs/../shell": false, "/dev/./fs": false,
	} {
		if r.Permits(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

func TestDenyWins(t *testing.T) {
	r := Rights{}.Without([]string{"/dev/shell"})
	if r.Permits("/dev/shell") || r.Permits("/dev/shell/x") || !r.Permits("/dev/fs") {
		t.Error(r)
	}
	if r.Narrow([]string{"/dev/shell"}).Permits("/dev/shell") {
		t.Error("a later allow undid a deny")
	}
}

// Whatever is narrowed how often: nobody ever gets what one of the parties did not allow.
func TestChildNeverHasMoreThanItsParent(t *testing.T) {
	path := rapid.SampledFrom([]string{"/dev", "/dev/fs", "/dev/fs/a", "/dev/fsx", "/dev/shell", "/mnt/mcp", "/mnt/mcp/3-x", "/", "/proc"})
	list := rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(path, 0, 3))
	rapid.Check(t, func(t *rapid.T) {
		parent := Rights{}.Narrow(list.Draw(t, "p")).Without(list.Draw(t, "pd"))
		own := Rights{}.Narrow(list.Draw(t, "c")).Without(list.Draw(t, "cd"))
		child := own.Within(parent)
		p := path.Draw(t, "path")
		if child.Permits(p) != (parent.Permits(p) && own.Permits(p)) {
			t.Fatalf("%s: child %v, parent %v, own %v", p, child, parent, own)
		}
	})
}
