package workspace

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnix/internal/plumbing"
	"rnix/types"
)

// untouched returns those of some files of a work tree, all in its index, that go through a filter and are, by their size and times, as they were
// when git looked at them last. Git counts whole seconds where it was built without USE_NSEC, and reads a file anew that was changed in the second in
// which its index was written; here, where it must not run the filter, that would make a change of what is none. So for these the rule is that of a
// git which counts nanoseconds (its Documentation/technical/racy-git): the index was written later than the file.
func (k *canopy) untouched(ctx context.Context, id types.UUID, s standing, paths []string) (map[string]bool, error) {
	at, err := os.Stat(filepath.Join(s.gitDir, "index"))
	if err != nil {
		return nil, nil
	}
	now := map[string]string{} // what the system says of those that are in question, as git notes it
	for _, p := range paths {
		info, err := os.Lstat(filepath.Join(s.Dir, p))
		if err != nil || !info.Mode().IsRegular() || info.ModTime().Unix() < at.ModTime().Unix() {
			continue
		}
		st, _ := statOf(info)
		if written := at.ModTime().UnixNano(); st.Ctime > 0 && st.Mtime < written && st.Ctime < written {
			now[p] = fmt.Sprintf("%s %s %d %d", gitTime(st.Ctime), gitTime(st.Mtime), uint32(st.Inode), uint32(st.Size))
		}
	}
	if len(now) == 0 {
		return nil, nil
	}
	args := []string{"--git-dir=" + s.gitDir, "--work-tree=" + s.Dir, "check-attr", "-z", "--stdin", "filter"}
	out, err := k.run(ctx, id, call{dir: s.Dir, user: true, env: s.env, reads: s.reads, args: args, input: plumbing.Zlist(slices.Collect(maps.Keys(now)))})
	if err != nil {
		return nil, err
	}
	for f := plumbing.Records(out); len(f) > 2; f = f[3:] {
		if f[2] == "unspecified" || f[2] == "unset" {
			delete(now, f[0])
		}
	}
	if len(now) == 0 {
		return nil, nil
	}
	out, err = k.run(ctx, id, call{dir: s.Dir, env: s.env, reads: s.reads, args: []string{"--git-dir=" + s.gitDir, "--work-tree=" + s.Dir, "ls-files", "-z", "--debug"}})
	if err != nil {
		return nil, err
	}
	if again, err := os.Stat(filepath.Join(s.gitDir, "index")); err != nil || !os.SameFile(at, again) {
		return nil, nil // another one has taken its place
	}
	is := map[string]bool{}
	for path, noted := range notedStats(out) {
		if now[path] == noted {
			is[path] = true
		}
	}
	return is, nil
}

// gitTime is a time as git notes it: seconds, of which it keeps 32 bits, and nanoseconds.
func gitTime(ns int64) string {
	return fmt.Sprintf("%d:%d", uint32(ns/int64(time.Second)), ns%int64(time.Second))
}

// pastSecond waits until the second is over in which an index was written: a file that is changed then has another time.
func pastSecond(ctx context.Context, gitDir string) error {
	at, err := os.Stat(filepath.Join(gitDir, "index"))
	if err != nil {
		return nil
	}
	t := time.NewTimer(min(time.Until(at.ModTime().Truncate(time.Second).Add(time.Second)), time.Second))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notedStats reads what "ls-files -z --debug" says that git has noted of each file: ctime, mtime, inode, size.
func notedStats(out []byte) map[string]string {
	all := map[string]string{}
	for len(out) > 0 {
		path, rest, ok := bytes.Cut(out, []byte{0})
		if !ok {
			break
		}
		noted := map[string]string{}
		for range 5 {
			var l []byte
			l, rest, _ = bytes.Cut(rest, []byte("\n"))
			for field := range strings.SplitSeq(string(l), "\t") {
				name, value, _ := strings.Cut(strings.TrimSpace(field), ": ")
				noted[name] = value
			}
		}
		all[string(path)] = noted["ctime"] + " " + noted["mtime"] + " " + noted["ino"] + " " + noted["size"]
		out = rest
	}
	return all
}

// without returns a list without those that are in a set.
func without(list []string, set map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(list), func(p string) bool { return set[p] })
}
