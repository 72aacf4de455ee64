// Package gittest makes repositories for tests: git makes each once for a test binary, and who wants the same gets a copy.
//
// It owns the copies, in memory. It does not know what a test does with a repository.
package gittest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Quiet is the environment of a git of a test's, besides what it has: it starts no other git to tidy up behind a commit.
func Quiet() []string {
	return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false"}
}

// Commit makes a directory a repository with one commit, on main, of the files that are in it; of none it makes a repository without one. run runs
// the test's git there. config is what else decides on what that makes, such as the user's own configuration.
func Commit(t testing.TB, dir, config string, run func(args ...string)) {
	t.Helper()
	key, files := keyOf(t, dir, config)
	v, _ := made.LoadOrStore(key, &template{})
	from := v.(*template)
	mine := false
	from.once.Do(func() { // the others wait
		mine = true
		run("init", "-q", "-b", "main")
		if files > 0 {
			run("add", "-A")
			run("commit", "-q", "-m", "first")
		}
		from.read(t, filepath.Join(dir, ".git"))
	})
	if mine {
		return
	}
	if !from.whole {
		t.Fatal("the test that was to make the repository has failed")
	}
	from.write(t, filepath.Join(dir, ".git"))
	if files > 0 {
		run("add", "-A") // the index says of each file when it was written, so it is of this directory
	}
}

// made are the repositories that there are, by what was to be in them.
var made sync.Map // of [sha256.Size]byte to *template

// keyOf returns a sum of the files of a directory and of a text, and how many files there are.
func keyOf(t testing.TB, dir, text string) (key [sha256.Size]byte, files int) {
	t.Helper()
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", text)
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %v ", rel, e.Type())
		if e.Type() == fs.ModeSymlink {
			to, err := os.Readlink(p)
			fmt.Fprintf(sum, "%q\n", to)
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%v %d\n", info.Mode(), info.Size())
		_, err = io.Copy(sum, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return [sha256.Size]byte(sum.Sum(nil)), files
}

// template is a git directory but for its index.
type template struct {
	once  sync.Once
	whole bool
	files []file // directories before what is in them
}

type file struct {
	path string // below the git directory
	mode fs.FileMode
	data []byte
}

func (m *template) read(t testing.TB, gitDir string) {
	t.Helper()
	err := filepath.WalkDir(gitDir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(gitDir, p)
		if err != nil || rel == "index" || filepath.Ext(rel) == ".sample" {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f := file{path: rel, mode: info.Mode()}
		if !e.IsDir() {
			f.data, err = os.ReadFile(p)
		}
		m.files = append(m.files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	m.whole = true
}

func (m *template) write(t testing.TB, gitDir string) {
	t.Helper()
	for _, f := range m.files {
		path, err := filepath.Join(gitDir, f.path), error(nil)
		if f.mode.IsDir() {
			err = os.Mkdir(path, f.mode.Perm())
		} else {
			err = os.WriteFile(path, f.data, f.mode.Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
