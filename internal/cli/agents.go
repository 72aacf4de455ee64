package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func agentsCmd(a *app) *cobra.Command {
	return projectCmd(a, &cobra.Command{
		Use:         "agents",
		Short:       "list the agents that can be run here",
		Long:        "Agents lists the agents of this project, of the user and the built-in ones; of the same name the first counts.",
		Example:     examples(`rnix agents`, `rnix agents --json | jq -r .name`, `rnix run --agent assistant "..."`),
		Annotations: exits("0 1 2 12"),
		Args:        noArgs,
	}, listAgents)
}

func skillsCmd(a *app) *cobra.Command {
	return projectCmd(a, &cobra.Command{
		Use:         "skills",
		Short:       "list the skills that agents can use here",
		Long:        "Skills lists the skills (directories with a SKILL.md) of this project, of the user and the built-in ones.",
		Example:     examples(`rnix skills`, `rnix skills --json | jq -r .dir`),
		Annotations: exits("0 1 2 12"),
		Args:        noArgs,
	}, listSkills)
}

// projectCmd completes a command that asks about the project of the current directory.
func projectCmd(a *app, c *cobra.Command, do func(context.Context, *ipc.Client, *output, ipc.ProjectRequest) error) *cobra.Command {
	var trust bool
	c.Flags().BoolVar(&trust, "trust-project", false, "as run would with it")
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := a.connect(c.Context())
		if err != nil {
			return err
		}
		return do(c.Context(), client, a.out, a.project(trust))
	}
	return c
}

// listAgents lists agents.
func listAgents(ctx context.Context, c *ipc.Client, out *output, req ipc.ProjectRequest) error {
	r, err := ipc.Call(ctx, c, ipc.ListAgents, req)
	if err != nil {
		return err
	}
	rows := make([][]cell, 0, len(r.Agents))
	for i := range r.Agents {
		g := &r.Agents[i]
		if out.json() {
			out.object(g)
			continue
		}
		model := modelName(g.Models.Provider, g.Models.Preferred)
		rows = append(rows, []cell{{oneLine(g.Name), bold}, text(oneLine(g.Scope)), text(orDash(strings.Trim(model, "/"))), text(orDash(oneLine(strings.Join(g.Skills, ", ")))), text(oneLine(g.Description))})
	}
	out.listing([]column{{name: "NAME"}, {name: "SCOPE"}, {name: "MODEL", max: 30, drop: 2}, {name: "SKILLS", max: 40, drop: 1}, {name: "DESCRIPTION"}}, rows, "there are no agents", r.Problems)
	return nil
}

// listSkills lists skills.
func listSkills(ctx context.Context, c *ipc.Client, out *output, req ipc.ProjectRequest) error {
	r, err := ipc.Call(ctx, c, ipc.ListSkills, req)
	if err != nil {
		return err
	}
	rows := make([][]cell, 0, len(r.Skills))
	for i := range r.Skills {
		s := &r.Skills[i]
		if out.json() {
			out.object(s)
			continue
		}
		rows = append(rows, []cell{{oneLine(s.Name), bold}, text(oneLine(s.Scope)), text(oneLine(s.Description))})
	}
	out.listing([]column{{name: "NAME"}, {name: "SCOPE"}, {name: "DESCRIPTION"}}, rows, "there are no skills", r.Problems)
	return nil
}

// listing writes a table for people, or says that it is empty, and then the problems. With --json
// the rows have been written already, and the problems still go to standard error.
func (o *output) listing(cols []column, rows [][]cell, none string, problems []string) {
	switch {
	case o.json():
	case len(rows) == 0:
		o.talk("%s", none)
	default:
		o.table(cols, rows)
	}
	for i, p := range problems {
		if slices.Contains(problems[:i], p) {
			continue
		}
		o.say(o.err.paint(yellow, "warning: ") + lines(p))
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
