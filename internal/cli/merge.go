package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func mergeCmd(a *app) *cobra.Command {
	var req ipc.MergeRequest
	c := &cobra.Command{
		Use:   "merge PROCESS",
		Short: "merge the work of a process in its work tree into your branch",
		Long: `Merge takes what a process has done in its git work tree (rnix run --worktree) into the branch that is
checked out where you have started it. What the process has not committed is committed first, on its branch.
Then its branch is merged: your branch is fast-forwarded if it can be, else a merge commit is made, in your
name.

It merges all or nothing. It refuses, and says which files, if you have changes that are not committed, if
files of yours that git does not know would be overwritten, or if both sides have changed the same places; then
merge by hand: git merge BRANCH. It runs no hooks, no filters and no merge drivers that the repository's own
configuration names, since the process may have written it, and signs nothing.

It refuses if git would run a program because of what has changed in .git since the process began (hooks,
settings such as core.fsmonitor), or if it would bring files that editors, shells or agents run or obey when
they start (.envrc, .mcp.json, .vscode, .claude and others): look at them with rnix diff --stat, then use
--allow-autorun.

--preview changes nothing: it shows the files that would come, and fails if the merge would be refused. The
last node of a workflow brings the work of those that it began with; see rnix compose merge.`,
		Example:           examples(`rnix merge fix`, `rnix diff 3 && rnix merge 3`, `rnix merge --preview 3`, `rnix merge --allow-autorun 3`, `rnix merge --json 3 | jq -r .commit`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: onlyFirst(completeTrees(a)),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			req.Target = args[0]
			return merge(c.Context(), client, a.out, req)
		},
	}
	mergeFlags(c, &req)
	return c
}

// mergeFlags are the flags of a merge.
func mergeFlags(c *cobra.Command, req *ipc.MergeRequest) {
	c.Flags().BoolVar(&req.AllowAutorun, "allow-autorun", false, "merge although hooks, settings or files that programs run unasked have changed")
	c.Flags().BoolVar(&req.Preview, "preview", false, "show what would be merged, and merge nothing")
}

func merge(ctx context.Context, c *ipc.Client, out *output, req ipc.MergeRequest) error {
	r, err := ipc.Call(ctx, c, ipc.Merge, req)
	if err != nil {
		return err
	}
	if r.Preview != nil {
		return showPreview(out, &r)
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	if r.Committed != "" {
		out.talk("committed on %s what was not committed there: %s", oneLine(r.Branch), short(r.Committed))
	}
	for _, u := range r.Unseen {
		out.warn("not merged: " + oneLine(u))
	}
	warnAutorun(out, r.Autorun)
	if len(r.Raw) > 0 {
		out.warn(fmt.Sprintf("written as they are in the commit, since a filter that the configuration of the repository names is not run here: %s; "+
			"to have git run it, remove each and get it back with: git -C %s checkout -- FILE", oneLine(strings.Join(r.Raw, ", ")), word(r.Repo)))
	}
	switch {
	case r.Already && len(r.Unseen) > 0:
		out.talk("%s has all of its commits already", oneLine(r.Target))
		return nil
	case r.Already:
		out.talk("%s has all of it already", oneLine(r.Target))
		return nil
	}
	how := "merged into"
	if r.Forward {
		how = "fast-forwarded"
	}
	if len(r.Files) > 0 {
		out.print(statText(out, r.Files))
	}
	out.talk("%s %s: it was at %s and is at %s; undo: git -C %s reset --keep %s", how, oneLine(r.Target), short(r.Before), short(r.Commit), word(r.Repo), short(r.Before))
	return nil
}

// showPreview says what a merge would do. The error is CONFLICT if it would be refused.
func showPreview(out *output, r *ipc.MergeResponse) error {
	p := r.Preview
	if out.json() {
		out.object(r)
	} else {
		for _, u := range r.Unseen {
			out.warn("would not be merged: " + oneLine(u))
		}
		warnAutorun(out, r.Autorun)
		if len(r.Files) > 0 {
			out.print(statText(out, r.Files))
		}
	}
	refused := func(format string, args ...any) error {
		return types.Errorf(types.ErrConflict, "", "", "a merge into "+oneLine(r.Target)+" would be refused: "+format, args...)
	}
	switch {
	case len(p.Clashes) > 0:
		return refused("both sides have changed the same places in %s", oneLine(strings.Join(p.Clashes, ", ")))
	case p.InTheWay != "":
		return refused("%s", p.InTheWay)
	case p.Working:
		return refused("PID %d still works there", r.PID)
	case out.json():
	case r.Already:
		out.talk("%s has all of it already", oneLine(r.Target))
	default:
		how := "with a merge commit"
		if r.Forward {
			how = "fast-forwarded"
		}
		first := ""
		if p.Uncommitted {
			first = "; what is not committed there would be committed on " + oneLine(r.Branch) + " first"
		}
		out.talk("nothing was changed: this would come into %s, %s%s", oneLine(r.Target), how, first)
	}
	return nil
}

// warnAutorun says what a person should look at before git, an editor or an agent is used there again.
func warnAutorun(out *output, files []ipc.AutorunFile) {
	for i := range files {
		out.warn(oneLine(files[i].Line()))
	}
}

// short returns the beginning of the name of a commit.
func short(commit string) string { return commit[:min(len(commit), 10)] }

// treePatience is how long a look at a work tree is waited for at the end of a run.
const treePatience = 20 * time.Second

// tree looks at the work tree of the process that is being watched; nil if it has none.
func (w *watch) tree(ctx context.Context, c *ipc.Client) *ipc.Worktree {
	if w.spawn.Worktree == nil || w.out.format == asText && !w.out.talks() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	t, err := ipc.Call(ctx, c, ipc.ShowWorktree, ipc.TargetRequest{Target: w.spawn.UUID.String()})
	if err != nil {
		return w.spawn.Worktree // where it is
	}
	return &t
}

// showTree says what there is in a work tree and how to go on.
func showTree(out *output, t *ipc.Worktree) {
	if t == nil || out.format != asText {
		return
	}
	name := t.PID.String()
	for _, u := range t.Unseen {
		out.warn("in its work tree " + oneLine(t.Dir) + ", in no diff and no merge: " + oneLine(u))
	}
	if t.Problem != "" {
		out.warn("it cannot be told what is changed in its work tree " + oneLine(t.Dir) + ": " + oneLine(t.Problem))
		return
	}
	if len(t.Files) == 0 && len(t.Unseen) > 0 {
		return
	}
	if len(t.Files) == 0 {
		out.talk("[kernel] nothing is changed in its work tree %s, on %s; remove it with: rnix worktree rm %s", oneLine(t.Dir), branchText(t), name)
		return
	}
	state := plural(t.Commits, "commit", "commits")
	switch {
	case t.Uncommitted && t.Commits == 0:
		state = "not committed"
	case t.Uncommitted:
		state += ", and more that is not committed"
	}
	out.talk("[kernel] %s changed on %s (%s), in %s", plural(len(t.Files), "file", "files"), branchText(t), state, oneLine(t.Dir))
	for _, l := range [][2]string{{"rnix diff " + name, "shows what"}, {"rnix merge " + name, "takes it into your branch"}, {"rnix worktree pr " + name, "says how to make a pull request"},
		{"rnix worktree rm " + name, "throws it away; what was in it can be got back"}} {
		out.say(fmt.Sprintf("  %-24s %s", l[0], l[1]))
	}
}

// branchText names what is checked out in a work tree.
func branchText(t *ipc.Worktree) string {
	if t.Branch == "" {
		return "no branch"
	}
	return "branch " + oneLine(t.Branch)
}
