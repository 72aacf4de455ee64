package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sources returns the hash of what dist is made from, as app/build.mjs has it.
func sources(t *testing.T) string {
	t.Helper()
	names := []string{"build.mjs", "icon.svg", "index.html", "package-lock.json", "package.json"}
	for _, dir := range []string{"src", "style"} {
		err := fs.WalkDir(os.DirFS("app"), dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join("app", name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%s\x00%d\x00", name, len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func TestBundleIsOfTheseSources(t *testing.T) {
	made, err := dist.ReadFile("dist/sources.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(made)); got != sources(t) {
		t.Errorf("dist was made from other sources (%s) than those in app (%s): run internal/web/build.sh and commit dist", got, sources(t))
	}
}

// needsNode skips a test without node and the packages of app.
func needsNode(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs node")
	}
	if _, err := os.Stat("app/node_modules/esbuild"); err != nil {
		t.Skip("needs the packages of internal/web/app: npm ci there, or ./test")
	}
}

func TestBundleIsMadeAgainByteForByte(t *testing.T) {
	needsNode(t)
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "node", "app/build.mjs", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := dist.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != len(kept) {
		t.Errorf("dist has %d files, and %d are made", len(kept), len(made))
	}
	for _, f := range made {
		want, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := dist.ReadFile("dist/" + f.Name()); err != nil || string(got) != string(want) {
			t.Errorf("dist/%s is not what the sources give (%v): run internal/web/build.sh", f.Name(), err)
		}
	}
}

func TestPureParts(t *testing.T) {
	needsNode(t)
	if out, err := exec.CommandContext(t.Context(), "node", "--test", "app/test/").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
