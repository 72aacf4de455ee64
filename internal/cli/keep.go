package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func keepCmd(a *app) *cobra.Command {
	var req ipc.KeepRequest
	var until string
	c := &cobra.Command{
		Use:        "keep PROCESS...",
		SuggestFor: []string{"pin", "protect", "hold"},
		Short:      "keep histories from garbage collection",
		Long: `Keep marks the history of each process, alive or dead, so that garbage collection leaves it where it is:
for ever, or with --until to the end of a day. A mark that was there is replaced. --off takes it away.

DATE is a day (2026-12-31), a time (2026-12-31T18:00:00+01:00), or a number of days from now (90d).`,
		Example:           examples(`rnix keep night`, `rnix keep 3 4 --note "for the audit" --until 2027-12-31`, `rnix keep --off night`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, -1, process),
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			changed := c.Flags().Changed
			if req.Off && (changed("note") || changed("until")) {
				return usagef("leave --note and --until out", "--off takes the mark away, so there is nothing to say in it")
			}
			if changed("until") {
				var err error
				if req.Until, err = parseUntil(until, time.Now()); err != nil {
					return err
				}
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			var first error
			for _, target := range args {
				req.Target = target
				first = firstError(a.out, first, keep(c.Context(), client, a.out, req), len(args) > 1)
			}
			return first
		},
	}
	f := c.Flags()
	f.BoolVar(&req.Off, "off", false, "take the mark away")
	f.StringVar(&req.Note, "note", "", "why, for those who ask")
	f.StringVar(&until, "until", "", "the last day, as DATE; without it, for ever")
	return c
}

// parseUntil reads the end of a mark: the end of a day, a time, or so many days from now.
func parseUntil(s string, now time.Time) (time.Time, error) {
	bad := func(why string) (time.Time, error) {
		return time.Time{}, usagef("want a day such as 2026-12-31, a time such as 2026-12-31T18:00:00Z, or days from now such as 90d", "--until %q %s", s, why)
	}
	var t time.Time
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 1 || n > maxKeepDays {
			return bad("is no number of days from 1 to " + number(maxKeepDays))
		}
		t = now.AddDate(0, 0, n)
	} else if day, err := time.ParseInLocation(time.DateOnly, s, now.Location()); err == nil {
		t = day.AddDate(0, 0, 1).Add(-time.Second)
	} else if t, err = time.Parse(time.RFC3339, s); err != nil {
		return bad("is no date")
	}
	if !t.After(now) {
		return bad("is past")
	}
	return t, nil
}

// maxKeepDays is a hundred years.
const maxKeepDays = 36_500

// keep marks one history.
func keep(ctx context.Context, c *ipc.Client, out *output, req ipc.KeepRequest) error {
	r, err := ipc.Call(ctx, c, ipc.Keep, req)
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	name := historyName(&ipc.HistoryRef{PID: r.PID, Name: r.Name})
	switch {
	case r.Kept && r.Until.IsZero():
		out.talk("%s is kept%s", name, with(": ", oneLine(r.Note)))
	case r.Kept:
		out.talk("%s is kept until %s%s", name, r.Until.Local().Format("2006-01-02 15:04"), with(": ", oneLine(r.Note)))
	case r.Was:
		out.talk("%s is not kept any more; see what goes with: rnix gc --dry-run", name)
	default:
		out.talk("%s was not kept, so nothing was changed", name)
	}
	return nil
}
