// Package shell serves /dev/shell: one command line per write, run in the caller's working directory
// with the caller's environment.
//
// It owns how a command is asked for and how its outcome is told. It does not know how a child is
// started, confined and ended (internal/proc). There is no list of forbidden commands: such lists refuse
// what is harmless and pass what is not.
//
// /dev/shell takes a request in JSON. /dev/shell/text takes the command itself, for people and
// scripts; it has a path of its own so that a broken request is never run as a command.
//
// A command that ends by itself, whatever its exit code, or by its own time limit is an answer, not an
// error: who asked wants to see the output. Write fails if the command could not be started
// or was cancelled.
package shell

import (
	"context"
	"encoding/json"
	"time"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"
)

// The limits.
const (
	DefaultTimeout = 2 * time.Minute
	MaxTimeout     = 24 * time.Hour
	DefaultKeep    = 16 << 10

	// maxCommand is the longest argument that Linux passes to a program, in bytes.
	maxCommand = 128<<10 - 1
)

// grace is what a command gets between SIGTERM and SIGKILL: enough to remove a lock file.
const grace = 2 * time.Second

// Options are the choices of the assembly. The zero value of a field means its default.
type Options struct {
	Timeout time.Duration // of a command that asks for none; DefaultTimeout
	// TimeoutOf is Timeout for one caller; nil, or an answer of 0, means Timeout.
	TimeoutOf func(vfs.Caller) time.Duration
	Keep      int // bytes of an output that are kept at its head, and at its tail; DefaultKeep
	// Refused is told what the sandbox did not let a command of a caller do, and what protected paths a command has changed; nil = nobody.
	Refused func(caller vfs.Caller, refused []sandbox.Refusal, changed []string)
	Quota   int64 // bytes that the outputs of one caller may take up as files, in all; 0 = no bound
}

// New returns the device. Its commands are children of children.
func New(children *proc.Manager, opts Options) vfs.VFSFileFactory {
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Keep <= 0 {
		opts.Keep = DefaultKeep
	}
	opts.Timeout = min(opts.Timeout, MaxTimeout)
	return func(subpath string, _ vfs.OpenFlag) (vfs.VFSFile, error) {
		f := &file{children: children, opts: opts}
		name := "shell"
		switch subpath {
		case "":
			f.parse = parseRequest
		case "/text":
			f.parse, name = parseText, "text"
		default:
			return nil, types.Errorf(types.ErrNotFound, "Open", "", "no such file: there is the device itself, for requests, and /text below it, for plain commands")
		}
		f.RequestFile = vfs.NewRequestFile(vfs.FileStat{Name: name, Mode: "rw-", Type: "device"}, f.perform)
		return f, nil
	}
}

// Tools returns the tool of the device registered at path.
func Tools(path string) []vfs.Tool {
	return []vfs.Tool{{
		Name: "shell",
		Description: "Run a command line with bash (sh if there is no bash) in the working directory. Returns what it printed " +
			"(standard output and error together), and a last line with the exit code. It has no standard input and no terminal. " +
			"It is ended after timeout_ms, by default 2 minutes. Background processes are ended when the command ends: start a server " +
			"and use it in one command. Of a long output you get the beginning, the end and the name of a file with the whole.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"command":{"type":"string","description":"the command line"},` +
			`"timeout_ms":{"type":"integer","minimum":1,"description":"time limit in milliseconds, at most 24 hours"},` +
			`"cwd":{"type":"string","description":"directory to run in, relative to the working directory and inside it"}},` +
			`"required":["command"],"additionalProperties":false}`),
		Path:   path,
		Effect: vfs.EffectExternal,
	}}
}

// file is an open /dev/shell.
type file struct {
	*vfs.RequestFile
	children *proc.Manager
	opts     Options
	parse    func([]byte) (request, error)
	notify   func(vfs.StreamPart) // set before Write; nil if nobody listens
}

// NotifyStream has the output of the next commands delivered as it comes, in parts of Kind "output".
func (f *file) NotifyStream(notify func(vfs.StreamPart)) { f.notify = notify }

// perform runs one command.
func (f *file) perform(ctx context.Context, caller vfs.Caller, data []byte) ([]byte, error) {
	req, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	return f.run(ctx, caller, req)
}
