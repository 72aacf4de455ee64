package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/internal/ash"
	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
)

func shCmd(a *app) *cobra.Command {
	var command string
	var set shellFlags
	sh := shellCommand{a}
	c := &cobra.Command{
		Use:   "sh [FILE [ARG...]]",
		Short: "run a script of agents and programs, or type commands line by line",
		Long: `Sh is a shell with agents. The language is that of bash: pipes, && || !, if, for, while, case, functions
with local, arrays, $( ), here-documents, set -e, set -o pipefail, trap ... EXIT. Every command of this
program is a command in it, besides those of the system.

` + shellHelp + `
Not there: descriptors above 2 (exec 3>), coproc, trap of signals, PIPESTATUS, job control by Ctrl+Z.

Ctrl+C asks the agent in the foreground to stop and ends the line or the script; a second one leaves at
once. Agents in the background run on when the shell ends, as in Unix; they are listed then, or ended with
--kill-on-exit. The exit code is that of the script. What is wrong with a line or a command is told with
file:line:column; of a redirection or a variable only what is wrong.

A script may have ` + number(ash.MaxSource) + ` bytes and 1 GiB of memory.`,
		Example: examples(`rnix sh`, `rnix sh review.ash main`, `rnix sh -c 'spawn "Analyze code" --agent=analyst | spawn "Generate docs"'`,
			`rnix sh -c 'for f in *.go; do spawn -q "Review $f" & done; wait'`,
			`rnix sh -c 'r=$(spawn "Find the bug") || r=$(spawn "Find the bug" --model big); echo "$r"'`,
			`rnix sh -c 'grep -h state /proc/*/status; cat /dev/fs$PWD/go.mod'`, `rnix sh -n review.ash`, `generate | rnix sh -`),
		Annotations: map[string]string{exitsKey: "0 1 2 10 12 129 130 143"},
		Args:        cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.SetInterspersed(false) // what follows the file belongs to the script
	f.StringVarP(&command, "command", "c", "", "run this text; the arguments are $0, $1 and so on")
	f.BoolVarP(&set.check, "check", "n", false, "only check the script, run nothing")
	f.BoolVarP(&set.errexit, "errexit", "e", false, "end when a command fails (set -e)")
	f.BoolVarP(&set.nounset, "nounset", "u", false, "a variable that is not set is an error (set -u)")
	f.BoolVarP(&set.xtrace, "xtrace", "x", false, "show each command before it is run (set -x)")
	f.BoolVar(&set.kill, "kill-on-exit", false, "end the agents that still run when the shell ends")
	c.RunE = func(c *cobra.Command, args []string) error {
		script, err := sh.script(args, command, c.Flags().Changed("command"))
		if err != nil {
			return err
		}
		script.Check, script.Options = set.check, set.options()
		return sh.run(c.Context(), script, set.kill)
	}
	return c
}

// shellHelp is what the shell adds to what people know. It is what the word help shows in it.
const shellHelp = `  spawn "INTENT" [FLAGS]   an agent; the flags are those of run. Its result is standard output, its end the
                           exit status. What is piped into it or redirected to it it gets as [PIPE_INPUT];
                           spawn - "INTENT" takes the standard input of the script. It is not started on the
                           result of an agent that is suspended, or has failed and brought nothing; of a
                           result that is empty or may be broken off it is told
  run, steps, log, ...     every command of this program, as: rnix steps (see: rnix help --all)
  cmd & ; $! ; wait ; jobs background; $! is the PID of the agent after "spawn ... &", else %N. wait takes
                           PIDs, %N, nothing for all, or -n for the next; its status is that of the last
  kill [-SIGNAL] PID|%N    signals agents, and jobs with all that is in them; programs: /bin/kill
  < > /dev/... /proc/...   paths below /dev, /proc and /mnt are those of the name space of agents, also in
                           globs, tests and source, but for /dev/null, zero, full, random, urandom, tty,
                           stdin, stdout, stderr, fd, pts, ptmx, shm, console and log
  cat ls tee head tail grep wc diff sort jq sed awk ...
                           take such paths, too (as they are at this moment); other programs see the
                           real files. cat, ls, diff, du, write, fsck, init are those of the system
                           elsewhere, and ours with rnix before them: rnix diff 3
  help [COMMAND]           this text, or the help of a command; history lists the lines that were typed
`

// shellFlags are the flags of sh that hold for the whole script.
type shellFlags struct{ check, errexit, nounset, xtrace, kill bool }

func (f *shellFlags) options() []string {
	var out []string
	for flag, on := range map[string]bool{"-e": f.errexit, "-u": f.nounset, "-x": f.xtrace} {
		if on {
			out = append(out, flag)
		}
	}
	return out
}

// shellCommand is sh.
type shellCommand struct{ *app }

// script returns what is to be run: a text, a file, standard input, or what a person types.
func (a shellCommand) script(args []string, command string, given bool) (ash.Script, error) {
	switch {
	case given:
		s := ash.Script{Name: "-c", Text: command}
		if len(args) > 0 {
			s.Name, s.Args = args[0], args[1:]
		}
		return s, nil
	case len(args) > 0 && args[0] != "-":
		path := args[0]
		if !strings.HasPrefix(path, "/") {
			path = a.host.Dir + "/" + path
		}
		text, err := ash.ReadScript(path)
		var e *types.SyscallError
		if errors.As(err, &e) {
			err = types.Errorf(e.Code, "", args[0], "%w", e.Err)
		}
		return ash.Script{Name: args[0], Text: text, Args: args[1:]}, err
	case len(args) == 0 && terminal(a.host.In):
		p, err := a.places()
		return ash.Script{Name: "rnix sh", Terminal: true, History: statehome.ShellHistory(p.DataDir)}, err
	}
	if len(args) > 0 {
		args = args[1:]
	}
	t := time.AfterFunc(stdinSilence, func() { a.out.talk("reading the script from standard input, up to its end") })
	defer t.Stop()
	text, err := ash.ReadText(a.host.In, "standard input")
	return ash.Script{Name: "stdin", Text: text, Args: args}, err
}

// shell runs a script in a process of its own, and tells of what still runs when it has ended.
func (a shellCommand) run(ctx context.Context, script ash.Script, kill bool) error {
	exe, err := os.Executable()
	if err != nil {
		return types.Errorf(types.ErrInternal, "", "", "where this program lies is unknown: %w", err)
	}
	if script.Terminal {
		a.out.talk("rnix %s; help shows what there is, Ctrl+D ends", a.host.Version)
	}
	child := []string{shChild}
	if a.out.verbose {
		child = append(child, "-v")
	}
	if a.out.quiet {
		child = append(child, "-q")
	}
	k := ash.Keeper{Exe: exe, Args: child, Environ: a.host.Environ, Dir: a.host.Dir, Stdin: a.host.In, Stdout: a.host.Out, Stderr: a.host.Err}
	out, err := k.Run(script)
	if err != nil {
		return err
	}
	if out.Err != nil {
		a.out.fail(out.Err)
	}
	a.leftOver(ctx, out.Agents, kill)
	return leave(out.Code)
}

// leftOver tells of the agents of a shell that still run, or ends them.
func (a shellCommand) leftOver(ctx context.Context, agents []ash.Agent, kill bool) {
	if len(agents) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, signalPatience)
	defer cancel()
	client, err := a.find(ctx)
	if err != nil || client == nil {
		return // nothing runs without a daemon
	}
	var pids, lines []string
	for _, agent := range agents {
		p, err := ipc.Call(ctx, client, ipc.GetProcDetail, ipc.TargetRequest{Target: agent.UUID.String()})
		if err != nil || p.State == "dead" || p.State == "zombie" || p.State == "archived" {
			continue
		}
		pid := p.PID.String()
		if kill {
			if _, err := ipc.Call(ctx, client, ipc.SignalTree, ipc.SignalRequest{Target: agent.UUID.String(), Signal: types.SIGTERM}); err != nil {
				a.out.warn("PID " + pid + " could not be ended: " + errorText(err))
			}
			continue
		}
		pids = append(pids, pid)
		lines = append(lines, fmt.Sprintf("  PID %s  %s  %s", pid, p.State, cut(oneLine(p.Intent), 60)))
	}
	if len(pids) == 0 {
		return
	}
	all := strings.Join(pids, " ")
	a.out.say(fmt.Sprintf("[shell] %s still at work (wait: rnix wait %s; end: rnix kill %s)", plural(len(pids), "agent of this shell is", "agents of this shell are"), all, all))
	const most = 20
	for _, line := range lines[:min(len(lines), most)] {
		a.out.say(line)
	}
	if len(lines) > most {
		a.out.say(fmt.Sprintf("  and %d more; see: rnix ps", len(lines)-most))
	}
}

// spawnCmd is run under the name that it has in the shell.
func spawnCmd(a *app) *cobra.Command {
	c := runCmd(a)
	c.Use, c.Hidden = "spawn [intent]", true
	return c
}

// leftUnread tells that the standard input of the script is not the agent's: several agents may start, and the
// first would take all of it.
func (o *runOptions) leftUnread(stdin bool) {
	sh := o.app.host.Shell
	if stdin || sh == nil || !sh.Unread {
		return
	}
	o.app.out.warn("the agent does not get the standard input of the script; to give it to one, write: spawn - \"INTENT\"")
}

// piped reports whether a shell hands input to an agent with this intent.
func (o *runOptions) piped(intent bool) bool {
	sh := o.app.host.Shell
	return intent && sh != nil && sh.Input != nil
}
