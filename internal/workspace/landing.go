package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/types"
)

// landing is the part of a merge in which files of the user's are written. It is noted before that, so that one which was cut off, in whatever
// moment, is taken back or finished: by the next merge there, or when the daemon starts. Meanwhile git's lock of the index is ours, and says so;
// git works on an index beside it, which takes the place of the user's when all files are there. Part of the on-disk format.
type landing struct {
	Version int        `json:"v"`
	UUID    types.UUID `json:"uuid"` // of the history whose work it is
	Dir     string     `json:"dir"`
	GitDir  string     `json:"git_dir"`
	Common  string     `json:"common"`
	Branch  string     `json:"branch"`
	Before  string     `json:"before"` // commits
	Commit  string     `json:"commit"`
	Lock    string     `json:"lock"` // what is in our lock
}

// landingVersion is the format of the notes that this program writes.
const landingVersion = 1

func (l *landing) lock() string  { return filepath.Join(l.GitDir, "index.lock") }
func (l *landing) index() string { return filepath.Join(l.GitDir, "index.rnix") }

// unlinked is the lock before it has its name.
func (l *landing) unlinked() string { return l.index() + ".take" }

// env returns what lets git work on the index that is ours.
func (l *landing) env(env []string) []string {
	return append(append([]string{}, env...), "GIT_INDEX_FILE="+l.index())
}

// args are the arguments of a git that works on the files.
func (l *landing) args(args ...string) []string {
	return append([]string{"--git-dir=" + l.GitDir, "--work-tree=" + l.Dir}, args...)
}

// landings write files of the user's, one at a time: each notes where it is.
type landings struct {
	*canopy
	opened time.Time  // what was left before that is nobody's any more
	mu     sync.Mutex // held over git while files are written, or put back
}

// notes is the directory of the notes.
func (k *landings) notes() string { return filepath.Join(k.base, "landings") }

func (k *landings) notePath(gitDir string) string {
	sum := sha256.Sum256([]byte(gitDir))
	return filepath.Join(k.notes(), hex.EncodeToString(sum[:12])+".json")
}

// begin notes a landing, takes the lock of the index and makes ours.
func (k *landings) begin(l *landing) error {
	if err := mkdir(k.notes()); err != nil {
		return err
	}
	b, err := json.Marshal(l)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Merge", l.Dir, "%w", err)
	}
	if err := durable.WriteFile(durable.OS, k.notePath(l.GitDir), append(b, '\n'), durable.Durable); err != nil {
		return err
	}
	if err = l.take(); err == nil {
		if err = l.copyIndex(); err != nil {
			err = errors.Join(err, k.end(l))
		}
		return err
	}
	_ = os.Remove(k.notePath(l.GitDir)) // a note without a lock changes nothing
	return err
}

// take takes the lock of the index. It is there with its content or not at all, so that one which is left says whose it is.
func (l *landing) take() error {
	err := writeAnew(l.unlinked(), []byte(l.Lock), 0o644)
	if err == nil {
		if err = os.Link(l.unlinked(), l.lock()); err != nil && !errors.Is(err, fs.ErrExist) {
			err = l.takeUnlinked() // a file system without hard links
		}
	}
	if rerr := os.Remove(l.unlinked()); err == nil && rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(rerr, os.Remove(l.lock()))
	}
	if errors.Is(err, fs.ErrExist) {
		return types.Errorf(types.ErrConflict, "Merge", l.Dir, "another git works there, or one was killed: %s is there; if none runs, remove it: rm %s", l.lock(), plumbing.ShellQuote(l.lock()))
	}
	if err != nil {
		return storage(l.lock(), err)
	}
	return nil
}

// writeAnew writes a file in the place of whatever is there, and through no link: agents can write into the repository, too.
func writeAnew(path string, b []byte, perm fs.FileMode) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// takeUnlinked takes the lock in two steps: killed between them, it leaves an empty one, which a person has to remove.
func (l *landing) takeUnlinked() error {
	f, err := os.OpenFile(l.lock(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(l.Lock)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(l.lock()))
	}
	return nil
}

// ours reports whether the lock of the index is that of the landing; free that there is none.
func (l *landing) ours() (ours, free bool) {
	b, _, err := plumbing.ReadFile(l.lock(), plumbing.MostText)
	return err == nil && (string(b) == l.Lock || len(b) < len(l.Lock) && len(b) > 0 && strings.HasPrefix(l.Lock, string(b))), errors.Is(err, fs.ErrNotExist)
}

// copyIndex makes our index a copy of the user's, with its time: git reads a file anew that was changed in the second in which its index was written,
// since size and times may be the same with another content, and in a copy with a later time it would not.
func (l *landing) copyIndex() error {
	b, info, err := plumbing.ReadFile(filepath.Join(l.GitDir, "index"), plumbing.MostIndex)
	if err == nil {
		err = writeAnew(l.index(), b, info.Mode().Perm())
	}
	if err == nil {
		err = os.Chtimes(l.index(), info.ModTime(), info.ModTime())
	}
	if err != nil {
		return storage(l.index(), err)
	}
	return nil
}

// settled tells git that no file was changed in the second in which our index was copied: whoever says so has waited for the next one, and looked.
func (l *landing) settled() error {
	now := time.Now()
	if err := os.Chtimes(l.index(), now, now); err != nil {
		return storage(l.index(), err)
	}
	return nil
}

// install puts our index in the place of the user's.
func (l *landing) install() error {
	if err := os.Rename(l.index(), filepath.Join(l.GitDir, "index")); err != nil {
		return storage(l.index(), err)
	}
	return nil
}

// end removes all that a landing has made, the note last.
func (k *landings) end(l *landing) error {
	var errs []error
	remove := func(path string) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, storage(path, err))
		}
	}
	remove(l.index())
	remove(l.index() + ".lock")
	remove(l.unlinked())
	if ours, _ := l.ours(); ours {
		remove(l.lock())
	}
	if len(errs) == 0 {
		remove(k.notePath(l.GitDir))
	}
	return errors.Join(errs...)
}

// SettleMerges finishes or takes back the merges that were cut off when an earlier daemon was killed, and says of each what it came to.
func (k *Grove) SettleMerges(ctx context.Context) (said []string) {
	k.landings.mu.Lock()
	_ = durable.RemoveTemp(durable.OS, k.landings.notes()) // of one that was killed while it was noted
	said = k.landings.settleAdvances()
	k.landings.mu.Unlock()
	names, _ := filepath.Glob(filepath.Join(plumbing.EscapeGlob(k.landings.notes()), "*.json"))
	for _, name := range names {
		l, err := readLanding(name)
		if err != nil {
			said = append(said, "a merge was cut off, and it is not known where: "+err.Error())
			continue
		}
		k.landings.mu.Lock()
		what, err := k.landings.settleLanding(ctx, l)
		k.landings.mu.Unlock()
		if err != nil {
			what = "is half-way there still: " + err.Error()
		}
		said = append(said, "the merge of "+l.Commit[:min(len(l.Commit), 12)]+" into "+l.Branch+" in "+l.Dir+" was cut off; it "+what)
	}
	return said
}

// settleAt is settleLanding for what was cut off in a work tree; without such nothing is done.
func (k *landings) settleAt(ctx context.Context, gitDir string) error {
	l, err := readLanding(k.notePath(gitDir))
	if errors.Is(err, fs.ErrNotExist) || types.CodeOf(err) == types.ErrNotFound {
		return nil
	}
	if err == nil {
		_, err = k.settleLanding(ctx, l)
	}
	return err
}

func readLanding(path string) (*landing, error) {
	b, err := durable.ReadFile(durable.OS, path)
	if err != nil {
		return nil, err
	}
	var l landing
	if err := json.Unmarshal(b, &l); err != nil || l.Version < 1 || l.GitDir == "" || l.Lock == "" {
		return nil, types.Errorf(types.ErrStorage, "Merge", path, "not the note of a merge (%d bytes): move it away", len(b))
	}
	if l.Version > landingVersion {
		return nil, types.Errorf(types.ErrVersion, "Merge", path, "written in format %d by a newer program, this one reads up to %d", l.Version, landingVersion)
	}
	return &l, nil
}
