package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"rnix/agent"
	"rnix/internal/plumbing"
	"rnix/types"
)

// Bounds of what is looked at. What has more is not remembered: people can look at no such list either.
const (
	maxFiles = 2000
	maxBytes = 32 << 20 // of all files
	maxText  = 64 << 10 // of a file whose contents are kept
)

// places are where a project has what starts programs, and what it is. A directory counts with all that is in it.
var places = []struct{ path, what string }{
	{".mcp.json", "MCP servers"},
	{".rnix", "agents, skills, providers and settings of Rnix"},
	{"compose.yaml", "a workflow of agents"},
	{".agents", "skills and settings of agents"},
	{".claude", "settings of claude, which can have hooks"},
	{".codex", "settings of codex"},
	{"opencode.json", "settings of opencode"},
	{"opencode.jsonc", "settings of opencode"},
	{".opencode", "settings and plugins of opencode"},
}

// whats are what files below .rnix are.
var whats = []struct{ pattern, what string }{
	{".rnix/mcp.yaml", "MCP servers"},
	{".rnix/providers.yaml", "models, and the programs that they are"},
	{".rnix/config.yaml", "settings of Rnix"},
	{".rnix/prices.yaml", "prices, by which budgets are kept"},
	{".rnix/compose.yaml", "a workflow of agents"},
	{".rnix/agents/*/agent.yaml", "an agent"},
	{".rnix/agents/*/*", "a part of an agent"},
	{".rnix/skills/*/*", "a part of a skill"},
	{".claude/settings*.json", "settings of claude, which can have hooks"},
}

// Elsewhere are directories below the places that are no part of the project's settings: work trees of claude, with files of their own. A
// symbolic link to one makes it a part.
var elsewhere = []string{".claude/worktrees"}

// Look returns the files of a project that can start a program or widen what agents may do, by their paths: those of known places, and the
// programs and scripts of the project that its MCP servers start. dir is absolute. A project that has too many of them to be looked at is
// RESOURCE_EXHAUSTED. more are paths of further files that are started, below dir and with slashes.
func Look(dir string, more ...string) ([]File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, types.Errorf(types.ErrNotFound, "Trust", dir, "%w", err)
	}
	defer root.Close()
	l := &looker{dir: dir, root: root, seen: map[string]bool{}}
	for _, p := range places {
		if err := l.tree(p.path, p.what, elsewhere...); err != nil {
			return nil, err
		}
	}
	if err := l.started(); err != nil {
		return nil, err
	}
	for _, name := range more {
		if err := l.add(name, "started by an MCP server"); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(l.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return l.files, nil
}

// HasSettings reports whether a directory has settings of a command line that can start programs.
func HasSettings(dir string) bool {
	for _, p := range places {
		if strings.HasPrefix(p.path, ".rnix") || p.path == "compose.yaml" {
			continue // Rnix reads these at the root alone
		}
		if _, err := os.Lstat(filepath.Join(dir, p.path)); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// looker collects the files of a project.
type looker struct {
	dir   string
	root  *os.Root
	files []File
	seen  map[string]bool
	bytes int64
	all   bool // contents are kept, however large
}

func (l *looker) bad(name string, err error) error {
	return types.Errorf(types.ErrStorage, "Trust", filepath.Join(l.dir, filepath.FromSlash(name)), "it cannot be looked at: %w", err)
}

// outside is the refusal of a symbolic link out of the project.
func (l *looker) outside(name, link string) error {
	return types.Errorf(types.ErrInvalid, "Trust", filepath.Join(l.dir, filepath.FromSlash(name)),
		"it is a symbolic link to %s, and what changes out of the project is not seen: replace it by a copy, or trust the project for one run with: rnix run --trust-project \"...\"", link)
}

// tree adds what is at a path, if there is anything, but not the directories without.
func (l *looker) tree(at, what string, without ...string) error {
	return fs.WalkDir(l.root.FS(), at, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // also one that has just gone
		case err != nil:
			if link, lerr := l.root.Readlink(name); lerr == nil {
				return l.outside(name, link)
			}
			return l.bad(name, err)
		case e.IsDir() && slices.Contains(without, name):
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		return l.add(name, whatOf(name, what))
	})
}

func whatOf(name, what string) string {
	for _, w := range whats {
		if ok, _ := path.Match(w.pattern, name); ok {
			return w.what
		}
	}
	return what
}

// started adds the programs and scripts of the project that its MCP servers name.
func (l *looker) started() error {
	unset := func(string) (string, bool) { return "", false }                 // so that ${X:-./server.sh} is ./server.sh, for everyone
	servers, _ := agent.LoadMCP(agent.Places{ProjectDir: l.dir}, unset, true) // a mistake in them is a part of their file
	for _, s := range servers {
		for _, name := range Scripts(l.dir, l.dir, s.MCPServer) {
			if err := l.add(name, "started by the MCP server "+s.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Scripts returns the programs and scripts below root that an MCP server starts which works in dir, by their paths below root: its command, and
// those of its arguments that are files to be run. What else it is given, such as a database, changes while it works.
func Scripts(root, dir string, s agent.MCPServer) (out []string) {
	for _, w := range words(root, dir, s) {
		if w.starts {
			out = append(out, w.Path)
		}
	}
	return out
}

// below returns the path below root of a file that a server names: the one that is written if it leads to that file, else where it leads. One
// that only seems to be below root is returned as it is written, which nothing can be opened by.
func below(root, word string) (string, bool) {
	rel, err := filepath.Rel(root, word)
	local := err == nil && filepath.IsLocal(rel)
	written, err := os.Stat(word)
	if err != nil {
		return "", false
	}
	if named, err := os.Stat(filepath.Clean(word)); local && err == nil && os.SameFile(written, named) {
		return filepath.ToSlash(rel), true
	}
	if at, ok := within(root, word); ok {
		return at, true
	}
	return filepath.ToSlash(strings.TrimPrefix(word, root+string(filepath.Separator))), local
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// scripts are the endings of files that interpreters run.
var scripts = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".pyz", ".rb", ".sh", ".bash", ".pl", ".php", ".lua", ".jar", ".go", ".wasm", ".exe"}

// interpreters are programs that run the first file that they are given, whatever its name.
var interpreters = []string{"sh", "bash", "dash", "ash", "ksh", "zsh", "fish", "python", "pypy", "node", "deno", "bun", "tsx", "ruby", "perl", "php", "lua", "luajit",
	"tclsh", "awk", "gawk", "rscript", "julia", "env", "uv", "busybox", "nice", "nohup", "setsid", "timeout"}

// interpreter reports whether a command is one of them, also with a version as in python3.12.
func interpreter(command string) bool {
	return slices.Contains(interpreters, strings.TrimRight(strings.ToLower(filepath.Base(command)), "0123456789.-"))
}

// runnable reports whether a regular file is one that is run, as its name, its permissions or its beginning say.
func runnable(path string) bool {
	if slices.Contains(scripts, strings.ToLower(filepath.Ext(path))) {
		return true
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&0o111 != 0 {
		return err == nil
	}
	head, err := plumbing.Beginning(path, 2)
	return err != nil || string(head) == "#!"
}

// add adds a file with the sum of its contents. A symbolic link counts with where it leads; one that leads out of the project is
// INVALID, and of what is no file nothing is read.
func (l *looker) add(name, what string) error {
	if l.seen[name] {
		return nil
	}
	l.seen[name] = true
	if len(l.files) == maxFiles {
		return types.Errorf(types.ErrExhausted, "Trust", l.dir, "more than %d of its files can start programs, the last of them %s; no one can look at so many: trust it for one run with: rnix run --trust-project \"...\"", maxFiles, name)
	}
	f, err := l.read(name, what)
	if err == nil {
		l.files = append(l.files, f)
	}
	return err
}

func (l *looker) read(name, what string) (File, error) {
	file := File{Path: name, What: what}
	link, lerr := l.root.Readlink(name)
	if lerr == nil {
		file.Kind = linkTo + link
	}
	f, err := l.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer opens too, and is no regular file
	switch {
	case err != nil && lerr == nil && errors.Is(err, fs.ErrNotExist): // what may come there is another file then
		return file, nil
	case err != nil && lerr == nil:
		return file, l.outside(name, link)
	case err != nil:
		return file, l.bad(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return file, l.bad(name, err)
	case info.IsDir() && lerr == nil:
		return file, l.linked(name, link, what)
	case !info.Mode().IsRegular():
		file.Kind = join(file.Kind, "no regular file")
		return file, nil
	case info.Mode()&0o111 != 0:
		file.Kind = join(file.Kind, executable)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes-l.bytes+1))
	if err != nil {
		return file, l.bad(name, err)
	}
	if l.bytes += int64(len(text)); l.bytes > maxBytes {
		return file, types.Errorf(types.ErrExhausted, "Trust", l.dir, "its files that can start programs have more than %d bytes, with %s; trust it for one run with: rnix run --trust-project \"...\"", maxBytes, name)
	}
	sum := sha256.Sum256(text)
	file.Sum = hex.EncodeToString(sum[:])
	if len(text) <= maxText || l.all {
		file.Text = text
	}
	return file, nil
}

// linked adds what is in a directory of the project to which a symbolic link leads. The system says where that is: "s/../x" is not x if s is
// a link itself, nor is a link read from where its name seems to be.
func (l *looker) linked(name, link, what string) error {
	at, ok := within(l.dir, filepath.Join(l.dir, filepath.FromSlash(name)))
	if !ok {
		return l.outside(name, link)
	}
	if l.seen[at+"/"] {
		return nil
	}
	l.seen[at+"/"] = true
	return l.tree(at, what)
}

// within returns where a path of the system leads, below root and with slashes; false if that is not there.
func within(root, name string) (string, bool) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", false
	}
	if name, err = filepath.EvalSymlinks(name); err != nil {
		return "", false
	}
	rel, err := filepath.Rel(root, name)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// What File.Kind begins and ends with.
const (
	linkTo     = "link to "
	executable = "executable"
)

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}
