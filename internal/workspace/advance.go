package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/types"
)

// advance is a branch that is brought to a commit of ours where it is checked out, with the index that follows. A git that is killed in
// it leaves locks, which stop every git there until a person removes them. So it is noted before, and the locks are removed at the next start.
type advance struct {
	Version int    `json:"v"`
	GitDir  string `json:"git_dir"`
	Common  string `json:"common"`
	Branch  string `json:"branch"` // "" = none
	Commit  string `json:"commit"`
}

// advanceVersion is the format of the notes that this program writes.
const advanceVersion = 1

// advances is the directory of the notes.
func (k *landings) advances() string { return filepath.Join(k.base, "advances") }

// advancing notes an advance. It is over when the function is called that it returns.
func (k *landings) advancing(s standing, commit string) (over func(), err error) {
	if err := mkdir(k.advances()); err != nil {
		return nil, err
	}
	b, err := json.Marshal(advance{advanceVersion, s.gitDir, s.Common, s.branch, commit})
	if err != nil {
		return nil, types.Errorf(types.ErrInternal, "Merge", s.Dir, "%w", err)
	}
	sum := sha256.Sum256([]byte(s.gitDir))
	note := filepath.Join(k.advances(), hex.EncodeToString(sum[:12])+".json")
	if err := durable.WriteFile(durable.OS, note, append(b, '\n'), durable.Durable); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(note) }, nil // one that stays has locks removed which it may have removed
}

// settleAdvances removes the locks that the gits of an earlier daemon have left which were killed with it, and says where it cannot.
func (k *landings) settleAdvances() (said []string) {
	_ = durable.RemoveTemp(durable.OS, k.advances()) // of one that was killed while it was noted
	names, _ := filepath.Glob(filepath.Join(plumbing.EscapeGlob(k.advances()), "*.json"))
	for _, note := range names {
		b, err := durable.ReadFile(durable.OS, note)
		var a advance
		if err == nil {
			err = json.Unmarshal(b, &a)
		}
		if err != nil || a.Version != advanceVersion || a.GitDir == "" || a.Commit == "" {
			said = append(said, "a commit was cut off, and it is not known where: "+note+" is not the note of one: move it away")
			continue
		}
		k.unlock(note, a.Common, a.GitDir, a.Branch, a.Commit)
		index := filepath.Join(a.GitDir, "index.lock")
		if _, err := os.Lstat(k.notePath(a.GitDir)); errors.Is(err, fs.ErrNotExist) && k.left(note, index) { // a merge that was cut off has a lock of its own
			_ = os.Remove(index)
		}
		_ = os.Remove(note)
	}
	return said
}
