package workspace

import (
	"context"
	"path"
	"sync"

	"rnix/drivers/fs"
	"rnix/types"
	"rnix/vfs"
)

// pathFile is /dev/workspace/<path>: reading gives the content of the file, writing replaces it.
// After a write, reading gives the summary of the change.
type pathFile struct {
	*vfs.RequestFile
	device *Device
	name   string
	flags  vfs.OpenFlag

	mu sync.Mutex
	// +checklocks:mu
	content *fs.Content // nil for a file that is only written, or does not exist yet
}

func newPathFile(d *Device, name string, flags vfs.OpenFlag) *pathFile {
	f := &pathFile{device: d, name: name, flags: flags}
	stat := vfs.FileStat{Name: path.Base("/" + name), Size: -1, Mode: "rw-", Type: "file"}
	f.RequestFile = vfs.NewRequestFile(stat, f.replace)
	return f
}

// BindCaller opens the file for its caller. A file that is to be written need not exist.
func (f *pathFile) BindCaller(caller vfs.Caller) error {
	if err := f.RequestFile.BindCaller(caller); err != nil {
		return err
	}
	c, err := f.device.begin(caller, "Open")
	if err != nil {
		return err
	}
	defer c.roots.Close()
	if f.flags.CanWrite() {
		if _, err := c.target(f.name); err != nil {
			return err
		}
		if f.flags&vfs.OpenRead == 0 {
			return nil
		}
	}
	content, err := fs.OpenContent(c.roots, f.name, func(p fs.Place, sum fs.Sum) { c.seen.Read(caller.PID, p.Abs, sum) })
	if err != nil && !(f.flags.CanWrite() && types.CodeOf(err) == types.ErrNotFound) {
		return err
	}
	f.mu.Lock()
	f.content = content
	f.mu.Unlock()
	return nil
}

func (f *pathFile) replace(ctx context.Context, caller vfs.Caller, data []byte) ([]byte, error) {
	c, err := f.device.begin(caller, "Write")
	if err != nil {
		return nil, err
	}
	defer c.roots.Close()
	text, err := c.replace(ctx, f.name, func(current) ([]byte, error) { return data, nil })
	return []byte(text), err
}

// source is what is read: the summary of a change, else the content.
func (f *pathFile) source() vfs.VFSFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.content == nil || f.Asked() {
		return f.RequestFile
	}
	return readOnly{f.content}
}

// Write replaces the content of the file.
func (f *pathFile) Write(ctx context.Context, data []byte) error {
	if !f.flags.CanWrite() {
		return types.Errorf(types.ErrPermission, "Write", path.Join(Path, f.name), "opened read-only")
	}
	return f.RequestFile.Write(ctx, data)
}

// Read returns the next bytes of the content, or of the summary after a write.
func (f *pathFile) Read(n int) ([]byte, error) { return f.source().Read(n) }

// ReadInto is Read into a buffer of the caller's.
func (f *pathFile) ReadInto(buf []byte) (int, error) {
	return f.source().(vfs.ReaderInto).ReadInto(buf)
}

// Stat describes what is read.
func (f *pathFile) Stat() (vfs.FileStat, error) { return f.source().Stat() }

// Close closes the file and ends a write under way.
func (f *pathFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.content != nil {
		_ = f.content.Close() // opened for reading only
	}
	return f.RequestFile.Close()
}

// readOnly makes a Content a VFSFile.
type readOnly struct{ *fs.Content }

// Write is not reached: pathFile.Write stands before it.
func (readOnly) Write(context.Context, []byte) error {
	return types.Errorf(types.ErrPermission, "Write", Path, "opened read-only")
}
