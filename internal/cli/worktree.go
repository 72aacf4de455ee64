package cli

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func worktreeCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "worktree",
		Short: "the git work trees of processes",
		Long: `A process that is started with --worktree works in its own git work tree, on its own branch, in
the data directory. It stays when the process has ended, and a resumed process works in it again. See what is
in it with rnix diff, and bring it into your branch with rnix merge. Throw it away with rnix worktree rm, which
keeps what was in it and prints the command that gives it back; once merged, that removes its branch, too.`,
		Example: examples(`rnix run --worktree --name fix "Fix issue 12"`, `rnix worktree ls`, `cd "$(rnix worktree path fix)"`, `rnix diff fix`, `rnix merge fix`, `rnix worktree rm fix`),
	}
	return family(c, worktreeListCmd(a), worktreePathCmd(a), worktreePRCmd(a), worktreeRemoveCmd(a))
}

// completeTrees offers the processes that have a work tree.
func completeTrees(a *app) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.ListWorktrees, ipc.WorktreesRequest{NamesOnly: true})
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for i := range r.Worktrees {
			w := &r.Worktrees[i]
			word := w.Name
			if word == "" {
				word = w.PID.String()
			}
			out = append(out, cobra.CompletionWithDesc(oneLine(word), oneLine(w.Branch)+": "+cut(oneLine(w.Intent), 50)))
		}
		return out
	})
}

func worktreeListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "list the work trees, and where they overlap",
		Long: `Ls lists the git work trees that processes have, the oldest first: their branch, how many files are changed
since their base, a + if some of that is not committed, "merged" if the branch that it began on has all of it,
and their directory. Below, it says which of them have changed the same files, so that merging both may
conflict.`,
		Example:     examples(`rnix worktree ls`, `rnix worktree ls --json | jq -r 'select(.overlaps) | .branch'`),
		Annotations: exits("0 1 2 12"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return worktreeList(c.Context(), client, a.out)
		},
	}
}

func worktreeList(ctx context.Context, c *ipc.Client, out *output) error {
	r, err := ipc.Call(ctx, c, ipc.ListWorktrees, ipc.WorktreesRequest{})
	if err != nil {
		return err
	}
	if out.json() {
		for i := range r.Worktrees {
			out.object(&r.Worktrees[i])
		}
		return nil
	}
	if len(r.Worktrees) == 0 {
		out.talk("no process has a git work tree; one is made with: rnix run --worktree")
		return nil
	}
	cols := []column{{name: "PID", right: true}, {name: "NAME", max: 20, drop: 2}, {name: "STATE", drop: 3}, {name: "BRANCH", max: 40}, {name: "FILES", right: true}, {name: "DIR"}}
	var rows [][]cell
	for i := range r.Worktrees {
		w := &r.Worktrees[i]
		files := fmt.Sprint(len(w.Files))
		switch {
		case w.Gone:
			files = "gone"
		case w.Problem != "":
			files = "?"
		case w.Uncommitted:
			files += "+"
		case w.Merged:
			files += " merged"
		}
		rows = append(rows, []cell{text(w.PID.String()), text(oneLine(w.Name)), text(w.State), text(oneLine(w.Branch)), text(files), text(oneLine(w.Dir))})
	}
	out.table(cols, rows)
	for i := range r.Worktrees {
		w := &r.Worktrees[i]
		if w.Problem != "" {
			out.warn(fmt.Sprintf("PID %d: %s", w.PID, oneLine(w.Problem)))
		}
	}
	for _, line := range overlaps(r.Worktrees) {
		out.print(line + "\n")
	}
	return nil
}

// overlaps says which files several work trees have changed, in a line for all files that the same ones have.
func overlaps(trees []ipc.Worktree) []string {
	by := map[string][]types.PID{} // of each file in each repository
	for i := range trees {
		w := &trees[i]
		for _, o := range w.Overlaps {
			for _, path := range o.Paths {
				for _, pid := range []types.PID{w.PID, o.PID} {
					if key := w.Repo + "\x00" + path; !slices.Contains(by[key], pid) {
						by[key] = append(by[key], pid)
					}
				}
			}
		}
	}
	files := map[string][]string{} // by who has changed them
	for key, pids := range by {
		slices.Sort(pids)
		repo, path, _ := strings.Cut(key, "\x00")
		var who []string
		order := repo
		for _, pid := range pids {
			who = append(who, "PID "+pid.String())
			order += fmt.Sprintf("\x00%20d", pid)
		}
		last := len(who) - 1
		all := "all"
		if len(who) == 2 {
			all = "both"
		}
		names := strings.Join(who[:last], ", ") + " and " + who[last] + " have " + all + " changed: "
		files[order+"\x00"+names] = append(files[order+"\x00"+names], path)
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(files)) {
		slices.Sort(files[key])
		out = append(out, key[strings.LastIndexByte(key, 0)+1:]+someNames(files[key]))
	}
	return out
}

// someNames joins the names of a few files.
func someNames(paths []string) string {
	const most = 5
	var b strings.Builder
	for i, p := range paths {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(paths)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(oneLine(p))
	}
	return b.String()
}

// showWorktree asks for one work tree.
func showWorktree(a *app, c *cobra.Command, target string) (ipc.Worktree, error) {
	client, err := a.connect(c.Context())
	if err != nil {
		return ipc.Worktree{}, err
	}
	return ipc.Call(c.Context(), client, ipc.ShowWorktree, ipc.TargetRequest{Target: target})
}

func worktreePathCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "path PROCESS",
		Short:             "print the directory of a work tree",
		Long:              `Path prints the directory of the work tree of a process; with --json all that is known of the work tree.`,
		Example:           examples(`cd "$(rnix worktree path fix)"`, `git -C "$(rnix worktree path 3)" log --oneline`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: onlyFirst(completeTrees(a)),
		RunE: func(c *cobra.Command, args []string) error {
			w, err := showWorktree(a, c, args[0])
			if err != nil {
				return err
			}
			if a.out.json() {
				a.out.object(&w)
				return nil
			}
			if w.Gone {
				return types.Errorf(types.ErrNotFound, "Worktree", w.Dir, "the work tree is not there any more; its branch is %s, in %s", w.Branch, w.Repo)
			}
			a.out.print(w.Dir + "\n")
			return nil
		},
	}
}

func worktreePRCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "pr PROCESS",
		Short: "print the commands that make a pull request of a work tree",
		Long: `Pr prints the commands that commit what is not committed yet, push the branch of a work tree, and open a
pull request for it, as far as the host is known, with what was to be done, what the agent says of it and which
files are changed as its description. It runs none of them: read them first, then run them, or pipe them into
sh.`,
		Example:           examples(`rnix worktree pr fix`, `rnix worktree pr fix | sh -e`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: onlyFirst(completeTrees(a)),
		RunE: func(c *cobra.Command, args []string) error {
			w, err := showWorktree(a, c, args[0])
			if err != nil {
				return err
			}
			body := prBody(&w, detailOf(a, c, &w))
			lines, err := pullRequest(&w, body)
			if err != nil {
				return err
			}
			if a.out.json() {
				a.out.object(struct {
					UUID     types.UUID `json:"uuid"`
					Branch   string     `json:"branch"`
					Body     string     `json:"body"`
					Commands []string   `json:"commands"`
				}{w.UUID, w.Branch, body, lines})
				return nil
			}
			a.out.print(strings.Join(lines, "\n") + "\n")
			return nil
		},
	}
}

// detailOf returns all that is known of the process of a work tree; nil if its history is not there any more.
func detailOf(a *app, c *cobra.Command, w *ipc.Worktree) *ipc.ProcDetail {
	client, err := a.connect(c.Context())
	if err != nil {
		return nil
	}
	p, err := ipc.Call(c.Context(), client, ipc.GetProcDetail, ipc.TargetRequest{Target: w.UUID.String()})
	if err != nil {
		return nil
	}
	return &p
}

// pullRequest returns the commands that make a pull request of a work tree.
func pullRequest(w *ipc.Worktree, body string) ([]string, error) {
	switch {
	case w.Problem != "":
		return nil, types.Errorf(types.ErrConflict, "Worktree", w.Dir, "%s", w.Problem)
	case w.Branch == "":
		return nil, types.Errorf(types.ErrInvalid, "Worktree", w.Dir, "no branch is checked out there: make one with git -C %s switch -c NAME", word(w.Dir))
	case w.Remote == "":
		return nil, types.Errorf(types.ErrNotFound, "Worktree", w.Repo, "the repository has no remote to push to: add one with git -C %s remote add origin URL", word(w.Repo))
	case len(w.Files) == 0:
		return nil, types.Errorf(types.ErrInvalid, "Worktree", w.Dir, "nothing was changed there since its base")
	}
	title := w.Intent
	if title == "" {
		title = w.Branch
	}
	title = cut(oneLine(title), 72)
	dir := w.Dir
	if w.Gone {
		dir = w.Repo
	}
	git := "git -C " + word(dir)
	var out []string
	if w.Uncommitted {
		out = append(out, git+" add -A", git+" commit -m "+word(title))
	}
	out = append(out, git+" push -u "+word(w.Remote)+" "+word(w.Branch))
	host := ""
	if u, err := url.Parse(w.RemoteURL); err == nil && u.Host != "" {
		host = u.Hostname()
	} else if user, _, ok := strings.Cut(w.RemoteURL, ":"); ok && !filepath.IsAbs(w.RemoteURL) {
		host = user[strings.LastIndexByte(user, '@')+1:]
	}
	base := ""
	if w.BaseName != "" && w.BaseName != "HEAD" && w.BaseName != w.Branch {
		base = strings.TrimPrefix(w.BaseName, w.Remote+"/")
	}
	switch {
	case strings.Contains(host, "github"):
		out = append(out, "cd "+word(dir)+" && gh pr create --head "+word(w.Branch)+optional(" --base ", base)+" --title "+word(title)+" --body "+word(body))
	case strings.Contains(host, "gitlab"):
		out = append(out, "cd "+word(dir)+" && glab mr create --source-branch "+word(w.Branch)+optional(" --target-branch ", base)+" --title "+word(title)+" --description "+word(body))
	default:
		out = append(out, "# then open a pull request of "+oneLine(w.Branch)+" where you review changes, with a description such as:")
		for line := range strings.SplitSeq(body, "\n") {
			out = append(out, strings.TrimRight("#   "+line, " "))
		}
	}
	return out, nil
}

func optional(name, value string) string {
	if value == "" {
		return ""
	}
	return name + word(value)
}

// word writes a text for a shell, in quotes if it needs them.
func word(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:@%,", r)
	}
	if s != "" && s[0] != '-' && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func worktreeRemoveCmd(a *app) *cobra.Command {
	var req ipc.RemoveWorktreeRequest
	c := &cobra.Command{
		Use:        "rm PROCESS...",
		Aliases:    []string{"remove"},
		SuggestFor: []string{"delete", "prune"},
		Short:      "remove the work trees of processes that have ended",
		Long: `Rm removes the work tree of each process. Before that it keeps what is in it in the data directory, as a
commit: changed and untracked files, small ignored ones, what is staged, and commits that no
branch holds; it prints the command that gives that back. The branch stays, unless rnix has named it and all
its commits are on another branch, a tag or a remote. It refuses, and removes nothing, while a process
works there or is suspended there, while the work tree is locked, if it holds another repository or work in a
submodule, if files over 1 MiB are in it that git ignores (--lose-ignored gives them up), or if something
else could not be kept. rnix gc does the same when the history of a process goes, and gives such files up.`,
		Example:           examples(`rnix worktree rm fix`, `rnix worktree rm 3 4`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, -1, process),
		ValidArgsFunction: completeTrees(a),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			var first error
			for _, target := range args {
				first = firstError(a.out, first, worktreeRemove(c.Context(), client, a.out, req, target), len(args) > 1)
			}
			return first
		},
	}
	c.Flags().BoolVar(&req.LoseIgnored, "lose-ignored", false, "also if files that git ignores are too large to be kept, and lost with it")
	c.Flags().BoolVar(&req.Suspended, "suspended", false, "also if the process is suspended; it can then be resumed as a fork elsewhere")
	return c
}

func worktreeRemove(ctx context.Context, c *ipc.Client, out *output, req ipc.RemoveWorktreeRequest, target string) error {
	req.Target = target
	r, err := ipc.Call(ctx, c, ipc.RemoveWorktree, req)
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	out.talk("removed %s%s", oneLine(r.Dir), with("; its branch stays: ", oneLine(r.Branch))+with("; its branch is removed too, since no commit is on it alone: ", oneLine(r.Dropped))+with("; its branch was removed before: ", oneLine(r.BranchGone)))
	if r.Rescued != "" {
		out.talk("what was in it is got back with: %s", oneLine(r.Rescued))
	}
	for _, l := range r.Lost {
		out.warn(oneLine(l))
	}
	if r.Left != "" {
		out.warn("not removed: what is " + oneLine(r.Left))
	}
	return nil
}
