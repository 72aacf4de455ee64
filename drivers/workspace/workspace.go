// Package workspace serves /dev/workspace: the files of a process's own directory, to be changed.
//
// It owns how a change is made: only below the workspace, in one piece, and not over what the process
// has not seen. What a process has seen stands in the ledger of drivers/fs, which the two devices
// share. It knows no process but the Caller that opens a file, and it makes no snapshots.
//
// Opening /dev/workspace takes a request, {"op":"edit_file",...}. Opening /dev/workspace/<path> reads
// that file of the workspace, or replaces its content with what is written.
//
// Lock order: Device.mu and the stripes of Device.paths are leaves; a change holds the stripes of the
// paths that it touches, lowest first, while it compares and replaces.
package workspace

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"rnix/drivers/fs"
	"rnix/types"
	"rnix/vfs"
)

// Path is where the device is registered.
const Path = "/dev/workspace"

// Device is /dev/workspace.
type Device struct {
	seen *fs.Seen
	own  *fs.Own
	run  string // part of the names of this run's temporary files

	seed  maphash.Seed
	paths [64]sync.Mutex // by hash of the path: changes of one file come one after another

	mu sync.Mutex
	// +checklocks:mu
	swept map[string]struct{} // directories without leftovers of earlier runs
}

// New returns the device. seen must be the ledger of the /dev/fs that the processes read with, and own what that
// serves to none; nil = there is nothing to keep from callers.
func New(seen *fs.Seen, own *fs.Own) *Device {
	return &Device{seen: seen, own: own, run: rand.Text()[:8], seed: maphash.MakeSeed(), swept: make(map[string]struct{})}
}

// Open opens the device itself, or a file of the workspace.
func (d *Device) Open(subpath string, flags vfs.OpenFlag) (vfs.VFSFile, error) {
	if subpath == "" {
		return vfs.NewRequestFile(vfs.FileStat{Name: "workspace", Mode: "rw-", Type: "device"}, d.perform), nil
	}
	return newPathFile(d, strings.TrimLeft(subpath, "/"), flags), nil
}

// operations are what a request may ask for.
var operations = map[string]func(*call, context.Context) (string, error){
	"write_file": (*call).writeFile,
	"edit_file":  (*call).editFile,
	"make_dir":   (*call).makeDir,
	"move":       (*call).move,
	"delete":     (*call).delete,
}

// call is one request under way.
type call struct {
	*Device
	pid   types.PID
	roots *fs.Roots
	op    string
	data  []byte
}

// begin opens the caller's workspace for one request. The caller closes call.roots.
func (d *Device) begin(caller vfs.Caller, op string) (*call, error) {
	if caller.WorkDir == "" {
		return nil, types.Errorf(types.ErrPermission, op, "", "the caller has no workspace")
	}
	roots, err := d.own.Workspace(caller)
	if err != nil {
		return nil, err
	}
	d.seen.Bind(caller)
	return &call{Device: d, pid: caller.PID, roots: roots, op: op}, nil
}

func (d *Device) perform(ctx context.Context, caller vfs.Caller, data []byte) ([]byte, error) {
	op, err := vfs.RequestOp(data)
	if err != nil {
		return nil, err
	}
	run, ok := operations[op]
	if !ok {
		names := make([]string, 0, len(operations))
		for n := range operations {
			names = append(names, n)
		}
		slices.Sort(names)
		return nil, types.Errorf(types.ErrInvalid, "Write", Path, "unknown op %q: use %s", op, strings.Join(names, ", "))
	}
	c, err := d.begin(caller, op)
	if err != nil {
		return nil, err
	}
	defer c.roots.Close()
	c.data = data
	text, err := run(c, ctx)
	return []byte(text), err
}

// lock locks the given paths against changes by others and returns what unlocks them.
func (d *Device) lock(paths ...string) (unlock func()) {
	var stripes []int
	for _, p := range paths {
		stripes = append(stripes, int(maphash.String(d.seed, p)%uint64(len(d.paths))))
	}
	slices.Sort(stripes)
	stripes = slices.Compact(stripes)
	for _, i := range stripes {
		d.paths[i].Lock()
	}
	return func() {
		for _, i := range stripes {
			d.paths[i].Unlock() // +checklocksforce: locked above, each of them
		}
	}
}

// Tools returns what the device offers to models.
func Tools() []vfs.Tool {
	tool := func(name, description, properties, required string) vfs.Tool {
		return vfs.Tool{
			Name: name, Description: description, Path: Path, Op: name, Effect: vfs.EffectReversible,
			Schema: json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`),
		}
	}
	const path = `"path":{"type":"string","description":"relative to the workspace"}`
	return []vfs.Tool{
		tool("write_file",
			"Create a file, or replace its whole content. Missing directories are made. A file that exists must have been read before, with read_file.",
			path+`,"content":{"type":"string"}`, `"path","content"`),
		tool("edit_file",
			"Replace a piece of text in a file that has been read before, with read_file. The old text must occur exactly once, unless replace_all is true; give it as it stands in the file, with its white space and without line numbers.",
			path+`,"old":{"type":"string"},"new":{"type":"string"},"replace_all":{"type":"boolean"}`, `"path","old","new"`),
		tool("make_dir", "Make a directory, and those above it.", path, `"path"`),
		tool("move",
			"Move or rename a file or directory. The new path must be free; missing directories are made.",
			`"from":{"type":"string","description":"relative to the workspace"},"to":{"type":"string","description":"the new path"}`, `"from","to"`),
		tool("delete",
			"Delete a file or an empty directory; with recursive, a directory and all that is in it.",
			path+`,"recursive":{"type":"boolean"}`, `"path"`),
	}
}
