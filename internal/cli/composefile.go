package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"rnix/internal/compose"
	"rnix/internal/yamlfile"
	"rnix/ipc"
	"rnix/types"
)

func eventLine(s *stream, e *ipc.Event) string { return straceLine(s, e) }

// nearNode is the mend for a node that is not there.
func nearNode(name string, names []string) string {
	if n := yamlfile.Nearest(name, names); n != "" {
		return "did you mean " + n + "?"
	}
	return "nodes are: " + cut(strings.Join(names, ", "), 200)
}

func composeCheckCmd(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:        "check [FILE]",
		SuggestFor: []string{"validate", "lint", "config"},
		Short:      "say what is wrong with a workflow file",
		Long: `Check reads a workflow file and names every mistake with its line and column. It needs no daemon. Variables
without a value are taken for given; agents, skills and models are looked for when the workflow is run.`,
		Example:     examples(`rnix compose check`, `rnix compose check review.yaml --json`),
		Annotations: exits("0 1 2 10"),
		Args:        argsOf(0, 1, ""),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && file != "" {
				return usagef("", "a file and %q are named; give one of them", args[0])
			}
			f, shown, err := parseWorkflow(a, append(args, file)[0])
			if err != nil {
				return err
			}
			p := f.Plan()
			if a.out.json() {
				a.out.object(struct {
					OK    bool     `json:"ok"`
					File  string   `json:"file"`
					Nodes []string `json:"nodes"`
					Notes []string `json:"notes,omitempty"`
				}{true, shown, p.Order, f.Notes()})
				return nil
			}
			a.out.talk("%s is right: %s", shown, plural(len(p.Order), "node", "nodes"))
			for _, note := range f.Notes() {
				a.out.talk("  note: %s", note)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "the workflow file (default compose.yaml or .rnix/compose.yaml)")
	_ = c.MarkFlagFilename("file", "yaml", "yml")
	return c
}

// parseWorkflow reads and checks a workflow file without its variables.
func parseWorkflow(a *app, name string) (*compose.File, string, error) {
	shown, path, text, err := readWorkflow(a, name)
	if err != nil {
		return nil, shown, err
	}
	f, ps := compose.Parse(compose.Source{Name: shown, Text: []byte(text), AnyVars: true, ReadFile: func(file string) ([]byte, error) {
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(path), file)
		}
		return yamlfile.ReadFile(file, yamlfile.MaxBytes+1)
	}})
	return f, shown, ps.Err("", "")
}

func composeGraphCmd(a *app) *cobra.Command {
	var file, format string
	c := &cobra.Command{
		Use:        "graph [FILE|RUN]",
		SuggestFor: []string{"draw", "dot", "show"},
		Short:      "draw which node waits for which",
		Long: `Graph draws a workflow: each node with those that it waits for. Of a run it shows too what has become of
them. text is for reading, dot for Graphviz, mermaid for Markdown.`,
		Example:           examples(`rnix compose graph`, `rnix compose graph review.yaml --format dot | dot -Tsvg > review.svg`, `rnix compose graph review --format mermaid`),
		Annotations:       exits("0 1 2 10 12"),
		Args:              argsOf(0, 1, ""),
		ValidArgsFunction: completeRuns(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && file != "" {
				return usagef("", "a file and %q are named; give one of them", args[0])
			}
			if _, err := (&compose.Plan{}).Draw(format, nil); err != nil {
				return usagef("", "--format %w", err)
			}
			return drawGraph(a, c.Context(), append(args, file)[0], format)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "the workflow file (default compose.yaml or .rnix/compose.yaml)")
	c.Flags().StringVar(&format, "format", "text", "text, dot or mermaid")
	_ = c.MarkFlagFilename("file", "yaml", "yml")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "dot", "mermaid"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// graph draws a file, or a run.
func drawGraph(a *app, ctx context.Context, name, format string) error {
	var f *compose.File
	state := map[string]string{}
	if name == "" || name == "-" || isFile(a, name) {
		var err error
		if f, _, err = parseWorkflow(a, name); err != nil {
			return err
		}
	} else {
		client, err := a.connect(ctx)
		if err != nil {
			return err
		}
		r, err := ipc.Call(ctx, client, ipc.ComposePlan, ipc.TargetRequest{Target: name})
		if err != nil {
			return err
		}
		f, state = drawable(r.File), r.States
	}
	text, err := f.Plan().Draw(format, func(node string) string { return state[node] })
	if err != nil {
		return err
	}
	if a.out.json() {
		a.out.object(struct {
			Format string `json:"format"`
			Graph  string `json:"graph"`
		}{format, text})
		return nil
	}
	a.out.print(text)
	return nil
}

// drawable is as much of the workflow of a run as its graph shows.
func drawable(w *ipc.Workflow) *compose.File {
	f := &compose.File{Agents: map[string]*compose.Node{}}
	for name, n := range w.Agents {
		node := &compose.Node{ForEach: (*compose.ForEach)(n.ForEach), Line: n.Line}
		if t := n.Worktree; t != nil {
			node.Worktree = &compose.Worktree{Own: t.Own, Branch: t.Branch, Base: t.Base, Conflicts: compose.Conflicts(t.Conflicts)}
		}
		if n.DependsOn != nil {
			node.DependsOn = &compose.Depends{On: map[string]compose.Condition{}}
			for up, cond := range n.DependsOn.On {
				node.DependsOn.On[up] = compose.Condition(cond)
			}
		}
		f.Agents[name] = node
	}
	return f
}

func composeInitCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "init",
		Short:       "write a workflow file to begin with",
		Long:        "Init writes compose.yaml into the current directory: an example that says everything that a file\ncan say. A file that exists is kept.",
		Example:     examples(`rnix compose init && rnix compose graph`),
		Annotations: exits("0 1 2 11"),
		Args:        noArgs,
		RunE: func(*cobra.Command, []string) error {
			path := filepath.Join(a.host.Dir, compose.FileName)
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
			if os.IsExist(err) {
				return types.Errorf(types.ErrConflict, "", compose.FileName, "it exists already and is kept as it is")
			}
			if err == nil {
				_, err = f.WriteString(compose.Template)
				if cerr := f.Close(); err == nil {
					err = cerr
				}
			}
			if err != nil {
				code := types.ErrInvalid
				if os.IsPermission(err) {
					code = types.ErrPermission
				}
				return types.Errorf(code, "", compose.FileName, "%w", yamlfile.Cause(err))
			}
			if a.out.json() {
				a.out.object(struct {
					Path   string `json:"path"`
					Action string `json:"action"`
				}{compose.FileName, "wrote"})
				return nil
			}
			if !a.out.quiet {
				a.out.print("wrote  " + compose.FileName + "\n")
			}
			a.out.talk("next: change it, then: rnix compose graph, rnix compose up")
			return nil
		},
	}
}
