package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/drivers/llm"
	"rnix/internal/config"
	"rnix/internal/price"
	"rnix/internal/profile"
	"rnix/ipc"
	"rnix/types"
)

// Describer knows what drivers say of themselves. *Models is one.
type Describer interface {
	Describe(p *profile.Profile, pr config.Provider) (llm.DriverInfo, error)
	// Traffic returns which calls providers run now, and which wait.
	Traffic() []ipc.ProviderCalls
	Encode(p *profile.Profile, pr config.Provider, req llm.LLMRequest) (address string, body []byte, err error)
}

// Describe returns what the driver of a provider says of itself, without asking anybody.
func (m *Models) Describe(p *profile.Profile, pr config.Provider) (llm.DriverInfo, error) {
	d, err := m.driver(p, pr)
	if err != nil {
		return llm.DriverInfo{}, err
	}
	return d.patient.Info(), nil
}

// models lists the models that are known.
func (c *Service) models(_ context.Context, _ *ipc.Peer, req ipc.ModelsRequest) (ipc.ModelsResponse, error) {
	p, err := c.Profiles.Read(req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.ModelsResponse{}, err
	}
	r := ipc.ModelsResponse{Problems: p.Problems, Models: []ipc.Model{}}
	chosen, model := chosenIn(p)
	var names []string
	for _, pr := range p.Providers.List {
		if names = append(names, pr.Name); req.Provider == "" || req.Provider == pr.Name {
			for _, m := range c.modelsOf(p, pr) {
				m.Chosen = pr.Name == chosen && m.Model == model
				r.Models = append(r.Models, m)
			}
		}
	}
	if req.Provider != "" && !slices.Contains(names, req.Provider) {
		return r, types.Errorf(types.ErrNotFound, "Models", "", "unknown provider %q; available: %s", req.Provider, strings.Join(names, ", "))
	}
	return r, nil
}

// chosenIn returns which provider and model a start takes that names nothing; "" if none can be used.
func chosenIn(p *profile.Profile) (provider, model string) {
	var models agent.Models
	if ag, err := p.Load("", nil); err == nil {
		models = ag.Models
	}
	choice, err := p.ChooseBy(models, config.Wish{})
	if err != nil {
		return "", ""
	}
	if choice.Model != "" {
		return choice.Provider.Name, choice.Model
	}
	return choice.Provider.Name, choice.Provider.DefaultModel
}

// modelsOf returns the models of a provider: its default first, then those with a window, then those with a price.
func (c *Service) modelsOf(p *profile.Profile, pr config.Provider) (out []ipc.Model) {
	ok, _ := p.Available(pr)
	info, err := c.Models.Describe(p, pr)
	if err != nil {
		info = llm.DriverInfo{} // its problem is shown by providers
	}
	names := []string{pr.DefaultModel}
	if pr.DefaultModel == "" {
		names[0] = info.Model
	}
	for _, more := range [][]string{slices.Sorted(maps.Keys(pr.Windows)), profile.PricedModels(p, pr.Name, pr.Driver)} {
		for _, n := range more {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	if names[0] == "" && len(names) > 1 {
		names = names[1:]
	}
	for _, n := range names {
		m := ipc.Model{Provider: pr.Name, Driver: pr.Driver, Model: n, Default: n == pr.DefaultModel, Usable: ok, Window: pr.Window(n), WindowFrom: pr.WindowFrom(n), MaxOutput: info.MaxAnswer,
			Abilities: ipc.ModelAbilities(info.Abilities)}
		if m.MaxOutput > 0 {
			if m.MaxOutputFrom = "what the driver asks for"; pr.MaxTokens > 0 {
				m.MaxOutputFrom = "max_tokens of provider " + pr.Name + ", " + pr.Source
			}
		}
		if rate, from := profile.PriceIn(p, pr.Name, pr.Driver, n); from != "" {
			m.Price, m.PriceFrom = priceOf(&rate), from
		}
		out = append(out, m)
	}
	return out
}

func priceOf(r *price.Rate) *ipc.ModelPrice {
	usd := func(n int64) float64 { return price.USD(n).Float() }
	out := &ipc.ModelPrice{Input: usd(r.Input), Output: usd(r.Output), CacheRead: usd(r.CacheRead), CacheWrite: usd(r.CacheWrite)}
	if r.Over != nil {
		out.Over, out.OverTokens = priceOf(r.Over), r.OverTokens
	}
	return out
}

// Encode returns where a request to a provider goes, and its body, as a client's configuration has it. INVALID: the provider is no server.
func (c *Service) Encode(r *ipc.ProjectRequest, provider string, req llm.LLMRequest) (address string, body []byte, err error) {
	p, err := c.Profiles.Read(r.Cwd, r.Env, r.TrustProject)
	if err != nil {
		return "", nil, err
	}
	i := slices.IndexFunc(p.Providers.List, func(pr config.Provider) bool { return pr.Name == provider })
	if i < 0 {
		return "", nil, types.Errorf(types.ErrNotFound, "Models", "", "unknown provider %q: the configuration has changed since", provider)
	}
	return c.Models.Encode(p, p.Providers.List[i], req)
}

// Encode makes a request by a driver of its own, so that nothing is shared with those that ask.
func (m *Models) Encode(_ *profile.Profile, pr config.Provider, req llm.LLMRequest) (address string, body []byte, err error) {
	d, err := m.Drivers.Make(pr)
	if err != nil {
		return "", nil, err
	}
	if k, ok := d.(interface{ Close() error }); ok {
		defer func() { _ = k.Close() }() // it has sent nothing
	}
	e, ok := d.(llm.Encoder)
	if !ok {
		return "", nil, types.Errorf(types.ErrInvalid, "Models", pr.Name, "the provider %s is no server that is asked over HTTP: %s is given the conversation in its own way", pr.Name, pr.Driver)
	}
	return e.Encode(req)
}
