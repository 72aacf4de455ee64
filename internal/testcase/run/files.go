// Package run makes regression cases of recorded runs, and runs cases: each with a daemon, a data directory and a
// copy of its files of its own, without a network where the system allows that, and with nothing left behind. It is a
// client of the wire; what is expected and how it is compared, package testcase knows.
package run

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/testcase"
	"rnix/types"
)

// The bounds of a workspace.
const (
	maxFiles = 20_000
	maxBytes = 64 << 20
)

// tree reads the files below a directory, by their paths in it. A symbolic link is a text that says where it leads. What
// version control keeps is left out. A directory that is not there has no files.
func tree(dir string) (map[string][]byte, error) {
	out, total := map[string][]byte{}, 0
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			if p == dir && os.IsNotExist(err) {
				return fs.SkipAll
			}
			return err
		}
		if e.IsDir() {
			if e.Name() == ".git" && p != dir {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil || e.Name() == ".git" {
			return err
		}
		var b []byte
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			b = []byte(linkMark + to)
		case !e.Type().IsRegular():
			return nil
		default:
			if info, ierr := e.Info(); ierr == nil && info.Size() > maxBytes {
				return types.Errorf(types.ErrExhausted, "Case", p, "larger than %d MiB", maxBytes>>20)
			}
			if b, err = os.ReadFile(p); err != nil {
				return err
			}
		}
		if total += len(b); total > maxBytes || len(out) == maxFiles {
			return types.Errorf(types.ErrExhausted, "Case", dir, "more than %d files or %d MiB: a case has to be smaller", maxFiles, maxBytes>>20)
		}
		out[filepath.ToSlash(rel)] = b
		return nil
	})
	return out, err
}

// linkMark begins what stands for a symbolic link.
const linkMark = "symbolic link to "

// write writes files below a directory, and nowhere else, wherever links in it lead. what has those that are no plain
// files, as special returns them.
func write(dir string, files map[string][]byte, what map[string]fs.FileMode) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range sorted(files) {
		if err := put(root, filepath.FromSlash(name), files[name], what[name]); err != nil {
			return err
		}
	}
	return nil
}

// put writes one file, in the place of one that is there.
func put(root *os.Root, name string, b []byte, what fs.FileMode) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if i, err := root.Lstat(name); err == nil && !i.IsDir() {
		if err := root.Remove(name); err != nil {
			return err
		}
	}
	if to, marked := strings.CutPrefix(string(b), linkMark); marked && what&fs.ModeSymlink != 0 {
		return root.Symlink(to, name)
	}
	return root.WriteFile(name, b, 0o644|what.Perm())
}

// special returns those of the files below a directory that are symbolic links, or may be executed.
func special(dir string, files map[string][]byte) map[string]fs.FileMode {
	out := map[string]fs.FileMode{}
	for name := range files {
		switch i, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); {
		case err != nil:
		case i.Mode()&fs.ModeSymlink != 0:
			out[name] = fs.ModeSymlink
		case i.Mode()&0o100 != 0:
			out[name] = 0o111
		}
	}
	return out
}

// removeAll removes a directory with all that is in it, also where that may not be written. One in which something is mounted it
// leaves alone.
func removeAll(dir string) error {
	if err := durable.CheckMounts(dir); err != nil {
		return err
	}
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, _ error) error { // what cannot be done now RemoveAll reports
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// keys are names of files that hold keys and the like.
var keys = []string{".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.keystore", "*.jks", "id_rsa*", "id_ed25519*", "id_ecdsa*", "id_dsa*", ".netrc", ".npmrc", ".pypirc",
	"credentials", "credentials.json", ".git-credentials", ".htpasswd", "secrets.*"}

// secretName reports whether a file sounds as if it held secrets.
func secretName(name string) bool {
	base := strings.ToLower(path.Base(name))
	if strings.HasSuffix(base, ".example") || strings.HasSuffix(base, ".sample") || strings.HasSuffix(base, ".template") {
		return false
	}
	return slices.ContainsFunc(keys, func(p string) bool { ok, _ := path.Match(p, base); return ok })
}

// tokens puts words in the place of directories in texts.
type tokens struct{ dirs, words []string }

func (t *tokens) add(dir, word string) {
	if !slices.Contains(t.dirs, dir) {
		t.dirs, t.words = append(t.dirs, dir), append(t.words, word)
	}
}

// out returns a text with the words in it.
func (t tokens) out(s string) string {
	for i, dir := range t.dirs {
		s = replacePath(s, dir, t.words[i])
	}
	return s
}

// replacePath replaces a path, and those below it, but not longer names that begin like it.
func replacePath(s, dir, by string) string {
	if len(dir) < 2 || !strings.Contains(s, dir) {
		return s
	}
	var b strings.Builder
	for {
		i := strings.Index(s, dir)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		end := i + len(dir)
		b.WriteString(s[:i])
		if (end == len(s) || !partOfName(s[end])) && (i == 0 || !partOfName(s[i-1]) && s[i-1] != '/') {
			b.WriteString(by)
		} else {
			b.WriteString(dir)
		}
		s = s[end:]
	}
}

func partOfName(c byte) bool {
	return c == '_' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// in puts a directory in the place of Workspace.
func in(s, dir string) string { return strings.ReplaceAll(s, testcase.Workspace, dir) }
