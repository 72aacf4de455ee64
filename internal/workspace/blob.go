package workspace

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"rnix/internal/durable"
	"rnix/types"
)

// The first byte of an object says how the rest is written. Part of the on-disk format.
const (
	objectPlain = 'p'
	objectFlate = 'z'
)

// inMemory is up to how many bytes a file is read at once, and compressed.
const inMemory = 4 << 20

// objects are bytes under their SHA-256, below a directory.
type objects struct{ dir string }

func (o objects) path(id string) string { return filepath.Join(o.dir, id[:2], id[2:]) }

// has reports whether an object of so many bytes, as it is stored, is there. Another size is what a power
// cut has left of one.
func (o objects) has(id string, size int64) bool {
	info, err := os.Stat(o.path(id))
	return err == nil && info.Size() == size
}

// present reports whether there is something under an id.
func (o objects) present(id string) bool {
	info, err := os.Stat(o.path(id))
	return err == nil && info.Size() > 0
}

// put stores what r gives, size bytes or about, and returns its id and how many bytes there were.
func (o objects) put(r io.Reader, size int64) (id string, n int64, err error) {
	if size > inMemory {
		return o.putLarge(r)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return "", 0, err
	}
	id, err = o.putBytes(data)
	return id, int64(len(data)), err
}

func (o objects) putBytes(data []byte) (id string, err error) {
	sum := sha256.Sum256(data)
	id = hex.EncodeToString(sum[:])
	packed := pack(data)
	if o.has(id, int64(len(packed))) {
		return id, nil
	}
	path := o.path(id)
	if err := mkdir(filepath.Dir(path)); err != nil {
		return "", err
	}
	return id, durable.WriteFile(durable.OS, path, packed, durable.Cached)
}

// deflaters are writers that are not in use: each has large tables.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// pack writes the bytes of an object, compressed if that saves a tenth.
func pack(data []byte) []byte {
	if len(data) > 128 {
		var b bytes.Buffer
		b.WriteByte(objectFlate)
		w := deflaters.Get().(*flate.Writer)
		defer deflaters.Put(w)
		w.Reset(&b)
		if _, err := w.Write(data); err == nil && w.Close() == nil && b.Len() < len(data)-len(data)/10 {
			return b.Bytes()
		}
	}
	return append([]byte{objectPlain}, data...)
}

// putLarge stores a file that is not held in memory.
func (o objects) putLarge(r io.Reader) (id string, n int64, err error) {
	if err := mkdir(o.dir); err != nil {
		return "", 0, err
	}
	tmp := filepath.Join(o.dir, largePrefix+rand.Text())
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, durable.FilePerm)
	if err != nil {
		return "", 0, storage(tmp, err)
	}
	defer os.Remove(tmp) // it has another name by then, or is not wanted
	sum := sha256.New()
	_, err = f.Write([]byte{objectPlain})
	if err == nil {
		n, err = io.Copy(io.MultiWriter(f, sum), r)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return "", n, storage(tmp, err)
	}
	id = hex.EncodeToString(sum.Sum(nil))
	if o.has(id, n+1) {
		return id, n, nil
	}
	if err := mkdir(filepath.Dir(o.path(id))); err != nil {
		return "", n, err
	}
	if err := os.Rename(tmp, o.path(id)); err != nil {
		return "", n, storage(o.path(id), err)
	}
	return id, n, nil
}

// largePrefix is what the names of unfinished objects begin with.
const largePrefix = ".large-"

// open returns the bytes of an object. At the end, what was read is compared with the id: an object
// that the disk has changed is an error of code STORAGE.
func (o objects) open(id string) (*verified, error) {
	if len(id) != sha256.Size*2 {
		return nil, types.Errorf(types.ErrInvalid, "Restore", id, "not the id of an object")
	}
	f, err := os.Open(o.path(id))
	if err != nil {
		code := types.ErrStorage
		if errors.Is(err, fs.ErrNotExist) {
			code = types.ErrNotFound
		}
		return nil, types.Errorf(code, "Restore", o.path(id), "it is missing from the snapshots that are kept: %w", err)
	}
	var form [1]byte
	if _, err := io.ReadFull(f, form[:]); err != nil {
		_ = f.Close() // nothing was written
		return nil, types.Errorf(types.ErrStorage, "Restore", o.path(id), "the object is empty")
	}
	v := &verified{file: f, from: f, id: id, sum: sha256.New()}
	if form[0] == objectFlate {
		v.from = flate.NewReader(f)
	}
	return v, nil
}

// verified reads an object and compares it with its id at the end.
type verified struct {
	file *os.File
	from io.Reader
	id   string
	sum  hash.Hash
}

// Read reads the bytes of the object.
func (v *verified) Read(p []byte) (int, error) {
	n, err := v.from.Read(p)
	v.sum.Write(p[:n])
	if err == io.EOF && hex.EncodeToString(v.sum.Sum(nil)) == v.id {
		return n, io.EOF
	}
	if err != nil {
		err = types.Errorf(types.ErrStorage, "Restore", v.file.Name(), "the object is damaged: its bytes are not those of its name")
	}
	return n, err
}

// Close closes the object.
func (v *verified) Close() error { return v.file.Close() }
