package plumbing

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// most is how many bytes of a file of git's are read.
const most = 64 << 20

// Beginning returns at most so many bytes of a regular file. It never waits, whatever has taken the file's place: of a pipe that a program keeps open
// and writes nothing to, a read would.
func Beginning(path string, max int64) ([]byte, error) {
	return beginning(max, path, os.Stat, os.OpenFile)
}

// BeginningIn is Beginning for a file below a root.
func BeginningIn(root *os.Root, name string, max int64) ([]byte, error) {
	return beginning(max, name, root.Stat, root.OpenFile)
}

func beginning(max int64, path string, stat func(string) (fs.FileInfo, error), opens func(string, int, fs.FileMode) (*os.File, error)) ([]byte, error) {
	f, _, err := open(path, stat, opens)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max))
}

// Reftable reports whether a git directory has its references and their logs in tables, of which only git reads anything.
func Reftable(gitDir string) bool {
	_, err := os.Lstat(filepath.Join(gitDir, "reftable"))
	return !os.IsNotExist(err)
}

// MayHaveRefs reports whether a repository may have references that begin so, such as refs/rnix/. It reads the files in which git keeps them; a
// repository that keeps them otherwise may. Of those that belong to one work tree its git directory says it.
func MayHaveRefs(gitDir, prefix string) bool {
	if _, err := os.Lstat(filepath.Join(gitDir, strings.TrimSuffix(prefix, "/"))); !os.IsNotExist(err) || Reftable(gitDir) {
		return true
	}
	b, err := Beginning(filepath.Join(gitDir, "packed-refs"), most)
	if err != nil {
		return !os.IsNotExist(err) && !errors.Is(err, errIrregular) // git would wait for a pipe
	}
	return len(b) == most || bytes.Contains(b, []byte(" "+prefix))
}

// Branch returns the branch that is checked out by what HEAD of a git directory says; "" = none, or one that is only the other name of another.
func Branch(gitDir string) string {
	if b, err := Beginning(filepath.Join(gitDir, "HEAD"), 1<<16); err == nil {
		if name, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "ref: refs/heads/"); ok {
			return name
		}
	}
	return ""
}

// Head returns the commit that is checked out, by the files of a git directory and that of its repository; "" = git has to be asked. Whether the
// object is there, it does not look.
func Head(gitDir, common string) string {
	path := filepath.Join(gitDir, "HEAD")
	if name := Branch(gitDir); name != "" {
		if !filepath.IsLocal(name) {
			return ""
		}
		path = filepath.Join(common, "refs", "heads", name)
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	b, err := Beginning(path, 1<<8)
	id := Line(b)
	if err != nil || !IsObject(id) || strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}

// Move is an entry in the log of a reference: it was at one object, and is at another.
type Move struct{ From, To string }

// ReadLog reads the log of a reference that a git directory has. whole is false if it holds more than moves. Without a log the error is os.ErrNotExist.
func ReadLog(gitDir, ref string) (moves []Move, whole bool, err error) {
	b, err := Beginning(filepath.Join(gitDir, "logs", ref), most)
	if err != nil {
		return nil, false, err
	}
	whole = len(b) < most
	for l := range strings.Lines(string(b)) {
		from, rest, _ := strings.Cut(l, " ")
		to, _, _ := strings.Cut(rest, " ")
		if !IsObject(from) || !IsObject(to) {
			whole = false
			continue
		}
		moves = append(moves, Move{from, to})
	}
	return moves, whole, nil
}
