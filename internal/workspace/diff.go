package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// DiffOpts say what Diff gives.
type DiffOpts struct {
	Paths     []string // only these, relative to the root, and what is below them; none = all
	NamesOnly bool     // the list of changes without their text
	MaxBytes  int      // after so many the text is cut, and says so; 0 = 1 MiB
}

// FileChange is one file that is different.
type FileChange struct {
	Path           string
	Status         string // A added, D deleted, M changed, T another type of file
	Added, Deleted int    // lines
	Binary         bool   // no lines were counted
}

// Diff returns what is different between two snapshots, from a to b, as a unified diff and as a list.
// Either may be Now, the files as they are. The text is for people and for git apply; no driver,
// filter or program of the repository's takes part.
func (k *Keeper) Diff(ctx context.Context, a, b Ref, opts DiffOpts) ([]byte, []FileChange, error) {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 1 << 20
	}
	for _, r := range []*Ref{&a, &b} {
		if r.ID == "" && r.Kind == "" {
			if err := k.present(ctx, r); err != nil {
				return nil, nil, err
			}
		}
	}
	from, err := k.open(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	to, err := k.open(ctx, b)
	if err != nil {
		return nil, nil, err
	}
	g, isGit := from.(gitSource)
	if h, both := to.(gitSource); isGit && both && g.store == h.store {
		return diffGit(ctx, g, h, opts)
	}
	return diffSources(ctx, from, to, a.Kind == b.Kind && len(a.ID) == len(b.ID), opts)
}

// present makes a Ref of the files as they are one of a snapshot without a name.
func (k *Keeper) present(ctx context.Context, r *Ref) error {
	h, err := k.enter(ctx, r.UUID)
	if err != nil {
		return err
	}
	k.awaitSweep(h)
	defer k.leave(h)
	st, err := k.freeze(ctx, h, r.UUID, r.Root, nil)
	if err != nil {
		return err
	}
	r.Kind, r.ID, r.Root = st.Kind, st.ID, st.Root
	if r.ID == "" {
		return types.Errorf(types.ErrPermission, "Diff", r.Root, "%s", st.Limited)
	}
	return nil
}

// diffGit lets git compare two trees of one repository.
func diffGit(ctx context.Context, a, b gitSource, opts DiffOpts) ([]byte, []FileChange, error) {
	diff := func(how ...string) call {
		args := append(a.args("--literal-pathspecs", "diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index"), how...)
		return call{args: append(append(args, a.tree, b.tree, "--"), opts.Paths...)}
	}
	out, err := a.git.run(ctx, a.id, diff("-z", "--raw", "--numstat"))
	if types.CodeOf(err) == types.ErrDriver && partial(a.store.common) {
		return diffPartial(ctx, a, b, diff("-z", "--raw"), opts, err)
	}
	if err != nil {
		return nil, nil, err
	}
	var changes []FileChange
	at := map[string]int{}
	list := plumbing.Records(out)
	for ; len(list) > 1 && strings.HasPrefix(list[0], ":"); list = list[2:] {
		at[list[1]] = len(changes)
		changes = append(changes, FileChange{Path: list[1], Status: list[0][strings.LastIndexByte(list[0], ' ')+1:]})
	}
	for _, r := range list {
		f := strings.SplitN(r, "\t", 3)
		i, ok := at[f[len(f)-1]]
		if len(f) != 3 || !ok {
			continue
		}
		c := &changes[i]
		var errA, errD error
		c.Added, errA = strconv.Atoi(f[0])
		c.Deleted, errD = strconv.Atoi(f[1])
		c.Binary = errA != nil || errD != nil // git writes "-"
	}
	if opts.NamesOnly || len(changes) == 0 {
		return nil, changes, nil
	}
	text, err := a.git.run(ctx, a.id, diff("-p"))
	return cut(text, opts.MaxBytes), changes, err
}

// diffPartial compares two trees of a partial clone, in which files may be missing that only a server has: these are shown as binary ones. raw is
// the call that lists what is different. If none of it is missing, git has failed otherwise, with an error.
func diffPartial(ctx context.Context, a, b gitSource, raw call, opts DiffOpts, failed error) ([]byte, []FileChange, error) {
	list, err := a.git.run(ctx, a.id, raw)
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	for f := plumbing.Records(list); len(f) > 1; f = f[2:] {
		if meta := strings.Fields(f[0]); len(meta) > 3 {
			ids = append(ids, meta[2], meta[3])
		}
	}
	out, err := a.git.run(ctx, a.id, call{args: a.args("cat-file", "--batch-check"), input: []byte(strings.Join(ids, "\n") + "\n")})
	if err != nil {
		return nil, nil, err
	}
	a.absent = map[string]bool{}
	for l := range strings.Lines(string(out)) {
		if id, ok := strings.CutSuffix(l, " missing\n"); ok && strings.Trim(id, "0") != "" {
			a.absent[id] = true
		}
	}
	if len(a.absent) == 0 {
		return nil, nil, failed
	}
	b.absent = a.absent
	return diffSources(ctx, a, b, true, opts)
}

// cut bounds a text and says so.
func cut(text []byte, most int) []byte {
	if len(text) <= most {
		return text
	}
	end := bytes.LastIndexByte(text[:most], '\n') + 1
	return append(text[:end:end], fmt.Sprintf("[%d bytes more: name some paths]\n", len(text)-end)...)
}

// diffSources compares two snapshots of any kinds.
func diffSources(ctx context.Context, from, to source, comparable bool, opts DiffOpts) ([]byte, []FileChange, error) {
	old, err := from.entries(ctx)
	if err != nil {
		return nil, nil, err
	}
	now, err := to.entries(ctx)
	if err != nil {
		return nil, nil, err
	}
	only := opts.Paths
	if len(only) == 0 {
		only = nil
	}
	was, is := map[string]entry{}, map[string]entry{}
	for _, e := range old {
		was[e.Path] = e
	}
	var all []entry
	for _, e := range now {
		is[e.Path] = e
		if p, ok := was[e.Path]; !ok || !comparable || !p.is(e) {
			all = append(all, e)
		}
	}
	for _, e := range old {
		if _, ok := is[e.Path]; !ok {
			all = append(all, e)
		}
	}
	sortEntries(all)
	var text bytes.Buffer
	var changes []FileChange
	for _, e := range all {
		a, hadA := was[e.Path]
		b, hasB := is[e.Path]
		if !within(only, e.Path) || (a.Mode|b.Mode)&(fs.ModeDir|fs.ModeIrregular) != 0 {
			continue // git does not show directories either
		}
		before, err := bytesOf(ctx, from, a, hadA)
		if err != nil {
			return nil, nil, err
		}
		after, err := bytesOf(ctx, to, b, hasB)
		if err != nil {
			return nil, nil, err
		}
		if hadA && hasB && octal(a.Mode) == octal(b.Mode) && bytes.Equal(before, after) {
			continue // only the way of keeping it is another, or permissions that a diff does not show
		}
		c := FileChange{Path: e.Path, Status: status(a, b, hadA, hasB)}
		if c.Status == "T" { // as git has it: the one goes, the other comes
			c.write(&text, "D", a, entry{}, before, nil)
			c.write(&text, "A", entry{}, b, nil, after)
		} else {
			c.write(&text, c.Status, a, b, before, after)
		}
		changes = append(changes, c)
	}
	if opts.NamesOnly || len(changes) == 0 {
		return nil, changes, nil
	}
	return cut(text.Bytes(), opts.MaxBytes), changes, nil
}

func status(a, b entry, hadA, hasB bool) string {
	switch {
	case !hadA:
		return "A"
	case !hasB:
		return "D"
	case a.Mode.Type() != b.Mode.Type():
		return "T"
	}
	return "M"
}

// octal writes the mode of a file as git does.
func octal(m fs.FileMode) string {
	switch {
	case m.Type() == fs.ModeSymlink:
		return "120000"
	case m&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// side names one side of a change.
func side(prefix, path string, there bool) string {
	if !there {
		return "/dev/null"
	}
	return quotePath(prefix + path)
}

// quotePath writes a path as git does: plain, or in quotes if it holds what a line cannot.
func quotePath(p string) string {
	if !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r > '~' }) {
		return p
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(p) {
		switch c := p[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}

// write writes the change of a file, which is an addition, a deletion or neither, and counts its lines.
func (c *FileChange) write(text *bytes.Buffer, how string, a, b entry, before, after []byte) {
	fmt.Fprintf(text, "diff --git %s %s\n", quotePath("a/"+c.Path), quotePath("b/"+c.Path))
	switch {
	case how == "A":
		fmt.Fprintf(text, "new file mode %s\n", octal(b.Mode))
	case how == "D":
		fmt.Fprintf(text, "deleted file mode %s\n", octal(a.Mode))
	case octal(a.Mode) != octal(b.Mode):
		fmt.Fprintf(text, "old mode %s\nnew mode %s\n", octal(a.Mode), octal(b.Mode))
	}
	if bytes.Equal(before, after) {
		return
	}
	from, to := side("a/", c.Path, how != "A"), side("b/", c.Path, how != "D")
	if isBinary(before) || isBinary(after) {
		c.Binary = true
		fmt.Fprintf(text, "Binary files %s and %s differ\n", from, to)
		return
	}
	fmt.Fprintf(text, "--- %s\n+++ %s\n", from, to)
	added, deleted := unified(text, before, after)
	c.Added, c.Deleted = c.Added+added, c.Deleted+deleted
}

// maxDiffBytes is up to how many bytes of a file are compared by lines.
const maxDiffBytes = 16 << 20

// bytesOf reads one file of a snapshot.
func bytesOf(ctx context.Context, s source, e entry, there bool) (b []byte, err error) {
	if !there {
		return nil, nil
	}
	if g, ok := s.(gitSource); e.Size > maxDiffBytes || ok && g.absent[e.Hash] {
		return []byte("\x00" + e.Hash), nil // compared as binary
	}
	err = s.read(ctx, []entry{e}, func(_ entry, r io.Reader) (err error) {
		b, err = io.ReadAll(r)
		return err
	})
	return b, err
}
