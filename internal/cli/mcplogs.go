package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/internal/event"
	"rnix/ipc"
)

func mcpLogsCmd(a *app) *cobra.Command {
	var past pastFlags
	var process []string
	c := &cobra.Command{
		Use:     "logs [SERVER]",
		Aliases: []string{"log"},
		Short:   "show what MCP servers have written for people",
		Long: `Logs shows what MCP servers write to their standard error, and the log messages of their protocol, with the
time and the process; without SERVER those of all, and of one process with --process. It also works when the
process has ended and after a restart of the daemon.

Lines are kept with the events of the process for as long as its history is; those of a server that you have
mounted yourself only in memory. Of each server at most 5,000 lines are kept in a run, of at most 2 KiB each:
400 at once and 20 a second; what is left out is counted. Secrets that Rnix knows are concealed.`,
		Example:     examples(`rnix mcp logs`, `rnix mcp logs -f tracker`, `rnix mcp logs --process fix -n 50`, `rnix mcp logs --json tracker | jq -r .text`),
		Annotations: exits("0 1 2 10 12 130"),
		Args:        argsOf(0, 1, "the name of a server (see: rnix mcp list)"),
		RunE: func(c *cobra.Command, args []string) error {
			req, err := past.request(c, process, time.Now())
			if err != nil {
				return err
			}
			req.Kinds = []event.Kind{event.ServerLine, event.Lag}
			if len(args) > 0 {
				if strings.ContainsAny(args[0], "/*?[]") {
					return usagef("see: rnix mcp list", "%q cannot be the name of a server", args[0])
				}
				req.Filter = &ipc.EventFilter{Path: "/mnt/mcp/" + args[0]}
			}
			fl, err := connectFollower(c.Context(), a)
			if err != nil {
				return err
			}
			return showEvents(c.Context(), fl, a.out, req, nil, func(e *ipc.Event) string {
				if e.Kind == event.Lag {
					return lagLine(e)
				}
				return serverLine(e)
			})
		},
	}
	past.add(c)
	c.Flags().StringSliceVarP(&process, "process", "p", nil, "only the servers of this process; may be repeated")
	_ = c.RegisterFlagCompletionFunc("process", completeProcs(a, true))
	c.ValidArgsFunction = onlyFirst(completeServers(a))
	return c
}

func mcpReloadCmd(a *app) *cobra.Command {
	var req ipc.MCPReloadRequest
	c := &cobra.Command{
		Use:     "reload [SERVER]",
		Aliases: []string{"restart"},
		Short:   "start MCP servers of running processes anew",
		Long: `Reload ends the MCP servers of running processes and starts them anew, with their configuration read again, and
says what is different in their tools. Without SERVER it reloads all, and those of one process with --process.

A call under way fails, and its agent is told that it may have had an effect; calls that come meanwhile wait.
If tools are different, the agent is told, and is offered them as they are now from its next question on, which
costs it the cached beginning of its prompt. A server that cannot be started keeps its tools: the next call
tries again. The exit code is 1 then.`,
		Example:     examples(`rnix mcp reload`, `rnix mcp reload tracker`, `rnix mcp reload --process fix tracker`),
		Annotations: exits("0 1 2 10 11 12 124"),
		Args:        argsOf(0, 1, "the name of a server (see: rnix mcp list)"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				req.Server = args[0]
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return mcpReload(c.Context(), client, a.out, req)
		},
	}
	c.Flags().StringVarP(&req.Process, "process", "p", "", "only the servers of this process")
	_ = c.RegisterFlagCompletionFunc("process", completeProcs(a, false))
	c.ValidArgsFunction = onlyFirst(completeServers(a))
	return c
}

// mcpReload reloads servers and says what came of each.
func mcpReload(ctx context.Context, c *ipc.Client, out *output, req ipc.MCPReloadRequest) error {
	r, err := ipc.Call(ctx, c, ipc.MCPReload, req)
	if err != nil {
		return err
	}
	failed := false
	for i := range r.Servers {
		s := &r.Servers[i]
		failed = failed || s.Error != nil
		switch other := otherTools(s); {
		case out.json():
			out.object(s)
		case s.Error != nil:
			out.warn(oneLine(s.Path) + ": " + oneLine(s.Error.Message))
		case other == "":
			out.talk("%s is started anew, with the same %s", oneLine(s.Path), plural(s.Tools, "tool", "tools"))
		default:
			out.talk("%s is started anew, with %s; %s", oneLine(s.Path), plural(s.Tools, "tool", "tools"), oneLine(other))
		}
	}
	if failed {
		return leave(ExitError)
	}
	return nil
}

// otherTools says which tools of a server are different since it was reloaded; "" if none are.
func otherTools(s *ipc.MCPReloaded) string {
	var parts []string
	for _, k := range []struct {
		what  string
		names []string
	}{{"new: ", s.Added}, {"gone: ", s.Removed}, {"changed: ", s.Changed}} {
		if len(k.names) > 0 {
			parts = append(parts, k.what+strings.Join(k.names, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// serverLine is what a server has said for people: the time, the process, the server, the stream and the text.
func serverLine(e *ipc.Event) string {
	return e.Time.Local().Format("2006-01-02 15:04:05.000") + " " + dash(zero(int(e.PID))) + " " + oneLine(strings.TrimPrefix(e.Path, "/mnt/mcp/")) + " [" + oneLine(e.Name) + "] " + oneLine(e.Text)
}
