package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/internal/price"
	"rnix/ipc"
)

// costBy are the values of --by.
var costBy = []string{"model", "agent", "day", "process"}

func costCmd(a *app) *cobra.Command {
	var since string
	req := ipc.CostRequest{}
	c := &cobra.Command{
		Use:        "cost [PROCESS]",
		SuggestFor: []string{"usage", "spend", "bill", "price"},
		Short:      "show what agents have used, and what that costs",
		Long: `Cost adds up the tokens and dollars of all histories, also those that are archived or deleted: of every
process, or of PROCESS and its descendants. A fork counts from where it began.

What an answer costs, its provider says, or else the table of prices: the built-in one, which prices.yaml
in your configuration directory goes before. "free" is a known price of nothing; "?" stands where the
price is not known, and nothing is added for that; "-" where no tokens were used. Days are those of UTC.

To set a price, write it into prices.yaml, in dollars per million tokens; it counts for answers from then on:
  version: "1"
  prices:
    - {provider: local, model: "*", input: 0, output: 0}
    - {provider: openai, model: my-model*, input: 3, output: 15, cache_read: 0.3}

WHEN is a day (2026-11-01) or a number of days, hours or weeks back (7d, 24h, 2w); the whole day counts.`,
		Example:           examples(`rnix cost`, `rnix cost --by day --since 7d`, `rnix cost --by process night`, `rnix cost --json --by agent | jq .cost_usd`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(0, 1, process),
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(costBy, req.By) {
				return usagef("", "invalid --by %q: want one of %s", req.By, strings.Join(costBy, ", "))
			}
			if c.Flags().Changed("since") {
				var err error
				if req.Since, err = parseSince(since, time.Now()); err != nil {
					return err
				}
			}
			if len(args) > 0 {
				req.Under = args[0]
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return showCost(c.Context(), client, a.out, req)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&req.By, "by", "model", "a line for each: "+strings.Join(costBy, ", "))
	f.StringVar(&since, "since", "", "only from WHEN on")
	_ = c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(costBy, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// parseSince reads a day, or a time back from now.
func parseSince(s string, now time.Time) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		return day, nil
	}
	units := map[byte]time.Duration{'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if n := len(s); n > 1 && units[s[n-1]] > 0 {
		if k, err := strconv.Atoi(s[:n-1]); err == nil && k >= 0 && k <= maxKeepDays {
			return now.Add(-time.Duration(k) * units[s[n-1]]).UTC().Truncate(24 * time.Hour), nil
		}
	}
	return time.Time{}, usagef("want a day such as 2026-11-01, or a time back such as 7d, 24h or 2w", "--since %q is no time", s)
}

// showCost lists what was used.
func showCost(ctx context.Context, c *ipc.Client, out *output, req ipc.CostRequest) error {
	r, err := ipc.Call(ctx, c, ipc.ShowCost, req)
	if err != nil {
		return err
	}
	if out.json() {
		for i := range r.Lines {
			out.object(&r.Lines[i])
		}
		out.object(&r.Total)
		return nil
	}
	if len(r.Lines) == 0 {
		out.talk("nothing was used%s", with(" since ", r.Since))
		return nil
	}
	cols := []column{{name: "COST", right: true}, {name: "TOKENS", right: true}, {name: "IN", right: true, drop: 4}, {name: "OUT", right: true, drop: 5},
		{name: "CACHE READ", right: true, drop: 2}, {name: "CACHE WRITE", right: true, drop: 1}, {name: "ANSWERS", right: true, drop: 3}}
	if req.By != "process" {
		cols = append(cols, column{name: "PROCS", right: true, drop: 3})
	}
	cols = append(cols, column{name: strings.ToUpper(req.By)})
	var rows [][]cell
	put := func(l *ipc.CostLine, key string) {
		row := []cell{text(price.Spent(usdOf(l.CostUSD), l.Tokens, l.Unpriced)), text(tokens(l.Tokens, l.Estimated)), text(number(l.Input)), text(number(l.Output)), text(number(l.CacheRead)), text(number(l.CacheWrite)), text(number(l.Answers))}
		if req.By != "process" {
			row = append(row, text(number(l.Processes)))
		}
		rows = append(rows, append(row, text(key)))
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		key := oneLine(l.Key)
		if req.By == "process" {
			key = l.PID.String() + " " + behind(oneLine(l.Name), ": ") + oneLine(l.Intent)
		}
		put(l, cut(key, intentMax))
	}
	put(&r.Total, "total"+with(" since ", r.Since))
	out.table(cols, rows)
	if r.Total.Unpriced > 0 {
		out.talk("%s", price.Unknown(number(r.Total.Unpriced)))
	}
	return nil
}
