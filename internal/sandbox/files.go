package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/types"
)

// Kind says what a path is.
type Kind int

// The kinds.
const (
	Missing Kind = iota
	Directory
	Link  // a symbolic link
	Other // a file, a device, a socket, a pipe
)

// Files answers what Resolve and MakePlan ask about the file system, so that both are pure. Disk is the real one.
type Files interface {
	// Kind returns what a path is, without following a link in its last component. A path that cannot be seen is Missing.
	Kind(path string) Kind
	// Target returns what a symbolic link says.
	Target(path string) string
	// List returns the names in a directory, sorted; none if it cannot be read.
	List(dir string) []string
	// Held reports whether what is at a path only holds the name, for a box: it can go at any time.
	Held(path string) bool
}

// Disk is the file system of this process.
type Disk struct{}

// Kind returns what a path is. A path that this user may not look at counts as missing, as it does for its commands.
func (Disk) Kind(path string) Kind {
	switch info, err := os.Lstat(path); {
	case err != nil:
		return Missing
	case info.IsDir():
		return Directory
	case info.Mode()&fs.ModeSymlink != 0:
		return Link
	}
	return Other
}

// Target returns what a symbolic link says, or nothing.
func (Disk) Target(path string) string {
	to, _ := os.Readlink(path)
	return to
}

// List returns the names in a directory.
func (Disk) List(dir string) []string {
	entries, _ := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// Held reports whether what is at a path only holds the name.
func (Disk) Held(path string) bool { return IsHeld(path) }

// vacant says whether there is nothing at a path, or only what holds the name for another box.
func vacant(files Files, path string) bool { return files.Kind(path) == Missing || files.Held(path) }

// mostLinks is how many links a path may lead through: as many as Linux follows (MAXSYMLINKS).
const mostLinks = 40

var errLinks = errors.New("too many symbolic links")

// real returns a path without symbolic links, and the links that it led through. What is missing stays as it is written.
func real(files Files, path string) (string, []string, error) {
	rest := strings.Split(strings.Trim(path, "/"), "/")
	at, links := "/", []string(nil)
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if files.Kind(next) != Link {
			at = next
			continue
		}
		if links = append(links, next); len(links) > mostLinks {
			return "", nil, errLinks
		}
		to := files.Target(next)
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(strings.Trim(to, "/"), "/"), rest...)
	}
	return at, links, nil
}

// Resolve returns the canonical policy with real paths in place of those that lead through symbolic links. A link that the command
// could replace, since the policy lets it write there, cannot lead to a hidden, protected or writable path; the error (CONFLICT) names it. What it leads
// to is not given to be read.
func (p Policy) Resolve(files Files) (Policy, error) {
	if err := p.Check(); err != nil {
		return p, err
	}
	var held, given []string      // links on the way to what is hidden, protected or written; paths to be read without any
	read := map[string][]string{} // paths to be read, by the links on the way
	out := p
	for _, list := range []struct {
		paths *[]string
		tight bool
	}{{&out.Read, false}, {&out.Write, true}, {&out.Hide, true}, {&out.Protect, true}, {&out.Sockets, false}, {&out.Run, false}} {
		if *list.paths == nil { // of what may be executed that is not the same as none
			continue
		}
		paths := make([]string, 0, len(*list.paths))
		for _, path := range *list.paths {
			to, links, err := Follow(files, path)
			if err != nil {
				return p, err
			}
			paths = append(paths, to)
			if list.tight {
				held = append(held, links...)
			} else if list.paths == &out.Read {
				for _, link := range links {
					read[link] = append(read[link], to)
				}
				if len(links) == 0 {
					given = append(given, to)
				}
			}
		}
		*list.paths = paths
	}
	out = out.Canonical()
	for _, link := range held {
		if out.Access(filepath.Dir(link)) == AccessWrite {
			return p, types.Errorf(types.ErrConflict, "sandbox", link, "cannot protect, nor let be written, what is behind a symbolic link that the command could replace; put a file or a directory in its place (it leads to %s)", files.Target(link))
		}
	}
	all := out
	for link, paths := range read {
		if all.Access(filepath.Dir(link)) == AccessWrite {
			out.Read = slices.DeleteFunc(slices.Clone(out.Read), func(path string) bool {
				return slices.Contains(paths, path) && !slices.Contains(given, path)
			})
		}
	}
	return out.Canonical(), nil
}

// Follow returns where a path leads, and the symbolic links on the way. What is missing stays as it is written.
func Follow(files Files, path string) (to string, links []string, err error) {
	if to, links, err = real(files, path); err != nil {
		err = types.Errorf(types.ErrConflict, "sandbox", path, "%w; remove the links that lead in a circle", err)
	}
	return to, links, err
}

// firstMissing returns the outermost component of a path that does not exist or only holds a name, or the path itself.
func firstMissing(files Files, path string) string {
	for _, dir := range slices.Backward(ancestors(path)) {
		if files.Kind(dir) != Directory || files.Held(dir) {
			path = dir
		} else {
			break
		}
	}
	return path
}

// ancestors returns the directories above a path, from the root down.
func ancestors(path string) []string {
	var out []string
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		out = append(out, dir)
		if dir == "/" {
			slices.Reverse(out)
			return out
		}
	}
}
