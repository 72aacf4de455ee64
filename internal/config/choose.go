package config

import (
	"cmp"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/yamlfile"
	"rnix/types"
)

// Wish is what each side says about the model of a spawn. Empty means "not said".
type Wish struct {
	Provider, Model                 string // of the caller; Model may be "provider/model"
	FallbackProvider, FallbackModel string // of the caller
	Agent                           agent.Models
	ProjectDefault, UserDefault     Value[string] // default_provider of the files
}

// Choice is the model of a spawn.
type Choice struct {
	Provider Provider
	Model    string // empty = the provider's own default
	Effort   string // the agent's, else the provider's; empty = the model's own
	Why      string
	Fallback *Fallback // what is tried when the provider fails; nil = nothing
	Warnings []string  // about the agent's fallback that is not used, and a model that a replay does not have
}

// Fallback is a second choice.
type Fallback struct {
	Provider Provider
	Model    string
}

// Choose settles which provider and model a spawn gets: the caller's, else the agent's, else the
// project's default, else the user's, else the first that is available, else the user's only replay,
// else offline. One with a mistake in its entry is not passed over. What somebody named is never replaced: if it does not exist the error is
// NOT_FOUND with what was probably meant and the list; if it cannot be used, SERVICE_UNAVAILABLE
// with the mend. It has no side effects of its own.
func Choose(list []Provider, w Wish, available func(Provider) (bool, string)) (Choice, error) {
	c := chooser{list: list, available: available}
	if c.namesReplay(w) {
		w.Provider, w.Model = w.Model, ""
	}
	p, model, why, err := c.first(w)
	if err != nil {
		return Choice{}, err
	}
	if model == "" && w.Model == "" && (w.Agent.Provider == "" || w.Agent.Provider == p.Name) {
		if q, m := c.split(w.Agent.Preferred); q == "" || q == p.Name {
			model = m // an agent's model is a word of its own provider and of no other
		}
	}
	if model == "" && p.DefaultModel == "" && (p.Driver == DriverOpenAI || p.Driver == DriverOpenAICompat) {
		// It would fail at the first call.
		return Choice{}, types.Errorf(types.ErrUnavailable, "Provider", p.Name, "no model was named and it has no default: say --model %s/<model>, "+
			"or set default_model for %s in providers.yaml", p.Name, p.Name)
	}
	out := Choice{Provider: p, Model: orElse(model, p.DefaultModel), Why: why, Effort: orElse(w.Agent.ReasoningEffort, p.ReasoningEffort)}
	if p.Driver == DriverReplay && w.Model != "" && model != DriverReplay && model != p.DefaultModel {
		meant := p.Name + "/" + DriverReplay
		if slices.ContainsFunc(list, isReplay(model)) {
			meant = model + "/" + DriverReplay
		}
		out.Warnings = append(out.Warnings, "unknown model "+model+" of the replay "+p.Name+", which answers all the same; did you mean "+meant+"?")
	}
	return out, c.fallback(w, &out)
}

// isReplay is whether a provider is the replay of a name.
func isReplay(name string) func(Provider) bool {
	return func(p Provider) bool { return p.Name == name && p.Driver == DriverReplay }
}

// namesReplay reports whether the caller's model is the name of a replay, which has but one model. It is not, where a provider with models of its own
// is taken, which may have one of this name.
func (c chooser) namesReplay(w Wish) bool {
	if !slices.ContainsFunc(c.list, isReplay(w.Model)) || w.Provider != "" && w.Provider != w.Model {
		return false
	}
	w.Model = ""
	p, _, _, err := c.first(w)
	return err == nil && (p.Driver == DriverReplay || p.Driver == DriverOffline)
}

type chooser struct {
	list      []Provider
	available func(Provider) (bool, string)
}

// first returns the provider, the caller's model if there is one, and the reason.
func (c chooser) first(w Wish) (p Provider, model, why string, err error) {
	name, model := w.Provider, w.Model
	prefix, rest := c.split(model)
	preferred, _ := c.split(w.Agent.Preferred)
	switch {
	case name == "" && prefix != "":
		name, model, why = prefix, rest, "asked for as "+w.Model
	case name != "":
		why = "asked for"
		if prefix == name {
			model = rest
		}
	case w.Agent.Provider != "":
		name, why = w.Agent.Provider, "the agent asks for it"
	case preferred != "":
		name, why = preferred, "the agent asks for "+w.Agent.Preferred
	case w.ProjectDefault.V != "":
		name, why = w.ProjectDefault.V, "default_provider in "+w.ProjectDefault.Origin
	case w.UserDefault.V != "":
		name, why = w.UserDefault.V, "default_provider in "+w.UserDefault.Origin
	}
	if name != "" {
		p, err = c.named(name, why)
		return p, model, why, err
	}
	p, why, err = c.automatic()
	if err == nil && model != "" && p.Driver == DriverReplay { // its answers are of no model
		why = "no model is connected; to take the recorded answers leave it out, or say --provider " + p.Name
	}
	if err == nil && model != "" && (p.Driver == DriverOffline || p.Driver == DriverReplay) {
		if name, _, cut := strings.Cut(model, "/"); cut {
			why += "; no provider is called " + name + ", if that is what stands before the slash"
		}
		err = types.Errorf(types.ErrUnavailable, "Provider", model, "%s", why) // the planner has no models
	}
	return p, model, why, err
}

// named returns the provider that somebody named.
func (c chooser) named(name, why string) (Provider, error) {
	i := slices.IndexFunc(c.list, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		names := make([]string, len(c.list))
		for i, p := range c.list {
			names[i] = p.Name
		}
		near := ""
		if n := yamlfile.Nearest(name, names); n != "" {
			near = "; did you mean " + n + "?"
		}
		slices.Sort(names)
		return Provider{}, types.Errorf(types.ErrNotFound, "Provider", name, "no provider of this name (%s)%s; there is %s", why, near, strings.Join(names, ", "))
	}
	p := c.list[i]
	if ok, detail := c.available(p); !ok {
		if p.NeedsKey() {
			return Provider{}, types.Errorf(types.ErrUnavailable, "Provider", name, "cannot be used (%s): %w", why, &NoKey{detail})
		}
		return Provider{}, types.Errorf(types.ErrUnavailable, "Provider", name, "cannot be used (%s): %s", why, detail)
	}
	return p, nil
}

// NoKey is the cause of an error about a provider that cannot be used for want of a key.
type NoKey struct{ Detail string }

func (e *NoKey) Error() string { return e.Detail }

// NeedsKey reports whether a provider that cannot be used lacks nothing but a key.
func (p *Provider) NeedsKey() bool {
	return p.Problem == "" && (p.Driver == DriverAnthropic || p.Driver == DriverOpenAI || p.Driver == DriverOpenAICompat)
}

// automatic returns the first provider that is available. Replays come after the models, and only one that is alone is
// taken: of several, which is meant cannot be known. Offline comes last wherever it stands.
func (c chooser) automatic() (Provider, string, error) {
	var missing []string
	var replays []Provider
	var offline *Provider
	for i, p := range c.list {
		if !p.Automatic {
			continue
		}
		ok, detail := c.available(p)
		switch {
		case p.Wrong: // what comes behind it may do more than it may: a person chooses that
			return Provider{}, "", types.Errorf(types.ErrUnavailable, "Provider", p.Name, "cannot be used, and comes before others: %s; correct it, or choose another: --provider NAME", detail)
		case ok && p.Driver == DriverOffline:
			offline = cmp.Or(offline, &c.list[i])
		case ok && p.Driver == DriverReplay:
			replays = append(replays, p)
		case ok:
			return p, "the first that is available: " + detail, nil
		case p.Driver != DriverOffline:
			missing = append(missing, p.Name+": "+detail)
		}
	}
	switch {
	case len(replays) == 1:
		return replays[0], "the only one in your providers.yaml that can be used", nil
	case offline == nil:
		return Provider{}, "", types.Errorf(types.ErrUnavailable, "Provider", "", "no provider can be used: %s", strings.Join(missing, "; "))
	case len(replays) > 1:
		return *offline, "no model is connected, and several replays could be meant; choose one: --provider " + replays[0].Name, nil
	}
	return *offline, "no model is connected; `rnix providers` says what each provider lacks", nil
}

// fallback settles the second choice: the caller's; none if the caller named a provider; else the
// agent's, where a mistake is only a warning.
func (c chooser) fallback(w Wish, out *Choice) error {
	name, model, mine := w.FallbackProvider, w.FallbackModel, true
	if name == "" && model == "" {
		if q, _ := c.split(w.Model); w.Provider != "" || q != "" {
			return nil
		}
		name, model, mine = w.Agent.FallbackProvider, w.Agent.Fallback, false
	}
	if name == "" && model == "" {
		return nil
	}
	if name == "" {
		if q, m := c.split(model); q != "" {
			name, model = q, m
		}
	}
	p := out.Provider
	if name != "" && name != p.Name {
		why := "the fallback that was asked for"
		if !mine {
			why = "the agent's fallback"
		}
		q, err := c.named(name, why)
		if err != nil && mine {
			return err
		}
		if err != nil {
			out.Warnings = append(out.Warnings, err.Error())
			return nil
		}
		p = q
	}
	model = orElse(model, p.DefaultModel)
	if p.Name != out.Provider.Name || model != out.Model {
		out.Fallback = &Fallback{Provider: p, Model: model}
	}
	return nil
}

// split divides "provider/model", where provider is one that exists. Names of models may hold a slash
// themselves: then the provider is empty and the model is whole.
func (c chooser) split(model string) (provider, rest string) {
	return SplitModel(model, func(name string) bool {
		return slices.ContainsFunc(c.list, func(p Provider) bool { return p.Name == name })
	})
}

// SplitModel divides "provider/model" at its first slash if what stands before it is known as a
// provider; otherwise all of it is the model.
func SplitModel(s string, known func(provider string) bool) (provider, model string) {
	if before, after, ok := strings.Cut(s, "/"); ok && before != "" && known(before) {
		return before, after
	}
	return "", s
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
