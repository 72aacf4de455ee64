package trust

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/vfs"
)

// word is a part of the command line of an MCP server that names a place below the root of a project.
type word struct {
	vfs.PinnedFile
	starts bool // what is there now is a program or a script that is started
	lacks  bool // nothing is there, and the server cannot start without it
}

// words returns those parts of the command line of an MCP server that works in dir.
func words(root, dir string, s agent.MCPServer) (out []word) {
	interprets := interpreter(s.Command)
	for i, text := range append([]string{s.Command}, s.Args...) {
		flag, before := i > 0 && strings.HasPrefix(text, "-"), ""
		if flag {
			before, text, _ = strings.Cut(text, "=") // --import=./hook.mjs
			before += "="
		}
		if text == "" || i == 0 && !strings.ContainsRune(text, filepath.Separator) {
			continue // a flag, a program in PATH
		}
		if !filepath.IsAbs(text) {
			text = dir + string(filepath.Separator) + text // not Join, which takes "sub/.." for nothing, also where sub is a link
		}
		w := word{PinnedFile: vfs.PinnedFile{Arg: i - 1, Flag: before}}
		rel, ok := below(root, text)
		switch {
		case ok:
			w.starts = regular(text) && (i == 0 || interprets && !flag || runnable(text))
			interprets = interprets && (i == 0 || flag || !w.starts) // the first file that an interpreter is given, whatever it looks like
		default:
			if _, err := os.Stat(text); err == nil {
				continue // it lies elsewhere
			}
			at, err := filepath.Rel(root, text)
			if err != nil || !filepath.IsLocal(at) {
				continue
			}
			rel, w.lacks = filepath.ToSlash(at), i == 0 || interprets && !flag && slices.Contains(scripts, strings.ToLower(filepath.Ext(text)))
		}
		w.Path = rel
		out = append(out, w)
	}
	return out
}

// Pin returns what of the files that a person has looked at the command line of an MCP server names, as they were then: whatever may lie in their
// places now. unseen is what it would start besides, or lacks, and the person has not looked at; "" = nothing.
func Pin(was []File, root, dir string, s agent.MCPServer) (out []vfs.PinnedFile, unseen string) {
	for _, w := range words(root, dir, s) {
		at := slices.IndexFunc(was, func(f File) bool { return f.Path == w.Path && f.Sum != "" })
		switch {
		case at >= 0:
			w.Sum, w.Kind = was[at].Sum, was[at].Kind
			out = append(out, w.PinnedFile)
		case w.starts || w.lacks:
			return nil, w.Path
		}
	}
	return out, ""
}
