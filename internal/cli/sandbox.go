package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rnix/internal/config"
	"rnix/internal/egress"
	"rnix/internal/hosts"
	"rnix/internal/plumbing"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
)

func sandboxCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "sandbox",
		Short: "run a command in the sandbox, and show what it may do there",
		Long: `The commands of agents run in a sandbox: they read everything but your home, other programs' temporary
files and the data of Rnix, write the directory of their agent, and have no network. Try runs one command
so; explain shows what commands may do. See also: rnix help run (--sandbox, --net), docs/security.md`,
		Example: examples(`rnix sandbox explain`, `rnix sandbox try -- make test`),
	}
	c.AddCommand(sandboxTryCmd(a), sandboxExplainCmd(a))
	return c
}

// sandboxFlags are those of the policy.
type sandboxFlags struct {
	level, net                        string
	read, write, hide, protect, allow []string
}

func (f *sandboxFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.level, "level", "", "mechanism: auto (the best that works here), bwrap or landlock (default as configured; at first auto)")
	c.Flags().StringVar(&f.net, "net", "", "network: none, hosts or open (default as configured; at first none)")
	c.Flags().StringArrayVar(&f.read, "read", nil, "path to read even if a directory above is hidden (repeatable)")
	c.Flags().StringArrayVar(&f.write, "write", nil, "path to write, such as a cache (repeatable)")
	c.Flags().StringArrayVar(&f.hide, "hide", nil, "path to hide (repeatable)")
	c.Flags().StringArrayVar(&f.protect, "protect", nil, "path to protect from being written or made (repeatable)")
	allowHostFlag(c, &f.allow)
	_ = c.RegisterFlagCompletionFunc("level", cobra.FixedCompletions([]string{"auto", "bwrap", "landlock"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("net", cobra.FixedCompletions([]string{"none", "hosts", "open"}, cobra.ShellCompDirectiveNoFileComp))
}

// plan makes the plan for a directory. temp is the command's own; it may be empty.
func (f *sandboxFlags) plan(ctx context.Context, a *app, dir, temp string) (sandbox.Plan, sandbox.Place, error) {
	place, err := sandboxPlace(a, dir, temp)
	if err != nil {
		return sandbox.Plan{}, place, err
	}
	switch asked := (sandbox.Settings{Level: sandbox.Level(f.level), Net: sandbox.Net(f.net)}); {
	case (sandbox.Settings{Level: asked.Level}).Check() != nil || asked.Off():
		return sandbox.Plan{}, place, usagef("", "invalid --level %q: want auto, bwrap or landlock", f.level)
	case asked.Check() != nil:
		return sandbox.Plan{}, place, usagef("", "invalid --net %q: want none, hosts or open", f.net)
	case len(f.allow) > 0 && asked.Net != "" && asked.Net != sandbox.NetHosts:
		return sandbox.Plan{}, place, usagef("leave --net out", "--allow-host is for --net hosts, and --net is %s", f.net)
	}
	if err := hosts.Check(hosts.Say("", f.allow...)); err != nil {
		return sandbox.Plan{}, place, err
	}
	settings := f.settings(a)
	plan, err := sandbox.MakePlan(settings.Policy(place, false), sandboxHost(ctx, a, place), sandbox.Disk{})
	return plan, place, err
}

// configuredSandbox returns what the configuration says, as it counts in this directory.
func configuredSandbox(a *app) sandbox.Settings {
	all := sandbox.Usual()
	if dir, err := statehome.ConfigDir(a.env); err == nil {
		c := config.Load(config.Sources{UserDir: dir, ProjectDir: a.host.Dir, Home: a.getenv("HOME"), Lookup: config.Lookup(a.env)})
		all = all.With(c.Sandbox.Settings())
	}
	return all
}

// settings are what the configuration says, and the flags. A sandbox that the configuration has switched off is tried all the same.
func (f *sandboxFlags) settings(a *app) sandbox.Settings {
	all := configuredSandbox(a)
	if all.Off() {
		all.Level = sandbox.LevelAuto
	}
	flags := sandbox.Settings{Level: sandbox.Level(f.level), Net: sandbox.Net(f.net), Hosts: hosts.Say("--allow-host", f.allow...)}
	if len(f.allow) > 0 {
		flags.Net = sandbox.NetHosts
	}
	for _, l := range []struct{ paths, to *[]string }{{&f.read, &flags.Read}, {&f.write, &flags.Write}, {&f.hide, &flags.Hide}, {&f.protect, &flags.Protect}} {
		for _, path := range *l.paths {
			*l.to = append(*l.to, absolute(a, path))
		}
	}
	return all.With(flags)
}

// sandboxPlace returns the place of commands in a directory.
func sandboxPlace(a *app, dir, temp string) (sandbox.Place, error) {
	work, err := filepath.EvalSymlinks(absolute(a, dir))
	if err != nil {
		return sandbox.Place{}, types.Errorf(types.ErrNotFound, "", dir, "%w", err)
	}
	if info, err := os.Stat(work); err != nil || !info.IsDir() {
		return sandbox.Place{}, usagef("name a directory", "%s is no directory", work)
	}
	p, err := a.places()
	if err != nil {
		return sandbox.Place{}, err
	}
	place := sandbox.Place{Work: work, Temp: temp, Private: []string{p.DataDir, p.ConfigDir, filepath.Dir(p.Socket)}}
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		place.Home = filepath.Clean(home)
	}
	place.Git = sandbox.FindGitAbove(work, sandbox.Disk{}, plumbing.ReadText, append([]string{place.Home}, place.Private...)...)
	return place, nil
}

// sandboxHost finds out what this host can confine commands with.
func sandboxHost(ctx context.Context, a *app, place sandbox.Place) sandbox.Host {
	run := func(ctx context.Context, plan sandbox.Plan, c sandbox.Command) (int, string, error) {
		errs := proc.NewRing(4 << 10)
		exit, err := runBox(ctx, plan, c, proc.Spec{Stderr: errs, Timeout: programPatience})
		return exit.Code, errs.String(), err
	}
	self, err := os.Executable()
	if err != nil {
		self = "" // nothing is proved, and the reason is that it does not exist
	}
	return sandbox.Probe(ctx, run, self, sandbox.FindBwrap(a.getenv("PATH"), place.Work))
}

// runBox runs a command by a plan and waits for it. spec says where its output goes.
func runBox(ctx context.Context, plan sandbox.Plan, c sandbox.Command, spec proc.Spec) (proc.ExitInfo, error) {
	dir, err := os.MkdirTemp("", "rnix-sandbox-")
	if err != nil {
		return proc.ExitInfo{}, err
	}
	defer os.RemoveAll(dir)
	m, err := proc.NewManager(dir, nil)
	if err != nil {
		return proc.ExitInfo{}, err
	}
	defer m.Close()
	box := proc.Box{Plan: plan, Env: c.Env}
	if err := egress.Fit(&box, new(egress.Proxy), egress.Client{}); err != nil {
		return proc.ExitInfo{}, err
	}
	spec.Kind, spec.Path, spec.Args, spec.Env, spec.Dir, spec.Box = proc.KindShell, c.Path, c.Args, c.Env, c.Dir, &box
	child, err := m.Start(ctx, spec)
	if err != nil {
		return proc.ExitInfo{}, err
	}
	exit := child.Wait()
	return exit, exit.Err
}

func sandboxTryCmd(a *app) *cobra.Command {
	var flags sandboxFlags
	c := &cobra.Command{
		Use:   "try [flags] -- COMMAND [ARG...]",
		Short: "run one command confined, in this directory",
		Long: `Try runs one command in this directory, confined by the best mechanism that works on this host, and exits
with the status of the command; 125 means that nothing ran. The command has an empty standard input, the
environment of agents' commands, and an empty directory for temporary files and caches (TMPDIR), which is
removed afterwards. What the sandbox did not let it do is said afterwards, as far as its output tells. With
Landlock, protected files that the command has changed are named, too, and the exit code is 1 if it would
have been 0.`,
		Example:     examples(`rnix sandbox try -- make test`, `rnix sandbox try --allow-host npm -- npm ci`, `rnix sandbox try --level landlock -- sh -c 'echo x >/etc/x'`),
		Annotations: exits("0 1 2 11"),
		Args:        argsOf(1, -1, "a command, such as: -- make test"),
		RunE: func(c *cobra.Command, args []string) error {
			return tryBox(c.Context(), a, &flags, args)
		},
	}
	flags.add(c)
	c.Flags().SetInterspersed(false) // what follows the command belongs to it
	return c
}

// tryBox runs a command line in a box.
func tryBox(ctx context.Context, a *app, flags *sandboxFlags, args []string) (err error) {
	temp, err := os.MkdirTemp("", "rnix-try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if temp, err = filepath.EvalSymlinks(temp); err != nil {
		return err
	}
	plan, place, err := flags.plan(ctx, a, a.host.Dir, temp)
	if err != nil {
		return err
	}
	env := place.Environ(proc.ComposeEnv(a.host.Environ, nil, nil))
	program, err := proc.LookPath(args[0], env)
	if err != nil {
		return err
	}
	said := proc.NewRing(0)
	exit, err := runBox(ctx, plan, sandbox.Command{Path: absolute(a, program), Args: args[1:], Env: env, Dir: place.Work},
		proc.Spec{Stdout: io.MultiWriter(a.host.Out, said), Stderr: io.MultiWriter(a.host.Err, said), Shown: strings.Join(args, " ")})
	outcome := sandbox.Outcome{Command: commandLine(args), Dir: place.Work, Code: exit.Code, Output: said.String(), Reads: func(path string) bool { return unix.Access(path, unix.R_OK) == nil }}
	for _, r := range slices.Concat(exit.Refused, sandbox.Besides(plan.Refused(outcome, sandbox.Disk{}), exit.Refused)) {
		a.out.warn(r.Notice())
	}
	for _, path := range exit.Changed {
		a.out.warn(path + " is protected, and the command has changed it: look at it before anything uses it")
	}
	if sandbox.NotStarted(err) {
		a.out.warn(errorText(err))
		return leave(sandbox.NotRun)
	}
	code := exit.Code
	if code == 0 && len(exit.Changed) > 0 {
		code = ExitError
	}
	if err != nil {
		return err
	}
	return leave(code)
}

// commandLine returns what a shell would be told to run a command.
func commandLine(args []string) string {
	if len(args) == 3 && args[1] == "-c" && slices.Contains([]string{"sh", "bash", "dash"}, filepath.Base(args[0])) {
		return args[2]
	}
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

func sandboxExplainCmd(a *app) *cobra.Command {
	var flags sandboxFlags
	var of ipc.SandboxRequest
	c := &cobra.Command{
		Use:   "explain [DIR|PROCESS]",
		Short: "show what commands may read, write and reach: of a process, or in a directory",
		Long: `Explain shows by which mechanism the commands of a process that runs are confined, what they may read,
write and reach, what all that the process has started may use together, and what is not enforced; with --mcp,
the same of one of its MCP servers; with --model, of the program that is its model, or of its agent CLI; or of
what would be started in a directory. Of the paths that contain a file the longest one decides. For a directory
it starts the test of the mechanism.`,
		Example:     examples(`rnix sandbox explain`, `rnix sandbox explain 3`, `rnix sandbox explain 3 --mcp github`, `rnix sandbox explain 3 --model`, `rnix sandbox explain src --net open`, `rnix sandbox explain --json | jq -r '.gaps[]'`),
		Annotations: exits("0 1 2 10 11 12"),
		Args:        argsOf(0, 1, "a directory or a process"),
		RunE: func(c *cobra.Command, args []string) error {
			if of.MCP != "" && of.Model {
				return usagef("", "--mcp and --model ask about different programs: give one of them")
			}
			dir := a.host.Dir
			if len(args) > 0 {
				dir = args[0]
				if s, err := os.Stat(absolute(a, dir)); err != nil || !s.IsDir() {
					if strings.ContainsRune(dir, '/') {
						return types.Errorf(types.ErrNotFound, "", dir, "there is no such directory")
					}
					of.Target = dir
					return explainProcess(c.Context(), a, &of)
				}
			}
			if of.MCP != "" {
				return types.Errorf(types.ErrInvalid, "", "--mcp", "it needs a process that runs, such as: rnix sandbox explain 3 --mcp %s", of.MCP)
			}
			if of.Model {
				return types.Errorf(types.ErrInvalid, "", "--model", "it needs a process that runs, such as: rnix sandbox explain 3 --model")
			}
			plan, _, err := flags.plan(c.Context(), a, dir, "")
			if err != nil {
				return err
			}
			if a.out.json() {
				a.out.object(&plan)
				return nil
			}
			bounds := flags.settings(a).Bounds.Held()
			showPolicy(a.out, string(plan.Rung), plan.Policy, []string{boundText("memory", bounds.Memory.String()), boundText("processes", bounds.Processes.String())}, plan.Gaps, nil)
			return nil
		},
	}
	c.ValidArgsFunction = completeProcs(a, false)
	flags.add(c)
	c.Flags().StringVar(&of.MCP, "mcp", "", "of the MCP server with this name that the process has")
	c.Flags().BoolVar(&of.Model, "model", false, "of the program that is the model of the process, or of its agent CLI")
	return c
}

// explainProcess shows how the commands of a process that runs are confined, or its MCP server of a name, or its model.
func explainProcess(ctx context.Context, a *app, of *ipc.SandboxRequest) error {
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	r, err := ipc.Call(ctx, client, ipc.ExplainSandbox, *of)
	if err != nil {
		return err
	}
	if a.out.json() {
		a.out.object(&r)
		return nil
	}
	showPolicy(a.out, r.By, sandbox.Policy{Version: sandbox.Version, Level: sandbox.LevelAuto, Net: sandbox.Net(r.Net), Read: r.Read, Write: r.Write, Hide: r.Hidden, Protect: r.Protected, Limits: r.Limits, Hosts: hostsOf(r.Hosts)}, boundLines(r.Bounds), r.Gaps, r.Others)
	showTraffic(a.out, &r)
	if r.Program != "" && r.By != string(sandbox.LevelOff) {
		a.out.print(lines("model     "+r.Program+" is a program, confined for itself; see: rnix sandbox explain "+of.Target+" --model") + "\n")
	}
	return nil
}

// boundText says what a bound is; value is empty if there is none.
func boundText(name, value string) string {
	if value == "" {
		return name + " without a limit"
	}
	return name + " " + value
}

// boundLines say what all that a process has started may use together, and what enforces it.
func boundLines(bounds []ipc.Bound) (out []string) {
	for _, b := range bounds {
		switch {
		case b.Value == 0:
			out = append(out, boundText(b.Name, ""))
		case b.By == "":
			out = append(out, b.Name+" "+b.Text+", which nothing enforces: "+b.Why)
		case b.By == "rlimit":
			out = append(out, b.Name+" "+b.Text+", for each command alone: "+b.Why)
		default:
			out = append(out, b.Name+" "+b.Text+", by "+b.By)
		}
	}
	return out
}

// showPolicy shows by what commands are confined, what they may do, and what is not enforced.
func showPolicy(out *output, by string, p sandbox.Policy, bounds, gaps, others []string) {
	text := "by        " + by + "\n"
	if by == string(sandbox.LevelOff) {
		text += "          it may do all that you may: the sandbox is off\n"
	} else {
		p.Read = slices.DeleteFunc(slices.Clone(p.Read), func(path string) bool { // what is not there would hide what is
			_, err := os.Lstat(path)
			return err != nil
		})
		_, rest, _ := strings.Cut(p.Explain(), "\n") // its first line is the level
		text += rest
	}
	for _, list := range []struct {
		name  string
		lines []string
	}{{"together", bounds}, {"not held", gaps}, {"not here", others}} {
		for i, line := range list.lines {
			if i > 0 {
				list.name = ""
			}
			text += fmt.Sprintf("%-10s%s\n", list.name, line)
		}
	}
	for line := range strings.Lines(text) {
		out.print(lines(strings.TrimSuffix(line, "\n")) + "\n")
	}
}
