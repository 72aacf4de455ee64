// Package vfs is the name space of the kernel: every model, file tree, shell and MCP server is a
// path that is opened, written, read and closed.
//
// It owns the registry of devices (dev.go), the table of open files of each process (fd.go), the
// mounts of MCP servers (mount.go) and /proc (procfs.go). It knows no driver and no process: who
// is calling comes in as a Caller, and what /proc shows comes in through an interface.
//
// The device contract, checked by vfstest for every driver:
//
//   - Write(ctx, data) performs the operation and can be cancelled; it returns when the operation
//     is over.
//   - Read(length) only returns what is there, without waiting for anything, and io.EOF once all
//     has been read. A length of 0 or less means everything that is left.
//   - Neither keeps data or hands out memory that it will change.
//   - Close may be called at any time and more than once; it ends an operation under way.
//   - Errors are *types.SyscallError with a code.
package vfs

import (
	"context"
	"time"

	"rnix/types"
)

// OpenFlag says what a file is opened for.
type OpenFlag int

// The flags may be combined. OpenRead is the zero-cost default of devices that only answer.
const (
	OpenRead      OpenFlag = 1 << iota // Read will be called
	OpenWrite                          // Write will be called
	OpenReadWrite = OpenRead | OpenWrite
)

// CanWrite reports whether Write is allowed.
func (f OpenFlag) CanWrite() bool { return f&OpenWrite != 0 }

// FileStat describes a file. The zero value of a field means "not known".
type FileStat struct {
	Name  string    `json:"name"`           // last element of the path
	Size  int64     `json:"size"`           // in bytes; -1 if it cannot be known
	IsDir bool      `json:"is_dir"`         // Read lists names, one per line
	Mode  string    `json:"mode,omitempty"` // such as "r--", "rw-"
	Mtime time.Time `json:"mtime,omitzero"` //
	Type  string    `json:"type,omitempty"` // "file", "dir", "device", "proc", "mcp"
}

// VFSFile is an open file of a device. See the package comment for the contract.
type VFSFile interface {
	Read(length int) ([]byte, error)
	Write(ctx context.Context, data []byte) error
	Close() error
	Stat() (FileStat, error)
}

// VFSFileFactory opens the file at subpath below the path that the device is registered at.
// subpath is "" for the device itself and begins with a slash otherwise.
type VFSFileFactory func(subpath string, flags OpenFlag) (VFSFile, error)

// ReaderInto is offered by files that can read without allocating.
type ReaderInto interface {
	// ReadInto fills buf with what is there and returns how much; io.EOF at the end.
	ReadInto(buf []byte) (int, error)
}

// WaitReader is offered by files that fill up while they are read, such as the reading end of a pipe.
type WaitReader interface {
	// WaitRead waits until there is something, and reads it into buf. It returns io.EOF at the end, and
	// the cause of ctx.
	WaitRead(ctx context.Context, buf []byte) (int, error)
}

// CallerBinder is offered by files that need to know who opened them. Open calls BindCaller once,
// before anything else; an error fails the open.
type CallerBinder interface {
	BindCaller(Caller) error
}

// Lister is offered by files below which there are others, but which Read does not list line by line.
type Lister interface {
	// Names are those of what is below; a directory's ends in a slash. None = there is nothing.
	Names() []string
}

// StreamNotifier is offered by files whose Write produces its answer bit by bit. The handler is
// set before Write, is called from inside Write, and must not block.
type StreamNotifier interface {
	NotifyStream(func(StreamPart))
}

// ModelCard is what the kernel wants to know of a model before it asks it anything.
type ModelCard struct {
	Provider      string // the last element of its path
	Driver        string
	Model         string // the default model; may be empty
	ContextWindow int    // in tokens; 0 = unknown
	WindowFrom    string // where ContextWindow stands; empty = nobody says

	// MaxAnswer is how many tokens an answer has at most, if it is asked for with no bound of its own or a
	// larger one; 0 = nobody knows, and it cannot be bounded. ExtraAnswer comes on top, whatever the bound.
	// LeastAnswer is the smallest bound that the model keeps to.
	MaxAnswer, ExtraAnswer, LeastAnswer int
	Free                                bool // it uses no tokens
	SaysCost                            bool // its answers say what they cost
	Acts                                bool // it may change files by itself while it answers
	Aside                               bool // it takes questions that are no part of the conversation, such as for a summary of it
	// Metered says that its answers count nothing: what the programs ask that it is counts by itself (kernel.KernelImpl.Meter).
	Metered bool
	// Unbudgeted is why no budget can be kept with it; empty = one can.
	Unbudgeted string
	// Others are the models that may answer in its place.
	Others []ModelName
}

// ModelName names a model.
type ModelName struct {
	Provider string
	Driver   string
	Model    string // may be empty
}

// Modeler is offered by the files of /dev/llm.
type Modeler interface {
	ModelCard() ModelCard
}

// StreamPart is a piece of an answer under way, or a note about it.
type StreamPart struct {
	Kind string // "text", "reasoning", "output", "wait", or "warning", a line for the user
	Text string
	// Of "wait", Text says for what the device waits (a rate limit, a queue), and Until until about when; zero = that is
	// not known. Without both the wait is over.
	Until time.Time
}

// Caller is what a device may know of the process that opened it.
type Caller struct {
	PID       types.PID
	UUID      types.UUID
	WorkDir   string   // absolute; the root of the process's workspace
	Model     string   // that it is told to use; empty = its provider's default
	ReadRoots []string // absolute directories that /dev/fs may read besides WorkDir
	Env       []string // the composed environment for OS children, "KEY=value"
	Scratch   string   // absolute; a private directory for long outputs, made on first use
	Inputs    string   // absolute; the directory with the inputs of the process, which it knows as /proc/self/inputs; empty = none

	// Attachment reads an image or a document of the process's conversation by its SHA-256. It may be nil.
	Attachment func(sum string) ([]byte, error)

	// Secret looks up a variable of the environment that the process was started from, credentials
	// included. It is for drivers that call a provider themselves; what it returns is never given to
	// an OS child as a whole, never written and never shown. It may be nil.
	Secret func(name string) (string, bool)

	// Profile is the assembly's own: the configuration that the process was set up with. Devices of
	// the assembly know its type, nobody else. It may be nil.
	Profile any
}
