package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/testcase"
	"rnix/internal/testcase/run"
	"rnix/types"
)

func testCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "test",
		Short: "make regression cases of runs, and run them without a model",
		Long: `Test makes a recorded run into a case: a directory with what the model answered, the files as they
were at the beginning, and a proposal of what to expect. Once a person has read and confirmed that,
the case runs offline and takes a second, so a change of an agent, a tool or the kernel that makes
something else of it is found.`,
		Example: examples(`rnix test import night --dir cases`, `rnix test run cases`, `rnix test run cases --format junit --output report.xml`),
	}
	return family(c, testImportCmd(a), testRunCmd(a), testLsCmd(a))
}

func testImportCmd(a *app) *cobra.Command {
	o := run.ImportOptions{}
	c := &cobra.Command{
		Use:   "import PROCESS",
		Short: "make a case of a run that has ended",
		Long: `Import writes DIR/NAME with case.yaml (the intent, the agent, what is expected), script.yaml (what the
model answered, for the driver replay), workspace (the files at the beginning, from the snapshots)
and expected (the files at the end that are not the same).

What is expected is a proposal. The case fails, and says where, until a person has read each part and
written confirmed: true there. Files that sound or look like secrets are left out; where there are
many files, only those that the run has named or changed are taken, unless --all-files is given.
Processes below it are part of the case. What an agent's command line or an MCP server did cannot be
played again, and is refused.`,
		Example:           examples(`rnix test import night`, `rnix test import 3 --dir cases --name mends-the-build`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			o.Target, o.Env = args[0], a.host.Environ
			o.Dir = absolute(a, o.Dir)
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			r, err := run.Import(c.Context(), client, o)
			if err != nil {
				return err
			}
			if a.out.json() {
				a.out.object(r)
				return nil
			}
			a.out.print(oneLine(r.Dir) + "\n")
			a.out.talk("%s, %s, %s of its workspace", plural(r.Answers, "answer", "answers"), plural(r.Calls, "call", "calls"), plural(r.Files, "file", "files"))
			for _, n := range r.Notes {
				a.out.talk("note: %s", oneLine(n))
			}
			for _, at := range r.Confirm {
				a.out.talk("to confirm: %s", oneLine(at))
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVarP(&o.Dir, "dir", "d", ".", "the directory in which the case is made")
	f.StringVarP(&o.Name, "name", "n", "", "of the case and its directory (default: made of the intent)")
	f.BoolVar(&o.All, "all-files", false, "all files of the workspace, also where there are many")
	_ = c.MarkFlagDirname("dir")
	return c
}

// absolute returns a path as one from the root.
func absolute(a *app, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(a.host.Dir, path)
}

// formats are the values of --format.
var formats = []string{"text", "json", "junit"}

// offlines are the values of --offline.
var offlines = []string{"try", "require"}

func testRunCmd(a *app) *cobra.Command {
	var o run.Options
	var format, output, only, offline string
	c := &cobra.Command{
		Use:   "run DIR...",
		Short: "run the cases in directories, and say what is not as expected",
		Long: `Run runs each case below the directories in a copy of its files, with its own daemon, data directory and
environment: no key, no configuration of yours, no network, and nothing is left behind. The
answers are those of the script, the tools are real: the commands of a case run as you, and can read what
you can, as with any project's tests. Read the script.yaml of a stranger's case first. Where the network
cannot be cut off, the cases have that of this machine, and the report says so; --offline
require refuses to run them then.

Calls, result, exit code and files are compared with what case.yaml expects, and differences are
shown. A case that takes longer than its timeout (a minute, unless it says so) is killed, and named.
--update writes the expectations of cases that differ anew, to be confirmed again.

The exit code is 0 if all cases pass, and 1 if one does not. DIR is a case, or has cases below it.`,
		Example: examples(`rnix test run cases`, `rnix test run cases/mends-the-build --update`, `rnix test run cases --run 'build|lint' --parallel 4`,
			`rnix test run cases --format junit --output report.xml`),
		Annotations: exits("0 1 2 10 130"),
		Args:        argsOf(1, -1, "a directory with cases"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error {
			if a.out.json() && !c.Flags().Changed("format") {
				format = "json"
			}
			if !slices.Contains(formats, format) {
				return usagef("", "invalid --format %q: want one of %s", format, strings.Join(formats, ", "))
			}
			if o.Parallel < 1 || o.Parallel > 256 {
				return usagef("", "--parallel %d is not between 1 and 256", o.Parallel)
			}
			if !slices.Contains(offlines, offline) {
				return usagef("", "invalid --offline %q: want one of %s", offline, strings.Join(offlines, ", "))
			}
			dirs, err := casesIn(a, args, only)
			if err != nil {
				return err
			}
			o.MustOffline = offline == "require"
			o.Env = a.host.Environ
			return a.withInterrupts(func(sigs <-chan os.Signal) error {
				ctx, cancel := context.WithCancelCause(c.Context())
				defer cancel(nil)
				go func() { // it ends with the context
					select {
					case sig := <-sigs:
						cancel(leave(signalExit(sig)))
					case <-ctx.Done():
					}
				}()
				return runCases(ctx, a, dirs, &o, format, output)
			})
		},
	}
	f := c.Flags()
	f.IntVarP(&o.Parallel, "parallel", "p", runtime.NumCPU(), "how many cases at once")
	f.BoolVarP(&o.Update, "update", "u", false, "write the expectations of cases that differ anew, unconfirmed")
	f.StringVar(&format, "format", "text", "of the report: text, json or junit")
	f.StringVarP(&output, "output", "o", "", "the file for the report (default: standard output)")
	f.StringVar(&offline, "offline", "try", "where the network cannot be cut off: try, which runs the cases with it, or require, which refuses")
	f.StringVar(&only, "run", "", "only cases in directories that match this `REGEX`")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("offline", cobra.FixedCompletions(offlines, cobra.ShellCompDirectiveNoFileComp))
	_ = c.MarkFlagFilename("output")
	return c
}

// casesIn finds cases, and of these the ones that fit an expression.
func casesIn(a *app, args []string, only string) ([]string, error) {
	fits, err := regexp.Compile(only)
	if err != nil {
		return nil, usagef("", "--run %q: %v", only, err)
	}
	for i := range args {
		args[i] = absolute(a, args[i])
	}
	dirs, err := run.Find(args)
	if err != nil {
		return nil, err
	}
	all := len(dirs)
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return !fits.MatchString(filepath.ToSlash(dir)) })
	if len(dirs) == 0 {
		return nil, types.Errorf(types.ErrNotFound, "Case", only, "none of the %d cases fits", all)
	}
	return dirs, nil
}

// runCases runs cases and writes the report.
func runCases(ctx context.Context, a *app, dirs []string, o *run.Options, format, output string) error {
	if err := takesReport(a, output); err != nil {
		return err
	}
	if output != "" || format != "text" {
		o.Done = func(c *testcase.Outcome) { a.out.talk("%s %s", c.Status, oneLine(c.Name)) }
	}
	r := run.Run(ctx, dirs, o)
	var b []byte
	var err error
	switch format {
	case "json":
		b, err = r.JSON()
	case "junit":
		b, err = r.JUnit()
	default:
		b = []byte(debug.Sanitize(r.Text()))
	}
	if err != nil {
		return types.Errorf(types.ErrInternal, "Report", output, "%w", err)
	}
	if output == "" {
		a.out.raw(b)
	} else if err := os.WriteFile(absolute(a, output), b, 0o644); err != nil {
		return types.Errorf(types.ErrStorage, "Report", output, "%w", err)
	} else if r.Failed > 0 {
		a.out.talk("%d of %d cases failed; the report is %s", r.Failed, r.Total, oneLine(output))
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.Failed > 0:
		return leave(ExitError)
	}
	return nil
}

// takesReport says before all the work where no report can be written.
func takesReport(a *app, output string) error {
	if output == "" {
		return nil
	}
	at := absolute(a, output)
	if i, err := os.Stat(at); err == nil && i.IsDir() {
		return usagef("", "--output %s is a directory", output)
	}
	switch i, err := os.Stat(filepath.Dir(at)); {
	case err != nil:
		return types.Errorf(types.ErrNotFound, "Report", output, "there is no directory %s", filepath.Dir(at))
	case !i.IsDir():
		return usagef("", "--output %s: %s is no directory", output, filepath.Dir(at))
	}
	return nil
}

// caseRow is a case as --json of ls shows it.
type caseRow struct {
	Name        string   `json:"name"`
	Dir         string   `json:"dir"`
	Agent       string   `json:"agent,omitempty"`
	Intent      string   `json:"intent,omitempty"`
	Unconfirmed []string `json:"unconfirmed"` // places
	Error       string   `json:"error,omitempty"`
}

func testLsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "ls DIR...",
		Short:       "list the cases in directories, and what of them is to be confirmed",
		Long:        "Ls lists the cases below the directories without running them, and says of each whether it is right\nand confirmed.",
		Example:     examples(`rnix test ls cases`, `rnix test ls cases --json | jq -r .name`),
		Annotations: exits("0 1 2 10"),
		Args:        argsOf(1, -1, "a directory with cases"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dirs, err := casesIn(a, args, "")
			if err != nil {
				return err
			}
			return listCases(a.out, dirs)
		},
	}
}

func listCases(out *output, dirs []string) error {
	rows := make([]caseRow, len(dirs))
	wrong := false
	for i, dir := range dirs {
		rows[i] = caseRow{Name: filepath.Base(dir), Dir: dir, Unconfirmed: []string{}}
		c, err := testcase.Read(dir)
		if err != nil {
			rows[i].Error, wrong = errorText(run.Cause(err)), true
			continue
		}
		rows[i].Name, rows[i].Agent, rows[i].Intent = c.Name, c.Agent, c.Intent
		for _, key := range c.Unconfirmed() {
			rows[i].Unconfirmed = append(rows[i].Unconfirmed, c.At(key))
		}
	}
	if out.json() {
		for i := range rows {
			out.object(&rows[i])
		}
	} else {
		cols := []column{{name: "CASE", max: 40}, {name: "STATE"}, {name: "AGENT", drop: 1}, {name: "INTENT"}}
		cells := make([][]cell, len(rows))
		for i := range rows {
			r := &rows[i]
			state, what := cell{"confirmed", green}, r.Intent
			switch {
			case r.Error != "":
				state, what = cell{"wrong", red}, r.Error
			case len(r.Unconfirmed) > 0:
				state = cell{fmt.Sprintf("%d to confirm", len(r.Unconfirmed)), yellow}
			}
			cells[i] = []cell{text(oneLine(r.Name)), state, text(oneLine(r.Agent)), text(oneLine(what))}
		}
		out.table(cols, cells)
	}
	if wrong {
		return leave(ExitError)
	}
	return nil
}
