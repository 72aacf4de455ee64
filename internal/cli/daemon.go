package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/ipc"
	"rnix/types"
)

func daemonCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:        "daemon",
		SuggestFor: []string{"status", "start", "stop", "restart", "server"},
		Short:      "start, look at or stop the daemon",
		Long: `The daemon runs the agents. A command that needs it starts it, and it runs on without a
terminal. Stopping it ends no agent: they are suspended on disk.`,
		Example: examples(`rnix daemon status`, `rnix daemon stop`, `rnix daemon start --foreground`),
	}
	return family(c, daemonStartCmd(a), daemonStatusCmd(a), daemonStopCmd(a))
}

func daemonStartCmd(a *app) *cobra.Command {
	var foreground bool
	c := &cobra.Command{
		Use:         "start",
		Short:       "start the daemon, if it does not run",
		Long:        "Start starts the daemon in the background, if it does not run already, and waits until it answers.",
		Example:     examples(`rnix daemon start`, `rnix daemon start --foreground`),
		Annotations: exits("0 1 2 12"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if foreground {
				if a.host.Foreground == nil {
					return types.Errorf(types.ErrUnavailable, "Daemon", "", "this program has no daemon in it")
				}
				return a.host.Foreground(c.Context())
			}
			var before ipc.LockInfo // of nobody, where the places cannot be found: start says why
			if p, err := a.places(); err == nil {
				before, _, _ = ipc.LockHolder(ipc.DataLock(p.DataDir))
			}
			s, err := start(c.Context(), a)
			if err != nil {
				return err
			}
			if a.out.json() {
				a.out.object(&s)
				return nil
			}
			for i := range s.Init {
				if in := &s.Init[i]; in.Error == "" {
					a.out.talk("[kernel] the supervisor %s (PID %d) of init.yaml: %s", oneLine(in.Name), in.PID, in.How)
				} else {
					a.out.warn("the supervisor " + oneLine(in.Name) + " of init.yaml is not started: " + in.Error)
				}
			}
			for _, p := range s.Misread {
				a.out.warn(p)
			}
			word := "started"
			if s.PID == before.PID {
				word = "runs already"
			}
			a.out.talk("the daemon %s: pid %d, version %s, socket %s", word, s.PID, oneLine(s.Version), oneLine(s.Socket))
			return nil
		},
	}
	c.Flags().BoolVar(&foreground, "foreground", false, "run it in this process, until it is stopped")
	return c
}

func daemonStatusCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "status",
		Short:       "describe the daemon that runs",
		Long:        "Status describes the daemon that runs. If none does, the exit code is 12.",
		Example:     examples(`rnix daemon status`, `rnix daemon status --json`),
		Annotations: exits("0 1 2 12"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.find(c.Context())
			if err != nil {
				return err
			}
			if client == nil {
				return noDaemon(a)
			}
			return daemonStatus(c.Context(), client, a.out, time.Now())
		},
	}
}

func noDaemon(a *app) error {
	if f, ok := startFailure(a); ok {
		return withMend(unreachable(types.Errorf(types.ErrUnavailable, "", "", "no daemon is running; the last one did not start (%s): %s", clock(f.Time, time.Now()), lines(f.Text))),
			"mend that, then: rnix daemon start")
	}
	return withMend(unreachable(types.Errorf(types.ErrUnavailable, "", "", "no daemon is running")),
		"a command that needs it starts it, or: rnix daemon start")
}

// startFailure returns why the last daemon did not start; false if it did.
func startFailure(a *app) (ipc.StartFailure, bool) {
	p, err := a.places()
	if err != nil {
		return ipc.StartFailure{}, false
	}
	return ipc.ReadStartFailure(p.DataDir)
}

// When a daemon has closed its connections it notes why it does not start: within failureTime, or, on a busy machine, while it still
// holds the data directory, endingTime at most.
const (
	failureTime = 500 * time.Millisecond
	endingTime  = 10 * failureTime
)

// explained adds to an error about a daemon that cannot be reached why the last one did not start.
func explained(a *app, err error) error {
	f, ok := startFailure(a)
	for began := time.Now(); !ok && gone(err) && (time.Since(began) < failureTime || holds(a) && time.Since(began) < endingTime); f, ok = startFailure(a) {
		time.Sleep(startPoll)
	}
	if !ok || strings.Contains(err.Error(), f.Text) || errors.As(err, new(*mended)) {
		return err
	}
	return withMend(err, "the last daemon did not start ("+clock(f.Time, time.Now())+"): "+lines(f.Text))
}

// holds says whether a daemon has the data directory.
func holds(a *app) bool {
	p, err := a.places()
	if err != nil {
		return false
	}
	_, held, err := ipc.LockHolder(ipc.DataLock(p.DataDir))
	return err == nil && held
}

// letGo waits until a daemon that does not start has given everything back, so that the next one can.
func letGo(ctx context.Context, a *app) {
	p, err := a.places()
	if err != nil {
		return
	}
	if holder, held, err := ipc.LockHolder(ipc.DataLock(p.DataDir)); err == nil && held {
		_ = awaitStop(ctx, p.DataDir, holder.PID, func() {}) // the next one finds what is in its way, and says so
	}
}

// startPoll is how often it is looked whether a daemon has started what it must not be without.
const startPoll = 50 * time.Millisecond

// starts is how often a daemon is started that is gone again before it has answered: the one that took the
// connection was being ended.
const starts = 3

// start starts the daemon if it does not run, and describes it when it runs what it must not be without.
func start(ctx context.Context, a *app) (s ipc.Status, err error) {
	began := time.Now()
	for range starts {
		var c *ipc.Client
		if c, err = a.connect(ctx); err == nil {
			s, err = started(ctx, a, c)
		}
		if f, ok := startFailure(a); ok && err != nil && !f.Time.Before(began) {
			letGo(ctx, a)
			return s, unreachable(types.Errorf(types.ErrUnavailable, "", "", "the daemon does not start: %s", lines(f.Text)))
		}
		if !gone(err) {
			return s, err
		}
		a.client = nil
	}
	return s, err
}

// started waits until a daemon runs what init.yaml requires, and describes it. If that cannot be, the error says why.
func started(ctx context.Context, a *app, c *ipc.Client) (ipc.Status, error) {
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		s, err := ipc.Call(ctx, c, ipc.DaemonStatus, ipc.Empty{})
		if err != nil {
			if f, ok := startFailure(a); ok && gone(err) {
				letGo(ctx, a)
				err = unreachable(types.Errorf(types.ErrUnavailable, "", "", "the daemon does not start: %s", lines(f.Text)))
			}
			return s, err
		}
		if !s.Starting {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// daemonStatus describes the daemon.
func daemonStatus(ctx context.Context, c *ipc.Client, out *output, now time.Time) error {
	s, err := ipc.Call(ctx, c, ipc.DaemonStatus, ipc.Empty{})
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&s)
		return nil
	}
	var b strings.Builder
	for _, row := range [][2]string{
		{"pid", fmt.Sprint(s.PID)}, {"version", s.Version}, {"up", debug.Age(now.Sub(s.Started)) + ", since " + clock(s.Started, now)},
		{"socket", s.Socket}, {"data", s.DataDir}, {"log", s.Log},
		{"agents", fmt.Sprintf("%s running, %s suspended, %s on disk", number(s.Running), number(s.Suspended), number(s.Stored))},
		{"storage", storageText(&s.Storage)},
		{"children", plural(s.Children, "process", "processes") + " of the operating system"},
		{"memory", size(int64(min(s.HeapBytes, 1<<62))) + " in use, " + plural(s.Goroutines, "goroutine", "goroutines")},
	} {
		fmt.Fprintf(&b, "%s %s\n", out.out.paint(dim, fmt.Sprintf("%-9s", row[0])), oneLine(row[1]))
	}
	line := func(label, text string) {
		fmt.Fprintf(&b, "%s %s\n", out.out.paint(dim, fmt.Sprintf("%-9s", label)), oneLine(text))
	}
	if n := s.CheckpointFailures; n > 0 {
		line("warning", plural(n, "checkpoint", "checkpoints")+" could not be written, which makes a resume slower and nothing else: "+s.CheckpointFailure)
	}
	if s.Room != "" {
		line("disk", s.Room)
	}
	for i := range s.Init {
		in := &s.Init[i]
		text := fmt.Sprintf("supervisor %s (PID %d) %s", in.Name, in.PID, in.How)
		if in.Error != "" {
			text = fmt.Sprintf("supervisor %s is not started: %s", in.Name, in.Error)
		}
		line("init", text)
	}
	for _, p := range s.Misread {
		line("warning", "the configuration: "+p)
	}
	if s.Recovering {
		line("busy", "it is still looking at what an earlier daemon has left")
	}
	for _, r := range s.Recovered {
		line("mended", r)
	}
	out.print(b.String())
	return nil
}

func daemonStopCmd(a *app) *cobra.Command {
	force := false
	c := &cobra.Command{
		Use:   "stop",
		Short: "stop the daemon; its agents are suspended, not ended",
		Long: `Stop stops the daemon and waits until it is gone. Agents that are running finish the write that is
under way and are suspended on disk. They are resumed when a daemon starts again, unless
daemon.auto_resume is false in config.yaml; then resume them with: rnix resume

With --force, a daemon that has not stopped after 10 s is killed, with the commands of its agents. What
was recorded is kept, as after any crash.`,
		Example:     examples(`rnix daemon stop`, `rnix daemon stop --force`),
		Annotations: exits("0 1 2 12 124"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if force {
				return forceStop(c.Context(), a)
			}
			for tries := 1; ; tries++ {
				client, err := a.find(c.Context())
				if err != nil {
					return err
				}
				if client == nil {
					a.out.talk("no daemon is running")
					return nil
				}
				err = daemonStop(c.Context(), client, a.out)
				if types.CodeOf(err) != types.ErrDisconnected || tries == 5 {
					return err
				}
				a.client = nil // it has ended before it answered, as one does that is killed: who is there now?
			}
		},
	}
	c.Flags().BoolVar(&force, "force", false, "kill it if it does not stop within 10 s")
	return c
}

// daemonStop stops the daemon and waits until it has given its lock back.
func daemonStop(ctx context.Context, c *ipc.Client, out *output) error {
	s, err := ipc.Call(ctx, c, ipc.DaemonStatus, ipc.Empty{})
	if err != nil {
		return err
	}
	living, err := ipc.Call(ctx, c, ipc.ListProcs, ipc.ListRequest{})
	if err != nil {
		return err
	}
	stopped := 0 // suspended by this stop; others were before
	for i := range living.Procs {
		if state := living.Procs[i].State; state == "created" || state == "running" {
			stopped++
		}
	}
	// A daemon that is quicker than its own answer has done what was asked for.
	if _, err := ipc.Call(ctx, c, ipc.Shutdown, ipc.Empty{}); err != nil && !gone(err) {
		return err
	}
	if err := awaitStop(ctx, s.DataDir, s.PID, func() {
		out.talk("the daemon (pid %d) is stopping; what it waits for stands in its log: %s", s.PID, s.Log)
	}); err != nil {
		if types.CodeOf(err) == types.ErrTimeout {
			return withMend(err, "see its log: "+s.Log)
		}
		return err
	}
	if out.json() {
		out.object(struct {
			PID       int `json:"pid"`
			Suspended int `json:"suspended"`
		}{s.PID, stopped})
		return nil
	}
	out.talk("the daemon (pid %d) has stopped%s", s.PID, suspendedText(stopped))
	return nil
}

func suspendedText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 agent is suspended on disk (see: rnix ps -a)"
	}
	return "; " + number(n) + " agents are suspended on disk (see: rnix ps -a)"
}
