package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/ipc"
	"rnix/types"
)

func superviseListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "list supervisors",
		Long: `Ls lists the supervisors that are alive, and those that are suspended on disk.

Columns: PID; NAME; STATE; STRATEGY; RUN, how many of its children run; LEFT, how many more restarts are
allowed at the moment, of how many within which time; FROM, init where it stands in init.yaml; WAIT.`,
		Example:     examples(`rnix supervise ls`, `rnix supervise ls --json | jq -r 'select(.left==0).name'`),
		Annotations: exits("0 1 2 12"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return superviseList(c.Context(), client, a.out)
		},
	}
}

func superviseList(ctx context.Context, c *ipc.Client, out *output) error {
	r, err := ipc.Call(ctx, c, ipc.Supervisors, ipc.SupervisorsRequest{})
	if err != nil {
		return err
	}
	if out.json() {
		for i := range r.Supervisors {
			out.object(&r.Supervisors[i])
		}
		return nil
	}
	if len(r.Supervisors) == 0 {
		out.talk("there is no supervisor; start those of a file with: rnix supervise up FILE")
		return nil
	}
	rows := make([][]cell, len(r.Supervisors))
	for i := range r.Supervisors {
		s := &r.Supervisors[i]
		running := 0
		for j := range s.Children {
			if s.Children[j].State == "running" {
				running++
			}
		}
		from, left := "", cell{fmt.Sprintf("%d of %d in %s", s.Left, s.MaxRestarts, debug.Duration(s.Window)), plain}
		if s.Init {
			from = "init"
		}
		if s.Left == 0 && s.MaxRestarts > 0 {
			left.st = yellow
		}
		rows[i] = []cell{text(s.PID.String()), {oneLine(s.Name), bold}, {s.State, stateStyle(&ipc.Proc{State: s.State})}, text(s.Strategy),
			text(fmt.Sprintf("%d/%d", running, len(s.Children))), left, text(from), text(oneLine(s.Wait))}
	}
	out.table([]column{{name: "PID", right: true}, {name: "NAME", max: 32}, {name: "STATE"}, {name: "STRATEGY", drop: 2}, {name: "RUN", right: true}, {name: "LEFT", drop: 3},
		{name: "FROM", drop: 4}, {name: "WAIT", drop: 1}}, rows)
	return nil
}

func superviseShowCmd(a *app) *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use:   "show SUPERVISOR",
		Short: "show a supervisor and its children",
		Long: `Show shows what a supervisor keeps running, and how often it had to start it again. With --follow it goes
on with a line for each change, until the supervisor has ended.

Columns: CHILD; PID of its last run; STATE (starting, running, suspended, paused, stopping, delayed, retrying,
ended, dead, down); RESTART type; RESTARTS so far; NEXT, when it is started again; STEP; LAST EXIT, of the run
before; WAIT.`,
		Example:           examples(`rnix supervise show night`, `rnix supervise show night --follow`, `rnix supervise show night --json | jq '.children[].state'`),
		Annotations:       exits("0 1 2 10 12"),
		Args:              argsOf(1, 1, aSupervisor),
		ValidArgsFunction: onlyFirst(completeSupervisors(a)),
		RunE: func(c *cobra.Command, args []string) error {
			fl, err := connectFollower(c.Context(), a)
			if err != nil {
				return err
			}
			s, err := supervisorOf(c.Context(), fl.client, args[0])
			if err != nil {
				return err
			}
			if a.out.json() {
				a.out.object(&s)
			} else {
				showSupervisor(a.out, &s, time.Now())
			}
			if !follow || s.Exit != nil {
				return nil
			}
			return superviseFollow(c.Context(), fl, a.out, s.UUID.String(), true)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what changes, until it has ended")
	return c
}

func supervisorOf(ctx context.Context, c *ipc.Client, target string) (ipc.Supervisor, error) {
	r, err := ipc.Call(ctx, c, ipc.Supervisors, ipc.SupervisorsRequest{Target: target})
	if err == nil && len(r.Supervisors) != 1 {
		err = types.Errorf(types.ErrInternal, "", target, "the daemon's answer has %d supervisors", len(r.Supervisors))
	}
	if err != nil {
		return ipc.Supervisor{}, err
	}
	return r.Supervisors[0], nil
}

// showSupervisor shows a supervisor as it is.
func showSupervisor(out *output, s *ipc.Supervisor, now time.Time) {
	var b strings.Builder
	state := out.out.paint(stateStyle(&ipc.Proc{State: s.State}), s.State)
	if s.Exit != nil {
		state = exitText(s.Exit)
	} else if s.Wait != "" {
		state += ": " + oneLine(s.Wait)
	}
	rows := [][2]string{{"supervisor", strings.TrimSpace(fmt.Sprintf("%s (PID %d, %s)", oneLine(s.Name), s.PID, s.UUID))}, {"state", state}, {"strategy", s.Strategy},
		{"restarts", fmt.Sprintf("%d in the last %s; %d allowed, so %d left", s.Restarts, debug.Duration(s.Window), s.MaxRestarts, s.Left)}}
	if s.Init {
		rows = append(rows, [2]string{"from", "init.yaml"})
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "%s %s\n", out.out.paint(dim, fmt.Sprintf("%-10s", row[0])), row[1])
	}
	out.print(b.String())
	if len(s.Children) == 0 {
		out.talk("it has no children at the moment")
		return
	}
	out.print("\n")
	cells := make([][]cell, len(s.Children))
	for i := range s.Children {
		c := &s.Children[i]
		name, next, last, step := oneLine(c.Name), "", "", ""
		if c.Kind == "supervisor" {
			name += " (supervisor)"
		} else if c.Step > 0 {
			step = number(c.Step)
		}
		if !c.Next.IsZero() {
			next = clock(c.Next, now)
		}
		if c.Last != nil {
			last = exitText(c.Last)
		}
		pid := ""
		if c.PID != 0 {
			pid = c.PID.String()
		}
		cells[i] = []cell{{name, bold}, text(pid), {c.State, childStyle(c.State)}, text(c.Restart), text(number(c.Restarts)), text(next), text(step), text(last), text(oneLine(c.Wait))}
	}
	out.table([]column{{name: "CHILD", max: 32}, {name: "PID", right: true}, {name: "STATE"}, {name: "RESTART", drop: 4}, {name: "RESTARTS", right: true, drop: 3}, {name: "NEXT"},
		{name: "STEP", right: true, drop: 5}, {name: "LAST EXIT", max: 48, drop: 2}, {name: "WAIT", max: 48, drop: 1}}, cells)
}

func childStyle(state string) style {
	switch state {
	case "running":
		return green
	case suspended, "paused", "delayed", "retrying":
		return yellow
	case "ended", "down":
		return dim
	}
	return plain
}

// superviseFollow says what changes at a supervisor until it has ended, or ctx has. answer: on standard output, as the
// answer, or as talk.
func superviseFollow(ctx context.Context, fl *follower, out *output, target string, answer bool) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	var was *ipc.Supervisor
	for {
		s, err := supervisorOf(ctx, fl.client, target)
		switch {
		case ctx.Err() != nil && !answer:
			return nil
		case err != nil && gone(err):
			if berr := fl.back(ctx); berr == nil {
				continue
			} else if fl.limit > 0 {
				return berr
			}
			return unreachable(err)
		case err != nil:
			return err
		case out.broken != nil:
			return nil
		}
		if was != nil {
			changes := changesOf(was, &s, time.Now())
			switch {
			case len(changes) == 0:
			case out.json() && answer:
				out.object(&s)
			case answer:
				out.print(strings.Join(changes, "\n") + "\n")
			default:
				for _, line := range changes {
					out.talk("%s", line)
				}
			}
		}
		if was = &s; s.Exit != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if answer {
				return context.Cause(ctx)
			}
			return nil
		case <-tick.C:
		}
	}
}

// changesOf says in lines what is not as it was.
func changesOf(was, now *ipc.Supervisor, at time.Time) (lines []string) {
	say := func(format string, args ...any) {
		lines = append(lines, at.Local().Format("15:04:05")+"  "+fmt.Sprintf(format, args...))
	}
	old := map[string]*ipc.SupervisedChild{}
	for i := range was.Children {
		old[was.Children[i].Name] = &was.Children[i]
	}
	for i := range now.Children {
		c := &now.Children[i]
		o := old[c.Name]
		delete(old, c.Name)
		why := ""
		switch {
		case c.Last != nil && (o == nil || !c.LastEnd.Equal(o.LastEnd)):
			why = ", after " + exitText(c.Last)
		case c.State == suspended && c.Wait != "":
			why = ": " + oneLine(c.Wait)
		}
		if !c.Next.IsZero() {
			why += ", starts again at " + clock(c.Next, at)
		}
		switch {
		case o == nil:
			say("%s (PID %d): added, %s", oneLine(c.Name), c.PID, c.State)
		case o.State != c.State || o.PID != c.PID || why != "" && !c.LastEnd.Equal(o.LastEnd):
			say("%s (PID %d): %s%s", oneLine(c.Name), c.PID, c.State, why)
		}
	}
	for i := range was.Children {
		if c := old[was.Children[i].Name]; c != nil && now.Exit == nil {
			say("%s (PID %d): gone", oneLine(c.Name), c.PID)
		}
	}
	switch {
	case now.Exit != nil && was.Exit == nil:
		say("the supervisor %s", exitText(now.Exit))
	case now.State != was.State:
		say("the supervisor is %s", now.State)
	}
	return lines
}
