package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

// maxInput is the longest new input in bytes.
const maxInput = 1 << 20

func resumeCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:        "resume PROCESS...",
		SuggestFor: []string{"continue", "restart", "fork", "unpause", "rewind"},
		Short:      "resume processes: paused, suspended, ended or killed ones",
		Long: `Resume continues each process where it stopped: one that is paused, one that is suspended on disk,
and one that has ended, however that came. It keeps its UUID, its conversation, what it has used and
its limits, unless a flag changes them. Its children, and processes waiting for it, resume too, but not what a
person has paused below it: that takes --subtree, which resumes a whole family as it is, in memory and on
disk. A time limit counts over all its runs; a fork begins it anew.

With --fork the original is not touched: a copy with its own UUID is started from the end of
step N with --from-step N, with the files as they were then, in its own directory. Without N it
is the last step that has ended; what has begun since is left out, and the copy is told what that was.

A call that was begun and has no result is in doubt: it is not known whether it has run. What does no harm is
run again, and what changed files is taken back first, where that can be. About the rest --on-in-doubt
decides: tell (the model is told to check), retry, skip (the model is told that it was not run), fail
(nothing is resumed), or ask, for each call, on a terminal.

With --waiting-for key it resumes all that wait for the key of their provider, with the keys of your
environment. A key in a file, or one that a command prints (see providers.yaml), wakes them without that.

Without a process, in a terminal, you choose one from a list and talk to it (see: rnix attach).
The command returns when the processes are resumed; with --follow it stays as run does, with its output and
its exit codes. With --json it answers with what has begun, an object for each process.`,
		Example: examples(`rnix resume night`, `rnix resume 3 --budget 200k --follow`, `rnix resume --fork --from-step 5 0191f3a2-7c3e`,
			`rnix resume 3 --new-input "The tests run now; go on"`, `rnix resume --fork --model other/model --name second night`,
			`rnix resume 3 --new-input "Make it like this" --attach shot.png`, `rnix resume --subtree 1`),
		Annotations: exits("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 124 129 130 143"),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && c.Flags().NFlag() == 0 && talks(a) {
				return nil // one is chosen
			}
			if c.Flags().Changed("waiting-for") {
				return argsOf(0, 0, "")(c, args)
			}
			return argsOf(1, -1, process)(c, args)
		},
		ValidArgsFunction: completeResumable(a),
	}
	o := &resumeOptions{app: a}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&o.req.Fork, "fork", false, "leave the original as it is and start a copy")
	f.IntVar(&o.fromStep, "from-step", 0, "the last step that the fork has; 0 = none of them")
	f.StringVar(&o.req.NewInput, "new-input", "", `something to say to it before it is resumed; "-" = standard input`)
	attachFlag(c, &o.attach)
	f.StringVar(&o.req.Provider, "provider", "", "another model provider (see: rnix providers)")
	f.StringVarP(&o.req.Model, "model", "m", "", "another model, or provider/model")
	f.StringVar(&o.req.FallbackProvider, "fallback-provider", "", "the provider when the first one fails")
	f.StringVar(&o.req.FallbackModel, "fallback-model", "", "the model when the first one fails")
	f.Var(&o.budget, "budget", "so many tokens more than it has used, such as 200k; 0 = unlimited")
	f.Var(&o.usd, "budget-usd", "so many dollars more than it has used, such as 2.50; 0 = unlimited")
	f.IntVar(&o.maxSteps, "max-steps", 0, "so many steps more than it has done; 0 = no limit")
	f.DurationVar(&o.timeout, "timeout", 0, "end it when it has lived so much longer, such as 10m; 0 = no limit")
	f.Var(ruleList{&o.req.Rules.Allow}, "allow", "do not ask you about such calls any more, e.g. 'shell go test *'; may be repeated")
	f.Var(ruleList{&o.req.Rules.Deny}, "deny", "deny such calls, e.g. 'shell git push *'; may be repeated")
	askFlags(c, &o.req.Rules, &o.req.Asks)
	confineFlags(c, &o.req.Sandbox, &o.req.Net, &o.req.Bounds, &o.req.Hosts)
	f.StringVarP(&o.req.Name, "name", "n", "", "a name for the fork")
	f.StringVarP(&o.cwd, "cwd", "C", "", "the directory in which the fork works, as it is")
	f.StringVar(&o.doubt, "on-in-doubt", "tell", "what becomes of calls in doubt: "+strings.Join(policies(), ", "))
	f.BoolVar(&o.req.TrustProject, "trust-project", false, "trust the files of its project: its MCP servers, providers and agents")
	f.BoolVar(&o.req.AcceptRights, "accept-rights", false, "believe what its history says about its rights, without a seal that fits")
	f.BoolVarP(&o.subtree, "subtree", "t", false, "all descendants too that are paused or suspended")
	f.StringVar(&o.waiting, "waiting-for", "", "all that are suspended for this reason: key")
	_ = c.RegisterFlagCompletionFunc("waiting-for", cobra.FixedCompletions([]string{string(types.SuspendKey)}, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVarP(&o.follow, "follow", "f", false, "stay with it until it ends, as run does")
	f.StringVar(&o.format, "output-format", "text", "text, json or, with --follow, stream-json")
	completeResume(a, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 && o.waiting == "" {
			t := talk{o: &runOptions{app: a}, choose: true}
			t.o.req.Cwd, t.o.req.Env = a.host.Dir, a.host.Environ
			return t.run(c.Context())
		}
		return o.run(c, args)
	}
	return c
}

// mayLast reports whether a time limit can be meant; 0 is none.
func mayLast(d time.Duration) bool { return d == 0 || d >= time.Millisecond }

// policies are the values of --on-in-doubt.
func policies() []string { return []string{"tell", "retry", "skip", "fail", ask} }

// ask is the policy that is not the daemon's: a person decides.
const ask = "ask"

// resumeOptions are the flags of resume.
type resumeOptions struct {
	app      *app
	req      ipc.ResumeRequest
	fromStep int
	maxSteps int
	timeout  time.Duration
	budget   count
	usd      money
	cwd      string
	doubt    string
	subtree  bool
	waiting  string // resume all that wait for this; "" = those that are named
	follow   bool
	format   string
	attach   []string // files
}

func (o *resumeOptions) run(c *cobra.Command, targets []string) error {
	a, ctx := o.app, c.Context()
	if err := o.check(c.Flags().Changed, targets); err != nil {
		return err
	}
	o.req.Tree = o.subtree
	if err := o.settle(c.Flags().Changed); err != nil {
		return err
	}
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	if o.waiting != "" {
		if targets, err = waitingFor(ctx, client, o.waiting); err != nil || len(targets) == 0 {
			if err == nil {
				a.out.talk("nothing waits for a key; see: rnix list-resumable")
			}
			return err
		}
	}
	for _, target := range targets {
		if len(targets) > 1 && strings.ContainsAny(target, " \n") { // a text behind a process; with one, nothing else is resumed in its place
			if _, err := ipc.Call(ctx, client, ipc.GetProcDetail, ipc.TargetRequest{Target: target}); types.CodeOf(err) == types.ErrNotFound {
				return usagef("nothing was resumed; what you say to a process goes with --new-input", "no process has the name %q", target)
			}
		}
	}
	var first error
	for _, target := range targets {
		req := o.req
		req.Target = target
		first = firstError(a.out, first, o.one(ctx, client, req), len(targets) > 1)
	}
	return first
}

// check refuses what cannot be meant, before anything is started for it.
func (o *resumeOptions) check(changed func(string) bool, targets []string) error {
	if _, err := asksOf(o.app, o.req.Asks, false); err != nil {
		return err
	}
	switch o.format {
	case "text", "json":
	case "stream-json":
		if !o.follow {
			return usagef("add --follow, or use --json", "--output-format stream-json shows what the process does while it is followed")
		}
	default:
		return usagef("", "invalid --output-format %q: want one of text, json, stream-json", o.format)
	}
	for _, name := range []string{"from-step", "name", "cwd"} {
		if changed(name) && !o.req.Fork {
			return usagef("add --fork; the original is not touched by it", "--%s is for a fork: a resumed process keeps what it has", name)
		}
	}
	for _, name := range []string{"from-step", "name", "cwd", "follow"} {
		if changed(name) && len(targets) > 1 {
			return usagef("resume one after the other; what you say to a process goes with --new-input", "--%s fits one process only, and %s are named", name, number(len(targets)))
		}
	}
	if o.waiting != "" {
		for _, name := range []string{"fork", "new-input", "attach", "follow", "subtree", "on-in-doubt"} {
			if changed(name) {
				return usagef("name the processes, or leave it out", "--%s is for processes that are named, not for all that wait for a key", name)
			}
		}
	}
	if o.subtree {
		for _, name := range []string{"fork", "new-input", "attach", "provider", "model", "fallback-provider", "fallback-model", "budget", "budget-usd", "max-steps", "timeout",
			"follow"} {
			if changed(name) {
				return usagef("resume without --subtree changes a process", "--subtree resumes a family as it is, so --%s cannot be given with it", name)
			}
		}
	}
	switch {
	case o.fromStep < 0:
		return usagef("", "--from-step %d is negative; 0 means that the fork begins anew", o.fromStep)
	case changed("timeout") && !mayLast(o.timeout):
		return usagef("", "--timeout %s: give a time such as 90s or 10m, or 0 for no limit", o.timeout)
	case o.maxSteps < 0:
		return usagef("", "--max-steps %d is negative; 0 means no limit", o.maxSteps)
	}
	for _, p := range policies() {
		if o.doubt == p {
			return nil
		}
	}
	return usagef("", "invalid --on-in-doubt %q: want one of %s", o.doubt, strings.Join(policies(), ", "))
}

// settle fills in the request from the flags and the environment.
func (o *resumeOptions) settle(changed func(string) bool) error {
	a := o.app
	a.out.format = max(a.out.format, map[string]format{"json": asJSON, "stream-json": asStream}[o.format])
	o.req.Env = a.host.Environ
	if changed("from-step") {
		o.req.FromStep = &o.fromStep
	}
	if changed("max-steps") {
		o.req.MaxSteps = &o.maxSteps
	}
	if changed("timeout") {
		o.req.TimeoutMs = new(o.timeout.Milliseconds())
	}
	if changed("budget") {
		n := int(o.budget)
		o.req.Budget = &n
	}
	if changed("budget-usd") {
		usd := price.USD(o.usd).Float()
		o.req.BudgetUSD = &usd
	}
	if o.cwd != "" {
		o.req.Cwd = o.cwd
		if !filepath.IsAbs(o.cwd) {
			o.req.Cwd = filepath.Join(a.host.Dir, o.cwd)
		}
	}
	if o.req.OnInDoubt = o.doubt; o.doubt == ask {
		o.req.OnInDoubt = "fail" // and if it does, the calls are asked for
	}
	if !changed("new-input") {
		if len(o.attach) > 0 {
			return usagef("say what the agent should do with it: --new-input TEXT", "--attach goes along with --new-input")
		}
		return nil
	}
	var err error
	if o.req.Attachments, err = attachments(a, o.attach); err != nil {
		return err
	}
	if o.req.NewInput == "-" {
		data, err := a.stdin("the new input", maxInput)
		if err != nil {
			return err
		}
		o.req.NewInput = strings.TrimRight(string(data), "\n")
	}
	switch text := o.req.NewInput; {
	case strings.TrimSpace(text) == "":
		return usagef("leave --new-input out if there is nothing to say", "the new input is empty")
	case len(text) > maxInput:
		return usagef("put the text into a file and tell the agent to read it", "the new input has more than the %s bytes that are allowed", number(maxInput))
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return usagef("put the data into a file and tell the agent to read it", "the new input is not text in UTF-8")
	}
	return nil
}

// one resumes one process. With ask it is tried first: most have nothing in doubt.
func (o *resumeOptions) one(ctx context.Context, c *ipc.Client, req ipc.ResumeRequest) error {
	err := o.attempt(ctx, c, req)
	if o.doubt == ask && types.CodeOf(err) == types.ErrInDoubt {
		if req.Choices, err = o.app.askInDoubt(ctx, c, &req, o.attach, err); err != nil {
			return err
		}
		req.OnInDoubt = "tell" // of the processes that go on with it
		err = o.attempt(ctx, c, req)
	}
	return resumeMend(ctx, c, &req, o.attach, err)
}

// attempt resumes a process, and stays with it if that is wanted.
func (o *resumeOptions) attempt(ctx context.Context, c *ipc.Client, req ipc.ResumeRequest) error {
	out := o.app.out
	if !o.follow {
		r, err := ipc.Call(ctx, c, ipc.Resume, req)
		if err != nil {
			return err
		}
		if out.json() {
			out.object(&r)
		}
		showResumed(out, &r, false)
		out.talk("[kernel] PID %d works on its own; see: rnix log -f %d, rnix wait %d", r.PID, r.PID, r.PID)
		return nil
	}
	fl, err := following(o.app, c)
	if err != nil {
		return err
	}
	return o.app.withInterrupts(func(sigs <-chan os.Signal) error {
		since := time.Now()
		r, by, err := begin(ctx, c, out, ipc.Resume, req, sigs)
		if err != nil {
			return err
		}
		out.exact = r.Schema
		w := newWatch(out, r.SpawnResponse, ipc.SpawnRequest{Cwd: r.WorkDir})
		if out.lines != nil {
			out.lines.since = since
		}
		showResumed(out, &r, true)
		w.streams(ctx, fl.client)
		return w.follow(ctx, fl, sigs, by)
	})
}

// resumeMend adds to the error of a resume what to do about it: the command, as far as it is known.
func resumeMend(ctx context.Context, c *ipc.Client, req *ipc.ResumeRequest, attach []string, err error) error {
	target, again := req.Target, againText(req, attach)
	if e, ok := errors.AsType[*types.SyscallError](err); ok && e.Syscall == "Provider" {
		if req.Provider == "" && req.Model == "" && req.FallbackProvider == "" { // it had this one before, and it is not set up any more
			err = &exitError{ExitNoModel, err}
		}
		return withMend(err, fmt.Sprintf("set it up, or resume with another one: rnix resume %s --provider NAME (see: rnix providers)", oneLine(target)))
	}
	switch types.CodeOf(err) {
	case types.ErrNotFound:
		if e, ok := errors.AsType[*types.SyscallError](err); ok && req.Cwd != "" && e.Device == req.Cwd { // it is the directory
			return withMend(err, "name one that is there with --cwd DIR, or leave it out for a copy of the files")
		}
		if req.Tree { // the head of a family that has ended is no head any more
			if p, perr := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: target}); perr == nil {
				return withMend(err, fmt.Sprintf("to resume it alone, where it stopped: rnix resume %d", p.PID))
			}
		}
		return withMend(err, "what can be resumed is listed by: rnix list-resumable")
	case types.ErrConflict:
		return withMend(err, fmt.Sprintf("rnix wait %[1]s waits for its end, rnix pause %[1]s stops it, rnix resume --fork %[1]s makes a copy", target))
	case types.ErrInDoubt:
		return undecided(ctx, c, req, attach, err)
	case types.ErrExhausted:
	default:
		return err
	}
	p, perr := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: target})
	switch {
	case perr != nil:
		return err
	case p.ContextBudget > 0 && p.TokensUsed >= p.ContextBudget:
		return withMend(&exitError{ExitBudget, err}, tokenMend(&p.Proc, again))
	case p.BudgetUSD > 0 && p.CostUSD >= p.BudgetUSD:
		return withMend(&exitError{ExitBudget, err}, dollarMend(&p.Proc, again))
	case p.ContextBudget > 0 || p.BudgetUSD > 0: // its children have used the rest
		return withMend(&exitError{ExitBudget, err}, budgetMend(&p.Proc, again))
	case p.Purse != nil:
		return withMend(&exitError{ExitBudget, err}, purseMend(&p.Proc))
	case p.MaxSteps > 0 && p.Step >= p.MaxSteps:
		return withMend(&exitError{ExitAgentFailed, err}, fmt.Sprintf("%s --max-steps %d", again, p.MaxSteps))
	case p.Exit != nil:
		if limit, late := p.Exit.TimedOut(); late {
			return withMend(&exitError{ExitTimeout, err}, again+" --timeout "+limit)
		}
	}
	return err
}
