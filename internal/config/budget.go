package config

import (
	"strconv"

	"rnix/internal/price"
)

// Budget says what a process may cost unless it is said for it, and what counts where no price is known.
type Budget struct {
	USD Value[float64] // over the life of a process and its descendants; 0 = unlimited
	// UnknownPrice is the price of a model of which none is known, in dollars per million tokens, for budgets in
	// dollars; 0 = such a budget is refused. The user's only.
	UnknownPrice Value[float64]
}

// budgetLayer is the part of config.yaml that is called budget, as it is written.
type budgetLayer struct {
	UnknownPrice *float64 `yaml:"unknown_price_usd_per_mtok"`
}

// budgetDefaults sets what nobody has said.
func (c *Config) budgetDefaults() {
	c.Budget = Budget{USD: Value[float64]{0, FromDefault}, UnknownPrice: Value[float64]{0, FromDefault}}
}

// readBudgetEnv reads the variables of the keys about money.
func readBudgetEnv(l *layer, v variables) {
	v.float("budget_usd", &l.BudgetUSD)
	v.float("budget.unknown_price_usd_per_mtok", &l.Budget.UnknownPrice)
}

func (v variables) float(key string, to **float64) {
	s := v.env(variable(key))
	if s == "" {
		return
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		v.problem(key, "%q is not a number", s)
		return
	}
	*to = &f
}

// applyBudget takes over what a layer says about money.
func (c *Config) applyBudget(l layer, s sink) {
	if v := l.BudgetUSD; v != nil {
		have := c.Budget.USD
		switch {
		case !(*v >= 0 && *v <= price.Max.Float()):
			s.problem("budget_usd", "must be between 0, which is unlimited, and %.0f dollars", price.Max.Float())
		case s.project && have.V > 0 && (*v == 0 || *v > have.V):
			s.loosens("budget_usd", have.Origin)
		default:
			c.Budget.USD = Value[float64]{*v, s.origin("budget_usd")}
		}
	}
	const key = "budget.unknown_price_usd_per_mtok"
	if v := l.Budget.UnknownPrice; v != nil && s.usersOnly(key) {
		if !(*v >= 0 && *v <= price.MaxRate) {
			s.problem(key, "must be between 0, which refuses, and %d dollars per million tokens", price.MaxRate)
		} else {
			c.Budget.UnknownPrice = Value[float64]{*v, s.origin(key)}
		}
	}
}

// LoadPrices returns the prices of models: the user's prices.yaml, the project's if that is trusted, since a
// price that is too low would let a budget be exceeded, and the built-in ones.
func LoadPrices(s Sources) (book price.Book, ps Problems) {
	if src, file, ok := s.userFile("prices.yaml", &ps); ok {
		t, problems := price.Parse(src, file)
		book, ps = append(book, t), append(ps, problems...)
	}
	if src, file, ok := s.projectFile("prices.yaml", &ps); ok {
		t, problems := price.Parse(src, file)
		if s.TrustProject {
			book, ps = append(book, t), append(ps, problems...)
		} else {
			ps = append(ps, Problem{File: file, Message: "prices of a project count only with --trust-project; it is not used", Contained: true})
		}
	}
	return append(book, price.BuiltIn()), ps
}
