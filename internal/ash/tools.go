package ash

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/interp"
)

// readers are the programs of the system that get files of the name space to read: a copy of what each
// path has now, under a name that is put back in what they write.
var readers = []string{"head", "tail", "grep", "egrep", "fgrep", "wc", "diff", "cmp", "sort", "uniq", "cut", "tr", "nl", "tac", "jq", "less", "more",
	"od", "xxd", "sed", "awk", "sha256sum", "md5sum", "file", "strings", "fold", "column", "paste", "comm"}

// How much is copied for one command.
const (
	maxCopies = 500
	maxCopied = 64 << 20 // bytes
)

// tools are programs of the system that are given paths of the name space.
type tools struct{ programs }

// overSpace runs a command some of whose arguments are paths of the name space. It reports false if it
// has none, or is none that can be given any.
func (s tools) overSpace(ctx context.Context, hc *interp.HandlerContext, args []string) (code int, done bool) {
	own := func(arg string) bool { return strings.HasPrefix(arg, "/") && inSpace(arg) }
	if !slices.ContainsFunc(args[1:], own) {
		return 0, false
	}
	plain := !slices.ContainsFunc(args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-") && arg != "-" })
	switch name := args[0]; {
	case name == "cat" && plain:
		return s.cat(ctx, hc, args[1:]), true
	case name == "tee":
		return s.tee(ctx, hc, args[1:]), true
	case name == "ls":
		return s.ls(ctx, hc, args[1:]), true
	case name == "cat" || slices.Contains(readers, name):
		return s.overCopies(ctx, hc, args), true
	}
	return 0, false
}

// cat writes files of both worlds, one after the other.
func (s tools) cat(ctx context.Context, hc *interp.HandlerContext, paths []string) int {
	code := 0
	for _, p := range paths {
		err := func() error {
			if inSpace(p) {
				data, err := s.cfg.Host.Read(ctx, hc.Dir, p)
				if err == nil {
					_, err = hc.Stdout.Write(data)
				}
				return err
			}
			if p == "-" {
				_, err := io.Copy(hc.Stdout, hc.Stdin)
				return err
			}
			f, err := os.Open(absolute(hc.Dir, p))
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(hc.Stdout, f)
			return err
		}()
		if err != nil {
			code = s.fail(hc, exitError, "cat: %s: %s", p, withoutPath(bare(err), p))
		}
	}
	return code
}

// tee writes what it reads to its output and to each path.
func (s tools) tee(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	var data []byte
	mode := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if len(args) > 0 && (args[0] == "-a" || args[0] == "--append") {
		mode, args = os.O_WRONLY|os.O_CREATE|os.O_APPEND, args[1:]
	}
	if hc.Stdin != nil {
		var err error
		if data, err = io.ReadAll(io.LimitReader(hc.Stdin, maxWritten+1)); err != nil {
			return s.fail(hc, exitError, "tee: read: %v", bare(err))
		}
	}
	if len(data) > maxWritten {
		return s.fail(hc, exitError, "tee: more than %d bytes cannot be written at once to a path of the name space; nothing was written", maxWritten)
	}
	_, _ = hc.Stdout.Write(data)
	code := 0
	for _, p := range args {
		var err error
		switch {
		case strings.HasPrefix(p, "-"):
			err = fmt.Errorf("tee knows only -a, where a path is one of the name space")
		case inSpace(p) && mode&os.O_APPEND != 0:
			err = fmt.Errorf("nothing can be added to a path of the name space")
		case inSpace(p):
			err = s.cfg.Host.Write(ctx, hc.Dir, p, data)
		default:
			var f *os.File
			if f, err = os.OpenFile(absolute(hc.Dir, p), mode, 0o666); err == nil {
				_, err = f.Write(data)
				if cerr := f.Close(); err == nil {
					err = cerr
				}
			}
		}
		if err != nil {
			code = s.fail(hc, exitError, "tee: %s: %s", p, withoutPath(bare(err), p))
		}
	}
	return code
}

// ls lists paths of the name space with our command, which takes one at a time.
func (s tools) ls(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	var flags, paths []string
	for _, arg := range args {
		switch {
		case !strings.HasPrefix(arg, "-"):
			paths = append(paths, arg)
		case strings.HasPrefix(arg, "--"):
			flags = append(flags, arg)
		case strings.Contains(arg, "l"):
			flags = append(flags, "-l")
		}
	}
	code := 0
	for _, p := range paths {
		if len(paths) > 1 {
			_, _ = fmt.Fprintf(hc.Stdout, "%s:\n", p)
		}
		if inSpace(p) {
			code = max(code, s.command(ctx, hc, append(append([]string{"ls"}, flags...), p)))
		} else {
			code = max(code, s.program(ctx, hc, append(append([]string{"ls"}, flags...), p), nil))
		}
	}
	return code
}

// overCopies runs a program over copies of the paths of the name space.
func (s tools) overCopies(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	deep := false
	for _, arg := range args[1:] {
		if name := args[0]; name == "tail" && (arg == "-f" || arg == "-F" || strings.HasPrefix(arg, "--follow") || strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "f")) {
			return s.fail(hc, exitUsage, "tail: a path of the name space cannot be followed; use: log -f PROCESS")
		}
		if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.ContainsAny(arg, "rR") || arg == "--recursive" {
			deep = true
		}
	}
	if args[0] == "sed" && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-i") || strings.HasPrefix(a, "--in-place") }) {
		return s.fail(hc, exitUsage, "sed: a path of the name space cannot be edited in place")
	}
	dir, err := os.MkdirTemp("", "rnix-space-*")
	if err != nil {
		return s.fail(hc, exitError, "%s: %v", args[0], err)
	}
	defer os.RemoveAll(dir)
	c := &copier{host: s.cfg.Host, ctx: ctx, hc: hc, dir: dir, deep: deep}
	out := slices.Clone(args)
	for i, arg := range args {
		if i > 0 && strings.HasPrefix(arg, "/") && inSpace(arg) {
			if err := c.copy(filepath.Clean(arg)); err != nil {
				return s.fail(hc, exitUsage, "%s: %s: %s", args[0], arg, withoutPath(err, arg))
			}
			out[i] = dir + filepath.Clean(arg)
		}
	}
	w, e := &renamer{w: hc.Stdout, old: []byte(dir)}, &renamer{w: hc.Stderr, old: []byte(dir)}
	renamed := *hc
	renamed.Stderr = e
	code := s.program(ctx, &renamed, out, w)
	w.flush()
	e.flush()
	return code
}

// copier copies paths of the name space into a directory, where they have the same names.
type copier struct {
	host   Host
	ctx    context.Context
	hc     *interp.HandlerContext
	dir    string
	deep   bool // directories with what is in them
	files  int
	copied int
}

func (c *copier) copy(p string) error {
	if c.files++; c.files > maxCopies {
		return fmt.Errorf("there are more than %d files", maxCopies)
	}
	to := c.dir + p
	data, err := c.host.Read(c.ctx, c.hc.Dir, p)
	if list, lerr := c.host.List(c.ctx, c.hc.Dir, p); lerr == nil && (err != nil || isDir(list, p)) {
		if err := os.MkdirAll(to, 0o700); err != nil || !c.deep {
			return err
		}
		for i := range list {
			if err := c.copy(p + "/" + strings.TrimSuffix(list[i].Name, "/")); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		if c.files > 1 && c.deep {
			return nil // a device that cannot be read
		}
		return err
	}
	if c.copied += len(data); c.copied > maxCopied {
		return fmt.Errorf("there are more than %d bytes", maxCopied)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, data, fs.FileMode(0o600))
}

// renamer takes the name of the directory of copies out of what passes.
type renamer struct {
	w    io.Writer
	old  []byte
	held []byte // the end of what has come, which may be the beginning of the name
}

func (r *renamer) Write(b []byte) (int, error) {
	data := bytes.ReplaceAll(append(r.held, b...), r.old, nil)
	keep := 0
	for n := min(len(r.old)-1, len(data)); n > 0; n-- {
		if bytes.HasSuffix(data, r.old[:n]) {
			keep = n
			break
		}
	}
	r.held = slices.Clone(data[len(data)-keep:])
	if _, err := r.w.Write(data[:len(data)-keep]); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (r *renamer) flush() {
	_, _ = r.w.Write(r.held)
	r.held = nil
}
