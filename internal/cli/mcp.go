package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/ipc"
)

func mcpCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp",
		Short: "list, test, watch, reload and mount MCP servers, or be one",
		Long: `MCP servers give agents further tools. Mcp lists those that are set up for this project, tests them, shows what
they have logged, starts them anew, and mounts them for yourself. With serve, Rnix is one itself.`,
		Example: examples(`rnix mcp list`, `rnix mcp test tracker`, `rnix mcp logs -f tracker`, `rnix mcp reload tracker`, `rnix mcp mount /mnt/mcp/tracker tracker`, `rnix run --mcp tracker "..."`, `rnix mcp serve --print-config claude`),
	}
	return family(c, projectCmd(a, &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "list the servers that are set up, and those that are mounted",
		Long: `List lists the servers that the files of this project and of the user describe, and those that are mounted: for
which process, in which state since when, with how many tools, and the PID of the program.

States: starting, running, restarting, lost (its connection has ended; the next call connects again), failed
(it could not be started; a call tries again, and so does rnix mcp reload).`,
		Example:     examples(`rnix mcp list`, `rnix mcp list --json | jq 'select(.kind=="mount")'`),
		Annotations: exits("0 1 2 12"),
		Args:        noArgs,
	}, mcpList), mcpTestCmd(a), mcpLogsCmd(a), mcpReloadCmd(a), mcpMountCmd(a), mcpUnmountCmd(a), mcpServeCmd(a))
}

func mcpTestCmd(a *app) *cobra.Command {
	var trust bool
	c := &cobra.Command{
		Use:         "test SERVER",
		Short:       "start a server, list its tools, and end it",
		Long:        "Test starts a server as an agent would, lists the tools that it offers, and ends it.",
		Example:     examples(`rnix mcp test tracker`, `rnix mcp test tracker --json | jq -r '.tools[].name'`),
		Annotations: exits("0 1 2 10 11 12 124"),
		Args:        argsOf(1, 1, "the name of a server (see: rnix mcp list)"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return mcpTest(c.Context(), client, a.out, ipc.MCPTestRequest{ProjectRequest: a.project(trust), Server: args[0]})
		},
	}
	c.Flags().BoolVar(&trust, "trust-project", false, "let the files of this project start the server")
	c.ValidArgsFunction = onlyFirst(completeServers(a))
	return c
}

// mcpList lists servers and mounts.
func mcpList(ctx context.Context, c *ipc.Client, out *output, req ipc.ProjectRequest) error {
	r, err := ipc.Call(ctx, c, ipc.MCPList, req)
	if err != nil {
		return err
	}
	if out.json() {
		for _, s := range r.Servers {
			out.object(struct {
				Kind string `json:"kind"`
				ipc.MCPServerInfo
			}{"server", s})
		}
		for _, m := range r.Mounts {
			out.object(struct {
				Kind string `json:"kind"`
				ipc.MCPMount
			}{"mount", m})
		}
		out.listing(nil, nil, "", r.Problems)
		return nil
	}
	rows := make([][]cell, len(r.Servers))
	for i, s := range r.Servers {
		state := cell{"ready", green}
		switch {
		case s.Disabled:
			state = cell{"disabled", dim}
		case s.Problem != "":
			state = cell{"unusable", yellow}
		}
		rows[i] = []cell{{oneLine(s.Name), bold}, text(oneLine(s.Type)), state, text(oneLine(s.Source)), text(oneLine(s.Command))}
	}
	out.listing([]column{{name: "NAME"}, {name: "TYPE", drop: 2}, {name: "STATE"}, {name: "SOURCE", max: 40, drop: 1}, {name: "COMMAND"}}, rows,
		"no MCP server is set up; servers stand in .mcp.json or .rnix/mcp.yaml", append(r.Problems, unusable(r.Servers)...))
	if len(r.Mounts) > 0 {
		out.print("\n")
		showMounts(out, r.Mounts)
	}
	return nil
}

// showMounts shows the servers that are mounted, and why those that do not run do not.
func showMounts(out *output, list []ipc.MCPMount) {
	rows := make([][]cell, len(list))
	for i, m := range list {
		st := green
		if m.Reason != "" {
			st = yellow
		}
		since := debug.Age(time.Since(m.Since))
		if !m.StateSince.IsZero() {
			since = debug.Age(time.Since(m.StateSince))
		}
		rows[i] = []cell{{oneLine(m.Path), bold}, text(dash(zero(int(m.PID)))), {dash(m.State), st}, text(since), text(number(m.Tools)), text(dash(zero(m.OSPID)))}
	}
	out.table([]column{{name: "MOUNTED AT"}, {name: "PID", right: true}, {name: "STATE"}, {name: "SINCE"}, {name: "TOOLS", right: true}, {name: "OS PID", right: true, drop: 1}}, rows)
	for _, m := range list {
		if m.Reason != "" {
			out.talk("%s: %s", oneLine(m.Path), oneLine(m.Reason))
		}
	}
}

// unusable says why servers cannot be used.
func unusable(servers []ipc.MCPServerInfo) []string {
	var out []string
	for _, s := range servers {
		if s.Problem != "" && !s.Disabled {
			out = append(out, s.Name+": "+s.Problem)
		}
	}
	return out
}

// mcpTest tests one server.
func mcpTest(ctx context.Context, c *ipc.Client, out *output, req ipc.MCPTestRequest) error {
	r, err := ipc.Call(ctx, c, ipc.MCPTest, req)
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	tools := offers(r.Tools, "tools")
	out.talk("%s answers after %s and offers %s", oneLine(req.Server), duration(r.ConnectMs), plural(len(tools), "tool", "tools"))
	rows := make([][]cell, 0, len(tools))
	for _, t := range tools {
		rows = append(rows, []cell{{oneLine(t.Name), bold}, text(oneLine(t.Description))})
	}
	if len(rows) > 0 {
		out.table([]column{{name: "TOOL"}, {name: "DESCRIPTION"}}, rows)
	}
	if rs := offers(r.Resources, "resources"); len(rs) > 0 {
		out.talk("and %s", plural(len(rs), "resource", "resources"))
	}
	return nil
}

// offer is what is shown of a tool or resource.
type offer struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// offers reads a list as the server gave it: bare, or as the field of an object.
func offers(raw json.RawMessage, field string) []offer {
	var list []offer
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	var wrapped map[string]json.RawMessage
	if json.Unmarshal(raw, &wrapped) == nil {
		_ = json.Unmarshal(wrapped[field], &list) // what is no list has nothing to show
	}
	return list
}
