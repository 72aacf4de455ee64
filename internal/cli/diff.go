package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/ipc"
)

func diffCmd(a *app) *cobra.Command {
	var req ipc.DiffRequest
	c := &cobra.Command{
		Use:        "diff PROCESS [STEP [STEP]] [-- PATH...]",
		SuggestFor: []string{"changes"},
		Short:      "show what a process has changed in its files",
		Long: `Diff shows what is different in the files of a process, as a unified diff: with one step, what that
step has changed; with two, what has changed from the end of the first to the end of the second, where
0 is before the first step; with none, what has changed from before its first change until now, or in its
own git work tree, since its branch began. Of a process that has ended that is until the end of its last
step: what has changed since is not its work, and --now shows it, too. Files ignored by git are skipped.

A step that has changed nothing has the files of the step before it. What others have changed meanwhile in
the same directory is among the changes of the step during which it was found. PATHs are absolute or
relative to the directory of the process.

Without steps it also warns of files that git, editors, shells or agents run or obey unasked, and that have
changed since the process began: hooks and settings in .git, .envrc, .mcp.json, .vscode, .claude and others.

A terminal gets colours, and no control characters; otherwise the text is what git apply takes, but for
binary files: their bytes are not in it, and git apply --exclude=PATH leaves them out.`,
		Example:           examples(`rnix diff 3`, `rnix diff 3 5`, `rnix diff night 2 7 -- src`, `rnix diff --stat 3`, `rnix diff --now 3`, `rnix diff 3 | git apply -R`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := diffArgs(c, args, &req); err != nil {
				return err
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return diffFiles(c.Context(), client, a.out, req)
		},
	}
	c.Flags().BoolVar(&req.Stat, "stat", false, "the list of files and how many lines have changed")
	c.Flags().BoolVar(&req.Now, "now", false, "until now, also of a process that has ended")
	c.Flags().IntVar(&req.MaxBytes, "max-bytes", ipc.DiffBytes, fmt.Sprintf("show so much of the text, at most %d", ipc.MaxDiffBytes))
	return c
}

// diffArgs reads the process, the steps and, behind "--", the paths.
func diffArgs(c *cobra.Command, args []string, req *ipc.DiffRequest) error {
	if n := c.ArgsLenAtDash(); n >= 0 {
		args, req.Paths = args[:n], args[n:]
	}
	if err := argsOf(1, 3, process)(c, args); err != nil {
		return err
	}
	if req.MaxBytes < 1 || req.MaxBytes > ipc.MaxDiffBytes {
		return usagef("name some paths: rnix diff "+args[0]+" -- PATH...", "--max-bytes %d is not between 1 and %d", req.MaxBytes, ipc.MaxDiffBytes)
	}
	req.Target = args[0]
	steps := make([]int, len(args)-1)
	for i, arg := range args[1:] {
		n, err := strconv.Atoi(arg)
		if err != nil && len(args) == 2 && !strings.ContainsAny(arg, "/.") {
			return usagef("two processes are compared by: rnix compare "+shellWord(args[0])+" "+shellWord(arg)+" (their answers: with --results); paths stand behind --, as in: rnix diff "+args[0]+" -- PATH",
				"diff takes one process, and %q is not the number of a step", arg)
		}
		if err != nil || n < 0 {
			return usagef("paths stand behind --, as in: rnix diff "+args[0]+" -- PATH", "step %q is not a number of at least 0", arg)
		}
		steps[i] = n
	}
	if req.Now && len(steps) > 0 {
		return usagef("rnix diff --now "+args[0], "--now is for all that has changed, and a step was named")
	}
	switch len(steps) {
	case 1:
		if steps[0] < 1 {
			return usagef("rnix diff "+args[0]+" 0 1 shows what the first step has changed", "step 0 is before the first step and has changed nothing")
		}
		req.From, req.To = steps[0]-1, &steps[0]
	case 2:
		req.From, req.To = steps[0], &steps[1]
	}
	return nil
}

// diffFiles shows a difference.
func diffFiles(ctx context.Context, c *ipc.Client, out *output, req ipc.DiffRequest) error {
	r, err := ipc.Call(ctx, c, ipc.DiffFiles, req)
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	switch {
	case len(r.Files) == 0:
		out.talk("nothing is different between %s and %s", sideText(&r.From), sideText(&r.To))
	case req.Stat:
		out.print(statText(out, r.Files))
	default:
		out.diff(r.Text())
		warnBinary(out, r.Files)
	}
	for _, u := range r.Unseen {
		out.warn("not in it: " + oneLine(u))
	}
	warnAutorun(out, r.Autorun)
	if r.Missing > 0 {
		out.warn(fmt.Sprintf("%s more of the text are not shown: name some paths (rnix diff %s -- PATH), list the files with --stat, or give a larger --max-bytes", size(r.Missing), req.Target))
	}
	if n := r.To.Broken; n > 0 {
		out.warn(fmt.Sprintf("step %d did not end, so what it has changed is not among this: rnix diff --now %s shows the files as they are", n, req.Target))
	}
	for _, f := range []*ipc.FilesAt{&r.From, &r.To} {
		if f.Limited != "" {
			out.warn(fmt.Sprintf("%s: not everything was kept: %s", sideText(f), oneLine(f.Limited)))
		}
	}
	return nil
}

// warnBinary says of a text that is piped what git apply cannot take.
func warnBinary(out *output, files []ipc.FileChange) {
	var names []string
	for i := range files {
		if files[i].Binary {
			names = append(names, oneLine(files[i].Path))
		}
	}
	if len(names) > 0 && !out.out.terminal {
		out.warn("the bytes of binary files are not in it, and git apply refuses all of it unless each is left out (git apply --exclude=PATH); copy them: " + strings.Join(names, ", "))
	}
}

// sideText names one side of a difference.
func sideText(f *ipc.FilesAt) string {
	switch {
	case f.Base != "":
		return "the beginning of its branch (" + short(f.Base) + ")"
	case f.Now:
		return "now"
	case f.Step == 0:
		return "the start"
	}
	return "the end of step " + strconv.Itoa(f.Step)
}

// diff writes a unified diff: in colours and clean for people, else as it is.
func (o *output) diff(data []byte) {
	if !o.out.terminal && !o.out.color {
		o.print(string(data))
		return
	}
	var b strings.Builder
	hunk := false // a line that begins with --- or +++ is a header before the first hunk, and text in it
	for line := range strings.Lines(debug.Sanitize(string(data))) {
		text := strings.TrimSuffix(line, "\n")
		st := plain
		switch {
		case strings.HasPrefix(text, "@@"):
			hunk, st = true, cyan
		case strings.HasPrefix(text, "diff --git "):
			hunk, st = false, bold
		case !hunk:
			st = bold
		case strings.HasPrefix(text, "+"):
			st = green
		case strings.HasPrefix(text, "-"):
			st = red
		}
		b.WriteString(o.out.paint(st, text) + "\n")
	}
	o.print(b.String())
}

// statText lists files that are different, and how many lines.
func statText(out *output, files []ipc.FileChange) string {
	var b strings.Builder
	added, deleted := 0, 0
	for i := range files {
		f := &files[i]
		lines := "binary"
		if !f.Binary {
			lines = fmt.Sprintf("%s %s", out.out.paint(green, fmt.Sprintf("+%d", f.Added)), out.out.paint(red, fmt.Sprintf("-%d", f.Deleted)))
		}
		fmt.Fprintf(&b, "%s  %s  %s\n", f.Status, oneLine(f.Path), lines)
		added += f.Added
		deleted += f.Deleted
	}
	out.talk("%s: %s added, %s deleted", plural(len(files), "file", "files"), plural(added, "line", "lines"), plural(deleted, "line", "lines"))
	return b.String()
}
