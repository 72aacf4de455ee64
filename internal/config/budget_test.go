package config

import (
	"strings"
	"testing"
	"time"
)

func TestMoneyIsReadAndChecked(t *testing.T) {
	c := Load(sources(t, map[string]string{"user/config.yaml": "budget_usd: 2.5\nbudget:\n  unknown_price_usd_per_mtok: 15\n"}, "RNIX_BUDGET_USD", "4"))
	if c.Budget.USD.V != 4 || c.Budget.USD.Origin != "environment RNIX_BUDGET_USD" || c.Budget.UnknownPrice.V != 15 || len(c.Problems) != 0 {
		t.Errorf("%+v %v", c.Budget, c.Problems)
	}
	c = Load(sources(t, map[string]string{"user/config.yaml": "budget_usd: -1\nbudget: {unknown_price_usd_per_mtok: 1e9}\n"}, "RNIX_BUDGET_USD", "much"))
	if c.Budget.USD.V != 0 || c.Budget.UnknownPrice.V != 0 || len(c.Problems) != 3 {
		t.Errorf("%+v %v", c.Budget, c.Problems)
	}
}

func TestPricesOfAProjectCountOnlyIfItIsTrusted(t *testing.T) {
	line := func(usd string) string {
		return "version: \"1\"\nprices:\n  - {provider: p, model: " + usd + ", input: 1, output: 1}\n  - {provider: anthropic, model: claude-opus-5-5, input: " + usd + ", output: 1}\n"
	}
	s := sources(t, map[string]string{"project/prices.yaml": line("0")})
	ask := func(s Sources) (int64, string) {
		book, ps := LoadPrices(s)
		r, _, _ := book.Lookup([]string{"anthropic"}, "claude-opus-5-5", time.Now())
		return r.Input, ps.Error()
	}
	if in, problems := ask(s); in == 0 || !strings.Contains(problems, "--trust-project") {
		t.Errorf("%d %s", in, problems)
	}
	s.TrustProject = true
	if in, problems := ask(s); in != 0 || problems != "" {
		t.Errorf("%d %s", in, problems)
	}
	s = sources(t, map[string]string{"user/prices.yaml": line("7"), "project/prices.yaml": line("0")})
	s.TrustProject = true
	if in, _ := ask(s); in != 7_000_000_000 {
		t.Errorf("the user's price is not the first: %d", in)
	}
}
