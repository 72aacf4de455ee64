package cli

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func restoreCmd(a *app) *cobra.Command {
	o := &restoreOptions{app: a}
	c := &cobra.Command{
		Use:        "restore PROCESS --step N [PATH...]",
		SuggestFor: []string{"checkout", "revert", "undo", "rollback", "rewind"},
		Short:      "bring files back as they were at the end of a step",
		Long: `Restore puts the directory of a process back to how it was at the end of a step, or, with --to, writes
those files into a new directory and changes nothing else. Step 0 is before the first change. With PATHs,
absolute or relative to the directory of the process, only these files and directories.

What is there now is kept first, and the command that brings it back is printed; files that were not there
then are removed if they are kept. What git ignores stays as it is. Nothing is done while a process is at
work in the directory: pause it first. The process itself is not changed: what it has said and done stays
in its record, so it may have to be told, with: rnix resume --new-input.

On a terminal you are asked first. Elsewhere --force is needed, and --dry-run shows what would be done.`,
		Example: examples(`rnix restore 3 --step 5`, `rnix restore 3 --step 5 --to /tmp/before`, `rnix restore night --step 2 src/main.go`,
			`rnix restore 3 --step 0 --dry-run`, `rnix restore 3 --snapshot 1f2e3d4c --force`),
		Annotations:       exits("0 1 2 5 6 10 11 12"),
		Args:              argsOf(1, -1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE:              o.run,
	}
	f := c.Flags()
	f.SortFlags = false
	f.IntVar(&o.step, "step", 0, "restore the files as they were at the end of this step; 0 = before the first")
	f.StringVar(&o.req.Snapshot, "snapshot", "", "a snapshot instead of a step, by the beginning of its id: what a restore has kept")
	f.StringVar(&o.to, "to", "", "write the files into this directory, which is made or must be empty")
	f.BoolVarP(&o.req.DryRun, "dry-run", "n", false, "only show what would be done")
	f.BoolVar(&o.force, "force", false, "do not ask")
	_ = c.MarkFlagDirname("to")
	return c
}

// restoreOptions are the flags of restore.
type restoreOptions struct {
	app   *app
	req   ipc.RestoreRequest
	step  int
	to    string
	force bool
}

func (o *restoreOptions) run(c *cobra.Command, args []string) error {
	a, req := o.app, &o.req
	req.Target, req.Paths = args[0], args[1:]
	stepped := c.Flags().Changed("step")
	switch {
	case stepped == (req.Snapshot != ""):
		return usagef("give one of --step N and --snapshot ID", "which files are to come back?")
	case stepped && o.step < 0:
		return usagef("", "--step %d is negative; 0 is before the first step", o.step)
	case o.to != "" && req.DryRun:
		return usagef("", "--dry-run is about the directory of the process; with --to everything is written")
	case o.to != "":
		if req.To = o.to; !filepath.IsAbs(o.to) {
			req.To = filepath.Join(a.host.Dir, o.to)
		}
	}
	if stepped {
		req.Step = &o.step
	}
	client, err := a.connect(c.Context())
	if err != nil {
		return err
	}
	if req.To == "" && !req.DryRun && !o.force {
		if err := a.askRestore(c.Context(), client, *req); err != nil {
			return err
		}
	}
	r, err := ipc.Call(c.Context(), client, ipc.RestoreFiles, *req)
	if err != nil {
		return err
	}
	showRestored(a.out, &r, req)
	return nil
}

// askRestore says what a restore is going to do and asks whether it shall. Where no person is, the error says
// that nobody has decided.
func (a *app) askRestore(ctx context.Context, c *ipc.Client, req ipc.RestoreRequest) error {
	req.DryRun = true
	r, err := ipc.Call(ctx, c, ipc.RestoreFiles, req) // what cannot be restored is said first
	if err != nil {
		return err
	}
	if a.out.json() || !a.out.err.terminal || !terminal(a.host.In) {
		return &exitError{ExitBlocked, withMend(types.Errorf(types.ErrInvalid, "RestoreFiles", "", "a restore overwrites files, and there is no terminal to ask at"),
			"add --force, or --dry-run to see what it would do")}
	}
	if len(r.Changes) > 0 {
		a.out.print(changeText(&r, a.out.verbose, map[string]string{"A": "to write", "D": "to remove", "M": "to write", "T": "to write"}))
	}
	a.out.say(fmt.Sprintf("restore %s, as %s? %s will be written or removed, and what is there now is kept [y/N]",
		oneLine(r.Dir), restoredName(&req), plural(len(r.Changes), "file", "files")))
	in := bufio.NewScanner(a.host.In)
	if in.Scan() {
		switch strings.ToLower(strings.TrimSpace(in.Text())) {
		case "y", "yes":
			return nil
		}
	}
	return &exitError{ExitCancelled, types.Errorf(types.ErrCancelled, "RestoreFiles", "", "nothing was done")}
}

// changesShown is how many files are listed where nobody asks for all.
const changesShown = 40

// changeText lists files, with what is done to each.
func changeText(r *ipc.RestoreResponse, all bool, words map[string]string) string {
	var b strings.Builder
	shown := 0
	for i := range r.Changes {
		f := &r.Changes[i]
		if keptAs(r, f.Path) {
			continue
		}
		if shown++; shown > changesShown && !all {
			continue
		}
		fmt.Fprintf(&b, "%-9s  %s\n", words[f.Status], oneLine(f.Path))
	}
	if more := shown - changesShown; more > 0 && !all {
		fmt.Fprintf(&b, "and %s more; -v lists them\n", number(more))
	}
	return b.String()
}

// keptAs reports whether a file was left as it is.
func keptAs(r *ipc.RestoreResponse, path string) bool {
	for _, k := range r.Kept {
		if strings.HasPrefix(k, strconv.Quote(path)+":") {
			return true
		}
	}
	return false
}

// showRestored says what was done, and how it is undone.
func showRestored(out *output, r *ipc.RestoreResponse, req *ipc.RestoreRequest) {
	if out.json() {
		out.object(r)
		return
	}
	words := map[string]string{"A": "wrote", "D": "removed", "M": "wrote", "T": "wrote"}
	if req.DryRun {
		words = map[string]string{"A": "to write", "D": "to remove", "M": "to write", "T": "to write"}
	}
	out.print(changeText(r, out.verbose, words))
	for _, k := range r.Kept {
		out.print(fmt.Sprintf("%-9s  %s\n", "left", oneLine(k)))
	}
	if r.Files.Limited != "" {
		out.warn("not everything was kept in that snapshot: " + oneLine(r.Files.Limited))
	}
	switch from := restoredName(req); {
	case req.DryRun:
		out.talk("%s would be written or removed in %s", plural(len(r.Changes), "file", "files"), oneLine(r.Dir))
		return
	case req.To == "" && r.Written+r.Removed+r.Dirs == 0:
		out.talk("%s is as %s already; nothing was changed", oneLine(r.Dir), from)
		return
	default:
		out.talk("restored in %s, as %s: %s", oneLine(r.Dir), from, counts(r))
	}
	if r.Undo != "" {
		out.say("  what was there before comes back with: " + oneLine(r.Undo))
	}
}

// restoredName says from when files are.
func restoredName(req *ipc.RestoreRequest) string {
	switch {
	case req.Step == nil:
		return "in snapshot " + oneLine(req.Snapshot)
	case *req.Step == 0:
		return "before the first change"
	}
	return "at the end of step " + strconv.Itoa(*req.Step)
}

func counts(r *ipc.RestoreResponse) string {
	parts := []string{number(r.Written) + " written"}
	if r.Removed > 0 {
		parts = append(parts, number(r.Removed)+" removed")
	}
	if r.Written+r.Removed == 0 && r.Dirs > 0 {
		parts = append(parts, plural(r.Dirs, "directory", "directories")+" made or removed")
	}
	if n := len(r.Kept); n > 0 {
		parts = append(parts, number(n)+" left alone")
	}
	return strings.Join(parts, ", ")
}
