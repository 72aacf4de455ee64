package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/agent"
	"rnix/debug"
	"rnix/internal/trust"
	"rnix/types"
)

func trustCmd(a *app) *cobra.Command {
	o := &trustOptions{app: a}
	c := &cobra.Command{
		Use:        "trust [DIR]",
		SuggestFor: []string{"allow", "approve", "untrust"},
		Short:      "trust the files of a project that can start programs",
		Long: `Trust shows every file of a project that can start a program or widen what agents may do: its MCP servers
and the scripts that they start, agents, skills, providers, workflows, and the settings of claude, codex and
opencode, which can have hooks. After you have looked at them it remembers their SHA-256, and what is started
in the project has its MCP servers and agents without --trust-project.

When one of these files changes, whoever changes it, the project is not trusted any more: a run says so, and
continues without. Trust then shows what is different, and asks again. --check only says how the project stands.

DIR is the project, or a directory in it (default: this one). What is remembered lies in the directory "trust"
of your configuration. Programs that hooks name, and packages that servers download, are not among the files.`,
		Example:     examples(`rnix trust`, `rnix trust ~/src/shop --check`, `rnix trust --yes`, `rnix trust --list`, `rnix trust --revoke`),
		Annotations: exits("0 1 2 11 12"),
		Args:        cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	f := c.Flags()
	f.BoolVarP(&o.yes, "yes", "y", false, "trust the files as they are, without asking")
	f.BoolVar(&o.check, "check", false, "only say whether the project is trusted, with exit code 1 if it is not")
	f.BoolVar(&o.revoke, "revoke", false, "take the trust in a project back")
	f.BoolVar(&o.list, "list", false, "list the projects that are trusted")
	return c
}

// trustOptions are the flags of trust.
type trustOptions struct {
	app                      *app
	yes, check, revoke, list bool
}

// trustReport is what trust says of a project in JSON.
type trustReport struct {
	Dir     string         `json:"dir"`
	State   trust.State    `json:"state"`
	Since   time.Time      `json:"since,omitzero"`
	Files   []trust.File   `json:"files"`
	Changes []trust.Change `json:"changes,omitempty"`
}

func (o *trustOptions) run(args []string) error {
	a := o.app
	given := 0
	for _, flag := range []bool{o.yes, o.check, o.revoke, o.list} {
		if flag {
			given++
		}
	}
	if given > 1 {
		return usagef("give one of them", "--yes, --check, --revoke and --list exclude each other")
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	book := trust.In(p.ConfigDir)
	if o.list {
		if len(args) > 0 {
			return usagef("leave "+args[0]+" out", "--list is about all projects")
		}
		return o.all(book)
	}
	dir, err := o.project(args)
	if err != nil {
		return err
	}
	if !o.check && a.getenv("RNIX_UUID") != "" {
		return types.Errorf(types.ErrPermission, "Trust", dir, "an agent cannot trust a project, nor take trust back; a person does, outside of it")
	}
	if o.revoke {
		return o.forget(book, dir)
	}
	r, err := o.look(book, dir)
	if err != nil {
		return err
	}
	if o.check {
		return o.say(&r)
	}
	return o.decide(book, &r)
}

// project returns the root of the project that is meant, without symbolic links.
func (o *trustOptions) project(args []string) (string, error) {
	a := o.app
	dir := a.host.Dir
	if len(args) > 0 {
		dir = args[0]
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(a.host.Dir, dir)
		}
	}
	at := dir
	dir, err := filepath.EvalSymlinks(at)
	if err != nil && o.revoke && len(args) > 0 { // one that has gone is forgotten by the name that the list has
		return filepath.Clean(at), nil
	}
	if err != nil && len(args) == 0 {
		return "", types.Errorf(types.ErrNotFound, "Trust", a.host.Dir, "%w", err)
	}
	if err != nil {
		return "", usagef("name the directory of a project", "%s: there is no such directory", args[0])
	}
	home := a.getenv("HOME")
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	root, _ := agent.ProjectRoot(dir, home)
	if root == home && !o.revoke {
		return "", usagef("name the directory of a project", "%s is your home directory, which is no project: what is in it is yours, and counts without trust", root)
	}
	return root, nil
}

// look compares a project with what is remembered of it. What cannot be read is said, and is as if it were not there.
func (o *trustOptions) look(book trust.Book, dir string) (r trustReport, err error) {
	r = trustReport{Dir: dir, State: trust.Unknown, Files: []trust.File{}}
	was, known, err := book.Get(dir)
	if err != nil {
		o.app.out.warn(errorText(err))
	}
	now, err := trust.Look(dir)
	if err != nil {
		return r, err
	}
	r.Files = append(r.Files, now...)
	if !known {
		return r, nil
	}
	r.State, r.Since = trust.Trusted, was.Since
	if r.Changes = trust.Compare(was.Files, now); len(r.Changes) > 0 {
		r.State = trust.Changed
	}
	return r, nil
}

// say says how a project stands. It is an error if it is not trusted.
func (o *trustOptions) say(r *trustReport) error {
	out := o.app.out
	if out.json() {
		out.object(r.brief())
	} else {
		o.show(r)
	}
	if r.State != trust.Trusted {
		return leave(ExitError)
	}
	return nil
}

// brief is the report without the contents of files.
func (r *trustReport) brief() *trustReport {
	own := *r
	own.Files = make([]trust.File, len(r.Files))
	for i, f := range r.Files {
		f.Text = nil
		own.Files[i] = f
	}
	return &own
}

// show writes for people which files there are, and what is different.
func (o *trustOptions) show(r *trustReport) {
	out := o.app.out
	var b strings.Builder
	switch n := plural(len(r.Files), "file", "files"); {
	case r.State == trust.Trusted:
		fmt.Fprintf(&b, "%s is trusted since %s, with %s\n", oneLine(r.Dir), r.Since.Local().Format(time.DateTime), n)
	case r.State == trust.Changed:
		fmt.Fprintf(&b, "%s has changed since you trusted it at %s:\n", oneLine(r.Dir), r.Since.Local().Format(time.DateTime))
	case len(r.Files) == 0:
		fmt.Fprintf(&b, "%s is not trusted, and has no file that could start a program\n", oneLine(r.Dir))
	default:
		fmt.Fprintf(&b, "%s is not trusted. %s of it can start programs or widen what agents may do:\n", oneLine(r.Dir), n)
	}
	out.print(b.String())
	for _, c := range r.Changes {
		out.print("\n" + oneLine(c.Path) + ": " + c.Kind + "\n")
		out.diff([]byte(debug.Sanitize(c.Diff)))
	}
	if len(r.Changes) > 0 {
		out.print("\nAll files:\n")
	}
	cols := []column{{name: "SHA-256"}, {name: "FILE"}, {name: "WHAT"}}
	var rows [][]cell
	for _, f := range r.Files {
		what := f.What
		if f.Kind != "" {
			what += " (" + f.Kind + ")"
		}
		rows = append(rows, []cell{text(f.Sum[:min(len(f.Sum), 16)]), text(oneLine(f.Path)), text(oneLine(what))})
	}
	if len(rows) > 0 {
		out.table(cols, rows)
	}
}

// decide shows the files, asks, and remembers the answer.
func (o *trustOptions) decide(book trust.Book, r *trustReport) error {
	out := o.app.out
	if !out.json() {
		o.show(r)
	}
	if r.State == trust.Trusted {
		if out.json() {
			out.object(r.brief())
		}
		return nil
	}
	if !o.yes {
		yes, asked := o.app.confirm("trust " + r.Dir + " with these files?")
		switch {
		case !asked:
			return usagef("look at the files, then say: rnix trust --yes "+r.Dir, "%s is not trusted, and there is no terminal to ask on", r.Dir)
		case !yes:
			out.talk("nothing was changed")
			return leave(ExitError)
		}
	}
	r.State, r.Since, r.Changes = trust.Trusted, time.Now(), nil
	if err := book.Put(trust.Entry{Dir: r.Dir, Since: r.Since, Files: r.Files}); err != nil { // those that were shown, whatever has come since
		return err
	}
	if out.json() {
		out.object(r.brief())
		return nil
	}
	out.talk("%s is trusted with %s; take it back with: rnix trust --revoke %s", oneLine(r.Dir), plural(len(r.Files), "file", "files"), oneLine(r.Dir))
	return nil
}

// forget takes the trust in a project back.
func (o *trustOptions) forget(book trust.Book, dir string) error {
	was, err := book.Forget(dir)
	if err != nil {
		return err
	}
	out := o.app.out
	if out.json() {
		out.object(map[string]any{"dir": dir, "was": was})
		return nil
	}
	if !was {
		out.talk("%s was not trusted, so nothing was changed", oneLine(dir))
		return nil
	}
	out.talk("%s is not trusted any more; what runs there continues as it was started", oneLine(dir))
	return nil
}

// all lists the projects that are trusted.
func (o *trustOptions) all(book trust.Book) error {
	out := o.app.out
	entries, problems := book.All()
	reports := []*trustReport{}
	for _, e := range entries {
		r, err := o.look(book, e.Dir)
		if err != nil {
			problems = append(problems, err)
			r = trustReport{Dir: e.Dir, State: trust.Changed, Since: e.Since, Files: e.Files}
		}
		reports = append(reports, r.brief())
	}
	if out.json() {
		out.object(map[string]any{"projects": reports})
	} else {
		var rows [][]cell
		for _, r := range reports {
			rows = append(rows, []cell{text(oneLine(r.Dir)), text(string(r.State)), text(r.Since.Local().Format(time.DateTime)), text(fmt.Sprint(len(r.Files)))})
		}
		if len(rows) == 0 {
			out.talk("no project is trusted; trust one with: rnix trust DIR")
		} else {
			out.table([]column{{name: "PROJECT"}, {name: "STATE"}, {name: "SINCE"}, {name: "FILES"}}, rows)
		}
	}
	for _, p := range problems {
		out.warn(errorText(p))
	}
	return nil
}
