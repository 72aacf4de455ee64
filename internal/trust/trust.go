// Package trust remembers which projects a person trusts, and as what: of each, the SHA-256 of every file that can start a program or
// widen what agents may do. A project whose files are others than those is not trusted, whoever has changed them.
package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// State is how a person stands to a project.
type State string

// The states.
const (
	Unknown State = "unknown" // nobody has decided
	Trusted State = "trusted" // and its files are what they were then
	Changed State = "changed" // it was trusted, and its files are others now
)

// File is a file of a project that can start a program or widen rights. Part of the on-disk format.
type File struct {
	Path string `json:"path"`             // below the project, with slashes
	Sum  string `json:"sha256,omitempty"` // of its contents, in hex; "" if they were not read
	Kind string `json:"kind,omitempty"`   // what it is besides a file: "executable", "link to X", "no regular file"
	What string `json:"what"`             // what it can do, for people
	Text []byte `json:"text,omitempty"`   // its contents, to show later what has changed; none of a large one
}

// Entry is what is remembered of a project. Part of the on-disk format.
type Entry struct {
	Dir   string    `json:"dir"`
	Since time.Time `json:"since"`
	Files []File    `json:"files"`
}

// Book is where projects are remembered: a directory of the user's configuration, with a file for each.
type Book struct {
	FS  durable.FS // durable.OS
	Dir string
}

// In returns the book in the user's configuration directory.
func In(configDir string) Book { return Book{durable.OS, filepath.Join(configDir, "trust")} }

// file returns the file of a project.
func (b Book) file(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(b.Dir, hex.EncodeToString(sum[:16])+".json")
}

// Get returns what is remembered of a project; false if nothing is. dir is its root, without symbolic links. One whose entry cannot be
// read is an error, and not trusted.
func (b Book) Get(dir string) (Entry, bool, error) {
	e, err := b.read(b.file(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, false, nil
	}
	if err == nil && e.Dir != dir {
		err = types.Errorf(types.ErrStorage, "Trust", b.file(dir), "it is about %q, not about %q; decide again with: rnix trust", e.Dir, dir)
	}
	return e, err == nil, err
}

func (b Book) read(path string) (e Entry, err error) {
	text, err := durable.ReadFile(b.FS, path)
	if err != nil {
		return Entry{}, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&e); err != nil {
		return Entry{}, types.Errorf(types.ErrStorage, "Trust", path, "it cannot be read (%w); decide again with: rnix trust", err)
	}
	return e, nil
}

// Put remembers that a project is trusted with these files.
func (b Book) Put(e Entry) error {
	text, err := json.MarshalIndent(&e, "", "  ")
	if err != nil {
		return types.Errorf(types.ErrInternal, "Trust", e.Dir, "encode: %w", err)
	}
	if err := durable.MkdirAll(b.FS, b.Dir); err != nil {
		return err
	}
	return durable.WriteFile(b.FS, b.file(e.Dir), append(text, '\n'), durable.Durable)
}

// Forget takes the trust in a project back, and reports whether there was any.
func (b Book) Forget(dir string) (bool, error) {
	err := b.FS.Remove(b.file(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, types.Errorf(types.ErrStorage, "Trust", b.file(dir), "%w", err)
	}
	return true, nil
}

// All returns what is remembered of all projects, by their directories, and what cannot be read.
func (b Book) All() (out []Entry, problems []error) {
	names, err := os.ReadDir(b.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []error{types.Errorf(types.ErrStorage, "Trust", b.Dir, "%w", err)}
	}
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".json") || durable.IsTemp(n.Name()) {
			continue
		}
		e, err := b.read(filepath.Join(b.Dir, n.Name()))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Dir, b.Dir) })
	return out, problems
}

// Status looks at a project, and compares it with what is remembered. changes are what is different; now are its files. Without an entry
// the files are not looked at.
func (b Book) Status(dir string) (state State, changes []Change, err error) {
	was, known, err := b.Get(dir)
	if err != nil || !known {
		return Unknown, nil, err
	}
	now, err := Look(dir)
	if err != nil {
		return Changed, nil, err
	}
	if changes = Compare(was.Files, now); len(changes) > 0 {
		return Changed, changes, nil
	}
	return Trusted, nil, nil
}
