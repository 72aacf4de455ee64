package cli

import (
	"context"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func mcpMountCmd(a *app) *cobra.Command {
	var trust bool
	c := &cobra.Command{
		Use:   "mount PATH [SERVER | -- COMMAND [ARGUMENT...]]",
		Short: "mount a server for yourself, below /mnt/mcp",
		Long: `Mount starts an MCP server and mounts it at /mnt/mcp/NAME: a server that is set up (see: rnix mcp list), or
a command that speaks MCP on stdin and stdout. Use it with ls, cat and write; it keeps its state between calls.

The server runs in this directory with PATH, HOME and the like; give a command more with env NAME=VALUE. It
ends with rnix mcp unmount, or when the daemon stops: a restart of the daemon does not bring it back. The
daemon does not stop for being idle while a server is mounted. Agents cannot use it: an agent has the servers
that it was started with (rnix run --mcp SERVER).`,
		Example: examples(`rnix mcp mount /mnt/mcp/issues tracker`, `rnix mcp mount /mnt/mcp/db -- env DB=shop.sqlite my-db-server`, `rnix ls /mnt/mcp/db/tools`,
			`rnix write /mnt/mcp/db/tools/query '{"sql": "select 1"}'`, `rnix mcp unmount /mnt/mcp/db`),
		Annotations: exits("0 1 2 10 11 12 124"),
		RunE: func(c *cobra.Command, args []string) error {
			req, err := mountRequest(args, c.ArgsLenAtDash())
			if err != nil {
				return err
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			req.ProjectRequest = a.project(trust)
			return mcpMount(c.Context(), client, a.out, req)
		},
	}
	c.Flags().BoolVar(&trust, "trust-project", false, "let the files of this project start the server")
	c.ValidArgsFunction = func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch len(args) {
		case 1:
			return completeServers(a)(c, args, typed)
		case 0:
			return []cobra.Completion{"/mnt/mcp/"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault // of the command
	}
	return c
}

// mountRequest reads the arguments of mount: dash is how many stand before "--", -1 without one.
func mountRequest(args []string, dash int) (ipc.MCPMountRequest, error) {
	const mend = "see: rnix mcp mount --help"
	switch {
	case len(args) < 2:
		return ipc.MCPMountRequest{}, usagef(mend, "mount needs a path, and a server or a command")
	case dash == 1:
		return ipc.MCPMountRequest{Path: args[0], Command: args[1:]}, nil
	case dash >= 0 || len(args) > 2:
		return ipc.MCPMountRequest{}, usagef(mend, "a command stands after --")
	}
	return ipc.MCPMountRequest{Path: args[0], Server: args[1]}, nil
}

// mcpMount mounts a server.
func mcpMount(ctx context.Context, c *ipc.Client, out *output, req ipc.MCPMountRequest) error {
	m, err := ipc.Call(ctx, c, ipc.MCPMountAt, req)
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&m)
		return nil
	}
	out.talk("mounted %s with %s, until it is unmounted or the daemon stops", oneLine(m.Path), plural(m.Tools, "tool", "tools"))
	return nil
}

func mcpUnmountCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "unmount PATH...",
		Aliases: []string{"umount"},
		Short:   "end servers that you have mounted",
		Long: `Unmount ends servers that rnix mcp mount has mounted. A call that is under way fails. The
servers of a process stay until it ends.`,
		Example:     examples(`rnix mcp unmount /mnt/mcp/db`),
		Annotations: exits("0 1 2 10 11 12"),
		Args:        argsOf(1, -1, "the path of a mount (see: rnix mcp list)"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return mcpUnmount(c.Context(), client, a.out, args)
		},
	}
	c.ValidArgsFunction = completeMounts(a)
	return c
}

// mcpUnmount ends servers, up to the first that cannot be ended.
func mcpUnmount(ctx context.Context, c *ipc.Client, out *output, paths []string) error {
	for _, p := range paths {
		if _, err := ipc.Call(ctx, c, ipc.MCPUnmount, ipc.MCPUnmountRequest{Path: p}); err != nil {
			return err
		}
		if out.json() {
			out.object(struct {
				Path string `json:"unmounted"`
			}{p})
			continue
		}
		out.talk("unmounted %s", oneLine(p))
	}
	return nil
}

// completeMounts offers what can be unmounted.
func completeMounts(a *app) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.MCPList, a.project(false))
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for _, m := range r.Mounts {
			if m.PID == 0 {
				out = append(out, cobra.CompletionWithDesc(oneLine(m.Path), plural(m.Tools, "tool", "tools")))
			}
		}
		return out
	})
}
