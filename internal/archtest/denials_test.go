package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// An example that takes the right to write from an agent and leaves it a shell does not do what it says: a shell writes.
func TestExamplesThatDenyWritingDenyTheShellToo(t *testing.T) {
	deny := regexp.MustCompile(`deny: *\[([^\]]*)\]|--deny[ =](\S+)`)
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "testdata" && !strings.Contains(path, "examples")):
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		switch filepath.Ext(path) {
		case ".md", ".yaml", ".yml", ".go", ".sh":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range deny.FindAllStringSubmatch(string(text), -1) {
			list := m[1] + m[2]
			if !strings.Contains(list, "/dev/workspace") {
				continue
			}
			found++
			if !strings.Contains(list, "/dev/shell") {
				t.Errorf("%s: %s leaves the shell, which can write", path, m[0])
			}
		}
		return nil
	})
	if err != nil || found < 2 {
		t.Errorf("%d examples were found, %v", found, err)
	}
}
