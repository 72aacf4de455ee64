package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/internal/event"
	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

func composeDownCmd(a *app) *cobra.Command {
	var pause bool
	c := &cobra.Command{
		Use:        "down RUN",
		SuggestFor: []string{"stop", "kill", "pause"},
		Short:      "end a run with all its nodes, or pause it",
		Long: `Down ends all nodes of a run before their next action, and the run, and returns when nothing of it lives any
more. With --pause they are paused instead, until: rnix compose resume. Either way what has succeeded stays.`,
		Example:           examples(`rnix compose down review`, `rnix compose down review --pause`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, theRun),
		ValidArgsFunction: completeRuns(a, false),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.running(c.Context(), args[0])
			if err != nil {
				return err
			}
			r, err := ipc.Call(c.Context(), client, ipc.ComposeDown, ipc.ComposeDownRequest{Target: args[0], Pause: pause})
			if err != nil {
				return err
			}
			if a.out.json() {
				a.out.object(&r)
				return nil
			}
			switch {
			case r.Exit != nil && r.State != suspended:
				a.out.talk("[compose] run %s has ended (%s): %s", oneLine(r.Name), exitText(r.Exit), nodeCounts(&r))
			default:
				a.out.talk("[compose] run %s is %s: %s; resume it with: %s", oneLine(r.Name), r.State, nodeCounts(&r), runMend(&r))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&pause, "pause", false, "pause the nodes instead of ending them")
	return c
}

func composePsCmd(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:        "ps [RUN]",
		Aliases:    []string{"ls"},
		SuggestFor: []string{"list", "status", "show"},
		Short:      "list runs, or the nodes of one",
		Long: `Ps lists the runs that have not ended, with -a all of them; or the nodes of one run, in the order in which
they depend on each other.

A node is waiting (for others, or for a place), running, paused, suspended (it waits for a budget, a
quota or a person), stopped (it was ended with its run, and is resumed with it), retrying (an attempt has
failed and the next one comes), expanded (its items are known), succeeded, failed, or skipped (what it
waits for can not come about any more). Of one that failed since what it begins with does not merge
(conflict), the files are listed, and how to resolve it.`,
		Example:           examples(`rnix compose ps`, `rnix compose ps review`, `rnix compose ps review --json | jq '.nodes[]|select(.state=="failed")'`),
		Annotations:       exits("0 1 2 10 12"),
		Args:              argsOf(0, 1, ""),
		ValidArgsFunction: completeRuns(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return listRuns(c.Context(), client, a.out, all)
			}
			r, err := ipc.Call(c.Context(), client, ipc.ComposeStatus, ipc.TargetRequest{Target: args[0]})
			if err != nil {
				return err
			}
			if a.out.json() {
				a.out.object(&r)
				return nil
			}
			showNodes(a.out, &r, time.Now())
			return nil
		},
	}
	c.Flags().BoolVarP(&all, "all", "a", false, "also runs that have ended")
	return c
}

func listRuns(ctx context.Context, c *ipc.Client, out *output, all bool) error {
	r, err := ipc.Call(ctx, c, ipc.ComposeList, ipc.ListRequest{All: all})
	if err != nil {
		return err
	}
	if out.json() {
		for i := range r.Runs {
			out.object(&r.Runs[i])
		}
		return nil
	}
	if len(r.Runs) == 0 {
		out.talk("there are no runs; -a shows those that have ended, and `rnix compose up` starts one")
		return nil
	}
	cols := []column{{name: "PID", right: true}, {name: "RUN", max: 32}, {name: "STATE"}, {name: "TOKENS", right: true, drop: 2}, {name: "COST", right: true, drop: 3, hide: free(r.Runs)}, {name: "ELAPSED", right: true, drop: 1}, {name: "NODES"}}
	var rows [][]cell
	for i := range r.Runs {
		x := &r.Runs[i]
		p := ipc.Proc{State: x.State, ProcStatus: types.ProcStatus{Exit: x.Exit}}
		state := x.State
		if x.Exit != nil && x.State != suspended {
			state = exitText(x.Exit)
		}
		rows = append(rows, []cell{text(x.PID.String()), text(oneLine(x.Name)), {cut(state, 40), stateStyle(&p)}, text(tokens(x.TokensUsed, false)), text(price.Spent(x.CostUSD, x.TokensUsed, x.Unpriced)),
			text(duration(x.ElapsedMs)), text(nodeCounts(x))})
	}
	out.table(cols, rows)
	return nil
}

// free reports whether none of several runs has cost anything, as far as that is known of all of them.
func free(runs []ipc.ComposeRun) bool {
	return !slices.ContainsFunc(runs, func(r ipc.ComposeRun) bool { return r.CostUSD > 0 || r.Unpriced > 0 })
}

func showNodes(out *output, r *ipc.ComposeRun, now time.Time) {
	items, trees := false, false
	for i := range r.Nodes {
		items, trees = items || r.Nodes[i].Item != "", trees || r.Nodes[i].Branch != ""
	}
	cols := []column{{name: "NODE", max: 36}, {name: "STATE"}, {name: "PID", right: true, drop: 2}, {name: "TRY", right: true, drop: 3}, {name: "STEP", right: true, drop: 1},
		{name: "TOKENS", right: true, drop: 5}, {name: "COST", right: true, drop: 6, hide: free([]ipc.ComposeRun{*r})}, {name: "ELAPSED", right: true, drop: 4}, {name: "BRANCH", max: 32, drop: 4, hide: !trees}, {name: "WHY"}}
	var rows [][]cell
	for i := range r.Nodes {
		n := &r.Nodes[i]
		dash := func(x int) cell {
			if x == 0 {
				return cell{"-", dim}
			}
			return text(number(x))
		}
		elapsed := cell{"-", dim}
		if n.ElapsedMs > 0 {
			elapsed = text(duration(n.ElapsedMs))
		}
		cost := cell{"-", dim}
		if n.TokensUsed > 0 {
			cost = text(price.Spent(n.CostUSD, n.TokensUsed, n.Unpriced))
		}
		pid := cell{"-", dim}
		if n.PID != 0 {
			pid = text(n.PID.String())
		}
		row := []cell{text(n.Name), {n.State, nodeStyle(n.State)}, pid, dash(n.Attempt), dash(n.Step), dash(n.TokensUsed), cost, elapsed, text(orDash(oneLine(n.Branch))), text(nodeWhy(n, now))}
		if items {
			row = slices.Insert(row, 1, text(oneLine(n.Item)))
		}
		rows = append(rows, row)
	}
	if items {
		cols = slices.Insert(cols, 1, column{name: "ITEM", max: 40})
	}
	out.table(cols, rows)
	for i := range r.Nodes {
		if n := &r.Nodes[i]; n.Kind == "conflict" {
			out.talk("%s was not started, since these files do not merge: %s", oneLine(n.Name), oneLine(strings.Join(n.Files, ", ")))
		}
	}
	state := r.State
	if r.Exit != nil && r.State != suspended {
		state = exitText(r.Exit)
	}
	budget := ""
	if r.Budget > 0 {
		budget = " of " + number(r.Budget)
	}
	out.talk("run %s (PID %d) %s | %s | %s%s tokens%s | %s", oneLine(r.Name), r.PID, oneLine(state), nodeCounts(r), number(r.TokensUsed), budget, price.Behind(r.CostUSD, r.TokensUsed, r.Unpriced), duration(r.ElapsedMs))
	if r.Unpriced > 0 {
		out.talk("%s", price.Unknown(number(r.Unpriced)))
	}
	if r.State == suspended {
		out.talk("  %s; resume it with: %s", oneLine(r.Wait), runMend(r))
	}
}

func composeLogsCmd(a *app) *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use:        "logs RUN [NODE]",
		Aliases:    []string{"log"},
		SuggestFor: []string{"tail"},
		Short:      "show what the nodes of a run think, say and do",
		Long: `Logs shows the log of a run: what becomes of its nodes, and what each of them thinks and says. With a
node, such as merge or review[3], only that of its latest attempt. With -f it follows until the end, or
until Ctrl+C, which only ends the looking.`,
		Example:     examples(`rnix compose logs review`, `rnix compose logs -f review merge`, `rnix compose logs review 'file[2]' --json`),
		Annotations: exits("0 1 2 10 12 130"),
		Args:        argsOf(1, 2, theRun),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return completeRuns(a, true)(c, args, typed)
			}
			if len(args) > 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeNodes(a, true)(c, args, typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			fl, err := connectFollower(c.Context(), a)
			if err != nil {
				return err
			}
			return composeLogs(c.Context(), fl, a.out, args, follow)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the end")
	return c
}

// composeLogs shows the log of a run and of its nodes, or of one node. Nodes that have ended come from
// their files, one after the other.
func composeLogs(ctx context.Context, fl *follower, out *output, args []string, follow bool) error {
	r, err := ipc.Call(ctx, fl.client, ipc.ComposeStatus, ipc.TargetRequest{Target: args[0]})
	if err != nil {
		return err
	}
	log := func(e *ipc.Event) string { return logLine(&out.out, e) }
	if len(args) == 2 {
		n, err := nodeOf(&r, args[1])
		if err != nil {
			return err
		}
		return showEvents(ctx, fl, out, logOf(about([]string{n.UUID.String()}, follow, false)), nil, log)
	}
	live := follow && r.Exit == nil && r.State != suspended
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.UUID == (types.UUID{}) || live && n.ExitCode == nil {
			continue
		}
		out.talk("== %s", n.Name)
		if err := showEvents(ctx, fl, out, logOf(about([]string{n.UUID.String()}, false, false)), nil, log); err != nil && types.CodeOf(err) != types.ErrNotFound {
			return err
		}
	}
	req := about([]string{r.UUID.String()}, live, live)
	req.Kinds = []event.Kind{event.LogLine, event.NodeChanged, event.Exited}
	wants := func(e *ipc.Event) bool { return e.Kind != event.Exited }
	out.talk("== run %s", oneLine(r.Name))
	return showEvents(ctx, fl, out, req, wants, func(e *ipc.Event) string { return composeLogLine(out, e) })
}

func composeLogLine(out *output, e *ipc.Event) string {
	if e.Kind == event.LogLine {
		return logLine(&out.out, e)
	}
	return eventLine(&out.out, e)
}

// nodeOf finds a node of a run that has begun.
func nodeOf(r *ipc.ComposeRun, name string) (*ipc.ComposeNode, error) {
	var names []string
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Name == name {
			if n.UUID == (types.UUID{}) {
				return nil, types.Errorf(types.ErrNotFound, "", name, "the node has not begun: it is %s", n.State)
			}
			return n, nil
		}
		names = append(names, n.Name)
	}
	return nil, withMend(types.Errorf(types.ErrNotFound, "", name, "the run has no such node"), nearNode(name, names))
}

func composeResumeCmd(a *app) *cobra.Command {
	var req ipc.ComposeResumeRequest
	var budget count
	var usd money
	var timeout time.Duration
	var follow bool
	var onInterrupt string
	c := &cobra.Command{
		Use:        "resume [RUN]",
		SuggestFor: []string{"continue", "retry", "restart"},
		Short:      "resume a run: paused, suspended, failed, ended or cut off",
		Long: `Resume continues a run where it was. Nothing that has succeeded is done again: of a run that has ended, what
failed and what was skipped for that; nodes that were ended with their run resume where they were.

With --node that node is done again, and all below it, whatever became of them; it is refused if what the node
waits for is not there. Without a RUN it is that of the one run, of those that have stopped, in which the
node has not succeeded, or that has it at all; with several of them they are listed.

The command returns when the run is resumed; with --follow it stays as up does.`,
		Example:           examples(`rnix compose resume review`, `rnix compose resume review --node merge --follow`, `rnix compose resume --node merge`, `rnix compose resume review --budget 200k`),
		Annotations:       exits("0 1 2 3 4 5 6 9 10 11 12 13 124 129 130 143"),
		Args:              argsOf(0, 1, ""),
		ValidArgsFunction: completeRuns(a, true),
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&req.Node, "node", "", "do this node again, and those below it")
	f.Var(&budget, "budget", "so many tokens more than were used, such as 200k; 0 = unlimited")
	f.Var(&usd, "budget-usd", "so many dollars more than were used, such as 2.50; 0 = unlimited")
	f.DurationVar(&timeout, "timeout", 0, "end the run when it has lived so much longer, such as 10m; 0 = no limit")
	f.StringVar(&req.OnInDoubt, "on-in-doubt", "tell", "what becomes of calls in doubt: tell, retry, skip, fail")
	f.StringVar(&req.Sandbox, "sandbox", "", "confine what is started from now on by: auto, bwrap or landlock; only tighter than now")
	f.StringVar(&req.Net, "net", "", "the network of its commands: none or hosts; only tighter than now")
	_ = c.RegisterFlagCompletionFunc("sandbox", cobra.FixedCompletions([]string{"auto", "bwrap", "landlock"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("net", cobra.FixedCompletions([]string{"none", "hosts"}, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&req.TrustProject, "trust-project", false, "trust the files of its project: its MCP servers, providers and agents")
	f.BoolVarP(&follow, "follow", "f", false, "stay with it until it ends, as up does")
	f.StringVar(&onInterrupt, "on-interrupt", interruptKill, "with --follow, what Ctrl+C does to the nodes: kill or pause")
	_ = c.RegisterFlagCompletionFunc("node", completeNodes(a, false))
	_ = c.RegisterFlagCompletionFunc("on-in-doubt", cobra.FixedCompletions([]string{"tell", "retry", "skip", "fail"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("on-interrupt", cobra.FixedCompletions([]string{interruptKill, interruptPause}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkInterrupt(onInterrupt); err != nil {
			return err
		}
		if req.Env = a.host.Environ; len(args) > 0 {
			req.Target = args[0]
		} else if req.Node == "" {
			return usagef("name it, or a node: rnix compose resume --node NAME", "compose resume needs %s", theRun)
		}
		if c.Flags().Changed("budget") {
			n := int(budget)
			req.Budget = &n
		}
		if c.Flags().Changed("budget-usd") {
			dollars := price.USD(usd).Float()
			req.BudgetUSD = &dollars
		}
		if c.Flags().Changed("timeout") {
			if !mayLast(timeout) {
				return usagef("", "--timeout %s: give a time such as 90s or 10m, or 0 for no limit", timeout)
			}
			req.TimeoutMs = new(timeout.Milliseconds())
		}
		fl, err := connectFollower(c.Context(), a)
		if err != nil {
			return err
		}
		return a.withInterrupts(func(sigs <-chan os.Signal) error {
			r, by, err := begin(c.Context(), fl.client, a.out, ipc.ComposeResume, req, sigs)
			if err != nil {
				return err
			}
			w := newRunWatch(a.out, r, onInterrupt)
			w.began()
			if !follow && by == nil {
				return nil
			}
			return w.follow(c.Context(), fl, sigs, by)
		})
	}
	return c
}

// isFile reports whether an argument names a file rather than a run.
func isFile(a *app, name string) bool {
	if filepath.Ext(name) == ".yaml" || filepath.Ext(name) == ".yml" {
		return true
	}
	_, err := os.Stat(absolutePath(a, name))
	return err == nil
}
