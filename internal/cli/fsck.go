package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func fsckCmd(a *app) *cobra.Command {
	var repair bool
	c := &cobra.Command{
		Use:        "fsck [PROCESS...]",
		SuggestFor: []string{"check", "verify", "repair"},
		Short:      "check the files of histories, and mend them",
		Long: `Fsck reads every record of every history, or of those that are named, and what is derived from them, and
says what is wrong, in which file and line, and what --repair would do about it. It changes nothing.

With --repair it mends what can be mended. The record of what happened is never thrown away: each file
is copied before it is changed, what cannot be read is put aside, and what is derived is made anew. A
history that is being written is left alone.

  error    part of a history cannot be read or relied on; the exit code is 1
  warning  something derived is wrong or lost
  note     harmless, or mended by the next start

--json answers with one object.`,
		Example:           examples(`rnix fsck`, `rnix fsck night`, `rnix fsck --repair`, `rnix fsck --json | jq '.findings[]'`),
		Annotations:       exits("0 1 2 10 11 12"),
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return fsck(c.Context(), client, a.out, ipc.FsckRequest{Targets: args, Repair: repair})
		},
	}
	c.Flags().BoolVar(&repair, "repair", false, "mend what can be mended; a copy of each file is kept")
	return c
}

// fsck checks histories.
func fsck(ctx context.Context, c *ipc.Client, out *output, req ipc.FsckRequest) error {
	r, err := slowly(ctx, c, out, ipc.Fsck, req, "checking")
	if err != nil {
		return err
	}
	code := ExitOK
	if r.Errors > 0 {
		code = ExitError
	}
	if out.json() {
		out.object(&r)
		return leave(code)
	}
	var b strings.Builder
	counts := map[string]int{}
	mendable := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		counts[f.Severity]++
		if f.Repair != "" && f.Done == "" {
			mendable++
		}
		b.WriteString(findingText(out, f))
	}
	out.print(b.String())
	var found []string
	for _, s := range [][3]string{{"error", "error", "errors"}, {"warning", "warning", "warnings"}, {"note", "note", "notes"}} {
		if n := counts[s[0]]; n > 0 {
			found = append(found, plural(n, s[1], s[2]))
		}
	}
	if len(found) == 0 {
		found = []string{"nothing is wrong"}
	}
	out.talk("%s with %s: %s", plural(r.Histories, "history", "histories"), plural(r.Records, "record", "records"), strings.Join(found, ", "))
	if mendable > 0 && !r.Repaired {
		out.talk("%s can be mended with: rnix fsck --repair", number(mendable))
	}
	return leave(code)
}

// findingText renders a finding: where it is, what it is, and what becomes of it.
func findingText(out *output, f *ipc.FsckFinding) string {
	var b strings.Builder
	st := map[string]style{"error": red, "warning": yellow}[f.Severity]
	where := oneLine(f.File)
	if f.Line > 0 {
		where += fmt.Sprintf(":%d", f.Line)
	}
	fmt.Fprintf(&b, "%s %s: %s\n", out.out.paint(st, fmt.Sprintf("%-7s", f.Severity)), where, lines(f.What))
	switch {
	case f.Done != "":
		fmt.Fprintf(&b, "        done: %s\n", lines(f.Done))
	case f.Repair != "":
		fmt.Fprintf(&b, "        repair: %s\n", lines(f.Repair))
	}
	return b.String()
}
