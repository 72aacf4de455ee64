package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rnix/types"
)

// newRoot makes the tree of commands: of those on the first floor only the one that the arguments
// name, if they do, since most of the time that a short command takes goes into making the others.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   a.host.Name + ` ["intent"]`,
		Short: "run AI agents the way Unix runs processes",
		Long: `Rnix runs AI agents as processes: with PIDs, signals, a file system and a record on disk of
everything that they do. Give it an intent in quotes, and an agent works on it in this directory; without
one, in a terminal, it is a conversation (see: rnix chat).

Processes are named by PID, by a UUID or its beginning or end, or by name.`,
		Example: examples(`rnix`, `rnix "Report on this project"`,
			`rnix "Fix the failing test" --agent assistant --max-steps 30`,
			`rnix run --detach --name night "Review all open TODOs"`,
			`rnix ps`, `rnix log -f night`, `rnix resume night`),
		Version:       a.host.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	f := root.PersistentFlags()
	f.Bool("json", false, "answer in JSON: one object, or one per line where things are listed")
	f.BoolVarP(&a.out.quiet, "quiet", "q", false, "the answer only, no progress")
	f.BoolVarP(&a.out.verbose, "verbose", "v", false, "more detail")
	f.Bool("no-color", false, "no colours (as NO_COLOR does)")
	root.PersistentPreRun = func(c *cobra.Command, _ []string) {
		a.ran = true
		if on, _ := c.Flags().GetBool("json"); on && a.out.format == asText {
			a.out.format = asJSON
		}
		if on, _ := c.Flags().GetBool("no-color"); on {
			a.out.out.color, a.out.err.color = false, false
		}
	}
	root.AddGroup(&cobra.Group{ID: "run", Title: "Run and steer agents:"}, &cobra.Group{ID: "see", Title: "See what they do:"},
		&cobra.Group{ID: "set", Title: "Set up and check:"})
	addCommands(a, root)
	root.SetHelpCommand(helpCmd(a, root))
	root.SetHelpFunc(showHelp(root.HelpFunc(), a))
	return root
}

// entry is a command that can be made.
type entry struct {
	names string // separated by blanks; the first one is the usual one
	group string
	make  func(*app) *cobra.Command
}

func entries() []entry {
	return slices.Concat(topics(), []entry{
		{"run", "run", runCmd}, {"chat", "run", chatCmd}, {"attach", "run", attachCmd}, {"wait", "run", waitCmd}, {"kill", "run", killCmd}, {"group groups", "run", groupCmd}, {"pause", "run", pauseCmd}, {"resume", "run", resumeCmd}, {"rename", "run", renameCmd}, {"compact", "run", compactCmd},
		{"compose", "run", composeCmd},
		{"list-resumable", "run", listResumableCmd}, {"budget", "run", budgetCmd}, {"cost", "see", costCmd}, {"supervise", "run", superviseCmd},
		{"send", "run", sendCmd}, {"steer", "run", steerCmd}, {"allow", "run", allowCmd}, {"deny", "run", denyCmd}, {"answer", "run", answerCmd}, {"asks", "see", asksCmd}, {"recv", "run", recvCmd}, {"mailbox", "see", mailboxCmd},
		{"ps list", "see", psCmd}, {"web", "see", webCmd}, {"log logs", "see", logCmd}, {"strace", "see", straceCmd}, {"steps", "see", stepsCmd},
		{"heartbeat", "see", heartbeatCmd}, {"ctx", "see", ctxCmd}, {"trace", "see", traceCmd},
		{"worktree", "run", worktreeCmd}, {"merge", "run", mergeCmd},
		{"ledger", "see", ledgerCmd}, {"history", "see", historyCmd}, {"diff", "see", diffCmd}, {"compare", "see", compareCmd}, {"restore", "run", restoreCmd},
		{"cat", "see", catCmd}, {"ls", "see", lsCmd}, {"write", "see", writeCmd},
		{"agents", "set", agentsCmd}, {"skills", "set", skillsCmd}, {"tools", "set", toolsCmd}, {"mcp", "set", mcpCmd}, {"trust", "set", trustCmd}, {"notify", "set", notifyCmd}, {"providers", "set", providersCmd}, {"models", "set", modelsCmd},
		{"gc", "set", gcCmd}, {"keep", "set", keepCmd}, {"unarchive", "set", unarchiveCmd}, {"rm", "set", rmCmd}, {"du", "set", duCmd}, {"fsck", "set", fsckCmd},
		{"test", "set", testCmd},
		{"init", "set", initCmd}, {"doctor", "set", doctorCmd}, {"sandbox", "set", sandboxCmd}, {"daemon", "set", daemonCmd}, {"serve", "set", serveCmd}, {"version", "set", versionCmd},
		{"completion", "set", completionCmd},
		{"top", "see", topCmd}, {"dashboard", "see", dashboardCmd},
		{"sh", "run", shCmd}, {"spawn", "", spawnCmd}, {shChild, "", shChildCmd},
	})
}

// addCommands adds the command that the arguments name, or else all of them and what the program
// does without one.
func addCommands(a *app, root *cobra.Command) {
	list := entries()
	for _, e := range list {
		if len(a.host.Args) > 0 && slices.Contains(strings.Fields(e.names), a.host.Args[0]) {
			list = []entry{e}
			break
		}
	}
	for _, e := range list {
		c := e.make(a)
		c.GroupID = e.group
		root.AddCommand(c)
	}
	if len(list) > 1 {
		rootRun(a, root)
	}
}

// rootRun makes a quoted intent an argument of the program itself.
func rootRun(a *app, root *cobra.Command) {
	o := runFlags(a, root)
	last := root.Flags().BoolP("continue", "c", false, "continue the last conversation of this directory (see: rnix chat)")
	root.RunE = func(c *cobra.Command, args []string) error {
		if *last {
			t := talk{o: o, first: cmp.Or(strings.Join(args, " "), o.intent), last: true}
			return t.start(c)
		}
		if len(args) == 0 && !c.Flags().Changed("intent") {
			if talks(a) || dumb(a) {
				t := talk{o: o}
				return t.start(c)
			}
			if c.Flags().NFlag() == 0 {
				return c.Help()
			}
			return usagef(`say what is to be done: rnix "..."`, "there is no intent")
		}
		words, _ := takeStdin(args, false)
		if err := bareIntent(words, func(word string) []string { return similar(root, word) }); err != nil {
			return err
		}
		return o.start(c, args)
	}
}

// bareIntent refuses arguments that look more like a mistyped command than like an intent: what a slip
// of the finger starts may cost money.
func bareIntent(args []string, similar func(string) []string) error {
	if len(args) == 0 || args[0] == "-" && len(args) == 1 {
		return nil
	}
	word := args[0]
	if len(args) == 1 && strings.TrimSpace(word) == "" {
		return usagef(`say what is to be done: rnix "..."`, "the intent is empty")
	}
	if len(args) == 1 && (strings.ContainsAny(strings.TrimSpace(word), " \t\n") || !asciiWord(word)) {
		return nil
	}
	mend := `an intent of one word is given with: rnix run ` + strconv.Quote(word)
	if near := similar(word); len(near) > 0 {
		mend = "did you mean: rnix " + strings.Join(near, ", or rnix ")
	} else if len(args) > 1 {
		mend = `if all of this is an intent, put it in quotes: rnix "` + word + ` ..."`
	}
	return usagef(mend, "unknown command %q", word)
}

// asciiWord reports whether s could be the name of a command. An intent in a language that is written
// without blanks could not.
func asciiWord(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// formatOf returns the form of the answer that the arguments ask for, so that even an error in the
// arguments has it.
func formatOf(args []string) format {
	f := asText
	for i, arg := range args {
		value, has := strings.CutPrefix(arg, "--output-format=")
		switch {
		case arg == "--":
			return f
		case arg == "--output-format" && i+1 < len(args):
			value, has = args[i+1], true
		case arg == "--json" || arg == "--json=true":
			f = max(f, asJSON)
		}
		if has {
			f = max(f, map[string]format{"json": asJSON, "stream-json": asStream}[value])
		}
	}
	return f
}

// signalFlags turns `kill -9` and `kill -TERM` into `kill --signal=TERM`.
func signalFlags(args []string) []string {
	out := make([]string, 0, len(args))
	kill := false
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if !kill {
			kill = arg == "kill" && onlyFlags(args[:i])
			out = append(out, arg)
			continue
		}
		if len(arg) > 1 && arg[0] == '-' && arg[1] != '-' {
			if sig, err := types.ParseSignal(arg); err == nil {
				arg = "--signal=" + sig.String()
			} else if strings.ToUpper(arg) == arg {
				arg = "--signal=" + arg[1:] // no flag has a capital letter or is a number
			}
		}
		out = append(out, arg)
	}
	return out
}

func onlyFlags(args []string) bool {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			return false
		}
	}
	return true
}

// exitsKey is the annotation of a command that lists its exit codes, separated by blanks.
const exitsKey = "exits"

func exits(codes string) map[string]string { return map[string]string{exitsKey: codes} }

func codesHelp(codes string) string {
	var b strings.Builder
	for _, r := range exitTable() {
		for c := range strings.FieldsSeq(codes) {
			if c == strconv.Itoa(r.code) {
				fmt.Fprintf(&b, "  %3d  %s\n", r.code, r.text)
			}
		}
	}
	return b.String()
}

// examples returns one example per line.
func examples(lines ...string) string { return "  " + strings.Join(lines, "\n  ") }

const environmentHelp = `  RNIX_DATA_DIR       where histories are kept (default ~/.rnix/data)
  RNIX_UUID, RNIX_PARENT_PID
                      the parent of what run starts; set for the commands of agents, as is RNIX_DATA_DIR,
                      by which they reach the daemon that runs the agent
  RNIX_CHANNEL        set for the commands of agents alone: the descriptor over which they reach that daemon
  RNIX_ROAD           set for agent CLIs in the sandbox: the address at which what they start reaches it
  RNIX_DEFAULT_AGENT  the agent when none is named
  RNIX_MAX_STEPS, RNIX_MAX_FAILED_STEPS, RNIX_CONTEXT_BUDGET, RNIX_BUDGET_USD, RNIX_SHELL_TIMEOUT,
  RNIX_CONCURRENCY, RNIX_DURABILITY
                      as in config.yaml; concurrency is how many calls a provider gets at once (4),
                      max_failed_steps after how many steps in a row in which every call failed an
                      agent ends (40)
  RNIX_DAEMON_WAIT    how long commands that follow a process wait for a daemon that was stopped (default 30s);
                      0 = they end when the daemon goes away
  RNIX_IDLE           stop the daemon after so long without agents and clients, such as 30m
                      (default: never)
  RNIX_LOG_LEVEL      what the daemon logs: debug, info (default), warn or error
  RNIX_ASCII=1        no characters beyond ASCII in what this program draws, as a locale without UTF-8
  XDG_RUNTIME_DIR     the socket lies below it
  XDG_CONFIG_HOME     config.yaml and providers.yaml lie below it (default ~/.config)
  NO_COLOR, CLICOLOR_FORCE, TERM, COLUMNS
                      colours and width
  ANTHROPIC_API_KEY, OPENAI_API_KEY
                      the keys of the built-in providers
  ANTHROPIC_BASE_URL, OPENAI_BASE_URL
                      where they are reached, for another server with the same API
  ANTHROPIC_MODEL, OPENAI_MODEL
                      their default models
  BRAVE_API_KEY, TAVILY_API_KEY
                      the key of the search engine that the tool web_search asks, if web.search in your own
                      config.yaml names one (init writes an example into .rnix/config.yaml)
  The keys of model providers are read from your environment at each run and are never written
  down; which one a provider uses is shown by: rnix providers`
