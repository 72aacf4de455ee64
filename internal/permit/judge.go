package permit

import (
	"errors"
	"slices"
	"strings"
	"time"

	"rnix/types"
)

// Rules are what one file, or the flags of one command, say. What Deny is about is refused, what Ask is about a person is asked about, unless
// Allow covers it. Part of the on-disk format.
type Rules struct {
	Ask   []string `json:"ask,omitempty" yaml:"ask"`
	Allow []string `json:"allow,omitempty" yaml:"allow"`
	Deny  []string `json:"deny,omitempty" yaml:"deny"`
}

// IsZero reports whether nothing is said.
func (r Rules) IsZero() bool { return len(r.Ask)+len(r.Allow)+len(r.Deny) == 0 }

// Equal reports whether both say the same.
func (r Rules) Equal(o Rules) bool {
	return slices.Equal(r.Ask, o.Ask) && slices.Equal(r.Allow, o.Allow) && slices.Equal(r.Deny, o.Deny)
}

// Check returns an INVALID error for each rule that cannot be read.
func (r Rules) Check() error {
	var errs []error
	for _, text := range slices.Concat(r.Ask, r.Allow, r.Deny) {
		if _, err := Parse(text); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// With returns rules that say what both say.
func (r Rules) With(o Rules) Rules {
	join := func(a, b []string) []string { return slices.Concat(a, b) }
	return Rules{join(r.Ask, o.Ask), join(r.Allow, o.Allow), join(r.Deny, o.Deny)}
}

// Settings are the rules of a process, as they were settled when it was started: those of each place that had some. None of them takes back
// what another one asks about or refuses. Part of the on-disk format.
type Settings struct {
	Layers []Rules `json:"layers,omitempty"`
	// Refuse says that no person is there: what would be asked is refused.
	Refuse bool `json:"refuse,omitempty"`
	// DefaultAfter is how long questions of the agent wait for a person before their default counts; 0 = for ever.
	DefaultAfter time.Duration `json:"default_after_ns,omitempty"`
}

// IsZero reports whether nothing is said.
func (s Settings) IsZero() bool { return len(s.Layers) == 0 && !s.Refuse && s.DefaultAfter == 0 }

// With returns settings with other rules besides.
func (s Settings) With(r Rules) Settings {
	if r.IsZero() || slices.ContainsFunc(s.Layers, r.Equal) {
		return s
	}
	s.Layers = append(slices.Clone(s.Layers), r)
	return s
}

// Loosened returns settings in which none of the layers asks about what a person has allowed.
func (s Settings) Loosened(allow []string) Settings {
	if len(allow) == 0 {
		return s
	}
	s.Layers = slices.Clone(s.Layers)
	for i := range s.Layers {
		s.Layers[i].Allow = slices.Concat(s.Layers[i].Allow, allow)
	}
	return s
}

// Meet returns the settings that allow what both allow. When defaults of questions count is as b has it.
func Meet(a, b Settings) Settings {
	for _, r := range b.Layers {
		a = a.With(r)
	}
	a.Refuse, a.DefaultAfter = a.Refuse || b.Refuse, b.DefaultAfter
	return a
}

// Decision is what becomes of a call.
type Decision string

// The decisions, each stricter than those before it.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// decisions are in their order.
var decisions = []Decision{Allow, Ask, Deny}

// Verdict is a decision and the rule because of which it is so; empty for Allow.
type Verdict struct {
	Decision Decision
	Rule     string
	Unasked  bool // a person would be asked, and none is there
	Granted  bool // a person would be asked, and has allowed it before
	// After is how long a question waits before its default counts; 0 = for ever.
	After time.Duration
}

// Judge decides about a call: as the strictest of the layers does. A question of the agent is asked, if no rule denies it.
func (s Settings) Judge(c *Call) Verdict {
	v := Verdict{Decision: Allow}
	for _, r := range s.Layers {
		if own := r.judge(c); slices.Index(decisions, own.Decision) > slices.Index(decisions, v.Decision) {
			v = own
		}
	}
	if c.Question() && v.Decision != Deny { // it is asked, whatever rules say
		v = Verdict{Decision: Ask, After: s.DefaultAfter}
	}
	if v.Decision == Ask && s.Refuse {
		v.Decision, v.Unasked = Deny, true
	}
	return v
}

// judge decides by one layer. A rule that cannot be read, as one of a later version, is about every call.
func (r Rules) judge(c *Call) Verdict {
	asked := ""
	for _, text := range r.Deny {
		switch rule, err := Parse(text); {
		case err != nil:
			return Verdict{Decision: Deny, Rule: text}
		case rule.touches(c) == Yes:
			return Verdict{Decision: Deny, Rule: text}
		case rule.touches(c) == Maybe && asked == "":
			asked = text
		}
	}
	if asked == "" {
		for _, text := range r.Ask {
			if rule, err := Parse(text); err != nil || rule.touches(c) != No {
				asked = text
				break
			}
		}
	}
	if asked == "" || cover(r.Allow, c) {
		return Verdict{Decision: Allow}
	}
	return Verdict{Decision: Ask, Rule: asked}
}

// cover reports whether rules cover a call: one of them all of it, or several together all commands of its command line.
func cover(rules []string, c *Call) bool {
	var patterns [][]string
	for _, text := range rules {
		rule, err := Parse(text)
		switch {
		case err != nil:
		case rule.covers(c):
			return true
		case c.Shell() && rule.names(c):
			patterns = append(patterns, strings.Fields(rule.pattern))
		}
	}
	return len(patterns) > 1 && c.unclear() == "" && !c.line().moves() && c.line().covered(patterns...)
}

// Check returns an INVALID error for each rule that cannot be read.
func (s Settings) Check() error {
	var errs []error
	for _, r := range s.Layers {
		errs = append(errs, r.Check())
	}
	if err := errors.Join(errs...); err != nil {
		return types.Errorf(types.ErrInvalid, "rules", "", "%w", err)
	}
	return nil
}
