package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/internal/yamlfile"
	"rnix/ipc"
	"rnix/types"
)

// aSupervisor is what argsOf says is missing.
const aSupervisor = "a supervisor: its PID, its UUID or the beginning or end of that, or its name (see: rnix supervise ls)"

func superviseCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:        "supervise",
		SuggestFor: []string{"supervisor", "supervisors", "service", "services"},
		Short:      "keep agents running: start, look at and stop supervisors",
		Long: `A supervisor is a process without a model that starts agents and starts them again when they end, as a file
says. It outlives restarts of the daemon, with the agents that it had.

  supervisors:
    - name: night
      strategy: one_for_one       # one_for_all, rest_for_one, simple_one_for_one
      max_restarts: 3             # more within max_window, and it gives up
      max_window: 1m
      children:
        - name: tidy
          intent: Tidy up the backlog
          agent: assistant        # also provider, model, max_steps, context_budget, timeout,
          cwd: ~/src/project      # env (names), mcp, allow, deny, reasoning_effort, budget_usd
          network: none           # or sandbox: {level, net}; it only tightens what config.yaml gives
          restart: permanent      # always; transient: after a failure; temporary: never
          backoff: {initial: 24h} # before it starts again; with factor: 2 and max: 1h it grows
          shutdown: 10s           # from SIGTERM to SIGKILL; or kill, or infinity

In place of an intent a child may have the key supervisor, with its own strategy and children. A
restart that is delayed for max_window or longer does not count: the one above runs every night. What
stands under supervisors in ~/.config/rnix/init.yaml is started with the daemon.`,
		Example: examples(`rnix supervise up night.yaml`, `rnix supervise ls`, `rnix supervise show night --follow`, `rnix supervise add workers "Review main.go"`,
			`rnix supervise stop night`),
	}
	return family(c, superviseUpCmd(a), superviseCheckCmd(a), superviseListCmd(a), superviseShowCmd(a), superviseAddCmd(a), superviseStopCmd(a))
}

func superviseUpCmd(a *app) *cobra.Command {
	var trust bool
	c := &cobra.Command{
		Use:   "up FILE",
		Short: "start the supervisors of a file",
		Long: `Up starts the supervisors of a file, or of standard input if it is -, and returns when all their children
run. If one cannot be started, none is left. A supervisor that runs already as the file says is left
alone. Paths in the file are relative to the current directory.`,
		Example:     examples(`rnix supervise up night.yaml`, `generate | rnix supervise up -`, `rnix supervise up night.yaml --json | jq -r .pid`),
		Annotations: exits("0 1 2 10 11 12 13"),
		Args:        argsOf(1, 1, "a file, or - for standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			return superviseFile(c.Context(), a, args[0], trust, ipc.SuperviseUp)
		},
	}
	c.Flags().BoolVar(&trust, "trust-project", false, "trust the files of this project: its MCP servers, providers and agents")
	return c
}

func superviseCheckCmd(a *app) *cobra.Command {
	var trust bool
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "say what is wrong with a file, and start nothing",
		Long: `Check reads a file as up does, or init.yaml as the daemon does when it starts, and says what is wrong
with it: mistakes with file, line and column, and agents, providers and directories that are not there.`,
		Example:     examples(`rnix supervise check night.yaml`, `rnix supervise check`),
		Annotations: exits("0 1 2 10 11 12 13"),
		Args:        argsOf(0, 1, "a file, or - for standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return superviseFile(c.Context(), a, args[0], trust, ipc.SuperviseCheck)
			}
			p, err := a.places()
			if err != nil {
				return err
			}
			a.host.Dir = a.getenv("HOME") // where those of init.yaml work
			return superviseFile(c.Context(), a, filepath.Join(p.ConfigDir, "init.yaml"), trust, ipc.SuperviseCheck)
		},
	}
	c.Flags().BoolVar(&trust, "trust-project", false, "as up would with it")
	return c
}

// maxSource bounds a file of supervisors, in bytes; the daemon says more about one that is longer.
const maxSource = yamlfile.MaxBytes + 1

// sourceOf reads a file, or standard input.
func sourceOf(a *app, name string) (text, shown string, err error) {
	in := a.host.In
	if name != "-" {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.host.Dir, path)
		}
		f, err := os.Open(path)
		if err != nil {
			code := types.ErrInvalid
			if os.IsNotExist(err) {
				code = types.ErrNotFound
			}
			return "", name, types.Errorf(code, "", name, "%w", yamlfile.Cause(err))
		}
		defer f.Close()
		in = f
	} else {
		name = "standard input"
	}
	b, err := io.ReadAll(io.LimitReader(in, maxSource))
	if err != nil {
		return "", name, types.Errorf(types.ErrInvalid, "", name, "%w", yamlfile.Cause(err))
	}
	return string(b), name, nil
}

// superviseFile has the daemon start or check the supervisors of a file.
func superviseFile(ctx context.Context, a *app, name string, trust bool, m ipc.Method[ipc.SuperviseRequest, ipc.SuperviseResponse]) error {
	text, shown, err := sourceOf(a, name)
	if err != nil {
		return err
	}
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	r, err := ipc.Call(ctx, client, m, ipc.SuperviseRequest{ProjectRequest: a.project(trust), File: shown, Source: text})
	if err != nil {
		return err
	}
	for i := range r.Supervisors {
		s := &r.Supervisors[i]
		if a.out.json() {
			a.out.object(s)
			continue
		}
		what := fmt.Sprintf("%s (%s), %s", oneLine(s.Name), s.Strategy, plural(s.Children, "child", "children"))
		switch {
		case s.PID == 0:
			a.out.print("ok  " + what + "\n")
		case s.Was:
			a.out.print(s.PID.String() + "\n")
			a.out.talk("[kernel] PID %d runs already as the file says: %s", s.PID, what)
		default:
			a.out.print(s.PID.String() + "\n")
			a.out.talk("[kernel] PID %d supervises: %s; see: rnix supervise show %d", s.PID, what, s.PID)
		}
	}
	for _, w := range r.Warnings {
		a.out.warn(w)
	}
	return nil
}

func superviseAddCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "add SUPERVISOR [INTENT]",
		Short: "start another child of a supervisor of strategy simple_one_for_one",
		Long: `Add starts another child of a supervisor of strategy simple_one_for_one, made of its one template.
Without an intent it has that of the template.`,
		Example:           examples(`rnix supervise add workers "Review main.go"`, `rnix supervise add workers`),
		Annotations:       exits("0 1 2 10 11 12 13"),
		Args:              argsOf(1, 2, aSupervisor),
		ValidArgsFunction: onlyFirst(completeSupervisors(a)),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.running(c.Context(), args[0])
			if err != nil {
				return err
			}
			req := ipc.SuperviseAddRequest{Target: args[0]}
			if len(args) > 1 {
				if req.Intent = args[1]; strings.TrimSpace(args[1]) == "" {
					return usagef("say what is to be done, or leave it out", "the intent is empty")
				}
			}
			r, err := ipc.Call(c.Context(), client, ipc.SuperviseAdd, req)
			if err != nil {
				return err
			}
			if a.out.json() {
				a.out.object(&r)
				return nil
			}
			a.out.print(r.PID.String() + "\n")
			a.out.talk("[kernel] PID %d is %s, supervised by PID %d; see: rnix log -f %d", r.PID, oneLine(r.Name), r.Supervisor, r.PID)
			return nil
		},
	}
	return c
}

func superviseStopCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "stop SUPERVISOR...",
		Short: "stop supervisors and their children",
		Long: `Stop ends the children of a supervisor in reverse order of their start, each with the time that its
shutdown says, then the supervisor, and waits for that. One that is suspended on disk is ended there,
without being run. A supervisor of init.yaml that was stopped is started again with the next daemon; take
it out of the file first.`,
		Example:           examples(`rnix supervise stop night`, `rnix supervise stop 3 4`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, -1, aSupervisor),
		ValidArgsFunction: completeSupervisors(a),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			var first error
			for _, target := range args {
				first = firstError(a.out, first, superviseStop(c.Context(), client, a.out, target), len(args) > 1)
			}
			return first
		},
	}
	return c
}

// superviseStop stops one supervisor and says how far that has come.
func superviseStop(ctx context.Context, c *ipc.Client, out *output, target string) error {
	r, err := ipc.Call(ctx, c, ipc.SuperviseStop, ipc.TargetRequest{Target: target})
	if err != nil {
		return err
	}
	if !r.Dismissed {
		out.talk("[kernel] PID %d is asked to stop its children", r.PID)
		wctx, cancel := context.WithCancel(ctx)
		told := make(chan struct{})
		go func() { // ends with wctx
			defer close(told)
			if out.talks() {
				_ = superviseFollow(wctx, &follower{client: c}, out, r.UUID.String(), false)
			}
		}()
		_, err = ipc.Call(ctx, c, ipc.Wait, ipc.WaitRequest{Target: r.UUID.String()})
		cancel()
		<-told
		if err != nil {
			return err
		}
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	what := "and its children are stopped"
	if r.Dismissed {
		what = "was suspended, and is ended with its children"
	}
	out.talk("[kernel] PID %d (%s) %s", r.PID, oneLine(r.Name), what)
	return nil
}

// completeSupervisors offers the PIDs and names of supervisors.
func completeSupervisors(a *app) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.Supervisors, ipc.SupervisorsRequest{})
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for i := range r.Supervisors {
			s := &r.Supervisors[i]
			what := s.State + ": " + s.Strategy + ", " + plural(len(s.Children), "child", "children")
			out = append(out, cobra.CompletionWithDesc(s.PID.String(), what))
			if s.Name != "" {
				out = append(out, cobra.CompletionWithDesc(oneLine(s.Name), what))
			}
		}
		return out
	})
}

// followEvery is how often it is looked what a supervisor does.
const followEvery = 300 * time.Millisecond
