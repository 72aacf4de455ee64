package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/ipc"
)

func providersCmd(a *app) *cobra.Command {
	var req ipc.ProvidersRequest
	var trust bool
	c := &cobra.Command{
		Use:        "providers",
		SuggestFor: []string{"login", "auth"},
		Short:      "list the model providers, which one would be chosen, and why",
		Long: `Providers lists the model providers as a run in this directory and with this environment would see
them. The one that it would choose is marked with a star. CALLS is how many calls a provider gets at
once, from all agents of the daemon; the others wait, and ps shows how many are before them. It is
concurrency in config.yaml (4), or of the provider in providers.yaml; -v says which of them. Below the
list stands how many calls run and wait now. The form of the file: rnix help providers.yaml`,
		Example:     examples(`rnix providers`, `rnix providers --agent reviewer`, `rnix providers --json | jq 'select(.available).name'`),
		Annotations: exits("0 1 2 10 12"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			req.ProjectRequest = a.project(trust)
			return providers(c.Context(), client, a.out, req)
		},
	}
	c.Flags().StringVar(&req.Agent, "agent", "", "as a run of this agent would see them")
	c.Flags().StringVar(&req.Provider, "provider", "", "as a run with this --provider would choose")
	c.Flags().BoolVar(&trust, "trust-project", false, "as run would with it")
	_ = c.RegisterFlagCompletionFunc("agent", completeAgents(a))
	_ = c.RegisterFlagCompletionFunc("provider", completeProviders(a))
	return c
}

// chosenProvider is a line of providers --json.
type chosenProvider struct {
	ipc.Provider
	Chosen bool   `json:"chosen"`
	Why    string `json:"why,omitempty"` // why it was chosen
	// Now are its calls at this moment, by the configurations that clients have of it.
	Now []ipc.ProviderCalls `json:"now,omitempty"`
}

// providers lists providers.
func providers(ctx context.Context, c *ipc.Client, out *output, req ipc.ProvidersRequest) error {
	r, err := ipc.Call(ctx, c, ipc.Providers, req)
	if err != nil {
		return err
	}
	calls, err := ipc.Call(ctx, c, ipc.ProviderTraffic, ipc.Empty{})
	if err != nil { // a daemon of an earlier version
		calls = ipc.ProviderCallsResponse{}
	}
	rows := make([][]cell, 0, len(r.Providers))
	for _, p := range r.Providers {
		chosen := p.Name == r.Chosen
		if out.json() {
			line := chosenProvider{Provider: p, Chosen: chosen}
			for _, now := range calls.Providers {
				if now.Provider == p.Name {
					line.Now = append(line.Now, now)
				}
			}
			if chosen {
				line.Why = r.Why
			}
			out.object(&line)
			continue
		}
		star, state := "", cell{"no", dim}
		if chosen {
			star = "*"
		}
		if p.Available {
			state = cell{"yes", green}
		}
		atOnce := "any"
		if p.AtOnce > 0 {
			atOnce = number(p.AtOnce)
		}
		row := []cell{{star, green}, {oneLine(p.Name), bold}, text(oneLine(p.Driver)), text(orDash(oneLine(p.Model))), text(atOnce), state, text(oneLine(shortHome(p.Source, req.Env))), text(oneLine(p.Detail))}
		if out.verbose {
			row = append(row[:5:5], append([]cell{text(orDash(oneLine(p.AtOnceFrom)))}, row[5:]...)...)
		}
		rows = append(rows, row)
	}
	cols := []column{{name: ""}, {name: "NAME"}, {name: "DRIVER", drop: 1}, {name: "MODEL", max: 36, drop: 3}, {name: "CALLS", right: true, drop: 4}, {name: "USABLE"}, {name: "SOURCE", drop: 2}, {name: "DETAIL"}}
	if out.verbose {
		cols = append(cols[:5:5], append([]column{{name: "CALLS FROM"}}, cols[5:]...)...)
	}
	out.listing(cols, rows, "there are no providers", r.Problems)
	if !out.json() {
		for i := range calls.Providers {
			out.print(callsNow(&calls.Providers[i], time.Now()) + "\n")
		}
	}
	if r.Chosen != "" {
		out.talk("%s would be chosen: %s", oneLine(r.Chosen), oneLine(r.Why))
	} else {
		out.talk("none would be chosen: %s", oneLine(r.Why))
	}
	return nil
}

// shortHome writes ~ for the home directory of an environment at the beginning of a path.
func shortHome(path string, env []string) string {
	for _, v := range env {
		if home, ok := strings.CutPrefix(v, "HOME="); ok && len(home) > 1 {
			if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok {
				return "~/" + rest
			}
		}
	}
	return path
}

// callsNow says how many calls of a provider run, and how many wait: anthropic: 4 of 4 calls run, 3 wait, the first for 12s.
func callsNow(c *ipc.ProviderCalls, now time.Time) string {
	s := fmt.Sprintf("%s: %s", oneLine(c.Provider), plural(c.Running, "call runs", "calls run"))
	if c.AtOnce > 0 {
		s = fmt.Sprintf("%s: %s of %s calls run", oneLine(c.Provider), number(c.Running), number(c.AtOnce))
	}
	if c.Waiting > 0 {
		s += fmt.Sprintf(", %s, the first for %s", plural(c.Waiting, "waits", "wait"), debug.Age(now.Sub(c.Oldest)))
	}
	return s
}
