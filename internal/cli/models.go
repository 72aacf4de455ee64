package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func modelsCmd(a *app) *cobra.Command {
	var trust, long bool
	c := &cobra.Command{
		Use:   "models [PROVIDER]",
		Short: "list the models that are known, with windows, prices and abilities",
		Long: `Models lists the models of each provider about which something is known, as a run in this directory and
with this environment would see them. The one that a run takes is marked with a star, the default of
each provider with a plus sign. A provider takes others, too: no server is asked for its list.

WINDOW and OUTPUT are tokens of a prompt and of an answer, the prices USD per million tokens; "?" is what
is not known. Without a window, a conversation is compacted when the provider refuses it. context_window
in providers.yaml goes before the built-in table, and prices.yaml before the prices. --long and --json say
where each figure stands. ABILITIES are those of the way in which the provider is asked.`,
		Example:           examples(`rnix models`, `rnix models anthropic`, `rnix models --long openai`, `rnix models --json | jq 'select(.price == null).model'`),
		Annotations:       exits("0 1 2 10 12"),
		Args:              argsOf(0, 1, "a provider"),
		ValidArgsFunction: firstOf(completeProviders(a)),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			req := ipc.ModelsRequest{ProjectRequest: a.project(trust)}
			if len(args) > 0 {
				req.Provider = args[0]
			}
			return models(c.Context(), client, a.out, req, long)
		},
	}
	c.Flags().BoolVarP(&long, "long", "l", false, "also where each figure stands")
	c.Flags().BoolVar(&trust, "trust-project", false, "as run would with it")
	return c
}

// models lists models.
func models(ctx context.Context, c *ipc.Client, out *output, req ipc.ModelsRequest, long bool) error {
	r, err := ipc.Call(ctx, c, ipc.Models, req)
	if err != nil {
		return err
	}
	rows := make([][]cell, 0, len(r.Models))
	for i := range r.Models {
		m := &r.Models[i]
		if out.json() {
			out.object(m)
			continue
		}
		mark := ""
		switch {
		case m.Chosen:
			mark = "*"
		case m.Default:
			mark = "+"
		}
		row := []cell{{mark, green}, {oneLine(m.Provider), bold}, text(orDash(oneLine(m.Model))), text(orUnknown(m.Window)), text(orUnknown(m.MaxOutput)), text(perMillion(m.Price, true)), text(perMillion(m.Price, false)), text(abilitiesOf(&m.Abilities))}
		if long {
			row = append(row, text(oneLine(sourcesOf(m))))
		}
		rows = append(rows, row)
	}
	columns := []column{{name: ""}, {name: "PROVIDER"}, {name: "MODEL", max: 36}, {name: "WINDOW", right: true}, {name: "OUTPUT", right: true, drop: 2}, {name: "$ IN", right: true}, {name: "$ OUT", right: true}, {name: "ABILITIES", drop: 1}}
	if long {
		columns = append(columns, column{name: "FROM"})
	}
	out.listing(columns, rows, "no models are known", r.Problems)
	return nil
}

func orUnknown(n int) string {
	if n == 0 {
		return "?"
	}
	return number(n)
}

// perMillion is the price of a prompt or an answer, with a plus sign if there is a higher one.
func perMillion(p *ipc.ModelPrice, in bool) string {
	if p == nil {
		return "?"
	}
	usd := p.Output
	if in {
		usd = p.Input
	}
	s := strconv.FormatFloat(usd, 'f', -1, 64)
	if p.Over != nil {
		s += "+"
	}
	return s
}

func abilitiesOf(a *ipc.ModelAbilities) string {
	var out []string
	if a.Tools != "" {
		out = append(out, a.Tools+" tools")
	}
	for _, x := range []struct {
		can  bool
		word string
	}{{a.Streams, "stream"}, {a.Effort, "effort"}, {a.Thinking, "thinking"}, {a.Thoughts, "thoughts kept"}, {a.Cache, "cache"}, {a.Images, "images"}, {a.Documents, "PDFs"}} {
		if x.can {
			out = append(out, x.word)
		}
	}
	return orDash(strings.Join(out, ", "))
}

// sourcesOf says where each figure stands.
func sourcesOf(m *ipc.Model) string {
	var out []string
	for _, s := range []struct{ what, from string }{{"window", m.WindowFrom}, {"output", m.MaxOutputFrom}, {"price", m.PriceFrom}} {
		if s.from != "" {
			out = append(out, s.what+": "+s.from)
		}
	}
	return orDash(strings.Join(slices.Clip(out), "; "))
}
