package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/internal/config"
	"rnix/ipc"
)

// completePatience bounds what the shell waits for. A completion never starts a daemon.
const completePatience = 500 * time.Millisecond

// completer is what cobra calls for the words that may stand here.
type completer = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// completing returns a completer that asks a daemon that runs.
func completing(a *app, ask func(context.Context, *ipc.Client) []cobra.Completion) completer {
	return func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		parent := c.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, completePatience)
		defer cancel()
		client, err := a.find(ctx)
		if err != nil || client == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return ask(ctx, client), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeProcs offers PIDs and names, with ended ones if those can be meant too.
func completeProcs(a *app, ended bool) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.ListProcs, ipc.ListRequest{All: ended, Limit: 50})
		if err != nil {
			return nil
		}
		return procWords(r.Procs)
	})
}

// procWords returns the words that name processes.
func procWords(procs []ipc.Proc) []cobra.Completion {
	var out []cobra.Completion
	for i := range procs {
		p := &procs[i]
		what := p.State + ": " + cut(oneLine(p.Intent), 50)
		out = append(out, cobra.CompletionWithDesc(p.PID.String(), what))
		if p.Name != "" {
			out = append(out, cobra.CompletionWithDesc(oneLine(p.Name), what))
		}
	}
	return out
}

// completeResumable offers what can be resumed, the latest first.
func completeResumable(a *app) completer {
	f := completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.ListResumable, ipc.ListRequest{Limit: 50})
		if err != nil {
			return nil
		}
		return procWords(r.Procs)
	})
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		out, how := f(c, args, typed)
		return out, how | cobra.ShellCompDirectiveKeepOrder
	}
}

func completeAgents(a *app) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.ListAgents, a.project(false))
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for i := range r.Agents {
			out = append(out, cobra.CompletionWithDesc(oneLine(r.Agents[i].Name), cut(oneLine(r.Agents[i].Description), 60)))
		}
		return out
	})
}

func completeProviders(a *app) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.Providers, ipc.ProvidersRequest{ProjectRequest: a.project(false)})
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for _, p := range r.Providers {
			out = append(out, cobra.CompletionWithDesc(oneLine(p.Name), cut(oneLine(p.Detail), 60)))
		}
		return out
	})
}

func completeServers(a *app) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.MCPList, a.project(false))
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for _, s := range r.Servers {
			out = append(out, cobra.CompletionWithDesc(oneLine(s.Name), cut(oneLine(s.Command), 60)))
		}
		return out
	})
}

// completePaths offers the paths of the name space, one element after the other.
func completePaths(a *app) completer {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		dir := typed[:strings.LastIndexByte(typed, '/')+1]
		if dir == "" {
			dir = "/"
		}
		ask := func(ctx context.Context, client *ipc.Client) []cobra.Completion {
			path, err := procPath(ctx, client, strings.TrimSuffix(dir, "/"))
			if err != nil {
				return nil
			}
			as, _ := c.Flags().GetString("as")
			r, err := ipc.Call(ctx, client, ipc.ListPath, ipc.PathRequest{Path: path, As: as, Cwd: a.host.Dir, Env: a.host.Environ})
			if err != nil {
				return nil
			}
			var out []cobra.Completion
			for i := range r.Entries {
				out = append(out, dir+entryName(&r.Entries[i]).text)
			}
			return out
		}
		out, directive := completing(a, ask)(c, args, typed)
		return out, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// onlyFirst offers nothing for further arguments.
func onlyFirst(f completer) completer {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(c, args, typed)
	}
}

// completeResume sets what the flags of resume complete to.
func completeResume(a *app, c *cobra.Command) {
	for flag, f := range map[string]completer{
		"provider": completeProviders(a), "fallback-provider": completeProviders(a),
		"output-format": cobra.FixedCompletions([]cobra.Completion{"text", "json", "stream-json"}, cobra.ShellCompDirectiveNoFileComp),
		"on-in-doubt":   cobra.FixedCompletions(policies(), cobra.ShellCompDirectiveNoFileComp),
	} {
		_ = c.RegisterFlagCompletionFunc(flag, f)
	}
	_ = c.MarkFlagDirname("cwd")
}

// completeRun sets what the flags of run complete to.
func completeRun(a *app, c *cobra.Command) {
	for flag, f := range map[string]completer{
		"agent": completeAgents(a), "provider": completeProviders(a), "fallback-provider": completeProviders(a),
		"parent": completeProcs(a, false), "group": completeGroups(a), "mcp": completeServers(a),
		"output-format": cobra.FixedCompletions([]cobra.Completion{"text", "json", "stream-json"}, cobra.ShellCompDirectiveNoFileComp),
		"harness":       cobra.FixedCompletions(config.Harnesses(), cobra.ShellCompDirectiveNoFileComp),
		"tools":         cobra.FixedCompletions([]cobra.Completion{config.ToolsOwn, config.ToolsKernel}, cobra.ShellCompDirectiveNoFileComp),
		"effort":        cobra.FixedCompletions([]cobra.Completion{"low", "medium", "high"}, cobra.ShellCompDirectiveNoFileComp),
	} {
		_ = c.RegisterFlagCompletionFunc(flag, f)
	}
	_ = c.MarkFlagDirname("cwd")
}
