package daemon

import (
	"cmp"
	"time"

	"rnix/internal/price"
	"rnix/kernel"
)

// priceFor returns what a model costs a process.
func priceFor(proc *kernel.Process, provider, driver, model string, needed bool) (price.Rate, string) {
	p, ok := proc.Profile().(*profile)
	if !ok {
		return price.Rate{}, ""
	}
	return p.priceOf(provider, driver, model, needed)
}

// priceOf returns what a model costs, and where that stands; "" if nobody knows. needed says that an assumed
// price will do.
func (p *profile) priceOf(provider, driver, model string, needed bool) (price.Rate, string) {
	if rate, from, ok := p.prices.Lookup([]string{provider, driver}, model, time.Now()); ok {
		return rate, from
	}
	if v := p.cfg.Budget.UnknownPrice; needed && v.V > 0 {
		return price.Flat(v.V), cmp.Or(v.Origin, "config.yaml")
	}
	return price.Rate{}, ""
}
