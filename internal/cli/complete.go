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

// How many processes a completion offers, and how many it looks through for the beginning of a UUID.
const (
	offeredProcs  = 50
	searchedProcs = 5000
)

// completeProcs offers PIDs and names, with ended ones if those can be meant too, and UUIDs to who has begun one.
func completeProcs(a *app, ended bool) completer {
	return listed(a, ipc.ListProcs, ended)
}

// listed offers the words that name the processes of a list.
func listed(a *app, m ipc.Method[ipc.ListRequest, ipc.ListResponse], all bool) completer {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completing(a, func(ctx context.Context, client *ipc.Client) []cobra.Completion {
			req := ipc.ListRequest{All: all, Limit: offeredProcs}
			if beginsUUID(typed) {
				req.Limit = searchedProcs
			}
			r, err := ipc.Call(ctx, client, m, req)
			if err != nil {
				return nil
			}
			return procWords(r.Procs, typed)
		})(c, args, typed)
	}
}

// beginsUUID reports whether a word begins as UUIDs do, of which the first digits are a time, and no PID does.
func beginsUUID(typed string) bool { return strings.HasPrefix(typed, "0") }

// procWords returns the words that name processes, for what has been typed.
func procWords(procs []ipc.Proc, typed string) []cobra.Completion {
	var out []cobra.Completion
	for i := range procs {
		p := &procs[i]
		what := p.State + ": " + cut(oneLine(p.Intent), 50)
		if beginsUUID(typed) {
			if id := p.UUID.String(); strings.HasPrefix(id, typed) && len(out) < offeredProcs {
				out = append(out, cobra.CompletionWithDesc(id, what))
			}
			continue
		}
		out = append(out, cobra.CompletionWithDesc(p.PID.String(), what))
		if p.Name != "" {
			out = append(out, cobra.CompletionWithDesc(oneLine(p.Name), what))
		}
	}
	return out
}

// completeResumable offers what can be resumed, the latest first.
func completeResumable(a *app) completer {
	f := listed(a, ipc.ListResumable, false)
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
	return ofProviders(a, func(p *ipc.Provider) string { return p.Name })
}

// completeModels offers the models that are known of the providers that can be used, as provider/model. Any other can be typed.
func completeModels(a *app) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.Models, ipc.ModelsRequest{ProjectRequest: a.project(false)})
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for i := range r.Models {
			m := &r.Models[i]
			if !m.Usable || m.Model == "" {
				continue
			}
			out = append(out, cobra.CompletionWithDesc(oneLine(m.Provider+"/"+m.Model), "window "+orUnknown(m.Window)+", $"+perMillion(m.Price, true)+" in, $"+perMillion(m.Price, false)+" out"))
		}
		return out
	})
}

// firstOf offers words for the first argument only.
func firstOf(f completer) completer {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(c, args, typed)
	}
}

// ofProviders offers a word for each provider; none for one whose word is empty.
func ofProviders(a *app, word func(*ipc.Provider) string) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.Providers, ipc.ProvidersRequest{ProjectRequest: a.project(false)})
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for i := range r.Providers {
			if w := word(&r.Providers[i]); w != "" {
				out = append(out, cobra.CompletionWithDesc(oneLine(w), cut(oneLine(r.Providers[i].Detail), 60)))
			}
		}
		return out
	})
}

func completeTools(a *app) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.ListTools, a.project(false))
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for i := range r.Tools {
			out = append(out, cobra.CompletionWithDesc(r.Tools[i].Name, cut(oneLine(r.Tools[i].Description), 60)))
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
		"provider": completeProviders(a), "fallback-provider": completeProviders(a), "model": completeModels(a), "fallback-model": completeModels(a),
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
		"agent": completeAgents(a), "provider": completeProviders(a), "fallback-provider": completeProviders(a), "model": completeModels(a), "fallback-model": completeModels(a),
		"allow": completePaths(a), "deny": completePaths(a),
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
