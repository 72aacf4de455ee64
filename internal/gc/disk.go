package gc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// Names beside the histories. Part of the on-disk format.
const (
	gonePrefix = ".gone-"
	backPrefix = ".back-"
)

func (d disk) gone(id types.UUID) string {
	return filepath.Join(d.steps, gonePrefix+id.String())
}
func (d disk) back(id types.UUID) string {
	return filepath.Join(d.steps, backPrefix+id.String())
}

// disk is where histories and archives lie: their places, and the moves that a crash cannot cut in two.
type disk struct {
	fs    durable.FS
	data  string // the data directory
	steps string // the directory of the histories
}

func (d disk) dir(id types.UUID) string { return step.Dir(d.data, id) }

// present reports whether a history has its directory. A directory with neither records nor a
// proc-info.json is what somebody has written behind its end; it is no history.
func (d disk) present(id types.UUID) bool {
	if info, err := d.fs.Stat(filepath.Join(d.dir(id), step.StepsFile)); err == nil && info.Size() > 0 {
		return true
	}
	_, err := d.fs.Stat(filepath.Join(d.dir(id), step.InfoFile))
	return err == nil
}

func (d disk) entry(p *step.ProcInfo) Entry {
	return Entry{ProcInfo: *p, File: filepath.Join(d.dir(p.UUID), step.InfoFile)}
}

// vanish takes the directory of a history from its name, in one piece and durably, and returns where it
// is. Only then may its files be removed: a crash between them would leave half a history.
func (d disk) vanish(id types.UUID) (string, error) {
	gone := d.gone(id)
	if err := d.removeAll(gone); err != nil {
		return "", err
	}
	if err := d.fs.Rename(d.dir(id), gone); err != nil {
		return "", storage("GC", d.dir(id), err)
	}
	if err := d.fs.SyncDir(d.steps); err != nil {
		// Where that fails too, the next start finds it, beside its archive or its line in deleted.jsonl.
		return "", storage("GC", d.steps, errors.Join(err, d.fs.Rename(gone, d.dir(id))))
	}
	return gone, nil
}

// removeAll removes a directory with all that is in it; one that is not there is nothing to do. Links
// are removed and not followed.
func (d disk) removeAll(dir string) error {
	entries, err := d.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			err = errors.Join(err, d.removeAll(path))
		} else {
			err = errors.Join(err, d.fs.Remove(path))
		}
	}
	if err == nil {
		err = d.fs.Remove(dir)
	}
	return storage("GC", dir, err)
}

// size returns the bytes of all files below a directory.
func (d disk) size(dir string) (int64, error) {
	files, err := walk(d.fs, dir, "")
	total := int64(0)
	for _, f := range files {
		total += f.size
	}
	return total, err
}

// appear gives a history that was put together its name.
func (d disk) appear(id types.UUID, back string) error {
	dir, gone := d.dir(id), d.gone(id)
	if err := d.removeAll(gone); err != nil {
		return err
	}
	// What somebody has written behind the end of a history is no history, and in the way.
	if _, err := d.fs.Stat(dir); err == nil {
		if err := d.fs.Rename(dir, gone); err != nil {
			return storage("Unarchive", dir, err)
		}
	}
	err := d.fs.Rename(back, dir)
	if err == nil {
		err = d.fs.SyncDir(d.steps)
	}
	if err == nil {
		err = d.removeAll(gone)
	}
	return storage("Unarchive", dir, err)
}

// covers reports whether a directory has everything that was packed: the records, with perhaps more behind them, or,
// where there were none, every file as it was but the mark.
func (d disk) covers(dir string, files []packedFile) bool {
	same := func(f packedFile) bool {
		sum, err := d.hashBeginning(filepath.Join(dir, filepath.FromSlash(f.Path)), f.Size)
		return err == nil && sum == f.SHA256
	}
	for _, f := range files {
		if f.Path == step.StepsFile && f.Size > 0 {
			return same(f)
		}
	}
	return !slices.ContainsFunc(files, func(f packedFile) bool { return f.Path != step.PinFile && !same(f) })
}

// removeArchive removes the file of an archive durably.
func (d disk) removeArchive(id types.UUID) error {
	path := step.ArchivePath(d.data, id)
	err := d.fs.Remove(path)
	if err == nil {
		err = d.fs.SyncDir(filepath.Dir(path))
	}
	return storage("GC", path, err)
}

// hashBeginning returns the hash of the first size bytes of a file.
func (d disk) hashBeginning(path string, size int64) (string, error) {
	f, err := d.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyN(h, f, size); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hash returns the hash and the size of a file.
func (d disk) hash(ctx context.Context, path string) (string, int64, error) {
	f, err := d.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return "", 0, storage("Archive", path, err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, reading{ctx, f})
	return hex.EncodeToString(h.Sum(nil)), n, storage("Archive", path, err)
}

// storage makes err a failure of the disk at path, unless it says more already.
func storage(op, path string, err error) error {
	if err == nil || types.CodeOf(err) != types.ErrInternal {
		return err
	}
	if pe, ok := err.(*fs.PathError); ok { //nolint:errorlint // only the outermost names the path twice
		err = pe.Err
	}
	return types.Errorf(types.ErrStorage, op, path, "%w", err)
}
