package confine

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"rnix/types"
)

// Own are the directories that children have for themselves: temporary files, which are of one process or of one of its MCP servers and go with
// it; caches; and homes of agent CLIs and of models that are programs. Its fields are set before it is used. Safe for concurrent use.
type Own struct {
	Data string // the data directory, which holds them
	// Over reports whether a history has ended for good, or is none.
	Over func(id types.UUID) bool
	Log  *slog.Logger

	counted counts // by the proxies of its boxes

	work sync.WaitGroup
	temp sync.RWMutex // while a directory of temporary files is made, or is put aside since its history is over
	used sync.Map     // names of the directories of temporary files that were made since the start for what a person tries: their history, none, is always over
	home sync.Mutex   // held while a home of a program is furnished or removed
}

// Temp returns the directory for the temporary files of a process's commands; those of what else it has begin with that name and a dot. It goes
// when the history has ended for good; see Ended.
func (s *Own) Temp(id types.UUID) string { return filepath.Join(temps(s.Data), id.String()) }

func temps(data string) string  { return filepath.Join(data, "tmp") }
func caches(data string) string { return filepath.Join(data, "caches") }

// makeDirs makes what children have for themselves, in the data directory. That itself it does not make: where it was moved, no other one may come to be.
func (s *Own) makeDirs(dirs ...string) error {
	s.temp.RLock()
	defer s.temp.RUnlock()
	root, err := os.OpenRoot(s.Data)
	if err != nil {
		return types.Errorf(types.ErrStorage, "Start", s.Data, "the data directory cannot be opened: %w", err)
	}
	defer root.Close() // nothing was written to it
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if base := filepath.Base(dir); whose(base) == (types.UUID{}).String() {
			s.used.Store(base, true)
		}
		name, err := filepath.Rel(s.Data, dir)
		if err == nil {
			err = root.MkdirAll(name, 0o700)
		}
		if err == nil {
			err = root.Chmod(name, 0o700) // a command may have taken the right to it from all that come after
		}
		if err != nil {
			return types.Errorf(types.ErrStorage, "Start", dir, "a directory for what runs in the sandbox cannot be made: %w", err)
		}
	}
	return nil
}

// sweep removes the temporary files that an earlier daemon has left and nobody needs any more, and caches and homes that nobody uses.
func (s *Own) sweep(now time.Time) {
	entries, err := os.ReadDir(temps(s.Data))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Log.Warn("temporary files of commands", "err", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), gone) {
			if err := removeAll(filepath.Join(temps(s.Data), e.Name())); err != nil {
				s.Log.Warn("temporary files of commands cannot be removed", "path", e.Name(), "err", err)
			}
		}
		var id types.UUID
		if id.UnmarshalText([]byte(whose(e.Name()))) == nil && s.Over(id) {
			s.clear(id)
		}
	}
	s.sweepCaches(now)
	sweepHomes(s, now)
}

// whose returns of which history the directory of that name is.
func whose(name string) string {
	id, _, _ := strings.Cut(name, ".") // behind it, what of the process it is of
	return id
}

// cacheAge is after how long without a command that used it a cache goes.
const cacheAge = 30 * 24 * time.Hour

// sweepCaches removes the caches that no command has used for long: they are made again.
func (s *Own) sweepCaches(now time.Time) {
	entries, _ := os.ReadDir(caches(s.Data)) // where there is none nothing is to be removed
	for _, e := range entries {
		if info, err := e.Info(); err != nil || !e.IsDir() || now.Sub(info.ModTime()) < cacheAge {
			continue
		}
		if err := removeAll(filepath.Join(caches(s.Data), e.Name())); err != nil {
			s.Log.Warn("a cache of commands cannot be removed", "err", err)
		}
	}
}

// Ended is called when a run of a process has ended. It removes the temporary files of the history, beside the caller, if that has ended for good.
func (s *Own) Ended(id types.UUID) {
	s.counted.forget(id)
	if s.Over(id) {
		s.work.Go(func() { s.clear(id) }) // ends with the files; waited for by Close
	}
}

// Close waits for what Ended has begun.
func (s *Own) Close() error {
	s.work.Wait()
	return nil
}

// gone begins the names of directories of temporary files that are being removed.
const gone = "gone-"

// clear removes the temporary files of a history, unless it goes on: then they are those of its commands again.
func (s *Own) clear(id types.UUID) {
	aside, err := s.putAside(id)
	for _, dir := range aside { // it can take long, and the next command need not wait for it
		err = errors.Join(err, removeAll(dir))
	}
	if err != nil {
		s.Log.Warn("temporary files of commands cannot be removed", "uuid", id, "err", err)
	}
}

// putAside renames the directories of the temporary files of a history that is over.
func (s *Own) putAside(id types.UUID) (aside []string, err error) {
	s.temp.Lock()
	defer s.temp.Unlock()
	if !s.Over(id) {
		return nil, nil
	}
	entries, err := os.ReadDir(temps(s.Data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if _, used := s.used.Load(e.Name()); used || whose(e.Name()) != id.String() {
			continue
		}
		to := filepath.Join(temps(s.Data), gone+e.Name())
		e2 := removeAll(to) // of an earlier end
		if e2 == nil {
			e2 = os.Rename(filepath.Join(temps(s.Data), e.Name()), to)
		}
		if err = errors.Join(err, e2); e2 == nil {
			aside = append(aside, to)
		}
	}
	return aside, err
}

// removeAll removes a directory, also where a program has taken the right to write from parts of it, as that of Go does.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) // RemoveAll says what is left
		}
		return nil
	})
	return os.RemoveAll(dir)
}
