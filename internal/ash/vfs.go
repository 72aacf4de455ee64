package ash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"

	"rnix/ipc"
	"rnix/types"
)

// systemDevices are the paths below /dev that stay those of this system.
var systemDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/stdin", "/dev/stdout",
	"/dev/stderr", "/dev/fd", "/dev/pts", "/dev/ptmx", "/dev/shm", "/dev/console", "/dev/log"}

// inSpace reports whether an absolute path is one of the name space of agents: all below /dev, /proc and
// /mnt but for the devices that scripts know.
func inSpace(p string) bool {
	if !strings.HasPrefix(p, "/") {
		return false
	}
	p = path.Clean(p)
	for _, dir := range systemDevices {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return false
		}
	}
	for _, dir := range []string{"/dev", "/proc", "/mnt"} {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

func absolute(dir, p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(dir, p)
}

// ReadScript reads a file of this system that is to be run, refusing what is too long before it is read.
func ReadScript(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", types.Errorf(fileCode(err), "", name, "%w", bare(err))
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return "", types.Errorf(types.ErrInvalid, "", name, "this is a directory")
	}
	return ReadText(f, name)
}

// ReadText reads a script to its end.
func ReadText(r io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSource+1))
	if err != nil {
		return "", types.Errorf(types.ErrInvalid, "", name, "%w", bare(err))
	}
	if len(data) > MaxSource {
		return "", types.Errorf(types.ErrInvalid, "", name, "the script has more than %d bytes; divide it into files and use: source FILE", MaxSource)
	}
	return string(data), nil
}

func fileCode(err error) types.ErrCode {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return types.ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		return types.ErrPermission
	}
	return types.ErrInvalid
}

// bare returns an error without the path that it names.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// message returns the text of an error, with the path first.
func message(err error) string {
	var s *types.SyscallError
	if errors.As(err, &s) && s.Err != nil {
		if s.Device != "" && !strings.HasPrefix(s.Err.Error(), s.Device) {
			return s.Device + ": " + s.Err.Error()
		}
		return s.Err.Error()
	}
	return err.Error()
}

// space is the files of both worlds, as the interpreter asks for them.
type space struct {
	host  Host
	texts *texts
	fail  func(hc *interp.HandlerContext, code int, format string, args ...any) int

	mu sync.Mutex
	// +checklocks:mu
	unsent map[string]int // exit codes of writes that have failed, by job and path
}

// open opens what a redirection names.
func (s *space) open(ctx context.Context, name string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	hc := interp.HandlerCtx(ctx)
	if id, ok := strings.CutPrefix(name, compiled); ok {
		return s.compiledFile(name, id)
	}
	p := absolute(hc.Dir, name)
	switch p { // those of the command and not of this process
	case "/dev/stdin", "/dev/fd/0":
		if hc.Stdin != nil && flag&(os.O_WRONLY|os.O_RDWR) == 0 {
			return &shared{r: hc.Stdin}, nil
		}
	case "/dev/stdout", "/dev/fd/1":
		return &shared{w: hc.Stdout}, nil
	case "/dev/stderr", "/dev/fd/2":
		return &shared{w: hc.Stderr}, nil
	}
	if !inSpace(p) {
		return os.OpenFile(p, flag, perm)
	}
	refuse := func(err error) error { return &os.PathError{Op: "open", Path: name, Err: err} }
	switch {
	case flag&os.O_APPEND != 0:
		return nil, refuse(errors.New("nothing can be added to a path of the name space; a write with > replaces"))
	case flag&(os.O_WRONLY|os.O_RDWR) != 0:
		return &spaceWriter{s: s, hc: &hc, path: name}, nil
	}
	data, err := s.host.Read(ctx, hc.Dir, p)
	if err != nil {
		return nil, refuse(errors.New(withoutPath(err, name)))
	}
	return &reader{bytes.NewReader(data)}, nil
}

// withoutPath returns the text of an error without a path that is named already, also where the device names it from
// where it stands itself: /dev/fs knows /dev/fs/x as /x.
func withoutPath(err error, p string) string {
	text := message(err)
	if head, rest, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(head, "/") && strings.HasSuffix(p, head) {
		return rest
	}
	return text
}

func (s *space) compiledFile(name, id string) (io.ReadWriteCloser, error) {
	n, _ := strconv.Atoi(id) // no source has the number 0
	src := s.texts.get(n)
	if src == nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &reader{strings.NewReader(src.run)}, nil
}

// reader is what has been read, as a file.
type reader struct{ io.Reader }

func (*reader) Write([]byte) (int, error) { return 0, fs.ErrPermission }
func (*reader) Close() error              { return nil }

// shared is a stream of the command under the name of a file, which somebody else closes.
type shared struct {
	r io.Reader
	w io.Writer
}

func (s *shared) Close() error { return nil }

func (s *shared) Read(b []byte) (int, error) {
	if s.r == nil {
		return 0, fs.ErrPermission
	}
	return s.r.Read(b)
}

func (s *shared) Write(b []byte) (int, error) {
	if s.w == nil {
		return 0, fs.ErrPermission
	}
	return s.w.Write(b)
}

// maxWritten is how much is written to a path at once, in bytes.
const maxWritten = 5 << 20

// spaceWriter gathers what is written to a path, which takes it as one write when the file is closed.
type spaceWriter struct {
	s    *space
	hc   *interp.HandlerContext
	path string

	mu   sync.Mutex
	data []byte // +checklocks:mu
	// +checklocks:mu
	long bool // there was more than can be written
}

func (w *spaceWriter) Read([]byte) (int, error) { return 0, fs.ErrPermission }

func (w *spaceWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.data)+len(b) > maxWritten {
		w.long = true
		return 0, unix.EFBIG
	}
	w.data = append(w.data, b...)
	return len(b), nil
}

// Close writes. The interpreter does not look at its error: it is told here, and cmdWrote asks for it.
func (w *spaceWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	if w.long {
		err = fmt.Errorf("more than %d bytes cannot be written at once; nothing was written", maxWritten)
	} else {
		err = w.s.host.Write(context.Background(), w.hc.Dir, absolute(w.hc.Dir, w.path), w.data)
	}
	if err != nil {
		w.s.fail(w.hc, exitError, "%s: %s", w.path, withoutPath(err, w.path))
		w.s.mu.Lock()
		w.s.unsent[unsentKey(w.hc, w.path)] = exitError
		w.s.mu.Unlock()
	}
	return err
}

func unsentKey(hc *interp.HandlerContext, p string) string {
	return hc.Env.Get(varJob).String() + " " + p
}

// wrote returns the exit status of a command whose output went to paths: its own, unless that is 0 and
// a write has failed.
func (s *space) wrote(hc *interp.HandlerContext, args []string) int {
	if len(args) < 2 {
		return exitUsage
	}
	code, _ := strconv.Atoi(args[1])
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range args[2:] {
		key := unsentKey(hc, p)
		if code == 0 {
			code = s.unsent[key]
		}
		delete(s.unsent, key)
	}
	return code
}

// readDir lists a directory for a pattern such as /proc/*.
func (s *space) readDir(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	if !inSpace(dir) {
		return os.ReadDir(dir)
	}
	hc := interp.HandlerCtx(ctx)
	dir = path.Clean(dir)
	list, err := s.host.List(ctx, hc.Dir, dir)
	switch {
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	case !isDir(list, dir):
		return nil, &os.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR}
	}
	out := make([]fs.DirEntry, 0, len(list))
	for i := range list {
		list[i].IsDir = list[i].IsDir || dir == "/proc" // every process is one
		out = append(out, fs.FileInfoToDirEntry(&info{strings.TrimSuffix(list[i].Name, "/"), &list[i]}))
	}
	return out, nil
}

// isDir reports whether a list is that of a directory, and not of a file which lists itself.
func isDir(list []ipc.PathEntry, p string) bool {
	return len(list) != 1 || list[0].IsDir || list[0].Name != path.Base(p) && list[0].Name != p
}

// stat answers tests such as -f and -d.
func (s *space) stat(ctx context.Context, name string, follow bool) (fs.FileInfo, error) {
	if !inSpace(name) {
		if follow {
			return os.Stat(name)
		}
		return os.Lstat(name)
	}
	e, err := s.entry(ctx, name)
	if err != nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return &info{path.Base(name), e}, nil
}

// entry finds a path. Whether it is a directory, only its own list says: not all that list paths know.
func (s *space) entry(ctx context.Context, name string) (*ipc.PathEntry, error) {
	hc := interp.HandlerCtx(ctx)
	name = path.Clean(name)
	e := &ipc.PathEntry{Name: path.Base(name), IsDir: true}
	if name == "/dev" || name == "/proc" || name == "/mnt" {
		return e, nil
	}
	list, err := s.host.List(ctx, hc.Dir, name)
	if err != nil {
		return nil, err
	}
	if !isDir(list, name) {
		e.IsDir, e.Size, e.Mtime = false, list[0].Size, list[0].Mtime
	}
	return e, nil
}

// access answers tests such as -r. A path of the name space is read by opening it, and no program.
func (s *space) access(ctx context.Context, name string, mode interp.AccessMode) error {
	if !inSpace(name) {
		return unix.Access(name, uint32(mode))
	}
	if mode&interp.AccessExec != 0 {
		return fs.ErrPermission
	}
	_, err := s.entry(ctx, name)
	return err
}

// info is an entry of the name space as the interpreter wants it.
type info struct {
	name string
	e    *ipc.PathEntry
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return max(i.e.Size, 0) }
func (i *info) ModTime() time.Time { return i.e.Mtime }
func (i *info) IsDir() bool        { return i.e.IsDir }
func (i *info) Sys() any           { return nil }
func (i *info) Mode() fs.FileMode {
	if i.e.IsDir {
		return fs.ModeDir | 0o500
	}
	return 0o600
}
