package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/moved"
	"rnix/internal/plumbing"
	"rnix/internal/sandbox"
	"rnix/types"
)

// Autorun is a file that is not as it was when a process began, and that other programs run or obey unasked: a hook or the configuration of its
// repository, or a file with which an editor, a shell or an agent starts.
type Autorun struct {
	File     string   // relative to the top of the work, or absolute if it is elsewhere
	Change   string   // "created", "changed" or "removed"
	Settings []string // of a configuration of git: the keys that differ, sorted
	Runs     bool     // git may run a program because of it, with no more than a command of every day
	Tree     bool     // it is among the files of the work; else in its repository, or where core.hooksPath leads
}

// What is looked at, so that no directory can make a process or a diff slow.
const (
	autorunFiles = 2000     // files
	autorunBytes = 32 << 20 // bytes of all files; of those behind it size and time are compared
	autorunFile  = 1 << 20  // bytes of one file
	autorunDepth = 8        // directories below each other
)

// autorunVersion is the format of the notes that this program writes.
const autorunVersion = 1

// autoruns is what other programs ran or obeyed in a directory at one moment. Part of the on-disk format.
type autoruns struct {
	Version int    `json:"v"`
	Root    string `json:"root"`
	Below   string `json:"below,omitempty"`  // the work directory, relative to Root: what is started there is looked at, too
	Common  string `json:"common,omitempty"` // the repository; "" = there was none
	// Sums has a sum for each file and each setting. The names begin with where it is: "tree/" below Root, "git/" below Common, "own/" below the
	// directory of a linked work tree, "hooks/" in the directory of core.hooksPath if that is elsewhere; "set/" is the scope and the key of a setting.
	Sums map[string]string `json:"sums"`
	Some bool              `json:"some,omitempty"` // there were more files than are looked at

	gitDir, hooks string
	runs          map[string]bool // names by which git runs programs
	bytes         int64
	own           string // the data directory, which is no part of anybody's work
}

// autorunsIn looks at what other programs run or obey in a directory. was is what it is to be compared with; nil = it is the beginning.
func (k *survey) autorunsIn(ctx context.Context, id types.UUID, dir string, was *autoruns) (*autoruns, error) {
	p, err := k.locate(ctx, id, dir)
	if err != nil {
		return nil, err
	}
	a := &autoruns{Version: autorunVersion, Root: p.root, Sums: map[string]string{}, runs: map[string]bool{}, own: filepath.Dir(k.base)}
	if p.refused != "" {
		return a, nil
	}
	if p.repo != nil {
		a.Root, a.Common, a.gitDir = p.repo.root, p.repo.common, p.repo.gitDir
		if rel, err := filepath.Rel(a.Root, resolve(dir)); err == nil && rel != "." && filepath.IsLocal(rel) {
			a.Below = rel
		}
		conf, err := k.config(ctx, id, a.gitDir, true)
		if err != nil {
			return nil, err
		}
		a.settings(conf)
		a.repository(conf, k.home)
		a.submodules(ctx, k.git, id, filepath.Join(a.Common, "modules"), 0)
	}
	if was != nil {
		a.Below = was.Below
	}
	for _, top := range []string{a.Root, filepath.Join(a.Root, a.Below)} {
		for _, name := range sandbox.StartFiles() {
			a.add("tree/", a.Root, filepath.Join(top, name), 0)
		}
	}
	return a, ctx.Err()
}

// settings takes in what the repository itself sets. Values of one key are one.
func (a *autoruns) settings(conf plumbing.Config) {
	texts := map[string]string{}
	for _, e := range conf.Local() {
		name := "set/" + e.Scope + "/" + e.Key
		texts[name] += e.Text + "\x00"
		if e.RunsProgram() {
			a.runs[name] = true
		}
	}
	for name, text := range texts {
		a.Sums[name] = sumOf([]byte(text))
	}
}

// repository takes in the files by which git runs something there, but for its configuration.
func (a *autoruns) repository(conf plumbing.Config, home string) {
	for _, name := range sandbox.GitFiles() {
		if name == "config" || name == "modules" || name == "config.worktree" && a.gitDir == a.Common {
			continue // its settings are compared, and submodules one by one
		}
		a.add("git/", a.Common, filepath.Join(a.Common, name), 0)
	}
	if a.gitDir != a.Common { // where the work tree's .git leads, is looked at whenever git is used there
		a.add("own/", a.gitDir, filepath.Join(a.gitDir, "commondir"), 0)
	}
	a.hooks = filepath.Join(a.Common, "hooks")
	theirs := slices.DeleteFunc(slices.Clone(conf), func(e plumbing.Entry) bool { return e.Scope == "command" }) // that is ours
	dir, _ := theirs.Get("core.hookspath")
	if dir == "" {
		return
	}
	if rest, in := strings.CutPrefix(dir, "~/"); in {
		dir = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(dir) { // git is at the top of the work tree when it runs one
		dir = filepath.Join(a.Root, dir)
	}
	switch a.hooks = filepath.Clean(dir); {
	case under(a.hooks, a.Root) && !under(a.hooks, a.Common):
		a.add("tree/", a.Root, a.hooks, 0)
	case !under(a.hooks, filepath.Join(a.Common, "hooks")):
		a.add("hooks/", a.hooks, a.hooks, 0)
	}
}

// submodules takes in the repositories of submodules below a directory.
func (a *autoruns) submodules(ctx context.Context, k *git, id types.UUID, dir string, depth int) {
	entries, err := os.ReadDir(dir)
	if err != nil || depth > autorunDepth {
		return
	}
	for _, e := range entries {
		sub := filepath.Join(dir, e.Name())
		if !e.IsDir() || len(a.Sums) >= autorunFiles || ctx.Err() != nil {
			continue
		}
		if _, err := os.Lstat(filepath.Join(sub, "HEAD")); err != nil {
			a.submodules(ctx, k, id, sub, depth+1) // its name has a slash in it
			continue
		}
		for _, name := range sandbox.GitFiles() {
			if name != "modules" {
				a.add("git/", a.Common, filepath.Join(sub, name), 0)
			}
		}
		a.submodules(ctx, k, id, filepath.Join(sub, "modules"), depth+1)
	}
}

// add takes in a file, or all files below a directory. top is the directory that stands for the beginning of the names.
func (a *autoruns) add(where, top, path string, depth int) {
	info, err := os.Lstat(path)
	rel, rerr := filepath.Rel(top, path)
	name := where + rel
	if err != nil || rerr != nil || path == a.own || sandbox.IsHeld(path) || depth > autorunDepth || where != "tree/" && strings.HasSuffix(name, ".sample") {
		return
	}
	if _, known := a.Sums[name]; known {
		return
	}
	if len(a.Sums) >= autorunFiles {
		a.Some = true
		return
	}
	if info.IsDir() {
		entries, _ := os.ReadDir(path) // what cannot be read, nobody runs
		for _, e := range entries {
			a.add(where, top, filepath.Join(path, e.Name()), depth+1)
		}
		return
	}
	text := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		text, _ = os.Readlink(path)
		if info, err = os.Stat(path); err != nil || info.IsDir() {
			a.Sums[name] = sumOf([]byte("-> " + text))
			return
		}
	}
	text = fmt.Sprintf("%s\x00%s\x00%d\x00", text, info.Mode().Type(), info.Size())
	if info.Mode().IsRegular() {
		if a.bytes += min(info.Size(), autorunFile); a.bytes > autorunBytes {
			text += info.ModTime().String()
		} else if content, err := plumbing.Beginning(path, autorunFile); err == nil {
			text += string(content)
		}
		if info.Mode()&0o111 != 0 {
			a.runs[name] = true
			text += "\x00x"
		}
	}
	a.Sums[name] = sumOf([]byte(text))
}

// sumOf returns a short sum: it tells what differs, and is no proof.
func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// under reports whether a clean path is a directory or below it.
func under(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func (k *archive) autorunPath(id types.UUID) string {
	return filepath.Join(filepath.Dir(k.dir), "autorun", id.String()+".json")
}

// data is the data directory.
func (k *archive) data() string { return filepath.Dir(filepath.Dir(k.dir)) }

// noteAutoruns notes what other programs run or obey where a history begins to work, unless that is noted already.
func noteAutoruns(ctx context.Context, k *Keeper, id types.UUID, dir string) error {
	path := k.archive.autorunPath(id)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	a, err := k.autorunsIn(ctx, id, dir, nil)
	if err != nil {
		return err
	}
	b, err := json.Marshal(a)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Take", path, "%w", err)
	}
	if err := mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS, path, append(b, '\n'), durable.Cached)
}

// autorunsAtStart returns what noteAutoruns has noted of the last of some histories that has a note; nil = none has.
func (k *archive) autorunsAtStart(line []types.UUID) (*autoruns, error) {
	for _, id := range slices.Backward(line) {
		path := k.autorunPath(id)
		b, err := durable.ReadFile(durable.OS, path)
		if types.CodeOf(err) == types.ErrNotFound {
			continue
		}
		a := new(autoruns)
		if err == nil && (json.Unmarshal(b, a) != nil || a.Version < 1) {
			err = types.Errorf(types.ErrStorage, "Diff", path, "is not a note on hooks and settings: move it away")
		} else if err == nil && a.Version > autorunVersion {
			err = types.Errorf(types.ErrVersion, "Diff", path, "written in format %d by a newer program, this one reads up to %d", a.Version, autorunVersion)
		}
		a.Root, a.Common = moved.Here(k.data(), a.Root), moved.Here(k.data(), a.Common)
		return a, err
	}
	return nil, nil
}
