package vfs

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"

	"rnix/types"
	"rnix/xsync"
)

// VFS gives each process its own table of open files over one DeviceRegistry. Safe for concurrent
// use.
type VFS struct {
	devices *DeviceRegistry
	caller  func(types.PID) (Caller, bool)
	tables  xsync.Numbered[types.PID, fdTable]
}

// New returns a VFS over devices. caller tells what devices may know of a process; it may be nil,
// and then devices that bind their caller see only the PID.
func New(devices *DeviceRegistry, caller func(types.PID) (Caller, bool)) *VFS {
	return &VFS{devices: devices, caller: caller}
}

// Devices returns the registry.
func (v *VFS) Devices() *DeviceRegistry { return v.devices }

// fdTable is the open files of one process.
type fdTable struct {
	caller func() Caller // who the process is; nil: ask the VFS's own source
	mu     sync.Mutex
	// +checklocks:mu
	files []openFile // in order of their descriptors; few
	next  types.FD   // +checklocks:mu
	// +checklocks:mu
	closed bool // set for good by CloseAll
}

type openFile struct {
	VFSFile
	fd    types.FD
	path  string
	flags OpenFlag
}

// Admit makes the table of a process, empty. Open refuses a PID that was not admitted, so that an
// open that comes after CloseAll finds nothing to leak into. A process that has a table keeps it.
func (v *VFS) Admit(pid types.PID) { v.AdmitAs(pid, nil) }

// AdmitAs is Admit for a process that tells devices itself who it is. caller is called at each open.
func (v *VFS) AdmitAs(pid types.PID, caller func() Caller) {
	v.tables.Store(pid, &fdTable{next: types.FirstFD, caller: caller})
}

// Open opens path for a process and returns its descriptor, the lowest number never used before by
// this process. It fails with NOT_FOUND if no device serves path or the process has no table.
func (v *VFS) Open(pid types.PID, path string, flags OpenFlag) (types.FD, error) {
	t := v.tables.Load(pid)
	if t == nil {
		return 0, &types.SyscallError{Syscall: "Open", PID: pid, Device: path, Code: types.ErrNotFound, Err: errors.New("process has no open files table (it has ended)")}
	}
	f, err := v.OpenFile(pid, path, flags)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		_ = f.Close() // nothing was written
		return 0, &types.SyscallError{Syscall: "Open", PID: pid, Device: path, Code: types.ErrCancelled, Err: errors.New("process has ended")}
	}
	defer t.mu.Unlock()
	return t.addLocked(f, path, flags), nil
}

// addLocked gives a file the next descriptor.
//
// +checklocks:t.mu
func (t *fdTable) addLocked(f VFSFile, path string, flags OpenFlag) types.FD {
	fd := t.next
	t.next++
	t.files = append(t.files, openFile{f, fd, path, flags})
	return fd
}

// indexLocked returns where a descriptor stands in files, or -1. The newest are used most.
//
// +checklocks:t.mu
func (t *fdTable) indexLocked(fd types.FD) int {
	for i := len(t.files) - 1; i >= 0; i-- {
		if t.files[i].fd == fd {
			return i
		}
	}
	return -1
}

// Install gives a process a descriptor for a file that no device has opened, such as the end of a pipe.
// name is shown where paths are. The file is closed with the table; if Install fails the caller keeps
// it.
func (v *VFS) Install(pid types.PID, name string, f VFSFile, flags OpenFlag) (types.FD, error) {
	if t := v.tables.Load(pid); t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.closed {
			return t.addLocked(f, name, flags), nil
		}
	}
	return 0, &types.SyscallError{Syscall: "Install", PID: pid, Device: name, Code: types.ErrNotFound, Err: errors.New("process has no table of open files")}
}

// OpenFile opens path on behalf of a process without giving it a descriptor. The caller closes it.
func (v *VFS) OpenFile(pid types.PID, path string, flags OpenFlag) (VFSFile, error) {
	c, _ := v.Caller(pid)
	return v.OpenAs(c, path, flags)
}

// Caller returns what devices are told of a process, from when it has a table of open files. Of one that is not known, that is its PID, and false.
func (v *VFS) Caller(pid types.PID) (Caller, bool) {
	if t := v.tables.Load(pid); t != nil && t.caller != nil {
		return t.caller(), true
	}
	if v.caller != nil {
		if known, ok := v.caller(pid); ok {
			return known, true
		}
	}
	return Caller{PID: pid}, false
}

// OpenAs opens path for a caller that need not be a process, such as the user. The caller closes it.
func (v *VFS) OpenAs(c Caller, path string, flags OpenFlag) (VFSFile, error) {
	f, err := v.devices.Open(path, flags)
	if err != nil {
		return nil, withPID(err, "Open", c.PID, path)
	}
	if b, ok := f.(CallerBinder); ok {
		if err := b.BindCaller(c); err != nil {
			_ = f.Close() // the bind error is what matters
			return nil, withPID(err, "Open", c.PID, path)
		}
	}
	return f, nil
}

// File returns the open file behind a descriptor, for callers that want one of its optional faces.
func (v *VFS) File(pid types.PID, fd types.FD) (VFSFile, error) {
	f, err := v.file("File", pid, fd)
	return f.VFSFile, err
}

func (v *VFS) file(op string, pid types.PID, fd types.FD) (openFile, error) {
	if t := v.tables.Load(pid); t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if i := t.indexLocked(fd); i >= 0 {
			return t.files[i], nil
		}
	}
	return openFile{}, &types.SyscallError{Syscall: op, PID: pid, Code: types.ErrInvalid, Err: errors.New("bad file descriptor " + strconv.Itoa(int(fd)))}
}

// Read returns what is there, at most length bytes (all that is left for 0 or less), and io.EOF at
// the end. It does not wait.
func (v *VFS) Read(pid types.PID, fd types.FD, length int) ([]byte, error) {
	f, err := v.file("Read", pid, fd)
	if err != nil {
		return nil, err
	}
	b, err := f.Read(length)
	if err != nil && err != io.EOF {
		err = withPID(err, "Read", pid, f.path)
	}
	return b, err
}

// Write performs the file's operation with data. Ending ctx cancels it.
func (v *VFS) Write(ctx context.Context, pid types.PID, fd types.FD, data []byte) error {
	f, err := v.file("Write", pid, fd)
	if err != nil {
		return err
	}
	if !f.flags.CanWrite() {
		return &types.SyscallError{Syscall: "Write", PID: pid, Device: f.path, Code: types.ErrPermission, Err: errors.New("opened read-only")}
	}
	if err := f.Write(ctx, data); err != nil {
		return withPID(err, "Write", pid, f.path)
	}
	return nil
}

// Close closes one descriptor.
func (v *VFS) Close(pid types.PID, fd types.FD) error {
	f, err := v.file("Close", pid, fd)
	if err != nil {
		return err
	}
	if t := v.tables.Load(pid); t != nil {
		t.mu.Lock()
		if i := t.indexLocked(fd); i >= 0 {
			t.files = slices.Delete(t.files, i, i+1)
		}
		t.mu.Unlock()
	}
	if err := f.Close(); err != nil {
		return withPID(err, "Close", pid, f.path)
	}
	return nil
}

// Stat describes an open file.
func (v *VFS) Stat(pid types.PID, fd types.FD) (FileStat, error) {
	f, err := v.file("Stat", pid, fd)
	if err != nil {
		return FileStat{}, err
	}
	s, err := f.Stat()
	if err != nil {
		return s, withPID(err, "Stat", pid, f.path)
	}
	return s, nil
}

// CloseAll closes every file of a process and removes its table; later opens are refused. It
// returns the errors of all closes, joined, in order of the descriptors.
func (v *VFS) CloseAll(pid types.PID) error {
	t := v.tables.Delete(pid)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	files := t.files
	t.files, t.closed = nil, true
	t.mu.Unlock()
	var errs []error
	for _, f := range files {
		if err := f.Close(); err != nil {
			errs = append(errs, withPID(err, "Close", pid, f.path))
		}
	}
	return errors.Join(errs...)
}

// FDInfo is one line of /proc/<pid>/fd.
type FDInfo struct {
	FD   types.FD `json:"fd"`
	Path string   `json:"path"`
}

// List returns the open files of a process in order of their descriptors.
func (v *VFS) List(pid types.PID) []FDInfo {
	t := v.tables.Load(pid)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]FDInfo, 0, len(t.files))
	for _, f := range t.files {
		out = append(out, FDInfo{f.fd, f.path})
	}
	return out
}

// withPID gives an error of a device the operation, process and path that the device did not know.
func withPID(err error, op string, pid types.PID, path string) error {
	if c, ok := err.(*CutOff); ok { //nolint:errorlint // it stands before the error that is completed
		whole := *c
		whole.Err = withPID(c.Err, op, pid, path)
		return &whole
	}
	if e, ok := err.(*types.SyscallError); ok { //nolint:errorlint // only the outermost error is completed
		filled := *e
		if filled.PID == 0 {
			filled.PID = pid
		}
		if filled.Device == "" {
			filled.Device = path
		}
		if filled.Syscall == "" {
			filled.Syscall = op
		}
		return &filled
	}
	return &types.SyscallError{Syscall: op, PID: pid, Device: path, Code: types.CodeOf(err), Err: err}
}
