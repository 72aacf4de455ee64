package profile

import (
	"cmp"
	"time"

	"rnix/internal/price"
	"rnix/kernel"
)

// PriceFor returns what a model costs a process, and where that stands; "" if it is not known. needed says that an assumed
// price will do.
func PriceFor(proc *kernel.Process, provider, driver, model string, needed bool) (price.Rate, string) {
	p, ok := Of(proc)
	if !ok {
		return price.Rate{}, ""
	}
	return p.priceOf(provider, driver, model, needed)
}

func (p *Profile) priceOf(provider, driver, model string, needed bool) (price.Rate, string) {
	if rate, from, ok := p.prices.Lookup([]string{provider, driver}, model, time.Now()); ok {
		return rate, from
	}
	if v := p.Config.Budget.UnknownPrice; needed && v.V > 0 {
		return price.Flat(v.V), cmp.Or(v.Origin, "config.yaml")
	}
	return price.Rate{}, ""
}

// PriceIn returns what a model costs in a configuration, and where that stands; "" if it is not known.
func PriceIn(p *Profile, provider, driver, model string) (price.Rate, string) {
	return p.priceOf(provider, driver, model, false)
}

// PricedModels returns the names of the models of a provider that have a price.
func PricedModels(p *Profile, provider, driver string) []string {
	return p.prices.Models([]string{provider, driver}, time.Now())
}
