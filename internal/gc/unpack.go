package gc

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"rnix/internal/step"
	"rnix/types"
)

// The limits of an archive. They hold for writing too: what could not be put back is not made.
const (
	maxUnpacked = int64(256) << 30 // bytes
	maxFiles    = 200_000          // and directories
	maxPath     = 1024             // bytes of a name
	maxDepth    = 32
	maxManifest = 128 << 20
	maxHeadSize = 16 << 20
	// maxRatio is more than gzip can do: what claims to unpack to more is lying.
	maxRatio = 1100
)

// unpacking receives what is in an archive. Names are clean, have slashes, and lead nowhere but down;
// each directory comes before what is in it, and no name twice.
type unpacking struct {
	dir  func(name string) error
	file func(name string, size int64, r io.Reader) error
}

// readArchive reads an archive of the history id from the first byte to the last and gives what is in
// it to u. It believes nothing: links, devices, names that lead elsewhere, sizes that cannot be, and
// files whose hash is not the one in the manifest are errors of code STORAGE that name the archive.
// What u has received before an error counts for nothing.
func (p press) readArchive(ctx context.Context, archive string, id types.UUID, u unpacking) (*step.ArchiveHead, []packedFile, error) {
	f, err := p.fs.OpenFile(archive, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, storage("Archive", archive, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, storage("Archive", archive, err)
	}
	head, files, err := parseArchive(reading{ctx, f}, info.Size(), u)
	if err == nil && head.Info.UUID != id {
		err = fmt.Errorf("it is of another history, %s", head.Info.UUID)
	}
	var r *refusal
	switch code := types.CodeOf(err); {
	case err == nil:
		return head, files, nil
	case errors.As(err, &r):
		return nil, nil, r.err
	case code == types.ErrCancelled:
		return nil, nil, err
	case code == types.ErrVersion:
		return nil, nil, types.Errorf(code, "Archive", archive, "%w", err)
	}
	return nil, nil, types.Errorf(types.ErrStorage, "Archive", archive, "cannot be used: %w", err)
}

// refusal is an error of the receiver, and not of the archive.
type refusal struct{ err error }

// Error returns the text of the receiver's error.
func (r *refusal) Error() string { return r.err.Error() }

func refused(err error) error {
	if err == nil {
		return nil
	}
	return &refusal{err}
}

// parseArchive reads an archive of size bytes.
func parseArchive(r io.Reader, size int64, u unpacking) (*step.ArchiveHead, []packedFile, error) {
	buf := bufio.NewReaderSize(r, 256<<10)
	gz, err := gzip.NewReader(buf)
	if err != nil {
		return nil, nil, whole(err)
	}
	gz.Multistream(false)
	p := parser{tar: tar.NewReader(gz), u: u, seen: map[string]bool{}, limit: min(maxUnpacked, max(size, 1<<10)*maxRatio)}
	if err := p.run(); err != nil {
		return nil, nil, err
	}
	// The end of the stream has the checksum over everything.
	if n, err := io.Copy(io.Discard, io.LimitReader(gz, 1<<20)); err != nil {
		return nil, nil, whole(err)
	} else if n == 1<<20 {
		return nil, nil, errors.New("something follows its end")
	}
	switch _, err := buf.ReadByte(); err {
	case io.EOF:
		return p.head, p.files, nil
	case nil:
		return nil, nil, errors.New("something follows its end")
	default:
		return nil, nil, err
	}
}

type parser struct {
	tar   *tar.Reader
	u     unpacking
	head  *step.ArchiveHead
	files []packedFile
	seen  map[string]bool // name, and whether it is a directory
	bytes int64
	limit int64
}

func (p *parser) run() error {
	b, err := p.document(step.ArchiveHeadFile, maxHeadSize)
	if err != nil {
		return err
	}
	if p.head, err = step.DecodeArchiveHead(b); err != nil {
		return err
	}
	if p.head.Bytes > p.limit || p.head.Files > maxFiles {
		return fmt.Errorf("it says that it holds %d files of %d bytes, which is more than it can", p.head.Files, p.head.Bytes)
	}
	for {
		h, err := p.tar.Next()
		if err != nil {
			return whole(err)
		}
		if h.Name == manifestFile {
			return p.end(h)
		}
		if err := p.entry(h); err != nil {
			return err
		}
	}
}

// document reads a small entry that must be next.
func (p *parser) document(name string, limit int64) ([]byte, error) {
	h, err := p.tar.Next()
	if err != nil {
		return nil, whole(err)
	}
	if h.Name != name {
		return nil, fmt.Errorf("the entry %q is where %s must be", h.Name, name)
	}
	return p.small(h, limit)
}

func (p *parser) small(h *tar.Header, limit int64) ([]byte, error) {
	if h.Typeflag != tar.TypeReg || h.Size > limit {
		return nil, fmt.Errorf("%s is too large, or no file", h.Name)
	}
	return io.ReadAll(io.LimitReader(p.tar, limit))
}

// entry gives one file or directory to u.
func (p *parser) entry(h *tar.Header) error {
	name, err := cleanName(h)
	if err != nil {
		return err
	}
	isDir := h.Typeflag == tar.TypeDir
	if _, twice := p.seen[name]; twice {
		return fmt.Errorf("%q is there twice", name)
	}
	if parent := path.Dir(name); parent != "." && !p.seen[parent] {
		return fmt.Errorf("%q comes before its directory", name)
	}
	if p.seen[name] = isDir; len(p.seen) > maxFiles {
		return fmt.Errorf("it holds more than %d files", maxFiles)
	}
	if isDir {
		return refused(p.u.dir(name))
	}
	if h.Size < 0 || h.Size > p.head.Bytes-p.bytes || len(p.files) >= p.head.Files {
		return fmt.Errorf("with %q it holds more than the %d files of %d bytes that it says", name, p.head.Files, p.head.Bytes)
	}
	p.bytes += h.Size
	hash := sha256.New()
	from := &source{r: io.TeeReader(p.tar, hash)}
	if err := p.u.file(name, h.Size, from); from.err != nil {
		return whole(from.err)
	} else if err != nil {
		return refused(err)
	}
	if _, err := io.Copy(io.Discard, from); err != nil {
		return whole(err)
	}
	p.files = append(p.files, packedFile{name, h.Size, hex.EncodeToString(hash.Sum(nil))})
	return nil
}

// end compares what was read with what the manifest says.
func (p *parser) end(h *tar.Header) error {
	b, err := p.small(h, maxManifest)
	if err != nil {
		return whole(err)
	}
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.V > archiveVersion {
		return types.Errorf(types.ErrVersion, "Archive", manifestFile, "written in format %d by a newer program, this one reads up to %d", m.V, archiveVersion)
	}
	if m.V < 1 || len(m.Files) != len(p.files) || len(p.files) != p.head.Files || p.bytes != p.head.Bytes {
		return fmt.Errorf("it holds %d files of %d bytes, not the %d of %d that it says", len(p.files), p.bytes, p.head.Files, p.head.Bytes)
	}
	for i, f := range p.files {
		if f != m.Files[i] {
			return fmt.Errorf("%q is damaged: it is not what was packed", f.Path)
		}
	}
	if _, err := p.tar.Next(); err == nil {
		return errors.New("something follows its manifest")
	} else if err != io.EOF {
		return err
	}
	return nil
}

// source remembers why reading has failed.
type source struct {
	r   io.Reader
	err error
}

// Read reads.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// cleanName returns the name of an entry below the directory of the history.
func cleanName(h *tar.Header) (string, error) {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	default:
		return "", fmt.Errorf("%q is no file and no directory (type %q), which no history holds", h.Name, h.Typeflag)
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse") {
			return "", fmt.Errorf("%q has holes, which no history holds", h.Name)
		}
	}
	name, ok := strings.CutPrefix(h.Name, inArchive)
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	switch {
	case !ok || name == "." || !fs.ValidPath(name) || strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return "", fmt.Errorf("%q leads out of the history", h.Name)
	case len(name) > maxPath || strings.Count(name, "/") >= maxDepth:
		return "", fmt.Errorf("%.80q... is too long or too deep", h.Name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > 255 {
			return "", fmt.Errorf("%.80q... is too long", part)
		}
	}
	return name, nil
}

// whole says that an archive ended too early in words.
func whole(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is cut off")
	}
	return err
}
