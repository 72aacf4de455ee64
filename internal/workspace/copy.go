package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// copies keeps directories that git does not.
type copies struct {
	base      string
	data      string // the data directory, which is not work
	mostBytes int64
	mostFiles int
}

// store returns the bytes of files, by their hash.
func (k *copies) store() objects { return objects{filepath.Join(k.base, "objects")} }

// manifests returns the manifests, by the hash of what they say without times.
func (k *copies) manifests() objects { return objects{filepath.Join(k.base, "manifests")} }

// freezeCopy stores the files of a directory and a manifest of them.
func (k *copies) freezeCopy(ctx context.Context, h *history, id types.UUID, p place) (*state, error) {
	st := &state{Kind: KindCopy, Root: p.root, Limited: p.reason}
	if p.refused != "" {
		st.Limited = join(p.reason, "nothing is kept: the work directory is "+p.refused+"; give it its own")
		return st, nil
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, storage(p.root, err)
	}
	defer root.Close()
	cache := h.caches[p.root]
	if cache == nil {
		cache = k.readCache(id, p.root)
		h.caches[p.root] = cache
	}
	w := &walk{
		ctx: ctx, store: k.store(), own: k.data, root: p.root, old: cache, began: time.Now(),
		bytesLeft: k.mostBytes, filesLeft: k.mostFiles, fresh: map[string]cached{},
	}
	if info, err := root.Stat("."); err == nil {
		_, w.device = statOf(info)
	}
	if err := w.dir(root, ""); err != nil {
		return nil, err
	}
	sortEntries(w.out)
	if !w.changed && len(w.fresh) == len(cache.Files) && cache.ID != "" && k.manifests().present(cache.ID) {
		st.ID = cache.ID
	} else if st.ID, err = k.putManifest(w.out); err != nil {
		return nil, err
	}
	if w.changed || w.reread || st.ID != cache.ID || len(w.fresh) != len(cache.Files) {
		now := &statCache{Version: cacheVersion, Root: p.root, ID: st.ID, Files: w.fresh, written: cache.written}
		if now.written.IsZero() || w.began.Sub(now.written) > cacheEvery {
			if err := k.writeCache(id, now); err != nil {
				return nil, err
			}
			now.written = w.began
		}
		h.caches[p.root] = now
	}
	st.Files, st.Bytes = w.files, w.bytes
	st.Limited = join(append([]string{p.reason}, w.notes()...)...)
	return st, nil
}

// putManifest stores a manifest under the name of its content, in which times have no part.
func (k *copies) putManifest(entries []entry) (string, error) {
	id := contentID(entries)
	b, err := encodeManifest(entries)
	if err != nil {
		return "", err
	}
	packed := pack(b)
	if k.manifests().has(id, int64(len(packed))) {
		return id, nil
	}
	path := k.manifests().path(id)
	if err := mkdir(filepath.Dir(path)); err != nil {
		return "", err
	}
	return id, durable.WriteFile(durable.OS, path, packed, durable.Cached)
}

// join puts the parts that are not empty together.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// walk is one look at a directory. It goes by name order, so that limits stop it at the same place.
type walk struct {
	ctx    context.Context
	store  objects
	own    string // the data directory, which is not work
	root   string
	device uint64
	old    *statCache
	began  time.Time

	bytesLeft int64
	filesLeft int
	out       []entry
	fresh     map[string]cached
	files     int
	bytes     int64 // that were read
	changed   bool  // against the cache
	reread    bool  // a file was read that the cache need not have given up

	over, special, unreadable, mounted, moving []string
}

func (w *walk) notes() []string {
	return slices.Concat(
		notes("files over the limits on a copy", w.over), notes("files that cannot be read", w.unreadable),
		notes("other file systems", w.mounted), notes("neither files nor links", w.special),
		notes("files that were changed at each reading", w.moving))
}

// dir walks one directory, which is open as dir. name is its path from the root, "" for that itself.
func (w *walk) dir(dir *os.Root, name string) error {
	if w.ctx.Err() != nil {
		return types.Errorf(types.ErrCancelled, "Take", w.root, "%w", context.Cause(w.ctx))
	}
	f, err := dir.Open(".")
	if err != nil {
		w.unreadable = append(w.unreadable, name+"/")
		return nil
	}
	names, err := f.Readdirnames(-1)
	_ = f.Close() // nothing was written
	if err != nil {
		w.unreadable = append(w.unreadable, name+"/")
	}
	slices.Sort(names)
	for _, n := range names {
		if n == ".git" || strings.HasPrefix(n, tempPrefix) {
			continue
		}
		if err := w.one(dir, n, path.Join(name, n)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) one(dir *os.Root, n, name string) error {
	info, err := dir.Lstat(n)
	if err != nil {
		return nil // it has gone
	}
	st, device := statOf(info)
	switch t := info.Mode().Type(); {
	case t == fs.ModeDir:
		if filepath.Join(w.root, name) == w.own {
			return nil
		}
		if device != w.device {
			w.mounted = append(w.mounted, name)
			return nil
		}
		sub, err := dir.OpenRoot(n)
		if err != nil {
			w.unreadable = append(w.unreadable, name+"/")
			return nil
		}
		defer sub.Close()
		w.add(entry{Path: name, Mode: info.Mode()}, fileStat{Mode: info.Mode()})
		return w.dir(sub, name)
	case t == fs.ModeSymlink:
		target, err := dir.Readlink(n)
		if err != nil {
			return nil // it has gone
		}
		if !w.room(name, 0) {
			return nil
		}
		sum := sha256.Sum256([]byte(target))
		w.files++
		w.add(entry{Path: name, Mode: fs.ModeSymlink | 0o777, Hash: hex.EncodeToString(sum[:]), Link: target, Size: int64(len(target))}, st)
		return nil
	case t != 0:
		w.special = append(w.special, name)
		return nil
	}
	if !w.room(name, info.Size()) {
		return nil
	}
	if c, ok := w.old.Files[name]; ok && c.fileStat == st && w.old.trusts(c) {
		w.files++
		w.keep(entry{Path: name, Mode: info.Mode(), Size: st.Size, Hash: c.Hash, Mtime: st.Mtime}, c)
		return nil
	}
	return w.file(dir, n, name)
}

// room takes what a file needs from the limits, or leaves it out.
func (w *walk) room(name string, size int64) bool {
	if w.filesLeft < 1 || size > w.bytesLeft {
		w.over = append(w.over, name)
		return false
	}
	w.filesLeft, w.bytesLeft = w.filesLeft-1, w.bytesLeft-size
	return true
}

// file reads one file into the store, again if it was changed meanwhile.
func (w *walk) file(dir *os.Root, n, name string) error {
	const tries = 3
	for try := 1; ; try++ {
		f, err := dir.OpenFile(n, openFlags, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			w.unreadable = append(w.unreadable, name)
			return nil
		}
		before, err := f.Stat()
		if err != nil || !before.Mode().IsRegular() {
			_ = f.Close() // nothing was written
			w.unreadable = append(w.unreadable, name)
			return nil
		}
		hash, size, err := w.store.put(f, before.Size())
		after, serr := f.Stat()
		_ = f.Close() // nothing was written
		if err != nil {
			var se *types.SyscallError
			if errors.As(err, &se) {
				return err
			}
			w.unreadable = append(w.unreadable, name) // such as a file that a device does not give
			return nil
		}
		if serr == nil && identity(before) == identity(after) || try == tries {
			st, _ := statOf(before)
			if try == tries && size != st.Size {
				w.moving = append(w.moving, name)
			}
			w.files, w.bytes, w.reread = w.files+1, w.bytes+size, true
			w.add(entry{Path: name, Mode: before.Mode(), Size: size, Hash: hash, Mtime: st.Mtime}, st)
			return nil
		}
	}
}

// add takes an entry and compares it with what was there at the last look.
func (w *walk) add(e entry, st fileStat) {
	c := cached{fileStat: st, Hash: e.Hash, Read: w.began.UnixNano()}
	if was, ok := w.old.Files[e.Path]; !ok || was.Hash != e.Hash || was.Mode != st.Mode {
		w.changed = true
	}
	w.keep(e, c)
}

func (w *walk) keep(e entry, c cached) {
	w.out = append(w.out, e)
	w.fresh[e.Path] = c
}

// copyName names what belongs to a history and a directory.
func copyName(id types.UUID, root string) string {
	sum := sha256.Sum256([]byte(root))
	return fmt.Sprintf("%s-%x", id, sum[:8])
}
