package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// cacheVersion is the format of the caches that this program writes. Others are ignored.
const cacheVersion = 1

// statCache remembers what the files of a directory were like when they were read, so that those that
// have not changed need not be read again.
type statCache struct {
	Version int               `json:"v"`
	Root    string            `json:"root"`
	ID      string            `json:"id"` // of the manifest
	Files   map[string]cached `json:"files"`

	written time.Time // when it was last written to the disk
}

type cached struct {
	fileStat
	Hash string `json:"h"`
	Read int64  `json:"r"` // when the look began at which it was read, in nanoseconds
}

// cacheEvery is how often a cache is written to the disk: it is needed there after a restart only, and an
// older one is merely slower.
const cacheEvery = 10 * time.Second

// racy is how much older than the look at which it was read a file must be for its times to say that it
// was not changed since: clocks of file systems are coarse, some to two seconds.
const racy = 2 * time.Second

// trusts reports whether a file that looks as it did was not changed.
func (*statCache) trusts(c cached) bool {
	return max(c.Mtime, c.Ctime) < c.Read-int64(racy)
}

func (k *copies) cachePath(id types.UUID, root string) string {
	return filepath.Join(k.base, "cache", copyName(id, root)+".json")
}

// readCache returns the cache of a directory; an empty one if there is none that can be read.
func (k *copies) readCache(id types.UUID, root string) *statCache {
	c := &statCache{}
	b, err := os.ReadFile(k.cachePath(id, root))
	if err != nil || json.Unmarshal(b, c) != nil || c.Version != cacheVersion || c.Root != root {
		return &statCache{}
	}
	return c
}

// writeCache replaces the cache of a directory.
func (k *copies) writeCache(id types.UUID, c *statCache) error {
	b, err := json.Marshal(c)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Take", c.Root, "%w", err)
	}
	path := k.cachePath(id, c.Root)
	if err := mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS, path, b, durable.Cached)
}
