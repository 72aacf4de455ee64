package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/types"
)

// seed makes the index of a new shadow. It begins with a copy of the user's, so that files that the
// user's git has read need not be read again; those that a filter or a conversion stands before, and
// those that git was told not to look at, are marked as not read.
func (k *trees) seed(ctx context.Context, id types.UUID, s *shadow, conf plumbing.Config) error {
	user := filepath.Join(s.repo.gitDir, "index")
	warm, err := copyWithTime(user, s.index())
	if err != nil || !warm {
		return err
	}
	out, err := k.run(ctx, id, call{dir: s.repo.root, user: true, args: []string{"--git-dir=" + s.repo.gitDir, "ls-files", "-s", "-v", "-z", "--full-name"}})
	if err != nil {
		return err
	}
	all := plumbing.ParseTracked(out)
	if conf.Says("index.sparse", "true") || k.splitIndex(ctx, id, s.repo) {
		warm = false
	}
	converted := map[string]bool{}
	if warm {
		if conf.Says("core.autocrlf", "true", "input", "yes", "on", "1") {
			warm = false
		} else if converted, err = k.converted(ctx, id, s.repo, all); err != nil {
			return err
		}
	}
	if !warm {
		if err := os.Remove(s.index()); err != nil {
			return storage(s.index(), err)
		}
	}
	lines := seedLines(all, warm, converted, func(path string) bool {
		_, err := os.Lstat(filepath.Join(s.repo.root, path))
		return err == nil
	}, len(s.repo.emptyID()))
	if len(lines) == 0 {
		return nil
	}
	_, err = k.run(ctx, id, call{args: s.args("update-index", "-z", "--index-info"), input: []byte(strings.Join(lines, ""))})
	return err
}

// emptyID is the id of no object.
func (r *repo) emptyID() string {
	if r.format == "sha256" {
		return strings.Repeat("0", 64)
	}
	return strings.Repeat("0", 40)
}

// seedLines says how the index of a shadow differs from the user's (warm), or what it is made of (not
// warm), as update-index --index-info reads it. What is put there has no description, so it is read at
// the first look.
func seedLines(all []plumbing.Tracked, warm bool, converted map[string]bool, exists func(string) bool, idLen int) (lines []string) {
	gone := func(path string) { lines = append(lines, "0 "+strings.Repeat("0", idLen)+"\t"+path+"\x00") }
	put := func(t plumbing.Tracked) { lines = append(lines, t.Mode+" "+t.OID+"\t"+t.Path+"\x00") }
	last := ""
	for _, t := range all {
		switch {
		case t.Path == last: // a further stage of a conflict
		case t.Flag == 'S' || t.Flag == 's':
			if warm {
				gone(t.Path)
			}
			if exists(t.Path) {
				put(t)
			}
		case warm && t.Flag == 'H' && !converted[t.Path]:
		default:
			if warm {
				gone(t.Path)
			}
			put(t)
		}
		last = t.Path
	}
	return lines
}

// conversions are the attributes that can make the bytes of a file differ from those of its blob.
var conversions = []string{"text", "crlf", "eol", "ident", "filter", "working-tree-encoding"}

// converted returns the files whose blobs in the user's index need not hold their bytes.
func (k *trees) converted(ctx context.Context, id types.UUID, r *repo, all []plumbing.Tracked) (map[string]bool, error) {
	paths := make([]string, len(all))
	for i, t := range all {
		paths[i] = t.Path
	}
	args := append([]string{"--git-dir=" + r.gitDir, "--work-tree=" + r.root, "check-attr", "-z", "--stdin"}, conversions...)
	out, err := k.run(ctx, id, call{dir: r.root, user: true, args: args, input: plumbing.Zlist(paths)})
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	f := plumbing.Records(out)
	for i := 0; i+2 < len(f); i += 3 {
		if f[i+2] != "unspecified" && f[i+2] != "unset" {
			found[f[i]] = true
		}
	}
	return found, nil
}

// splitIndex reports whether the user's index is in two files. Git is asked only if there is one that could be the second.
func (k *trees) splitIndex(ctx context.Context, id types.UUID, r *repo) bool {
	if found, err := filepath.Glob(filepath.Join(plumbing.EscapeGlob(r.gitDir), "sharedindex.*")); err == nil && len(found) == 0 {
		return false
	}
	out, err := k.run(ctx, id, call{user: true, args: []string{"--git-dir=" + r.gitDir, "rev-parse", "--shared-index-path"}})
	return err != nil || plumbing.Line(out) != ""
}

// copyWithTime copies a file with its time of change, which for an index decides which files are read
// again. ok is false if there is no such file.
func copyWithTime(from, to string) (ok bool, err error) {
	data, info, err := plumbing.ReadFile(from, plumbing.MostIndex)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, storage(from, err)
	}
	if err := durable.WriteFile(durable.OS, to, data, durable.Cached); err != nil {
		return false, err
	}
	if err := os.Chtimes(to, info.ModTime(), info.ModTime()); err != nil {
		return false, types.Errorf(types.ErrStorage, "Take", to, "%w", err)
	}
	return true, nil
}
