package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/internal/compose"
	"rnix/internal/price"
	"rnix/internal/yamlfile"
	"rnix/ipc"
	"rnix/types"
)

// theRun is how a run is named in usage errors.
const theRun = "a run: its PID, its UUID or the beginning or end of that, or its name"

func composeCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:        "compose",
		SuggestFor: []string{"workflow", "flow", "dag", "pipeline", "up"},
		Short:      "run workflows: many agents that wait for each other",
		Long: `Compose runs the nodes of a workflow file, each as a separate agent. A node starts as soon as those that
it waits for have ended as it wants, and is given their results as data.

A run is a process, and its nodes are the children: ps, log, pause, kill and budget work on it as on others. It
is resumed after a stop or a crash of the daemon, and nothing that has succeeded is done again.

The file is compose.yaml or .rnix/compose.yaml here, or that of -f. "rnix compose init" writes one with
everything that it can say.`,
		Example: examples(`rnix compose init`, `rnix compose up`, `rnix compose up -f review.yaml --var target=main --budget 500k`,
			`rnix compose ps review`, `rnix compose down review --pause`, `rnix compose resume review --node merge`),
	}
	return family(c, composeUpCmd(a), composeDownCmd(a), composePsCmd(a), composeLogsCmd(a), composeResumeCmd(a), composeMergeCmd(a), composeGraphCmd(a),
		composeCheckCmd(a), composeInitCmd(a))
}

// onInterrupt are the values of --on-interrupt.
const (
	interruptKill  = "kill"
	interruptPause = "pause"
)

// composeUpOptions are the flags of compose up.
type composeUpOptions struct {
	app         *app
	file        string
	cwd         string
	vars        []string
	budget      count
	usd         money
	timeout     time.Duration
	detach      bool
	onInterrupt string
	req         ipc.ComposeUpRequest
}

func composeUpCmd(a *app) *cobra.Command {
	o := &composeUpOptions{app: a}
	c := &cobra.Command{
		Use:        "up",
		SuggestFor: []string{"run", "start"},
		Short:      "run a workflow and show what its nodes do until it ends",
		Long: `Up starts a run of the workflow and shows a line for each node until all have ended. Standard output gets the
result: that of the node for which no other waits, or of several, each below its name.

Ctrl+C ends all nodes before their next action; with --on-interrupt pause they are paused instead. Either way
"rnix compose resume" resumes the run where it was, and nothing that has succeeded is done again. A second
Ctrl+C leaves at once. With --detach, or when the terminal is closed, the run continues without you.

A node that waits for a budget or a quota has not failed: when nothing else is left to do, the run is
suspended with it, and resumed with it. A run succeeds if no node has failed.

--json writes a line of type "init", one of type "node" for each change of a node, and one "result" at
the end, with all nodes.`,
		Example: examples(`rnix compose up`, `rnix compose up -f review.yaml --var target=main`, `rnix compose up --budget 500k --budget-usd 2.50 --detach`,
			`rnix compose up --json | jq -c 'select(.type=="result").run.counts'`),
		Annotations: exits("0 1 2 3 4 5 9 10 11 12 13 124 129 130 143"),
		Args:        noArgs,
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&o.file, "file", "f", "", `the workflow file; "-" = standard input (default compose.yaml or .rnix/compose.yaml)`)
	f.StringArrayVar(&o.vars, "var", nil, "a value for a variable of the file, name=value; may be repeated")
	f.StringVarP(&o.req.Name, "name", "n", "", "a name for the run (default that of the file, or of its directory)")
	f.StringVarP(&o.cwd, "cwd", "C", "", "the directory in which the nodes work")
	f.Var(&o.budget, "budget", "tokens for all nodes together, such as 500k; 0 = unlimited")
	f.Var(&o.usd, "budget-usd", "dollars for all nodes together, such as 2.50; 0 = unlimited")
	f.IntVar(&o.req.MaxParallel, "max-parallel", 0, fmt.Sprintf("so many nodes at once, at most %d", compose.MaxParallel))
	f.DurationVar(&o.timeout, "timeout", 0, "end the run when it has lived so long, such as 1h; time stopped or paused does not count")
	f.BoolVarP(&o.detach, "detach", "d", false, "do not wait: print the PID and leave the run to itself")
	f.StringVar(&o.onInterrupt, "on-interrupt", interruptKill, "what Ctrl+C does to the nodes: kill or pause")
	confineFlags(c, &o.req.Sandbox, &o.req.Net, &o.req.Bounds, &o.req.Hosts)
	f.BoolVar(&o.req.TrustProject, "trust-project", false, "trust the files of this project: its MCP servers, providers and agents")
	_ = c.RegisterFlagCompletionFunc("on-interrupt", cobra.FixedCompletions([]string{interruptKill, interruptPause}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.MarkFlagFilename("file", "yaml", "yml")
	_ = c.MarkFlagDirname("cwd")
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

func (o *composeUpOptions) run(c *cobra.Command) error {
	a, ctx := o.app, c.Context()
	if err := o.settle(c.Flags().Changed); err != nil {
		return err
	}
	fl, err := connectFollower(ctx, a)
	if err != nil {
		return err
	}
	return a.withInterrupts(func(sigs <-chan os.Signal) error {
		r, by, err := begin(ctx, fl.client, a.out, ipc.ComposeUp, o.req, sigs)
		if err != nil {
			return err
		}
		w := newRunWatch(a.out, r, o.onInterrupt)
		w.began()
		if o.detach && by == nil {
			return w.detached()
		}
		return w.follow(ctx, fl, sigs, by)
	})
}

// settle fills in the request from the flags, the file and the environment.
func (o *composeUpOptions) settle(changed func(string) bool) error {
	a := o.app
	if err := checkInterrupt(o.onInterrupt); err != nil {
		return err
	}
	switch {
	case changed("max-parallel") && (o.req.MaxParallel < 1 || o.req.MaxParallel > compose.MaxParallel):
		return usagef("", "--max-parallel %d: from 1 to %d nodes can run at once", o.req.MaxParallel, compose.MaxParallel)
	case changed("timeout") && o.timeout < time.Millisecond:
		return usagef("", "--timeout %s: give a time such as 90s or 10m", o.timeout)
	}
	var err error
	if o.req.Vars, err = variables(o.vars); err != nil {
		return err
	}
	if o.req.File, o.req.Path, o.req.Text, err = readWorkflow(a, o.file); err != nil {
		return err
	}
	if changed("budget") {
		n := int(o.budget)
		o.req.Budget = &n
	}
	if changed("budget-usd") {
		usd := price.USD(o.usd).Float()
		o.req.BudgetUSD = &usd
	}
	o.req.TimeoutMs = o.timeout.Milliseconds()
	o.req.Cwd = absolutePath(a, o.cwd)
	o.req.Env, o.req.Parent = a.host.Environ, a.inherited()
	return nil
}

func checkInterrupt(s string) error {
	if s != interruptKill && s != interruptPause {
		return usagef("", "--on-interrupt %q is neither kill nor pause", s)
	}
	return nil
}

// absolute returns a path that is relative to where the program was started; empty is that directory.
func absolutePath(a *app, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.host.Dir, path)
}

// variables reads name=value; the same name twice is an error.
func variables(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, kv := range list {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			return nil, usagef("write --var name=value", "--var %q has no value", kv)
		}
		if _, twice := out[name]; twice {
			return nil, usagef("", "--var gives %q twice", name)
		}
		out[name] = value
	}
	return out, nil
}

// workflow reads the file of a workflow: the one that is named, standard input, or the one that is here.
func readWorkflow(a *app, name string) (shown, path, text string, err error) {
	if name == "-" {
		b, err := a.stdin("the workflow", yamlfile.MaxBytes)
		return "<stdin>", "", string(b), err
	}
	names := []string{name}
	if name == "" {
		names = []string{compose.FileName, filepath.Join(".rnix", compose.FileName)}
	}
	for _, n := range names {
		path = absolutePath(a, n)
		b, err := yamlfile.ReadFile(path, yamlfile.MaxBytes+1)
		if err == nil {
			return n, path, string(b), nil
		}
		if !yamlfile.Missing(err) || name != "" {
			code := types.ErrInvalid
			if yamlfile.Missing(err) {
				code = types.ErrNotFound
			}
			return n, path, "", types.Errorf(code, "", n, "%w", yamlfile.Cause(err))
		}
	}
	return "", "", "", withMend(types.Errorf(types.ErrNotFound, "", "", "there is no workflow here: neither %s", strings.Join(names, " nor ")),
		"name it with -f, or write one with: rnix compose init")
}

// completeRuns offers the names and PIDs of runs.
func completeRuns(a *app, ended bool) completer {
	return onlyFirst(completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.ComposeList, ipc.ListRequest{All: ended, Limit: 30})
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for i := range r.Runs {
			x := &r.Runs[i]
			what := x.State + ": " + cut(oneLine(x.Intent), 50)
			out = append(out, cobra.CompletionWithDesc(x.PID.String(), what), cobra.CompletionWithDesc(oneLine(x.Name), what))
		}
		return out
	}))
}

// completeNodes offers the nodes of the run that the first argument names.
func completeNodes(a *app, instances bool) completer {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completing(a, func(ctx context.Context, client *ipc.Client) []cobra.Completion {
			r, err := ipc.Call(ctx, client, ipc.ComposeStatus, ipc.TargetRequest{Target: args[0]})
			if err != nil {
				return nil
			}
			var out []cobra.Completion
			seen := map[string]bool{}
			for i := range r.Nodes {
				name := r.Nodes[i].Name
				if !instances {
					name, _, _ = strings.Cut(name, "[")
				}
				if !seen[name] {
					seen[name] = true
					out = append(out, cobra.CompletionWithDesc(name, r.Nodes[i].State))
				}
			}
			return out
		})(c, args, typed)
	}
}
