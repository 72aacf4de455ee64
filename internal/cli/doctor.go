package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rnix/ipc"
	"rnix/runtime/statehome"
)

func doctorCmd(a *app) *cobra.Command {
	var trust bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "check that agents can be run here, and say how to mend what is broken",
		Long: `Doctor checks the daemon, the directories, the configuration, the model that a run in this directory
would use, whether commands can be confined, whether this project is trusted, the search engine, the programs
that agents use, and the command lines of agents (claude, cursor-agent, codex, opencode), with their
logins; none of them is run. The exit code is 1 if something is broken; what only limits is a warning.`,
		Example:     examples(`rnix doctor`, `rnix doctor --json | jq 'select(.status!="ok")'`, `rnix doctor --json | jq '.sandbox.landlock // empty'`),
		Annotations: exits("0 1 2"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			checks, sandbox := a.examine(c.Context(), trust)
			return showChecks(a.out, checks, sandbox)
		},
	}
	c.Flags().BoolVar(&trust, "trust-project", false, "as run would with it")
	return c
}

// verdict is the outcome of a check. Part of the form of doctor --json.
type verdict string

const (
	fine   verdict = "ok"
	warned verdict = "warning"
	broken verdict = "broken"
	absent verdict = "absent" // and nobody needs it, unless they want it
)

// check is one line of doctor.
type check struct {
	Check  string  `json:"check"`
	Status verdict `json:"status"`
	Detail string  `json:"detail"`
	Mend   string  `json:"mend,omitempty"`
}

// examine makes all checks. A check that fails does not keep the others from being made. confined is what one of them says besides its text; nil =
// it was not made.
func (a *app) examine(ctx context.Context, trust bool) (out []check, confined *sandboxCheck) {
	p, err := a.places()
	if err != nil {
		return []check{{"places", broken, errorText(err), "set HOME, or RNIX_DATA_DIR, XDG_CONFIG_HOME and XDG_RUNTIME_DIR"}}, nil
	}
	client, err := a.connect(ctx)
	out = []check{checkDaemon(ctx, a, client, err, p.Log)}
	out = append(out, checkDir("data", p.DataDir), checkSocket(p.Socket), checkDisk(p.DataDir), checkConfigDir(p.ConfigDir))
	if client != nil {
		out = append(out, checkInit(ctx, client)...)
		out = append(out, checkFreezer(ctx, client)...)
		out = append(out, checkBounds(ctx, client, configuredSandbox(a))...)
		out = append(out, checkModel(ctx, client, ipc.ProvidersRequest{ProjectRequest: a.project(trust)})...)
	}
	guards, confined := checkSandbox(ctx, a)
	out = append(out, guards, checkTrust(a, p.ConfigDir))
	out = append(out, checkSearch(a)...)
	path := a.getenv("PATH")
	git := checkProgram(path, warned, "git", "needed for worktrees and for what agents find out about history")
	out = append(out, checkRuns(ctx, git, a.host.Environ, "version"))
	return append(out, checkAgents(a.getenv)...), confined
}

func checkDaemon(ctx context.Context, a *app, c *ipc.Client, err error, log string) check {
	version := a.host.Version
	if err != nil {
		return check{"daemon", broken, errorText(err), "see its log: " + log}
	}
	s, err := started(ctx, a, c)
	if err != nil {
		return check{"daemon", broken, errorText(err), "see its log: " + log}
	}
	detail := fmt.Sprintf("pid %d, version %s, socket %s", s.PID, s.Version, s.Socket)
	if s.Version != version {
		return check{"daemon", warned, detail + "; this program is of version " + version, "replace it with: rnix daemon stop"}
	}
	return check{"daemon", fine, detail, ""}
}

// checkInit checks what init.yaml has the daemon keep running.
func checkInit(ctx context.Context, c *ipc.Client) (out []check) {
	s, err := ipc.Call(ctx, c, ipc.DaemonStatus, ipc.Empty{})
	if err != nil {
		return nil // checkDaemon says it
	}
	for i := range s.Init {
		in := &s.Init[i]
		if in.Error != "" {
			out = append(out, check{"init", warned, "the supervisor " + in.Name + " is not started: " + in.Error, "see: rnix supervise check; then: rnix daemon stop, rnix daemon start"})
		} else {
			out = append(out, check{"init", fine, fmt.Sprintf("the supervisor %s (PID %d) %s", in.Name, in.PID, in.How), ""})
		}
	}
	return out
}

// checkDir checks a directory that must be the user's alone.
// checkSocket checks the place where the daemon listens.
func checkSocket(path string) check {
	if len(path) > statehome.MaxSocketPath {
		return check{"socket", broken, fmt.Sprintf("%s has %d bytes, and the system allows %d", path, len(path), statehome.MaxSocketPath),
			"set XDG_RUNTIME_DIR to a directory with a shorter name"}
	}
	return checkDir("socket", filepath.Dir(path))
}

func checkDir(name, dir string) check {
	st, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return check{name, warned, dir + " does not exist yet", "the daemon makes it when it starts"}
	case err != nil:
		return check{name, broken, err.Error(), ""}
	case !st.IsDir():
		return check{name, broken, dir + " is no directory", "move it away, or set another place (rnix help environment)"}
	case st.Mode().Perm()&0o077 != 0:
		return check{name, broken, fmt.Sprintf("%s has mode %04o: others can look into it", dir, st.Mode().Perm()), "chmod 700 " + dir}
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return check{name, broken, fmt.Sprintf("%s: %v", dir, err), "chmod 700 " + dir}
	}
	return check{name, fine, fmt.Sprintf("%s, mode %04o", dir, st.Mode().Perm()), ""}
}

// How much room there should be for histories, in bytes.
const (
	littleRoom = 1 << 30
	noRoom     = 64 << 20
)

func checkDisk(dir string) check {
	var st unix.Statfs_t
	for unix.Statfs(dir, &st) != nil {
		parent := filepath.Dir(dir)
		if parent == dir {
			return check{"disk", warned, "the free space cannot be found", ""}
		}
		dir = parent
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	detail := size(free) + " free at " + dir
	switch {
	case free < noRoom:
		return check{"disk", broken, detail + ": agents stop when their record cannot be written", "make room, or set RNIX_DATA_DIR"}
	case free < littleRoom:
		return check{"disk", warned, detail, "make room, or set RNIX_DATA_DIR"}
	}
	return check{"disk", fine, detail, ""}
}

func checkConfigDir(dir string) check {
	if _, err := os.Stat(dir); err != nil {
		return check{"config", fine, dir + " does not exist; the defaults count", ""}
	}
	var there []string
	for _, name := range []string{"config.yaml", "providers.yaml", "init.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			there = append(there, name)
		}
	}
	if len(there) == 0 {
		return check{"config", fine, dir + " has no files; the defaults count", ""}
	}
	return check{"config", fine, dir + ": " + strings.Join(there, ", "), ""}
}

// checkModel asks which model a run would use, and which files have mistakes.
func checkModel(ctx context.Context, c *ipc.Client, req ipc.ProvidersRequest) []check {
	r, err := ipc.Call(ctx, c, ipc.Providers, req)
	if err != nil {
		return []check{{"model", broken, errorText(err), ""}}
	}
	var out []check
	for _, p := range r.Problems {
		mend := "correct it; until then it does not count, and a provider that it is about cannot be used"
		if slices.Contains(r.Warnings, p) {
			out = append(out, check{"config", warned, p, "it counts all the same"})
			continue
		}
		if slices.Contains(r.Mistakes, p) {
			mend = "correct it; until then no agent starts, since a limit or a right may be missing"
		}
		out = append(out, check{"config", broken, p, mend})
	}
	if r.Chosen == "" {
		return append(out, check{"model", broken, r.Why, "see: rnix providers"})
	}
	for _, p := range r.Providers {
		if p.Name != r.Chosen {
			continue
		}
		detail := modelName(p.Name, p.Model) + ": " + r.Why
		out = append(out, checkCalls(ctx, c, &p)...)
		if p.Driver == "offline" {
			return append(out, check{"model", warned, detail, "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or install claude and log in"})
		}
		return append(out, check{"model", fine, detail, ""})
	}
	return append(out, check{"model", fine, r.Chosen + ": " + r.Why, ""})
}

// checkCalls says how many calls the chosen provider gets at once, where that is set, and what it does now.
func checkCalls(ctx context.Context, c *ipc.Client, p *ipc.Provider) []check {
	if p.AtOnceFrom == "" && p.AtOnce > 0 { // a daemon of an earlier version does not say
		return nil
	}
	if p.AtOnce == 0 {
		return []check{{"calls", fine, p.Name + " gets any number of calls at once", ""}}
	}
	from := p.AtOnceFrom
	if from == "default" {
		from = "the default"
	}
	out := check{"calls", fine, fmt.Sprintf("%s gets %s at once from all agents of the daemon (%s)", p.Name, plural(p.AtOnce, "call", "calls"), from),
		"to change it: concurrency in config.yaml, or of the provider in providers.yaml"}
	now, err := ipc.Call(ctx, c, ipc.ProviderTraffic, ipc.Empty{})
	for i := range now.Providers {
		if n := &now.Providers[i]; err == nil && n.Provider == p.Name {
			out.Detail += "; now " + strings.TrimPrefix(callsNow(n, time.Now()), oneLine(n.Provider)+": ")
		}
	}
	return []check{out}
}

// checkFreezer asks what a pause does to OS children.
func checkFreezer(ctx context.Context, c *ipc.Client) []check {
	s, err := ipc.Call(ctx, c, ipc.DaemonStatus, ipc.Empty{})
	switch {
	case err != nil || s.Freezer == "": // the daemon's own line says why, or it is an older one
		return nil
	case s.Freezer == "signals":
		return []check{{"freezer", absent, "signals: the programs of a paused agent are stopped by SIGSTOP, which they can notice",
			"start the daemon where it may make cgroups, such as: systemd-run --user --scope -p Delegate=yes rnix daemon start"}}
	}
	if s.Cgroup != "" {
		return []check{{"freezer", fine, s.Freezer + ": the programs of each agent start in a cgroup below " + s.Cgroup + "; a pause freezes it, and its end kills what is in it", ""}}
	}
	return []check{{"freezer", fine, s.Freezer + ": the programs of a paused agent stand still and do not notice; they have no cgroup of their own before that (it needs cgroup v2)", ""}}
}

// checkProgram looks a program up, under its name or another one.
func checkProgram(path string, missing verdict, name, use string, others ...string) check {
	for _, n := range append([]string{name}, others...) {
		for _, dir := range filepath.SplitList(path) {
			file := filepath.Join(dir, n)
			st, err := os.Stat(file)
			if filepath.IsAbs(dir) && err == nil && !st.IsDir() && unix.Access(file, unix.X_OK) == nil {
				return check{name, fine, file, ""}
			}
		}
	}
	return check{name, missing, "not in PATH; " + use, ""}
}

// showChecks shows the checks, and in JSON what that of the sandbox says besides. Anything broken makes the exit code 1.
func showChecks(out *output, checks []check, confined *sandboxCheck) error {
	code := ExitOK
	for _, c := range checks {
		if c.Status == broken {
			code = ExitError
		}
		if out.json() && c.Check == "sandbox" {
			out.object(struct {
				check
				Sandbox *sandboxCheck `json:"sandbox,omitempty"`
			}{c, confined})
			continue
		}
		if out.json() {
			out.object(&c)
			continue
		}
		if out.quiet && (c.Status == fine || c.Status == absent) {
			continue
		}
		st := map[verdict]style{fine: green, warned: yellow, broken: red, absent: dim}[c.Status]
		out.print(out.out.paint(st, fmt.Sprintf("%-8s", c.Status)) + fmt.Sprintf("%-13s", c.Check) + lines(c.Detail) + "\n")
		if c.Mend != "" {
			out.print(strings.Repeat(" ", 21) + lines(c.Mend) + "\n")
		}
	}
	return leave(code)
}
