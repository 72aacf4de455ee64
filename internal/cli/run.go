package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"rnix/internal/ash"
	"rnix/internal/config"
	"rnix/internal/price"
	"rnix/internal/schema"
	"rnix/internal/yamlfile"
	"rnix/ipc"
	"rnix/types"
)

// maxIntent is the longest intent in bytes. What is longer belongs in a file that the agent reads.
const maxIntent = 1 << 20

func runCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "run [intent]",
		Short: "start an agent and show what it does until it ends",
		Long: `Run starts an agent that works on the intent in the current directory, shows each of its steps on
standard error, and writes its result to standard output. Below a step it shows what edits have changed in
files: the beginning of each, and the command that shows all. It shows what the model says beside its calls,
on a terminal all that it says, as it comes; and with -v what it thinks. The result is written once.

The intent is the arguments, or standard input with "-" or when nothing is given and standard input is
not a terminal. With a "-" beside an intent, or with --stdin, standard input is data to work on: the agent
is told it as [PIPE_INPUT], marked as data and not as instructions, and --input adds files in the same way.
--attach shows an image or a PDF to the model, if it takes them.
What is long is cut there, and whole in /proc/<process>/inputs. Standard input is read only when that is
said, so that a run in a script or a loop neither waits for nor swallows what is meant for others.

Ctrl+C asks the agent and its children to stop: they end before their next action, and everything until
then is on record. A second Ctrl+C leaves at once. With --detach, or when the terminal is closed, the
agent runs on without you. If the daemon crashes, run starts it again and stays with the agent; one that
was stopped it waits for (RNIX_DAEMON_WAIT, default 30s).

--output-format json writes one object at the end:
  {"ok":true,"data":{"pid","uuid","result","tokens_used","elapsed_ms","exit_code",...}}
or {"ok":false,"error":{"code","message","syscall","device"},"data":{...}}.
stream-json writes lines in the form of those of claude -p --output-format stream-json: a "system" with the
subtype "init", the messages of the agent ("assistant", "user"), with --include-partial-messages what the
model says as it comes ("stream_event"), and one "result". Events are in lines of type "system" with the
subtype "rnix_event".`,
		Example: examples(`rnix run "Report on this project"`, `rnix run --agent assistant --budget 200k "Fix issue 12"`,
			`rnix run --detach --name night "Review all TODOs"; rnix log -f night`,
			`git diff | rnix run - "Review this"`, `rnix run "Analyze the code" | rnix run - "Generate docs"`,
			`rnix run --input plan=plan.md --input log=ci.log "Which step of the plan failed?"`, `rnix run --provider offline --timeout 30s "Find ListenUnix"`),
		Annotations: exits("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 124 129 130 143"),
		Args:        cobra.ArbitraryArgs,
	}
	o := runFlags(a, c)
	c.RunE = func(c *cobra.Command, args []string) error { return o.start(c, args) }
	return c
}

// runOptions are the flags of run.
type runOptions struct {
	app      *app
	req      ipc.SpawnRequest
	intent   string
	stdin    bool
	asks     string
	inputs   []string
	harness  string
	maxSteps int
	budget   count
	usd      money
	cwd      string
	tree     bool
	branch   string
	base     string
	detach   bool
	timeout  time.Duration
	format   string
	partial  bool
	schema   string
	attach   []string // files
}

func runFlags(a *app, c *cobra.Command) *runOptions {
	o := &runOptions{app: a}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&o.intent, "intent", "i", "", "what is to be done, instead of the arguments")
	f.BoolVar(&o.stdin, "stdin", false, "standard input is data for the agent to work on (as a \"-\" beside the intent)")
	f.StringArrayVar(&o.inputs, "input", nil, "a file for the agent to work on, as `NAME=FILE`; may be repeated")
	attachFlag(c, &o.attach)
	f.StringVarP(&o.req.Agent, "agent", "a", "", "the agent (see: rnix agents)")
	f.StringVar(&o.req.Provider, "provider", "", "the provider of the agent, and of its children that name none (see: rnix providers)")
	f.StringVar(&o.harness, "harness", "", "run a whole agent command line as the process: claude, codex or opencode")
	f.StringVar(&o.req.Tools, "tools", "", "with --harness: own (the CLI's tools and Rnix's; the default) or kernel (Rnix's alone, e.g. read_file, shell)")
	f.StringVar(&o.req.Session, "session", "", "for a control plane (config.yaml: platform): hold the lease of the session `ID`, and report to it")
	f.StringVar(&o.req.Issue, "issue", "", "with --session: the `ID` of the issue of the control plane on which the session works")
	f.StringVarP(&o.req.Model, "model", "m", "", "the model of the agent, or provider/model; also of its children that name none")
	f.StringVar(&o.req.FallbackProvider, "fallback-provider", "", "the provider when the first one fails")
	f.StringVar(&o.req.FallbackModel, "fallback-model", "", "the model when the first one fails")
	f.StringVar(&o.req.Effort, "effort", "", "how long the model thinks: low, medium, high, or what the provider calls it")
	f.IntVar(&o.maxSteps, "max-steps", 0, "end after so many steps; 0 = no limit")
	f.Var(&o.budget, "budget", "tokens over the life of the agent and its children, such as 200k; 0 = unlimited")
	f.Var(&o.usd, "budget-usd", "the same in dollars, such as 2.50; 0 = unlimited")
	f.DurationVar(&o.timeout, "timeout", 0, "end the agent when it has lived so long, such as 10m; time stopped or paused does not count")
	f.StringVarP(&o.cwd, "cwd", "C", "", "the directory to work in")
	f.BoolVar(&o.tree, "worktree", false, "work in its own git worktree, on its own branch (see: rnix worktree)")
	f.StringVar(&o.branch, "branch", "", "with --worktree: the branch, new or not checked out anywhere (default rnix/NAME)")
	f.StringVar(&o.base, "base", "", "with --worktree: the commit or branch at which a new branch begins (default HEAD)")
	f.StringVarP(&o.req.Name, "name", "n", "", "a name for the process")
	f.Var(labelFlag{&o.req.Labels}, "label", "a label to find the process by, as `KEY=VALUE`, e.g. env=prod; may be repeated")
	f.StringVar(&o.req.Group, "group", "", "a process group, by number or name, that it is in from the beginning")
	f.BoolVarP(&o.detach, "detach", "d", false, "do not wait: print the PID and leave the agent to work")
	f.Var(deviceList{&o.req.AllowedDevices, false, &o.req.Rules.Allow}, "allow", "a path, e.g. /dev/fs: only these devices; else a rule, e.g. 'shell go test *': such calls without asking")
	f.Var(deviceList{&o.req.DeniedDevices, true, &o.req.Rules.Deny}, "deny", "a path, e.g. /dev/shell: not these devices; else a rule, e.g. 'shell git push *': not such calls")
	askFlags(c, &o.req.Rules, &o.asks)
	confineFlags(c, &o.req.Sandbox, &o.req.Net, &o.req.Bounds, &o.req.Hosts)
	f.StringSliceVar(&o.req.MCP, "mcp", nil, "mount this MCP server too; may be repeated")
	f.BoolVar(&o.req.NoMCP, "no-mcp", false, "no MCP servers but those of --mcp: not those of the agent or of .mcp.json")
	f.StringVar(&o.req.SystemPrompt, "system-prompt", "", "a text that goes before the agent's own instructions")
	f.BoolVar(&o.req.TrustProject, "trust-project", false, "trust the files of this project: its MCP servers, providers and agents")
	f.StringVar(&o.req.Parent, "parent", "", "the parent process (default: the agent in which this runs)")
	f.StringVar(&o.schema, "output-schema", "", "a file with a JSON Schema: the result is JSON that fits it, and nothing else is printed")
	_ = c.MarkFlagFilename("output-schema", "json")
	f.BoolVar(&a.out.lastLine, "result-last-line", false, "print only the last non-empty line of the result")
	f.StringVar(&o.format, "output-format", "text", "text, json or stream-json")
	f.BoolVar(&o.partial, "include-partial-messages", false, "with stream-json: what the model says as it comes, too")
	completeRun(a, c)
	return o
}

// start reads what the flags say, connects, and runs.
func (o *runOptions) start(c *cobra.Command, args []string) error {
	a := o.app
	if o.format != "text" && o.format != "json" && o.format != "stream-json" {
		return usagef("", "invalid --output-format %q: want one of text, json, stream-json", o.format)
	}
	if o.partial && o.format != "stream-json" {
		return usagef("add --output-format stream-json", "--include-partial-messages needs --output-format stream-json")
	}
	a.out.format = max(a.out.format, map[string]format{"json": asJSON, "stream-json": asStream}[o.format])
	if err := o.settle(c.Flags().Changed); err != nil {
		return err
	}
	given := c.Flags().Changed("intent")
	args, stdin := takeStdin(args, given)
	stdin = stdin || o.piped(given || len(args) > 0 && args[0] != "-")
	if stdin = stdin || o.stdin; stdin && !given && (len(args) == 0 || args[0] == "-") {
		return usagef(`say what is to be done with it: rnix run - "..."`, "there is no intent beside standard input")
	}
	if !given {
		if err := noScript(a, args); err != nil {
			return err
		}
	}
	o.leftUnread(stdin)
	var err error
	if o.req.Intent, err = a.intent(args, o.intent, given); err != nil {
		return err
	}
	if o.req.Inputs, err = a.inputs(stdin, o.inputs); err != nil {
		return err
	}
	if o.req.Attachments, err = attachments(a, o.attach); err != nil {
		return err
	}
	fl, err := connectFollower(c.Context(), a)
	if err != nil {
		return err
	}
	return a.withInterrupts(func(sigs <-chan os.Signal) error {
		return runAgent(c.Context(), fl, a.out, o.req, o.detach, o.partial, sigs, a.host.Shell)
	})
}

// settle fills in the request from the flags and the environment.
func (o *runOptions) settle(changed func(string) bool) error {
	a := o.app
	if changed("max-steps") {
		if o.maxSteps < 0 {
			return usagef("", "--max-steps %d is negative; 0 means no limit", o.maxSteps)
		}
		o.req.MaxSteps = &o.maxSteps
	}
	if changed("harness") {
		if o.req.Provider != "" {
			return usagef("", "--harness %s and --provider %s both say who works; give one", o.harness, o.req.Provider)
		}
		if !slices.Contains(config.Harnesses(), o.harness) {
			return usagef("", "invalid --harness %q: want one of %s", o.harness, strings.Join(config.Harnesses(), ", "))
		}
		o.req.Provider = config.HarnessProvider(o.harness)
	}
	if changed("budget") {
		n := int(o.budget)
		o.req.ContextBudget = &n
	}
	if changed("budget-usd") {
		usd := price.USD(o.usd).Float()
		o.req.BudgetUSD = &usd
	}
	if changed("timeout") && o.timeout < time.Millisecond {
		return usagef("", "--timeout %s: give a time such as 90s or 10m", o.timeout)
	}
	o.req.TimeoutMs = o.timeout.Milliseconds()
	o.req.Cwd = a.host.Dir
	if o.cwd != "" {
		o.req.Cwd = o.cwd
		if !filepath.IsAbs(o.cwd) {
			o.req.Cwd = filepath.Join(a.host.Dir, o.cwd)
		}
	}
	var err error
	if changed("output-schema") {
		if o.req.OutputSchema, err = schemaFile(a, o.schema); err != nil {
			return err
		}
		if a.out.lastLine {
			return usagef("", "--result-last-line would print a part of the JSON that --output-schema asks for; leave one out")
		}
		a.out.exact = true
	}
	if o.req.Asks, err = asksOf(a, o.asks, !o.detach); err != nil {
		return err
	}
	if changed("issue") && o.req.Session == "" {
		return usagef("add --session ID", "--issue is about a session of the platform, and none is asked for")
	}
	if !o.tree && (changed("branch") || changed("base")) {
		return usagef("add --worktree", "--branch and --base are about a git work tree, and none is asked for")
	}
	if o.tree {
		o.req.Worktree = &ipc.WorktreeRequest{Branch: o.branch, Base: o.base}
	}
	if !changed("parent") {
		o.req.Parent = a.inherited()
	}
	o.req.Env = a.host.Environ
	return nil
}

// schemaFile reads a JSON Schema.
func schemaFile(a *app, name string) (json.RawMessage, error) {
	b, err := yamlfile.ReadFile(absolutePath(a, name), schema.Max+1)
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "", name, "cannot read the schema of --output-schema: %w", yamlfile.Cause(err))
	}
	if _, err := schema.Parse(b); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "", name, "%w", err)
	}
	return b, nil
}

// intent returns what is to be done: the flag, the arguments, or standard input.
func (a *app) intent(args []string, flag string, given bool) (string, error) {
	text := strings.Join(args, " ")
	switch {
	case given && len(args) > 0:
		return "", usagef("", "the intent is given twice: by --intent and as an argument (%s)", cut(oneLine(text), 40))
	case given:
		text = flag
	case len(args) == 1 && args[0] == "-", len(args) == 0 && !terminal(a.host.In):
		data, err := a.stdin("the intent", maxIntent)
		if err != nil {
			return "", err
		}
		text = string(data)
	case len(args) == 0:
		return "", usagef(`say what is to be done: rnix run "..."`, "there is no intent")
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", usagef(`say what is to be done: rnix run "..."`, "the intent is empty")
	case len(text) > maxIntent:
		return "", usagef("put the text into a file and tell the agent to read it", "the intent has %s bytes and %s are allowed", number(len(text)), number(maxIntent))
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", usagef("put the data into a file and tell the agent to read it", "the intent is not text in UTF-8")
	}
	return text, nil
}

// stdinSilence is after what time it is said that standard input is being waited for.
const stdinSilence = 2 * time.Second

// stdin reads standard input to its end, at most limit bytes and one.
func (a *app) stdin(what string, limit int64) ([]byte, error) {
	t := time.AfterFunc(stdinSilence, func() { a.out.talk("reading %s from standard input, up to its end", what) })
	defer t.Stop()
	data, err := io.ReadAll(io.LimitReader(a.host.In, limit+1))
	if err != nil {
		return nil, usagef("", "read standard input: %w", err)
	}
	return data, nil
}

func terminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && isTerminal(f)
}

// count is a number with a unit that people write: 200k, 1.5M.
type count int

func (n *count) String() string { return strconv.Itoa(int(*n)) }
func (n *count) Type() string   { return "tokens" }

// Set reads a number of at least 0, with k or M behind it.
func (n *count) Set(s string) error {
	digits, unit := s, 1.0
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			digits, unit = s[:len(s)-1], 1e3
		case 'm', 'M':
			digits, unit = s[:len(s)-1], 1e6
		}
	}
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(x >= 0 && x*unit <= 1e15) || strings.ContainsAny(digits, "eExXpP_iInN") {
		return errors.New("want a number of tokens such as 50000, 200k or 1.5M")
	}
	*n = count(x * unit)
	return nil
}

// runAgent spawns a process and stays with it until it ends, as the format of out asks.
func runAgent(ctx context.Context, fl *follower, out *output, req ipc.SpawnRequest, detach, partial bool, sigs <-chan os.Signal, sh *ash.Call) error {
	s, by, err := begin(ctx, fl.client, out, ipc.Spawn, req, sigs)
	if err != nil {
		return err
	}
	if sh != nil {
		sh.Spawned(s)
	}
	w := newWatch(out, s, req)
	if w.out.lines != nil {
		w.out.lines.partial = partial
	}
	w.began(ctx, fl.client)
	if detach && by == nil {
		return w.detached()
	}
	err = w.follow(ctx, fl, sigs, by)
	if sh != nil && !w.left {
		sh.Ended(s)
	}
	return err
}

// noScript refuses the name of a script that is there as an intent: an agent would be asked to do "t.ash".
func noScript(a *app, args []string) error {
	if len(args) != 1 || filepath.Ext(args[0]) != ".ash" {
		return nil
	}
	path := args[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.host.Dir, path)
	}
	if st, err := os.Stat(path); err != nil || st.IsDir() {
		return nil
	}
	return usagef("run it with: rnix sh "+shellWord(args[0]), "%s is a script and no intent (an intent that reads so is given by --intent)", oneLine(args[0]))
}
