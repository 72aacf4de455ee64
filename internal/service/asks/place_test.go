package asks

import (
	"os"
	"path/filepath"
	"testing"

	"rnix/internal/permit"
)

// Where a link leads counts, also of a file that is not there yet.
func TestRulesFollowLinks(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"secrets", "docs"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secrets", filepath.Join(dir, "docs", "out")); err != nil {
		t.Fatal(err)
	}
	rules := permit.Settings{Layers: []permit.Rules{{Ask: []string{"write_file"}, Allow: []string{"write_file docs/**"}, Deny: []string{"write_file secrets/**"}}}}
	for name, want := range map[string]permit.Decision{"docs/new": permit.Allow, "docs/out/new": permit.Deny, "docs/deep/new": permit.Allow, "secrets/new": permit.Deny, "x": permit.Ask} {
		c := &permit.Call{Tool: "write_file", Path: "/dev/workspace", Input: []byte(`{"path":"` + name + `"}`), Dir: dir, Real: placeOf}
		if v := rules.Judge(c); v.Decision != want {
			t.Errorf("%s: %v, want %v", name, v, want)
		}
	}
}
