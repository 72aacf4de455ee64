package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"rnix/internal/chat"
	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

func chatCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:        "chat [PROCESS]",
		SuggestFor: []string{"talk", "repl", "interactive", "conversation"},
		Short:      "talk to an agent in the terminal: what rnix alone does there",
		Long: `Chat is a conversation with an agent. What you say first starts a process in this directory; it shows what
the agent says and does as it comes, asks you what it has to, and takes in what you say while it works. When
it has ended, your next message resumes it. What is complete stays in the terminal like any other output.

Enter sends, Alt+Enter begins a new line, Esc interrupts the agent, Ctrl+C twice or Ctrl+D leaves. Leaving
lets the agent work on: come back with rnix attach PROCESS, from any terminal, or with rnix -c, which goes
on with the last conversation of this directory. Several terminals can talk to one agent at once.

Type /help for all keys and commands. A file named with @ is given to the agent: a text as data, an image or
a PDF to look at. --attach does the same with the first message, also of a process that is there already.`,
		Example: examples(`rnix`, `rnix chat --model anthropic/claude-sonnet-4-5 --budget-usd 2`, `rnix chat --worktree --ask 'shell git push *'`,
			`rnix chat night`, `rnix -c "Now the tests"`),
		Annotations:       exits("0 1 2 10 12"),
		Args:              argsOf(0, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
	}
	o := runFlags(a, c)
	for _, name := range runOnly {
		c.Flags().Lookup(name).Hidden = true
	}
	last := c.Flags().BoolP("continue", "c", false, "continue the last conversation of this directory")
	c.RunE = func(c *cobra.Command, args []string) error {
		t := talk{o: o, target: strings.Join(args, ""), first: o.intent, last: *last}
		return t.start(c)
	}
	return c
}

func attachCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:        "attach [PROCESS]",
		SuggestFor: []string{"join", "reattach", "open"},
		Short:      "talk to a process that runs, is suspended or has ended",
		Long: `Attach is rnix chat with a process that is there already: it shows the end of its conversation and what it does
now. What you say reaches an agent that works before its next prompt, and resumes any other. Any number of
terminals can be attached to one process; all see the same, and the first answer to a question counts.

Without PROCESS you choose one from a list. Ctrl+D leaves; the agent works on.`,
		Example:           examples(`rnix attach night`, `rnix attach 3`, `rnix attach`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(0, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := noTalk(c.Flags().Changed); err != nil {
				return err
			}
			t := talk{o: &runOptions{app: a}, target: strings.Join(args, ""), choose: len(args) == 0}
			t.o.req.Cwd, t.o.req.Env = a.host.Dir, a.host.Environ
			return t.run(c.Context())
		},
	}
}

// talk is a conversation in the terminal, before it begins.
type talk struct {
	o      *runOptions
	target string           // the process; empty = a new one
	first  string           // what is said at once
	last   bool             // the last conversation of the directory is continued
	choose bool             // a person chooses the conversation
	given  []ipc.Attachment // with what is said first
}

// start begins a conversation with the flags of run.
func (t *talk) start(c *cobra.Command) error {
	changed := c.Flags().Changed
	if err := noTalk(changed, runOnly...); err != nil {
		return err
	}
	if t.target != "" || t.last {
		for _, name := range startFlags {
			if changed(name) {
				return usagef("leave it out, or begin a new conversation with: rnix chat", "--%s is for a new conversation; a process keeps what it was started with", name)
			}
		}
	}
	if t.target != "" && t.last {
		return usagef("", "-c and %s both say with whom you talk; give one", oneLine(t.target))
	}
	if err := t.o.settle(changed); err != nil {
		return err
	}
	var err error
	if t.given, err = attachments(t.o.app, t.o.attach); err != nil {
		return err
	}
	if t.o.req.Inputs, err = t.o.app.inputs(false, t.o.inputs); err != nil {
		return err
	}
	return t.run(c.Context())
}

// noTalk refuses flags that a conversation has no use for: those of all commands, and more.
func noTalk(changed func(string) bool, more ...string) error {
	for _, name := range append([]string{"json", "quiet", "verbose"}, more...) {
		if changed(name) {
			return usagef("leave it out, or use rnix run", "--%s is not for a conversation", name)
		}
	}
	return nil
}

// runOnly are the flags of run that a conversation has no use for: chat refuses them, and its help does not list them.
var runOnly = []string{"detach", "stdin", "output-format", "include-partial-messages", "result-last-line"}

// startFlags are the flags of run that say how a process is started.
var startFlags = []string{"agent", "provider", "harness", "tools", "session", "issue", "model", "fallback-provider", "fallback-model", "effort", "max-steps", "budget", "budget-usd",
	"timeout", "worktree", "branch", "base", "name", "label", "group", "allow", "deny", "ask", "asks", "sandbox", "net", "allow-host", "memory", "processes", "mcp", "no-mcp", "system-prompt", "trust-project", "parent", "input"}

// talks reports whether there is a terminal for a conversation.
func talks(a *app) bool { return screenCommand{a}.fullScreen() && a.host.Shell == nil }

// dumb reports whether there is a terminal that cannot do what a conversation needs.
func dumb(a *app) bool {
	return a.out.out.terminal && terminal(a.host.In) && a.getenv("TERM") == "dumb" && a.host.Shell == nil
}

// run talks until the person leaves.
func (t *talk) run(ctx context.Context) error {
	a := t.o.app
	if dumb(a) {
		return withMend(types.Errorf(types.ErrInvalid, "", "", "a conversation needs a terminal that can move its cursor, and this one (TERM=dumb) cannot"), `use rnix run "..."`)
	}
	if !talks(a) {
		return withMend(types.Errorf(types.ErrInvalid, "", "", "a conversation needs a terminal"), `use rnix run "...", or rnix resume --follow --new-input "..." PROCESS`)
	}
	a.noDashboard = true // what it says would be lost below the conversation
	fl, err := connectFollower(ctx, a)
	if err != nil {
		return err
	}
	if t.last {
		if t.target, err = lastHere(ctx, fl.client, t.o.req.Cwd); err != nil {
			return err
		}
	}
	s := screenCommand{a}
	o := chat.Options{Source: tui.NewSource(fl.client), In: a.host.In, Out: a.host.Out, Environ: a.host.Environ, Theme: s.theme(), Dir: t.o.req.Cwd,
		Spawn: t.o.req, Given: t.given, Target: t.target, First: t.first, Choose: t.choose}
	if t.target == "" && !t.choose {
		o.Hints = hints(ctx, fl.client, t.o)
	}
	o.Shell = ownShell(a, o.Dir)
	pasted, clean := clipboard(a)
	defer clean()
	o.Clipboard = pasted
	if p, err := a.places(); err == nil {
		path := chatHistory(p.DataDir)
		o.History, o.Remember = readHistory(path), func(text string) { remember(path, text) }
	}
	var one sync.Mutex // a follower is for one at a time
	o.Back = func(ctx context.Context) (tui.Source, error) {
		one.Lock()
		defer one.Unlock()
		err := fl.back(ctx)
		return tui.NewSource(fl.client), err
	}
	o.Left = func(ctx context.Context) bool {
		one.Lock()
		defer one.Unlock()
		return fl.left(ctx)
	}
	quiet := a.out.quiet
	a.filled.Store(true)
	a.out.quiet = true // the program alone writes to the terminal
	left, err := chat.Run(ctx, o)
	a.out.quiet = quiet
	if err == nil && left.Name != "" {
		state := "the conversation stays"
		if left.Working {
			state = "the agent works on"
		}
		a.out.talk("%s; come back with: rnix attach %s", state, shellWord(left.Name))
	}
	return err
}

// lastHere returns the conversation that changed last of those in a directory.
func lastHere(ctx context.Context, c *ipc.Client, dir string) (string, error) {
	r, err := ipc.Call(ctx, c, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		return "", err
	}
	list := chat.Conversations(r.Procs)
	i := slices.IndexFunc(list, func(p ipc.Proc) bool { return sameDir(p.WorkDir, dir) })
	if i < 0 {
		return "", withMend(types.Errorf(types.ErrNotFound, "", "", "there is no conversation in %s yet", oneLine(dir)), "begin one with: rnix chat, or choose one with: rnix attach")
	}
	return list[i].UUID.String(), nil
}

func sameDir(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, err := os.Stat(a)
	y, also := os.Stat(b)
	return err == nil && also == nil && os.SameFile(x, y)
}

// hints are the lines with which a new conversation begins: who answers, and how a model is connected if none is.
func hints(ctx context.Context, c *ipc.Client, o *runOptions) []string {
	req := ipc.ProvidersRequest{ProjectRequest: o.app.project(o.req.TrustProject), Agent: o.req.Agent, Provider: o.req.Provider}
	req.Cwd = o.req.Cwd
	r, err := ipc.Call(ctx, c, ipc.Providers, req)
	if err != nil {
		return nil // the first message says what is wrong
	}
	var model string
	for _, p := range r.Providers {
		if p.Name == r.Chosen {
			model = modelName(p.Name, p.Model)
		}
	}
	if o.req.Model != "" {
		model = oneLine(o.req.Model)
	}
	out := []string{"rnix in " + oneLine(o.req.Cwd) + " with " + model}
	if r.Chosen == "offline" && o.req.Model == "" {
		out = append(out, "No model is connected: the offline planner answers, which reports, searches and runs commands, but is no model.",
			"Connect one: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or have claude or cursor-agent in your PATH (see: rnix doctor).")
	}
	return append(out, "")
}
