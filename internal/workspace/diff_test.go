package workspace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDiffSaysTheSameOfBothKinds(t *testing.T) {
	t.Parallel()
	texts, lists := map[Kind]string{}, map[Kind][]FileChange{}
	both(t, map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "bin": "\x00\x01", "gone": "g\n", "run": "r\n", "open": "no end", "t": "file\n"}, func(t *testing.T, b *bench, dir string) {
		s := b.take(dir, 1)
		b.write(dir, map[string]string{"a": "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n", "bin": "\x00\x02", "new file": "n\n", "open": "no end either", "umläut": "u\n"})
		must(t, os.Remove(filepath.Join(dir, "gone")))
		must(t, os.Chmod(filepath.Join(dir, "run"), 0o755))
		must(t, os.Remove(filepath.Join(dir, "t")))
		must(t, os.Symlink("a", filepath.Join(dir, "t")))
		text, list, err := b.Diff(context.Background(), b.ref(s, 1), Now(b.id, dir), DiffOpts{})
		must(t, err)
		texts[s.Kind], lists[s.Kind] = string(text), list
		// A patch turns the one into the other.
		to := b.restored(b.ref(s, 1))
		for _, f := range []string{"bin"} { // a patch without the bytes cannot
			must(t, os.Remove(filepath.Join(to, f)))
		}
		only := DiffOpts{Paths: []string{"a", "new file", "open", "gone", "run", "t", "umläut"}}
		patch, _, err := b.Diff(context.Background(), b.ref(s, 1), Now(b.id, dir), only)
		must(t, err)
		cmd := exec.Command("git", "apply", "--unsafe-paths", "-")
		cmd.Dir, cmd.Stdin = to, bytes.NewReader(patch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git apply: %v\n%s\n%s", err, out, patch)
		}
		same(t, "after the patch", tree(t, dir, "bin"), tree(t, to, "bin"))
		if text, list, err := b.Diff(context.Background(), Now(b.id, dir), Now(b.id, dir), DiffOpts{}); err != nil || len(text)+len(list) > 0 {
			t.Errorf("of the same: %s%v, %v", text, list, err)
		}
	})
	if d := cmp.Diff(lists[KindGit], lists[KindCopy]); d != "" {
		t.Errorf("lists (-git +copy):\n%s", d)
	}
	if !strings.Contains(texts[KindCopy], "+three\n") || !strings.Contains(texts[KindCopy], "deleted file mode 100644") {
		t.Errorf("text is %s", texts[KindCopy])
	}
}

func TestDiffBetweenKindsAndOfTooMuch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo, plain := b.repo(map[string]string{"a": "1\n", "b": "2\n"}), b.dir()
	b.write(plain, map[string]string{"a": "1\n", "b": strings.Repeat("long\n", 1000)})
	g, c := b.take(repo, 1), b.take(plain, 2)
	text, list, err := b.Diff(context.Background(), b.ref(g, 1), b.ref(c, 2), DiffOpts{MaxBytes: 500})
	if err != nil || len(list) != 1 || list[0].Added != 1000 || list[0].Deleted != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if len(text) > 600 || !bytes.Contains(text, []byte("bytes more")) {
		t.Errorf("text of %d bytes: %s", len(text), text)
	}
}

// Applying the changes that compare has found turns the one list into the other, and nothing that is
// called unchanged differs.
func TestChangesTurnTheOneTextIntoTheOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n"}), 0, 30)
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		var out []string
		at, bt := 0, 0
		for _, h := range compare(a, b) {
			if h.a0 < at || h.b0 < bt || h.a0-at != h.b0-bt {
				t.Fatalf("change %+v after %d, %d", h, at, bt)
			}
			out = append(append(out, a[at:h.a0]...), b[h.b0:h.b1]...)
			at, bt = h.a1, h.b1
		}
		out = append(out, a[at:]...)
		if fmt.Sprint(out) != fmt.Sprint(b) {
			t.Fatalf("%q became %q, not %q", a, out, b)
		}
	})
}
