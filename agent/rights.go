package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Defaults are the limits of a process whose manifest does not set its own. 0 = no limit.
type Defaults struct {
	MaxSteps      int
	ContextBudget int           // tokens
	BudgetUSD     float64       // dollars
	StepTimeout   time.Duration // of one step
}

// Exceeds returns the keys of m, such as "devices", by which an agent of manifest m may do, see or use up more
// than one of manifest other; empty if m is the same or tighter. A key that neither says counts as d says. Another
// model counts as more: it may cost more, and it says where the conversation goes. The lists skills, project_doc
// and language give no right.
func (m *Manifest) Exceeds(other *Manifest, d Defaults) []string {
	var keys []string
	more := func(key string, is bool) {
		if is {
			keys = append(keys, key)
		}
	}
	more("devices", !covers(other.Devices, m.Devices))
	more("env", !subset(m.Env, other.Env))
	more("mcp", !subset(m.MCP, other.MCP))
	more("models", m.Models != other.Models)
	more("max_steps", above(valueOr(m.MaxSteps, d.MaxSteps), valueOr(other.MaxSteps, d.MaxSteps)))
	more("context_budget", above(valueOr(m.ContextBudget, d.ContextBudget), valueOr(other.ContextBudget, d.ContextBudget)))
	more("budget_usd", above(valueOr(m.BudgetUSD, d.BudgetUSD), valueOr(other.BudgetUSD, d.BudgetUSD)))
	more("step_timeout", above(m.StepTimeout.Or(d.StepTimeout), other.StepTimeout.Or(d.StepTimeout)))
	more("blocked_signals", !subset(m.BlockedSignals, other.BlockedSignals))
	more("sandbox", m.Sandbox.looser(other.Sandbox))
	more("permissions", !other.Permissions.IsZero() && !m.Permissions.Equal(other.Permissions))
	more("questions", m.Questions.DefaultAfter.Or(0) > 0 && m.Questions != other.Questions)
	more("on_interrupt", m.OnInterrupt != "" && m.OnInterrupt != other.OnInterrupt)
	return keys
}

// within returns m with its limits lowered to those of most, and says which were. A limit that m does not set
// stays unset.
func (m Manifest) within(most Defaults) (Manifest, []string) {
	var said []string
	if v := m.MaxSteps; v != nil && above(*v, most.MaxSteps) {
		said = append(said, fmt.Sprintf("max_steps: %d", most.MaxSteps))
		m.MaxSteps = &most.MaxSteps
	}
	if v := m.ContextBudget; v != nil && above(*v, most.ContextBudget) {
		said = append(said, fmt.Sprintf("context_budget: %d", most.ContextBudget))
		m.ContextBudget = &most.ContextBudget
	}
	if v := m.BudgetUSD; v != nil && above(*v, most.BudgetUSD) {
		said = append(said, fmt.Sprintf("budget_usd: %v", most.BudgetUSD))
		m.BudgetUSD = &most.BudgetUSD
	}
	return m, said
}

// covers reports whether each path that the list of devices inner allows is allowed by outer too. nil allows all.
func covers(outer, inner []string) bool {
	if outer == nil || inner == nil {
		return outer == nil
	}
	return !slices.ContainsFunc(inner, func(path string) bool {
		return !slices.ContainsFunc(outer, func(dir string) bool {
			return dir == "/" || path == dir || strings.HasPrefix(path, strings.TrimRight(dir, "/")+"/")
		})
	})
}

func subset[T comparable](inner, outer []T) bool {
	return !slices.ContainsFunc(inner, func(s T) bool { return !slices.Contains(outer, s) })
}

// above reports whether the limit a is looser than b; 0 = no limit.
func above[T int | float64 | time.Duration](a, b T) bool { return b > 0 && (a <= 0 || a > b) }

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
