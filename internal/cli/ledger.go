package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

func ledgerCmd(a *app) *cobra.Command {
	var wide, doubt bool
	c := &cobra.Command{
		Use:        "ledger PROCESS",
		SuggestFor: []string{"calls", "effects", "journal"},
		Short:      "list every call of a process, and what became of it",
		Long: `Ledger lists each call that a process has made, alive or dead, over all its runs: what it could do to
the world, when it began, and what became of it. A call that was cut off and begun again has a line for
each time.

Columns: STEP; CALL, its id; TOOL; PATH; EFFECT (none, idempotent, reversible, external); BEGAN; TOOK;
VERDICT; RESULT, the first line of the result or the error. --wide adds RUN, TRY and the KEY, which is
the same each time that the same call is made. A narrow terminal shows fewer columns.

Verdicts: done, failed (with an error, or a command that did not end with exit code 0), running, not begun; of
a call that was cut off: in doubt (it is not known whether it has taken effect, and nothing is decided), told
unknown, skipped, run again, undone and run again, attached (the process that it had started was found again).`,
		Example: examples(`rnix ledger 3`, `rnix ledger --in-doubt night`, `rnix ledger --wide 0191f3a2-7c3e`,
			`rnix ledger --json 3 | jq -r 'select(.effect=="external") | .tool'`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return ledger(c.Context(), client, a.out, ipc.LedgerRequest{Target: args[0], InDoubt: doubt}, wide || a.out.verbose, time.Now())
		},
	}
	c.Flags().BoolVar(&doubt, "in-doubt", false, "only the calls of which it is not known whether they have run")
	c.Flags().BoolVarP(&wide, "wide", "w", false, "all columns, in full")
	return c
}

// ledger lists the calls of a process.
func ledger(ctx context.Context, c *ipc.Client, out *output, req ipc.LedgerRequest, wide bool, now time.Time) error {
	r, err := ipc.Call(ctx, c, ipc.Ledger, req)
	if err != nil {
		return err
	}
	if out.json() {
		for i := range r.Calls {
			out.object(&r.Calls[i])
		}
		if r.Damage != "" {
			out.object(struct {
				Damage string `json:"damage"`
			}{r.Damage})
		}
		return nil
	}
	if len(r.Calls) > 0 {
		ledgerTable(out, r.Calls, wide, now)
	}
	out.talk("%s", ledgerSummary(&r))
	if r.OriginStep > 0 {
		out.talk("PID %d is a fork: the calls up to step %d are those of %s", r.PID, r.OriginStep, r.OriginUUID)
	}
	if n := r.Counts[step.LedgerInDoubt]; n > 0 {
		out.warn(fmt.Sprintf("it is not known whether %s taken effect; when PID %d is resumed, decide it with: rnix resume %d --on-in-doubt tell (or retry, skip, ask)",
			map[bool]string{true: "this call has", false: "these calls have"}[n == 1], r.PID, r.PID))
	}
	if r.Damage != "" {
		out.warn("the history is damaged, and what stands behind that is not listed: " + r.Damage)
	}
	return nil
}

func ledgerTable(out *output, calls []ipc.LedgerEntry, wide bool, now time.Time) {
	cols := []column{{name: "STEP", right: true}, {name: "CALL", max: 16, drop: 1}, {name: "TOOL", max: 24}, {name: "PATH", max: 28, drop: 2},
		{name: "EFFECT", drop: 5}, {name: "BEGAN", drop: 3}, {name: "TOOK", right: true, drop: 4}, {name: "VERDICT"}, {name: "RESULT"}}
	if wide {
		for i := range cols {
			cols[i].max, cols[i].drop = 0, 0
		}
		cols = append([]column{{name: "RUN", right: true}, {name: "TRY", right: true}, {name: "KEY"}}, cols...)
	}
	rows := make([][]cell, len(calls))
	for i := range calls {
		e := &calls[i]
		began, took := "-", "-"
		if !e.Began.IsZero() {
			began = clock(e.Began, now)
		}
		if e.Took > 0 && !slices.Contains(cutOff, e.Verdict) {
			took = debug.Duration(e.Took)
		}
		st := verdictStyle(e.Verdict)
		result := cell{oneLine(e.Result), plain}
		if e.Error != "" {
			result = cell{oneLine(with2(string(e.Code), e.Error)), st}
			if e.Code == "" { // a command that has failed, with what it printed
				result.text += with(": ", oneLine(e.Result))
			}
		}
		if out.out.width == 0 && !wide {
			result.text = cut(result.text, intentMax)
		}
		rows[i] = []cell{text(strconv.Itoa(e.Step)), text(oneLine(e.CallID)), text(oneLine(e.Tool)), text(dash(oneLine(e.Path))), text(dash(e.Effect)),
			text(began), text(took), {string(e.Verdict), st}, result}
		if wide {
			rows[i] = append([]cell{text(strconv.Itoa(e.Run)), text(strconv.Itoa(e.Attempt)), text(dash(e.Key))}, rows[i]...)
		}
	}
	out.table(cols, rows)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// cutOff are the verdicts on calls that have no time: their end was not seen, or they were not begun.
var cutOff = []types.LedgerVerdict{step.LedgerInDoubt, step.LedgerTold, step.LedgerSkipped, step.LedgerNotBegun}

func verdictStyle(v types.LedgerVerdict) style {
	switch v {
	case step.LedgerDone, step.LedgerAttached:
		return plain
	case step.LedgerFailed:
		return red
	case step.LedgerRunning:
		return green
	case step.LedgerInDoubt, step.LedgerTold:
		return yellow
	}
	return dim
}

// verdicts is the order in which the summary counts.
var verdicts = []types.LedgerVerdict{step.LedgerDone, step.LedgerFailed, step.LedgerRunning, step.LedgerInDoubt, step.LedgerTold, step.LedgerSkipped,
	step.LedgerAgain, step.LedgerUndone, step.LedgerAttached, step.LedgerNotBegun}

// ledgerSummary is the last line: 42 calls: 40 done, 1 failed, 1 in doubt.
func ledgerSummary(r *ipc.LedgerResponse) string {
	total := 0
	var parts []string
	for _, v := range verdicts {
		if n := r.Counts[v]; n > 0 {
			parts = append(parts, number(n)+" "+string(v))
			total += n
		}
	}
	if total == 0 {
		return fmt.Sprintf("PID %d has made no calls", r.PID)
	}
	return plural(total, "call", "calls") + ": " + strings.Join(parts, ", ")
}
