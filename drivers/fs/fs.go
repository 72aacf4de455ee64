// Package fs serves /dev/fs: the files of the host, read-only and only below the directories that a
// process may read, its workspace first.
//
// It owns the confinement of paths (roots.go), what belongs to Rnix and is served to none (own.go), the ledger of what each process has seen of which
// file (seen.go) and the tools that read, list and search. It never changes a file: that is
// drivers/workspace, which stands on this package's Roots and Seen. It knows no process but the
// Caller that opens a file.
//
// Opening /dev/fs takes a request, {"op":"read_file",...}; opening /dev/fs/<absolute path> reads that
// file, or lists that directory, one name per line.
package fs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"rnix/types"
	"rnix/vfs"
)

// Path is where the device is registered.
const Path = "/dev/fs"

// Device is /dev/fs.
type Device struct {
	seen *Seen
	own  *Own
}

// New returns the device. It notes in seen what each process has read, for the device that writes;
// nil if there is none. It serves nothing in own; nil = there is nothing to keep from callers.
func New(seen *Seen, own *Own) *Device {
	if seen == nil {
		seen = NewSeen()
	}
	return &Device{seen: seen, own: own}
}

// Open opens the device itself, or the file of the host that subpath names.
func (d *Device) Open(subpath string, flags vfs.OpenFlag) (vfs.VFSFile, error) {
	if subpath == "" {
		return vfs.NewRequestFile(vfs.FileStat{Name: "fs", Mode: "rw-", Type: "device"}, d.perform), nil
	}
	if flags.CanWrite() {
		return nil, types.Errorf(types.ErrPermission, "Open", Path+subpath, "/dev/fs is read-only: write through /dev/workspace")
	}
	return &hostFile{device: d, path: subpath}, nil
}

// operations are what a request may ask for.
var operations = map[string]func(*call, context.Context) error{
	"read_file":  (*call).readFile,
	"list_files": (*call).listFiles,
	"glob":       (*call).glob,
	"grep":       (*call).grep,
}

// call is one request under way.
type call struct {
	answer
	caller vfs.Caller
	roots  *Roots
	seen   *Seen
	data   []byte
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
	roots, err := d.own.callerRoots(caller)
	if err != nil {
		return nil, err
	}
	defer roots.Close()
	d.seen.Bind(caller)
	c := &call{caller: caller, roots: roots, seen: d.seen, data: data}
	if err := run(c, ctx); err != nil {
		return nil, err
	}
	return c.bytes(), nil
}

// answer is text of bounded length, and notes that stand behind it.
type answer struct {
	text  strings.Builder
	notes []string
}

// maxAnswer is how many bytes of an answer are text; about 25,000 tokens.
const maxAnswer = 100_000

// full reports whether another n bytes would be too many.
func (a *answer) full(n int) bool { return a.text.Len() > 0 && a.text.Len()+n > maxAnswer }

func (a *answer) note(text string) { a.notes = append(a.notes, text) }

func (a *answer) bytes() []byte {
	for _, n := range a.notes {
		a.text.WriteString("[" + n + "]\n")
	}
	return []byte(a.text.String())
}

// Tools returns what the device offers to models.
func Tools() []vfs.Tool {
	tool := func(name, description, properties string, required string) vfs.Tool {
		return vfs.Tool{
			Name: name, Description: description, Path: Path, Op: name, Effect: vfs.EffectNone, Independent: true,
			Schema: json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`),
		}
	}
	const (
		path = `"path":{"type":"string","description":"relative to the workspace, or absolute; the workspace if absent"}`
		all  = `"all":{"type":"boolean","description":"also what .gitignore hides, and .git, node_modules and the like"}`
	)
	return []vfs.Tool{
		tool("read_file",
			"Read a text file, or look at an image (PNG, JPEG, GIF, WebP) or a PDF. Each line of a text is given as its number, a tab, and its text. At most 2,000 lines and 100 kB are given at once; the answer says how to go on.",
			`"path":{"type":"string","description":"relative to the workspace, or absolute"},`+
				`"offset":{"type":"integer","minimum":1,"description":"first line, from 1"},`+
				`"limit":{"type":"integer","minimum":1,"description":"how many lines; 2000 if absent"}`, `"path"`),
		tool("list_files",
			"List a directory. Directories end with a slash; files are followed by their size in bytes.",
			path+`,"depth":{"type":"integer","minimum":1,"description":"levels to show; 1 if absent"},`+all, ``),
		tool("glob",
			"Find files by name, the newest first. The pattern knows *, ?, [a-z], {a,b} and ** for any directories; a pattern without a slash is matched at any depth.",
			`"pattern":{"type":"string"},`+path+`,"limit":{"type":"integer","minimum":1,"description":"how many; 200 if absent"},`+all, `"pattern"`),
		tool("grep",
			"Search the content of files, line by line, with a regular expression (RE2 syntax: no backreferences, no look-around). Binary files are skipped.",
			`"pattern":{"type":"string"},`+path+`,`+
				`"glob":{"type":"string","description":"only files with such names, such as *.go"},`+
				`"ignore_case":{"type":"boolean"},`+
				`"context":{"type":"integer","minimum":0,"maximum":50,"description":"lines to show around each match"},`+
				`"output":{"enum":["content","files","count"],"description":"matching lines (default), names of files, or matches per file"},`+
				`"limit":{"type":"integer","minimum":1,"description":"how many matching lines, or files; 200 if absent"},`+all, `"pattern"`),
	}
}
