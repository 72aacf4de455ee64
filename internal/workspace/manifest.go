package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"unicode/utf8"

	"rnix/types"
)

// manifestVersion is the format of the manifests that this program writes.
const manifestVersion = 1

// entry is one file, link or directory of a snapshot.
type entry struct {
	Path  string      // relative to the root, with slashes
	Mode  fs.FileMode // type and permissions; fs.ModeIrregular is a submodule
	Size  int64
	Hash  string // of its bytes, or of its target; "" for directories
	Link  string // the target of a symbolic link, if it is known without reading
	Mtime int64  // nanoseconds; 0 = not known
}

// is reports whether two entries of snapshots of one kind are the same file.
func (e entry) is(o entry) bool { return e.Mode == o.Mode && e.Hash == o.Hash }

// manifestLine is an entry in a file. Part of the on-disk format.
type manifestLine struct {
	Path  string      `json:"p,omitempty"`
	Raw   []byte      `json:"r,omitempty"` // the path, if it is not valid text
	Mode  fs.FileMode `json:"m"`
	Size  int64       `json:"s,omitempty"`
	Hash  string      `json:"h,omitempty"`
	Link  []byte      `json:"l,omitempty"`
	Mtime int64       `json:"t,omitempty"`
}

type manifestHead struct {
	Version int `json:"v"`
	Entries int `json:"n"`
}

// encodeManifest writes entries, one JSON object per line.
func encodeManifest(entries []entry) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	err := enc.Encode(manifestHead{manifestVersion, len(entries)})
	for _, e := range entries {
		l := manifestLine{Path: e.Path, Mode: e.Mode, Size: e.Size, Hash: e.Hash, Link: []byte(e.Link), Mtime: e.Mtime}
		if !utf8.ValidString(e.Path) {
			l.Path, l.Raw = "", []byte(e.Path)
		}
		err = errors.Join(err, enc.Encode(l))
	}
	if err != nil {
		return nil, types.Errorf(types.ErrInternal, "Take", "", "manifest: %w", err)
	}
	return b.Bytes(), nil
}

// decodeManifest reads what encodeManifest wrote. A manifest that is not whole is an error.
func decodeManifest(r io.Reader, name string) ([]entry, error) {
	dec := json.NewDecoder(r)
	var head manifestHead
	if err := dec.Decode(&head); err != nil || head.Version < 1 {
		return nil, types.Errorf(types.ErrStorage, "Restore", name, "not a manifest of a snapshot")
	}
	if head.Version > manifestVersion {
		return nil, types.Errorf(types.ErrVersion, "Restore", name, "written in format %d by a newer program, this one reads up to %d", head.Version, manifestVersion)
	}
	var out []entry
	for range head.Entries {
		var l manifestLine
		if err := dec.Decode(&l); err != nil {
			return nil, types.Errorf(types.ErrStorage, "Restore", name, "the manifest breaks off after %d of %d files: %w", len(out), head.Entries, err)
		}
		if l.Raw != nil {
			l.Path = string(l.Raw)
		}
		out = append(out, entry{Path: l.Path, Mode: l.Mode, Size: l.Size, Hash: l.Hash, Link: string(l.Link), Mtime: l.Mtime})
	}
	return out, nil
}

// contentID names the content of entries: a hash of all that is in them but times. Part of the on-disk
// format.
func contentID(entries []entry) string {
	sum := sha256.New()
	b := fmt.Appendf(nil, "rnix manifest %d %d\n", manifestVersion, len(entries))
	for _, e := range entries {
		for _, text := range []string{e.Path, e.Hash, e.Link} {
			b = binary.AppendUvarint(b, uint64(len(text)))
			b = append(b, text...)
		}
		b = binary.AppendUvarint(b, uint64(e.Mode))
		b = binary.AppendVarint(b, e.Size)
		sum.Write(b)
		b = b[:0]
	}
	sum.Write(b) // the beginning, if there are no entries
	return hex.EncodeToString(sum.Sum(nil))
}

// sortEntries sorts entries by path.
func sortEntries(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.Path, b.Path) })
}

// source is a snapshot that can be read.
type source interface {
	// entries returns what is in it, sorted by path.
	entries(ctx context.Context) ([]entry, error)
	// read gives the bytes of files and the targets of links to fn, in their order. r is valid until fn
	// returns, and need not be read to its end.
	read(ctx context.Context, want []entry, fn func(e entry, r io.Reader) error) error
}

// copySource is a snapshot of kind copy.
type copySource struct {
	store, manifests objects
	id               string
}

func (c copySource) entries(context.Context) ([]entry, error) {
	r, err := c.manifests.open(c.id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out, err := decodeManifest(r.from, c.manifests.path(c.id))
	if err != nil {
		return nil, err
	}
	if contentID(out) != c.id {
		return nil, types.Errorf(types.ErrStorage, "Restore", c.manifests.path(c.id), "the manifest is damaged: its content is not that of its name")
	}
	return out, nil
}

func (c copySource) read(ctx context.Context, want []entry, fn func(entry, io.Reader) error) error {
	for _, e := range want {
		if ctx.Err() != nil {
			return types.Errorf(types.ErrCancelled, "Restore", e.Path, "%w", context.Cause(ctx))
		}
		if err := c.readOne(e, fn); err != nil {
			return err
		}
	}
	return nil
}

func (c copySource) readOne(e entry, fn func(entry, io.Reader) error) error {
	if e.Mode.Type() == fs.ModeSymlink {
		return fn(e, bytes.NewReader([]byte(e.Link)))
	}
	r, err := c.store.open(e.Hash)
	if err != nil {
		return err
	}
	defer r.Close()
	return fn(e, r)
}
