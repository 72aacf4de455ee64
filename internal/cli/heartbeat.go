package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/ipc"
)

func heartbeatCmd(a *app) *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:        "heartbeat [PROCESS]",
		SuggestFor: []string{"stalled", "health", "stuck", "liveness"},
		Short:      "show which processes make progress, and which do not",
		Long: `Heartbeat lists the processes that run, or one and its descendants: since when each has made no progress,
and how long it may. A step, an action that begins or ends, and any piece of output are progress. The
limit is the step_timeout of its agent, else heartbeat.stall of config.yaml (30m). What is paused, waits
for others, for a limit of its provider or for a budget, and what has no model is exempt. A host that has
slept makes no process suspect.

What becomes of a process that is suspect, heartbeat.policy says: warn (ps shows it, and log tells of it
once), restart (it is suspended and resumed from its record, at most heartbeat.max_restarts times in one
step), or kill.

Columns: PID; NAME; STEP; AGE, since its last progress; LIMIT; VERDICT; POLICY; WHY.`,
		Example:           examples(`rnix heartbeat`, `rnix heartbeat night --watch`, `rnix heartbeat --json | jq 'select(.verdict=="suspect").pid'`),
		Annotations:       exits("0 1 2 10 12"),
		Args:              argsOf(0, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, false)),
		RunE: func(c *cobra.Command, args []string) error {
			req := ipc.HeartbeatRequest{}
			if len(args) > 0 {
				req.Target = args[0]
			}
			client, err := a.find(c.Context())
			if err != nil {
				return err
			}
			if client == nil {
				if req.Target != "" {
					_, err := a.running(c.Context(), req.Target)
					return err
				}
				a.out.talk("no daemon is running, so no process is")
				return nil
			}
			fl, err := following(a, client)
			if err != nil {
				return err
			}
			if watch && req.Target != "" {
				req.Target = fl.identify(c.Context(), []string{req.Target})[0].name
			}
			for {
				r, err := ipc.Call(c.Context(), fl.client, ipc.Heartbeat, req)
				switch {
				case err != nil && watch && gone(err):
					if berr := fl.back(c.Context()); berr == nil {
						continue
					} else if fl.limit > 0 {
						return berr
					}
					return unreachable(err)
				case err != nil:
					return err
				}
				showBeats(a.out, &r, time.Now())
				if !watch || a.out.broken != nil {
					return nil
				}
				if err := pause(c.Context(), beatEvery); err != nil {
					return err
				}
				if !a.out.json() {
					a.out.print("\n")
				}
			}
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "again every two seconds, until Ctrl+C")
	return c
}

// beatEvery is how often --watch looks.
const beatEvery = 2 * time.Second

// pause waits for a time. The end of ctx is an error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// showBeats shows what the heartbeat knows.
func showBeats(out *output, r *ipc.HeartbeatResponse, now time.Time) {
	if out.json() {
		for i := range r.Beats {
			out.object(&r.Beats[i])
		}
		return
	}
	if !r.Enabled {
		out.talk("the heartbeat is switched off (heartbeat.enabled in config.yaml)")
	}
	if len(r.Beats) == 0 {
		out.talk("no processes are running")
		return
	}
	suspects := 0
	rows := make([][]cell, len(r.Beats))
	for i := range r.Beats {
		b := &r.Beats[i]
		limit, verdict, why, steps := "-", cell{b.Verdict, green}, "", number(b.Step)
		if b.Step == 0 {
			steps = "-"
		}
		age := debug.Age(b.Age)
		if b.Limit > 0 {
			limit = debug.Duration(b.Limit)
		}
		switch b.Verdict {
		case "exempt":
			age, limit, verdict.st, why = "-", "-", dim, oneLine(b.Exempt)
		case "suspect":
			suspects++
			verdict.st, why = yellow, "since "+clock(b.Suspect, now)
		}
		rows[i] = []cell{text(b.PID.String()), text(oneLine(b.Name)), text(steps), text(age), text(limit), verdict, text(b.Policy), text(why)}
	}
	out.table([]column{{name: "PID", right: true}, {name: "NAME", max: 32}, {name: "STEP", right: true, drop: 2}, {name: "AGE", right: true}, {name: "LIMIT", right: true},
		{name: "VERDICT"}, {name: "POLICY", drop: 1}, {name: "WHY"}}, rows)
	if suspects > 0 {
		out.talk("%s no progress; see what it does with: rnix log PID, rnix ps", plural(suspects, "process makes", "processes make"))
	}
}
