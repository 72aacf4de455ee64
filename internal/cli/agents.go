package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func agentsCmd(a *app) *cobra.Command {
	var names []string
	return projectCmd(a, &cobra.Command{
		Use:   "agents [NAME...]",
		Short: "list the agents that can be run here, or show what some may do",
		Long: `Agents lists the agents of this project, of the user and the built-in ones; of the same name the first counts.
With names it shows where each comes from, and its devices, variables, servers and limits.

An agent of a project replaces one of yours or a built-in one only if it may do no more than that one. With
--trust-project it always does, and gets the variables that it names under env.`,
		Example:     examples(`rnix agents`, `rnix agents reviewer`, `rnix agents --json | jq -r .name`, `rnix run --agent assistant "..."`),
		Annotations: exits("0 1 2 10 12"),
		Args: func(_ *cobra.Command, args []string) error {
			names = args
			return nil
		},
	}, func(ctx context.Context, c *ipc.Client, out *output, req ipc.ProjectRequest) error {
		return listAgents(ctx, c, out, req, names)
	})
}

func skillsCmd(a *app) *cobra.Command {
	return projectCmd(a, &cobra.Command{
		Use:         "skills",
		Short:       "list the skills that agents can use here",
		Long:        "Skills lists the skills (directories with a SKILL.md) of this project, of the user and the built-in ones. The\nallowed-tools of a skill limit nothing: what an agent may use is in its agent.yaml and in --allow and --deny.",
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

// listAgents lists agents, or shows those of some names.
func listAgents(ctx context.Context, c *ipc.Client, out *output, req ipc.ProjectRequest, names []string) error {
	r, err := ipc.Call(ctx, c, ipc.ListAgents, req)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(r.Agents, func(g ipc.AgentInfo) bool { return g.Name == name }) {
			return withMend(types.Errorf(types.ErrNotFound, "", name, "no agent has this name"), "see: rnix agents")
		}
	}
	if len(names) > 0 {
		r.Agents = slices.DeleteFunc(r.Agents, func(g ipc.AgentInfo) bool { return !slices.Contains(names, g.Name) })
		if !out.json() {
			for i := range r.Agents {
				showAgent(out, &r.Agents[i])
			}
			showProblems(out, r.Problems)
			return nil
		}
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

// showAgent shows what an agent may do. What its manifest does not set is left out, but for the devices.
func showAgent(out *output, g *ipc.AgentInfo) {
	line := func(key, value string) {
		if value != "" {
			out.print(fmt.Sprintf("%-15s %s\n", key, oneLine(value)))
		}
	}
	line("name", g.Name)
	line("scope", g.Scope)
	line("source", g.Source)
	line("description", g.Description)
	line("model", strings.Trim(modelName(g.Models.Provider, g.Models.Preferred), "/"))
	devices := strings.Join(g.Devices, ", ")
	if g.Devices == nil {
		devices = "all"
	}
	line("devices", cmp.Or(devices, "none"))
	line("env", strings.Join(g.Env, ", "))
	line("mcp", strings.Join(g.MCP, ", "))
	line("mcp_required", strings.Join(g.MCPRequired, ", "))
	line("skills", strings.Join(g.Skills, ", "))
	if v := g.MaxSteps; v != nil {
		line("max_steps", fmt.Sprint(*v))
	}
	if v := g.ContextBudget; v != nil {
		line("context_budget", fmt.Sprint(*v))
	}
	if v := g.BudgetUSD; v != nil {
		line("budget_usd", fmt.Sprint(*v))
	}
	line("step_timeout", g.StepTimeout.String())
	var blocked []string
	for _, sig := range g.BlockedSignals {
		blocked = append(blocked, sig.String())
	}
	line("blocked_signals", strings.Join(blocked, ", "))
	line("on_interrupt", g.OnInterrupt)
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
		if s.AllowedTools != "" {
			r.Problems = append(r.Problems, s.Name+": allowed-tools limits nothing here; what an agent may use is in its agent.yaml (devices) and in --allow and --deny")
		}
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
	showProblems(o, problems)
}

// showProblems writes each problem once, as a warning.
func showProblems(o *output, problems []string) {
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
