package files

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/internal/service"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

// autoruns says what other programs run or obey unasked in a directory where a process works, or in its repository, that is not as it was when the
// process began; with it those of some changes of its files that are such files. tree is its work tree; zero = it has none.
func autoruns(ctx context.Context, s *Service, id types.UUID, dir string, tree workspace.Tree, changes []workspace.FileChange) []ipc.AutorunFile {
	list, known, err := workspace.Autoruns(ctx, s.Snapshots.keeper, dir, lineOf(s, id))
	var out []ipc.AutorunFile
	if err != nil {
		out = append(out, ipc.AutorunFile{File: dir, Change: "unknown", Note: "hooks and settings that the process may have changed cannot be told: " + err.Error()})
	}
	for i := range list {
		e := &list[i]
		out = append(out, ipc.AutorunFile{File: e.File, Change: e.Change, Settings: e.Settings, Runs: e.Runs, Work: e.Tree, Note: noteOf(e)})
	}
	if !known && tree.Programs != "" { // of an earlier version
		out = append(out, s.Trees.news(ctx, id, tree)...)
	}
	return withStarts(out, changes)
}

// lineOf is a history and those of which it is a fork, the oldest last.
func lineOf(s *Service, id types.UUID) []types.UUID {
	line := []types.UUID{id}
	for len(line) < service.MaxAncestors {
		info, ok := s.Histories.Get(line[len(line)-1])
		if !ok || info.OriginUUID == (types.UUID{}) {
			break
		}
		line = append(line, info.OriginUUID)
	}
	return line
}

// withStarts adds those of some changed files that other programs act on when they start, unless they are there.
func withStarts(out []ipc.AutorunFile, changes []workspace.FileChange) []ipc.AutorunFile {
	for _, c := range changes {
		if !workspace.StartsSomething(c.Path) || slices.ContainsFunc(out, func(f ipc.AutorunFile) bool { return f.Work && f.File == c.Path }) {
			continue
		}
		e := workspace.Autorun{File: c.Path, Change: "changed", Tree: true}
		switch c.Status {
		case "A":
			e.Change = "created"
		case "D":
			e.Change = "removed"
		}
		out = append(out, ipc.AutorunFile{File: e.File, Change: e.Change, Work: true, Note: noteOf(&e)})
	}
	return out
}

// noteOf says who acts on a file, and what a person should do.
func noteOf(e *workspace.Autorun) string {
	quoted := plumbing.ShellQuote(e.File)
	inHooks := strings.HasPrefix(filepath.Base(filepath.Dir(e.File)), "hooks")
	switch base := filepath.Base(e.File); {
	case e.Change == "removed":
		return "other programs ran or obeyed it, and do no more"
	case len(e.Settings) > 0 && e.Runs:
		return fmt.Sprintf("by these settings your next git command may run programs: %s; look at them with git config --file %s --list, and remove each that you do not want with --unset", strings.Join(e.Settings, ", "), quoted)
	case len(e.Settings) > 0 || !e.Tree && base == "config":
		return fmt.Sprintf("git obeys it (%s); look at it with git config --file %s --list", strings.Join(e.Settings, ", "), quoted)
	case e.Runs:
		return "git runs it; read it, and remove it if you do not want it"
	case !e.Tree && inHooks:
		return "git does not run it as it is, since it is not executable or core.hooksPath names another directory; read it"
	case !e.Tree:
		return "git obeys it; read it, and remove it if you do not want it"
	}
	return "an editor, a shell or an agent that starts there may run or obey it; read it first"
}

// blocking returns what a merge must not pass over in silence: what git would run already, and what the merge would bring that others act on.
func blocking(list []ipc.AutorunFile, incoming []workspace.FileChange) (out []ipc.AutorunFile) {
	for _, f := range list {
		comes := slices.ContainsFunc(incoming, func(c workspace.FileChange) bool { return c.Path == f.File && c.Status != "D" })
		if !f.Work && f.Runs || f.Work && comes {
			out = append(out, f)
		}
	}
	return out
}

// refuseAutorun is the error of a merge that would let programs run unasked.
func refuseAutorun(repo string, list []ipc.AutorunFile, pid types.PID) error {
	const most = 5
	var names []string
	for _, f := range list[:min(len(list), most)] {
		name := f.Change + " " + f.File
		if len(f.Settings) > 0 {
			name += " (" + strings.Join(f.Settings, ", ") + ")"
		}
		names = append(names, name)
	}
	if n := len(list) - most; n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return types.Errorf(types.ErrConflict, "Merge", repo, "nothing was merged, since git, an editor or an agent would run or obey unasked what has changed since the process began: %s; "+
		"rnix diff --stat %d says what each does; undo what you do not want, or accept all of it with: rnix merge --allow-autorun %d", strings.Join(names, ", "), pid, pid)
}
