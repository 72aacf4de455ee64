package gc

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// Names in an archive. Part of the on-disk format.
const (
	inArchive    = "history/"      // before the names of the files
	manifestFile = "manifest.json" // the last entry

	archiveVersion = 1
	tempSuffix     = ".tmp~" // of what durable.RemoveTemp removes
)

// manifest is the last entry of an archive. Part of the on-disk format.
type manifest struct {
	V     int          `json:"v"`
	Files []packedFile `json:"files"` // in the order of the archive
}

// packedFile is a file of a history.
type packedFile struct {
	Path   string `json:"path"` // with slashes, from the directory of the history
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hexadecimal
}

// found is a file or a directory of a history on the disk.
type found struct {
	path string // with slashes
	dir  bool
	size int64
	time time.Time
}

// walk returns everything below dir, each directory before what is in it. What is neither a file nor a
// directory is an error: a link would be packed as something else than it is.
func walk(fsys durable.FS, dir, below string) ([]found, error) {
	entries, err := fsys.ReadDir(filepath.Join(dir, filepath.FromSlash(below)))
	if err != nil {
		return nil, storage("Archive", dir, err)
	}
	var out []found
	for _, e := range entries {
		name := e.Name()
		if below != "" {
			name = below + "/" + name
		}
		info, err := e.Info()
		if err != nil {
			return nil, storage("Archive", filepath.Join(dir, name), err)
		}
		f := found{path: name, dir: e.IsDir(), size: info.Size(), time: info.ModTime()}
		switch {
		case !utf8.ValidString(name):
			return nil, types.Errorf(types.ErrInvalid, "Archive", filepath.Join(dir, name), "its name is not UTF-8; rename it")
		case e.IsDir():
			f.size = 0
			inside, err := walk(fsys, dir, name)
			if err != nil {
				return nil, err
			}
			out = append(append(out, f), inside...)
		case info.Mode().IsRegular():
			out = append(out, f)
		default:
			return nil, types.Errorf(types.ErrInvalid, "Archive", filepath.Join(dir, name), "it is no file and no directory, but %s; remove it", info.Mode().Type())
		}
	}
	return out, nil
}

func tempName(path string) string {
	var r [6]byte
	rand.Read(r[:])
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+hex.EncodeToString(r[:])+tempSuffix)
}

// press makes archives and reads them.
type press struct{ disk }

// pack writes the history in dir into a new file and makes it durable, then reads it back and compares
// every file with that on the disk. It returns the head as it was written and the size of the file.
// After an error there is no file.
func (p press) pack(ctx context.Context, to, dir string, head step.ArchiveHead) (step.ArchiveHead, int64, error) {
	size, head, err := p.writeArchive(ctx, to, dir, head)
	if err == nil {
		err = p.compare(ctx, to, dir, head)
	}
	if err != nil {
		_ = p.fs.Remove(to) // the error that is returned says why; Open removes what is left
	}
	return head, size, err
}

func (p press) writeArchive(ctx context.Context, to, dir string, head step.ArchiveHead) (int64, step.ArchiveHead, error) {
	files, err := walk(p.fs, dir, "")
	if err != nil {
		return 0, head, err
	}
	for _, f := range files {
		head.Bytes += f.size
		if !f.dir {
			head.Files++
		}
	}
	f, err := p.fs.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, durable.FilePerm)
	if err != nil {
		return 0, head, storage("Archive", to, err)
	}
	buf := bufio.NewWriterSize(f, 256<<10)
	gz := gzip.NewWriter(buf)
	w := packer{tar.NewWriter(gz), p.fs, ctx}
	for _, do := range []func() error{func() error { return w.history(dir, head, files) }, w.Close, gz.Close, buf.Flush, f.Sync} {
		if err == nil {
			err = do()
		}
	}
	size := int64(0)
	if err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil {
			size = info.Size()
		}
	}
	return size, head, storage("Archive", to, errors.Join(err, f.Close()))
}

// packer writes the entries of an archive.
type packer struct {
	*tar.Writer
	fs  durable.FS
	ctx context.Context
}

func (w packer) history(dir string, head step.ArchiveHead, files []found) error {
	if err := w.json(step.ArchiveHeadFile, head.At, head); err != nil {
		return err
	}
	m := manifest{V: archiveVersion, Files: []packedFile{}}
	for _, f := range files {
		if f.dir {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: inArchive + f.path + "/", Mode: int64(durable.DirPerm), ModTime: f.time}); err != nil {
				return err
			}
			continue
		}
		sum, err := w.file(filepath.Join(dir, filepath.FromSlash(f.path)), f)
		if err != nil {
			return err
		}
		m.Files = append(m.Files, packedFile{f.path, f.size, sum})
	}
	return w.json(manifestFile, head.At, m)
}

func (w packer) json(name string, at time.Time, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return types.Errorf(types.ErrInvalid, "Archive", name, "%w", err)
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(b)), Mode: int64(durable.FilePerm), ModTime: at}); err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func (w packer) file(path string, f found) (sum string, err error) {
	r, err := w.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return "", storage("Archive", path, err)
	}
	defer r.Close()
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: inArchive + f.path, Size: f.size, Mode: int64(durable.FilePerm), ModTime: f.time}); err != nil {
		return "", err
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, hash), io.LimitReader(reading{w.ctx, r}, f.size))
	if err == nil && n < f.size {
		err = types.Errorf(types.ErrConflict, "Archive", path, "it became shorter while it was packed")
	}
	return hex.EncodeToString(hash.Sum(nil)), storage("Archive", path, err)
}

// compare reads an archive back and compares every file of it with the one on the disk.
func (p press) compare(ctx context.Context, archive, dir string, want step.ArchiveHead) error {
	var packed []string
	head, files, err := p.readArchive(ctx, archive, want.Info.UUID, unpacking{
		dir: func(name string) error { packed = append(packed, name+"/"); return nil },
		file: func(name string, _ int64, r io.Reader) error {
			packed = append(packed, name)
			_, err := io.Copy(io.Discard, r)
			return err
		},
	})
	if err != nil {
		return err
	}
	if head.Bytes != want.Bytes || head.Files != want.Files || !head.At.Equal(want.At) {
		return types.Errorf(types.ErrStorage, "Archive", archive, "its head was read back otherwise than it was written")
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		sum, size, err := p.hash(ctx, path)
		if err != nil {
			return err
		}
		if sum != f.SHA256 || size != f.Size {
			return types.Errorf(types.ErrConflict, "Archive", path, "it is not what was read back from the archive: another program has written to it, or the disk is failing")
		}
	}
	var onDisk []string
	now, err := walk(p.fs, dir, "")
	if err != nil {
		return err
	}
	for _, f := range now {
		if f.dir {
			f.path += "/"
		}
		onDisk = append(onDisk, f.path)
	}
	if strings.Join(onDisk, "\x00") != strings.Join(packed, "\x00") {
		return types.Errorf(types.ErrConflict, "Archive", dir, "files came or went while it was packed")
	}
	return nil
}

// reading is a reader that ends with its context.
type reading struct {
	ctx context.Context
	r   io.Reader
}

// Read reads, unless the context has ended.
func (r reading) Read(b []byte) (int, error) {
	if err := ended(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return types.Errorf(types.ErrCancelled, "GC", "", "%w", fmt.Errorf("stopped: %w", context.Cause(ctx)))
}
