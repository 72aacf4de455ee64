package cli

import (
	"context"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func providersCmd(a *app) *cobra.Command {
	var req ipc.ProvidersRequest
	var trust bool
	c := &cobra.Command{
		Use:   "providers",
		Short: "list the model providers, which one would be chosen, and why",
		Long: `Providers lists the model providers as a run in this directory and with this environment would see
them. The one that it would choose is marked with a star. CALLS is how many calls a provider gets at
once, from all agents of the daemon; the others wait, and ps shows how many are before them. It is
concurrency in config.yaml (4), or of the provider in providers.yaml.`,
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
}

// providers lists providers.
func providers(ctx context.Context, c *ipc.Client, out *output, req ipc.ProvidersRequest) error {
	r, err := ipc.Call(ctx, c, ipc.Providers, req)
	if err != nil {
		return err
	}
	rows := make([][]cell, 0, len(r.Providers))
	for _, p := range r.Providers {
		chosen := p.Name == r.Chosen
		if out.json() {
			line := chosenProvider{Provider: p, Chosen: chosen}
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
		rows = append(rows, []cell{{star, green}, {oneLine(p.Name), bold}, text(oneLine(p.Driver)), text(orDash(oneLine(p.Model))), text(atOnce), state, text(oneLine(p.Source)), text(oneLine(p.Detail))})
	}
	out.listing([]column{{name: ""}, {name: "NAME"}, {name: "DRIVER", drop: 1}, {name: "MODEL", max: 36, drop: 3}, {name: "CALLS", right: true, drop: 4}, {name: "USABLE"}, {name: "SOURCE", max: 32, drop: 2}, {name: "DETAIL"}}, rows, "there are no providers", r.Problems)
	if r.Chosen != "" {
		out.talk("%s would be chosen: %s", oneLine(r.Chosen), oneLine(r.Why))
	} else {
		out.talk("none would be chosen: %s", oneLine(r.Why))
	}
	return nil
}
