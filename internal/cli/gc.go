package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func gcCmd(a *app) *cobra.Command {
	o := &gcOptions{app: a}
	c := &cobra.Command{
		Use:        "gc",
		SuggestFor: []string{"prune", "clean", "purge", "archive"},
		Short:      "archive histories that are old or too many, or delete them",
		Long: `Gc takes away the histories of processes that have ended and are over one of the limits of
config.yaml: older than gc.retention_days (30), or more than gc.max_entries (500). The oldest go first; 0
switches a limit off. The daemon does the same every gc.interval_seconds (3600).

Each history is packed into one file, from which it is put back with: rnix unarchive. With --delete, or
gc.mode: delete in config.yaml, it is removed, and only a line says that it was there. Never taken are
what is running or suspended, what such a process was forked from or descends from, and what is marked by:
rnix keep. The directory of an archived fork and the git worktree of an archived process go too: unarchive puts
them back as they were. A directory that cannot be kept whole stays where it is, and gc says why. When a
history is deleted, the work in its directory is rescued. Archives stay for ever, or for gc.archive_days. To
delete one history, use: rnix rm.

More than 100 histories at once are confirmed on a terminal; without one, --force is needed. --json
answers with one object and does not ask.

Columns: PID of the last run; UUID, as much of it as tells it from the others; NAME; ENDED; AGE; SIZE; WHY.`,
		Example:     examples(`rnix gc --dry-run`, `rnix gc`, `rnix gc --force`, `rnix gc --dry-run --json | jq -r '.candidates[].uuid'`),
		Annotations: exits("0 1 2 11 12"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return o.run(c.Context(), client, time.Now())
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.req.DryRun, "dry-run", "n", false, "only show what would go")
	f.BoolVarP(&o.force, "force", "f", false, "do not ask, however many go")
	f.BoolVar(&o.req.Delete, "delete", false, "delete instead of archiving, for good")
	return c
}

// gcOptions are the flags of gc.
type gcOptions struct {
	app   *app
	req   ipc.GCRequest
	force bool
}

func (o *gcOptions) run(ctx context.Context, c *ipc.Client, now time.Time) error {
	out := o.app.out
	if !o.req.DryRun && !o.force && !out.json() {
		if err := o.confirm(ctx, c); err != nil {
			return err
		}
	}
	doing := "archiving"
	switch {
	case o.req.DryRun:
		doing = "looking at histories"
	case o.req.Delete:
		doing = "deleting"
	}
	r, err := slowly(ctx, c, out, ipc.GC, o.req, doing)
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	showGC(out, &r, now)
	return nil
}

// confirm asks whether so many are to go. Where nobody can be asked, it refuses.
func (o *gcOptions) confirm(ctx context.Context, c *ipc.Client) error {
	plan, err := slowly(ctx, c, o.app.out, ipc.GC, ipc.GCRequest{DryRun: true, Delete: o.req.Delete}, "looking at histories")
	if err != nil {
		return err
	}
	n := len(plan.Candidates)
	if n <= plan.ConfirmAbove {
		return nil
	}
	what := fmt.Sprintf("%s (%s) would be %s", plural(n, "history", "histories"), size(sizeOf(plan.Candidates)), past(plan.Mode))
	yes, asked := o.app.confirm(what + "; go on?")
	switch {
	case !asked:
		return usagef("see them with: rnix gc --dry-run; do it without being asked with: rnix gc --force",
			"%s, more than %d at once, and there is no terminal to ask on", what, plan.ConfirmAbove)
	case !yes:
		o.app.out.talk("nothing was done; the list is shown by: rnix gc --dry-run")
		return leave(ExitError)
	}
	return nil
}

// confirm asks a person a question that is answered with y, or with anything else for no. asked says
// whether there was a terminal to ask on.
func (a *app) confirm(question string) (yes, asked bool) {
	if !a.out.err.terminal || !terminal(a.host.In) {
		return false, false
	}
	a.out.say(oneLine(question) + " [y/N]")
	in := bufio.NewScanner(a.host.In)
	if !in.Scan() {
		return false, true
	}
	answer := strings.ToLower(strings.TrimSpace(in.Text()))
	return answer == "y" || answer == "yes", true
}

func sizeOf(list []ipc.GCCandidate) (total int64) {
	for i := range list {
		total += list[i].Bytes
	}
	return total
}

// past is what has become of a history in a mode.
func past(mode string) string {
	if mode == "delete" {
		return "deleted for good"
	}
	return "archived"
}

// showGC shows what went, or would, and then what did not and why.
func showGC(out *output, r *ipc.GCResponse, now time.Time) {
	went := r.Candidates
	if !r.DryRun {
		went = nil
		for _, d := range append(append([]ipc.GCDone{}, r.Archived...), r.Deleted...) {
			went = append(went, d.GCCandidate)
		}
	}
	gcTable(out, went, now)
	showSkipped(out, r.Skipped)
	for _, w := range r.Warnings {
		out.warn(w)
	}
	for i := range r.Stay {
		s := &r.Stay[i]
		out.talk("%s is archived, and its directory stays where it is: %s", historyName(&s.HistoryRef), oneLine(s.Reason))
	}
	switch n := len(went); {
	case r.RetentionDays == 0 && r.MaxEntries == 0 && r.ArchiveDays == 0:
		out.talk("gc.retention_days, gc.max_entries and gc.archive_days are all 0, so nothing is ever taken")
	case n == 0 && r.DryRun:
		out.talk("nothing would go: %s", gcWithin(r))
	case n == 0:
		out.talk("nothing went: %s", gcWithin(r))
	case r.DryRun:
		out.talk("%s (%s) would be %s; %s", plural(n, "history", "histories"), size(sizeOf(went)), past(r.Mode), gcWithin(r))
	default:
		out.talk("%s: %s, %s freed; %s", past(r.Mode), plural(n, "history", "histories"), size(r.Freed+r.Snapshots), gcWithin(r))
	}
	if n := len(r.Exempt); n > 0 {
		reasons := make([]string, n)
		for i := range r.Exempt {
			e := &r.Exempt[i]
			reasons[i] = e.Reason
			out.detail("%s (%s) stays: %s", historyName(&e.HistoryRef), e.UUID, oneLine(e.Reason))
		}
		more := ""
		if !out.verbose {
			more = "; -v names them"
		}
		out.talk("%s exempt: %s%s", plural(n, "history is", "histories are"), tally(reasons, 4), more)
	}
	for _, d := range append(append([]ipc.GCDone{}, r.Archived...), r.Deleted...) {
		if d.Rescued != "" {
			out.talk("the work of %s is kept: %s", historyName(&d.HistoryRef), lines(d.Rescued))
		}
	}
	switch {
	case len(r.Archived) > 0:
		out.talk("the archives are in %s; one is put back with: rnix unarchive UUID", oneLine(r.ArchiveDir))
	case r.DryRun && len(went) > 0:
		out.talk("do it with: rnix gc; leave one out with: rnix keep PROCESS")
	}
}

// mostSkipped is how many histories that stayed are named, unless more detail is asked for.
const mostSkipped = 10

// showSkipped says what was to go and stayed.
func showSkipped(out *output, list []ipc.GCSkip) {
	damaged := 0
	for i := range list {
		s := &list[i]
		if s.Code == types.ErrStorage {
			damaged++
		}
		if i < mostSkipped || out.verbose {
			out.warn(fmt.Sprintf("%s (%s) stays: %s", historyName(&s.HistoryRef), s.UUID, s.Reason))
		}
	}
	if n := len(list) - mostSkipped; n > 0 && !out.verbose {
		out.warn(number(n) + " more stay; -v names all")
	}
	if damaged > 0 {
		out.talk("damaged histories stay; check them with: rnix fsck")
	}
}

// gcWithin says how many are within the limits, and what these are.
func gcWithin(r *ipc.GCResponse) string {
	var limits []string
	if r.RetentionDays > 0 {
		limits = append(limits, plural(r.RetentionDays, "day", "days"))
	}
	if r.MaxEntries > 0 {
		limits = append(limits, plural(r.MaxEntries, "history", "histories"))
	}
	verb := "are"
	if r.Kept == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s within the limits (%s)", number(r.Kept), verb, strings.Join(limits, ", "))
}

func gcTable(out *output, list []ipc.GCCandidate, now time.Time) {
	if len(list) == 0 {
		return
	}
	ids := make([]types.UUID, len(list))
	for i := range list {
		ids[i] = list[i].UUID
	}
	short := shortIDs(ids...)
	cols := []column{{name: "PID", right: true}, {name: "UUID", drop: 5}, {name: "NAME", max: 20, drop: 2}, {name: "ENDED", drop: 1}, {name: "AGE", right: true, drop: 4},
		{name: "SIZE", right: true, drop: 3}, {name: "WHY"}}
	rows := make([][]cell, len(list))
	for i := range list {
		g := &list[i]
		rows[i] = []cell{text(g.PID.String()), text(short(g.UUID)), text(oneLine(g.Name)), text(clock(g.DeadAt, now)), text(longAge(now.Sub(g.DeadAt))),
			text(size(g.Bytes)), text(oneLine(g.Why))}
	}
	out.table(cols, rows)
}
