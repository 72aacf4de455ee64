package step

import (
	"slices"
	"strings"
	"time"
)

// Spending is what the answers of one model have taken on one day.
type Spending struct {
	Day        string  `json:"day"` // in UTC, such as 2026-01-31
	Provider   string  `json:"provider,omitempty"`
	Model      string  `json:"model,omitempty"`
	Answers    int     `json:"answers"`
	Input      int     `json:"input_tokens,omitempty"`
	Output     int     `json:"output_tokens,omitempty"`
	CacheRead  int     `json:"cache_read_tokens,omitempty"`
	CacheWrite int     `json:"cache_write_tokens,omitempty"`
	CostUSD    float64 `json:"cost_usd,omitempty"`
	Unpriced   int     `json:"unpriced_tokens,omitempty"` // of which nobody knows what they cost
	Estimated  bool    `json:"estimated,omitempty"`       // some of the tokens were counted by us
}

// Tokens returns how many tokens there are in all.
func (s *Spending) Tokens() int { return s.Input + s.Output + s.CacheRead + s.CacheWrite }

// Unpriced returns how many tokens of an answer have no known price. One without any tokens costs nothing.
func (a *Answer) Unpriced() int {
	if a.CostFrom != "" || a.CostUSD > 0 {
		return 0
	}
	return a.TokensUsed
}

// maxUnpriced is how many models UnpricedModels names.
const maxUnpriced = 16

// UnpricedModels names the models of a list of which nobody knows what some of their tokens cost, as provider/model. Where the list names none, as that of a fork does of
// what its origin has used, it is the last one.
func UnpricedModels(list []Spending, provider, model string, unpriced int) (names []string) {
	add := func(provider, model string) {
		if name := strings.Trim(provider+"/"+model, "/"); name != "" && len(names) < maxUnpriced && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i := range list {
		if list[i].Unpriced > 0 {
			add(list[i].Provider, list[i].Model)
		}
	}
	if unpriced > 0 && len(names) == 0 {
		add(provider, model)
	}
	return names
}

// AddSpending returns a list with an answer added. The given one is not changed. An answer that has taken
// nothing is left out.
func AddSpending(list []Spending, a *Answer) []Spending { return addSpending(list, a, 1) }

// AddCutOff is AddSpending for what a request may have taken that has no answer.
func AddCutOff(list []Spending, a *Answer) []Spending { return addSpending(list, a, 0) }

func addSpending(list []Spending, a *Answer, answers int) []Spending {
	if a.TokensUsed == 0 && a.CostUSD == 0 {
		return list
	}
	day := a.Started.UTC().Format(time.DateOnly)
	i := slices.IndexFunc(list, func(s Spending) bool { return s.Day == day && s.Provider == a.Provider && s.Model == a.Model })
	if i < 0 {
		i = len(list)
		list = append(slices.Clip(list), Spending{Day: day, Provider: a.Provider, Model: a.Model})
	} else {
		list = slices.Clone(list)
	}
	s := &list[i]
	s.Answers += answers
	s.Output, s.CacheRead, s.CacheWrite = s.Output+a.Output, s.CacheRead+a.CacheRead, s.CacheWrite+a.CacheWrite
	s.Input += a.TokensUsed - a.Output - a.CacheRead - a.CacheWrite
	s.CostUSD += a.CostUSD
	s.Unpriced += a.Unpriced()
	s.Estimated = s.Estimated || a.Estimated
	return list
}

// Beyond returns what a has taken beyond what was known before of the same answer. Of what kind these tokens
// are, nobody has written down.
func (a *Answer) Beyond(before *Answer) *Answer {
	more := *a
	more.TokensUsed -= before.TokensUsed
	more.CostUSD = max(a.CostUSD-before.CostUSD, 0)
	more.Input, more.Output, more.CacheRead, more.CacheWrite = 0, 0, 0, 0
	return &more
}
