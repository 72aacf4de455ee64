package agent

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"rnix/internal/yamlfile"
	"rnix/types"
)

// DocumentFile is the name of a project's instruction file.
const DocumentFile = "AGENTS.md"

// DocumentFiles returns the names under which projects keep their instructions, best first: AGENTS.md, and those that count where a directory has none, which
// other agents read.
func DocumentFiles() []string {
	return []string{DocumentFile, "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".cursorrules"}
}

// MaxDocument is the most of a project's instruction file that is used, in bytes.
const MaxDocument = 64 << 10

// maxWalk bounds how far up a project's root is looked for.
const maxWalk = 64

// ProjectRoot returns the directory around dir that is a project: the nearest one, from dir upward,
// that holds .git or .rnix. The home directory and what is above it are no projects, because
// home/.rnix is where the program keeps its data. ok is false if there is none; the root is then
// dir itself.
func ProjectRoot(dir, home string) (root string, ok bool) {
	dir = filepath.Clean(dir)
	at := dir
	for range maxWalk {
		if home != "" && contains(at, home) {
			break
		}
		for _, mark := range []string{".git", ".rnix"} {
			if _, err := os.Lstat(filepath.Join(at, mark)); err == nil {
				return at, true
			}
		}
		up := filepath.Dir(at)
		if up == at {
			break
		}
		at = up
	}
	return dir, false
}

// FindDocument returns the project's instructions that are nearest to dir: in dir or, if dir is below root, in a
// directory between the two; of several in one directory the first of DocumentFiles. The zero Document means that there is none. A file that leads out of
// root by a symbolic link, or cannot be read, is an error and not used.
func FindDocument(dir, root string) (Document, error) {
	dir, root = filepath.Clean(dir), filepath.Clean(root)
	if !contains(root, dir) {
		root = dir
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return Document{}, types.Errorf(codeOf(err), "FindDocument", root, "%w", yamlfile.Cause(err))
	}
	defer r.Close()
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return Document{}, types.Errorf(types.ErrInvalid, "FindDocument", dir, "%w", err)
	}
	for at := filepath.ToSlash(rel); ; at = path.Dir(at) {
		for _, file := range DocumentFiles() {
			name := path.Join(at, file)
			src, err := yamlfile.ReadFS(yamlfile.Inside(r), name, MaxDocument+1)
			switch {
			case err == nil && strings.TrimSpace(string(src)) != "":
				return Document{Path: name, Text: strings.TrimSpace(cut(src, MaxDocument))}, nil
			case err != nil && !yamlfile.Missing(err):
				return Document{}, types.Errorf(codeOf(err), "FindDocument", filepath.Join(root, filepath.FromSlash(name)),
					"%w; it is not put into the prompt", yamlfile.Cause(err))
			}
		}
		if at == "." {
			return Document{}, nil
		}
	}
}

// contains reports whether path is dir or below it. Both are clean.
func contains(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
