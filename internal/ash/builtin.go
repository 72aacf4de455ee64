package ash

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/interp"
)

// builtins are the commands that concern the shell itself, and those of the interpreter that it has not,
// or not for agents.
type builtins struct{ *Shell }

// named returns the built-in of a name, nil if there is none.
func (s builtins) named(name string) func(context.Context, *interp.HandlerContext, []string) int {
	return map[string]func(context.Context, *interp.HandlerContext, []string) int{"kill": s.kill, "wait": s.wait, "jobs": s.listJobs, "fg": s.fg,
		"bg": s.bg, "disown": s.disown, "ulimit": s.ulimit, "help": s.help, "history": s.history}[name]
}

// wait waits for jobs and agents; without a word for all jobs of this shell, with -n for the next one
// that ends.
func (s builtins) wait(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	switch {
	case len(args) == 0:
		for _, j := range s.jobs.of(jobOf(hc), true) {
			if code, ended := s.await(ctx, hc, j); !ended {
				return code
			}
		}
		return 0
	case args[0] == "-n" && len(args) == 1:
		return s.waitAny(ctx, hc)
	case strings.HasPrefix(args[0], "-"):
		return programs(s).command(ctx, hc, append([]string{"wait"}, s.pids(args)...))
	}
	code := 0
	for _, word := range args {
		j := s.jobs.find(word)
		switch {
		case j != nil:
			var ended bool
			if code, ended = s.await(ctx, hc, j); !ended {
				return code
			}
		case strings.HasPrefix(word, "%"):
			code = s.fail(hc, exitUnknown, "wait: %s: no such job; see: jobs", word)
		default:
			code = programs(s).command(ctx, hc, []string{"wait", word})
		}
	}
	return code
}

// await waits for one job. It reports false if the waiting was interrupted.
func (s builtins) await(ctx context.Context, hc *interp.HandlerContext, j *job) (code int, ended bool) {
	select {
	case <-j.done:
		return s.jobs.take(j), true
	case <-s.broken(hc):
	case <-ctx.Done():
	}
	return signalCode(syscall.SIGINT), false
}

func (s builtins) waitAny(ctx context.Context, hc *interp.HandlerContext) int {
	list := s.jobs.of(jobOf(hc), true)
	if len(list) == 0 {
		return exitUnknown
	}
	first := make(chan *job, len(list))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, j := range list {
		go func() { // ends with this call
			select {
			case <-j.done:
				first <- j
			case <-ctx.Done():
			}
		}()
	}
	select {
	case j := <-first:
		return s.jobs.take(j)
	case <-s.broken(hc):
	case <-ctx.Done():
	}
	return signalCode(syscall.SIGINT)
}

// pids replaces the names of jobs by the PIDs of their agents.
func (s builtins) pids(args []string) []string {
	var out []string
	for _, word := range args {
		j := s.jobs.find(word)
		if j == nil || !strings.HasPrefix(word, "%") {
			out = append(out, word)
			continue
		}
		s.jobs.mu.Lock()
		for _, a := range j.agents {
			out = append(out, a.PID.String())
		}
		s.jobs.mu.Unlock()
	}
	return out
}

// kill signals agents and jobs.
func (s builtins) kill(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	var flags, targets []string
	var jobs []*job
	name := "TERM"
	for i := 0; i < len(args); i++ {
		switch word := args[i]; {
		case (word == "-s" || word == "--signal") && i+1 < len(args):
			name = args[i+1]
			flags = append(flags, word, name)
			i++
		case strings.HasPrefix(word, "-"):
			if sig := strings.TrimPrefix(strings.TrimPrefix(word, "--signal="), "-"); !strings.HasPrefix(sig, "-") {
				name = sig
			}
			flags = append(flags, word)
		case strings.HasPrefix(word, "%"):
			j := s.jobs.find(word)
			if j == nil {
				return s.fail(hc, exitError, "kill: %s: no such job; see: jobs", word)
			}
			jobs = append(jobs, j)
		default:
			targets = append(targets, word)
		}
	}
	sig, known := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "15": syscall.SIGTERM, "KILL": syscall.SIGKILL, "9": syscall.SIGKILL, "INT": syscall.SIGINT,
		"2": syscall.SIGINT, "PAUSE": syscall.SIGSTOP, "RESUME": syscall.SIGCONT, "HUP": syscall.SIGHUP}[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
	code := 0
	for _, j := range jobs {
		if !known {
			return s.fail(hc, exitUsage, "kill: %s: no signal that a job takes; use TERM, KILL, INT, PAUSE or RESUME", name)
		}
		code = max(code, s.killJob(ctx, hc, j, sig, flags))
	}
	if len(targets) > 0 || len(jobs) == 0 {
		code = max(code, programs(s).command(ctx, hc, append(append([]string{"kill"}, flags...), targets...)))
	}
	return code
}

func (s builtins) killJob(ctx context.Context, hc *interp.HandlerContext, j *job, sig syscall.Signal, flags []string) int {
	select {
	case <-j.done:
		return s.fail(hc, exitError, "kill: %%%d has ended", j.id)
	default:
	}
	agents, others := s.jobs.reach(j, sig != syscall.SIGSTOP && sig != syscall.SIGCONT)
	for _, p := range others {
		_ = p.Signal(sig) // one that has ended has nothing against it
	}
	if len(agents) == 0 {
		return 0
	}
	args := append([]string{"kill"}, flags...)
	for _, a := range agents {
		args = append(args, a.PID.String())
	}
	return programs(s).command(ctx, hc, args)
}

// listJobs shows the background commands of this shell. What has ended is shown once.
func (s builtins) listJobs(_ context.Context, hc *interp.HandlerContext, args []string) int {
	if len(args) > 0 && args[0] != "-l" {
		return s.fail(hc, exitUsage, "usage: jobs")
	}
	for _, j := range s.jobs.of(jobOf(hc), true) {
		_, _ = fmt.Fprintln(hc.Stdout, s.jobs.line(j))
		select {
		case <-j.done:
			s.jobs.take(j)
		default:
		}
	}
	return 0
}

// fg waits for a job as if it had been started without &.
func (s builtins) fg(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	word := "%"
	if len(args) > 0 {
		word = args[0]
	}
	j := s.jobs.find(word)
	if j == nil || len(args) > 1 {
		return s.fail(hc, exitError, "fg: there is no such job; see: jobs")
	}
	_, _ = fmt.Fprintln(hc.Stderr, j.text)
	code, _ := s.await(ctx, hc, j)
	return code
}

func (s builtins) bg(_ context.Context, hc *interp.HandlerContext, _ []string) int {
	return s.fail(hc, exitError, "bg: a job that was started with & is in the background already; resume a paused agent with: resume PID")
}

// disown forgets a job: wait and jobs do not know it any more.
func (s builtins) disown(_ context.Context, hc *interp.HandlerContext, args []string) int {
	if len(args) == 0 {
		args = []string{"%"}
	}
	for _, word := range args {
		j := s.jobs.find(word)
		if j == nil {
			return s.fail(hc, exitError, "disown: %s: no such job; see: jobs", word)
		}
		s.jobs.take(j)
	}
	return 0
}

func (s builtins) ulimit(_ context.Context, hc *interp.HandlerContext, _ []string) int {
	return s.fail(hc, exitUsage, "ulimit: the limits of this shell are fixed; for a program use: bash -c 'ulimit ...; exec PROGRAM', for an agent: spawn --max-steps N --budget N --timeout T")
}

// help shows what there is, or the help of one of our commands.
func (s builtins) help(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	if len(args) == 0 {
		_, _ = fmt.Fprint(hc.Stdout, s.cfg.Host.Help())
		return 0
	}
	if s.ours[args[0]] || systems[args[0]] || clashing[args[0]] {
		return programs(s).command(ctx, hc, append([]string{"help"}, args...))
	}
	return s.fail(hc, exitError, "help: there is none for %q; try: %s --help, man %s", args[0], args[0], args[0])
}

// history shows the lines that were typed, or the history of a process.
func (s builtins) history(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	if len(args) > 0 {
		return programs(s).command(ctx, hc, append([]string{"history"}, args...))
	}
	if s.typed == nil {
		return s.fail(hc, exitUsage, "history: name a process; the lines of a script are in its file")
	}
	for i, line := range s.typed() {
		_, _ = fmt.Fprintf(hc.Stdout, "%5d  %s\n", i+1, line)
	}
	return 0
}
