package recovery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rnix/internal/step"
	"rnix/types"
)

// TestNoCallInDoubtIsRunAgainUnasked goes through every call that there can be. The rules stand here a
// second time, as sentences rather than as a sequence.
func TestNoCallInDoubtIsRunAgainUnasked(t *testing.T) {
	n := 0
	for _, begun := range []bool{false, true} {
		for _, ended := range []bool{false, true} {
			for _, answered := range []bool{false, true} {
				for _, child := range []*types.UUID{nil, {1}} {
					for _, effect := range []string{"none", "idempotent", "reversible", "external", "", "unheard-of"} {
						for _, policy := range []Policy{Tell, Retry, Skip, Fail, ""} {
							for _, restorable := range []bool{false, true} {
								for _, known := range []bool{true, false} {
									c := &Call{Begun: begun, Ended: ended, Answered: answered, Intent: &step.Intent{Effect: effect, Child: child}}
									if !known {
										c.Intent = nil
									}
									n++
									got := Decide(c, policy, restorable)
									if want := wanted(c, policy, restorable); got != want {
										t.Errorf("%+v, policy %q, restorable %v: %s, not %s", *c, policy, restorable, got, want)
									}
								}
							}
						}
					}
				}
			}
		}
	}
	if n != 2*2*2*2*6*5*2*2 {
		t.Errorf("%d calls", n)
	}
}

func wanted(c *Call, policy Policy, restorable bool) Verdict {
	harmless := c.Intent != nil && (c.Intent.Effect == "none" || c.Intent.Effect == "idempotent")
	undoable := c.Intent != nil && c.Intent.Effect == "reversible" && restorable
	spawns := c.Intent != nil && c.Intent.Child != nil
	open := c.Begun && !c.Ended && !c.Answered
	doubt := open && !spawns && !harmless && !undoable
	rules := map[Verdict]bool{
		Answered: c.Answered,
		Lost:     c.Ended && !c.Answered,
		Run:      !c.Begun && !c.Ended && !c.Answered,
		Attach:   open && spawns,
		Again:    open && !spawns && harmless || doubt && policy == Retry,
		Undo:     open && !spawns && undoable,
		Skipped:  doubt && policy == Skip,
		Refuse:   doubt && policy == Fail,
		Unknown:  doubt && (policy == Tell || policy == ""),
	}
	var all []Verdict
	for v, ok := range rules {
		if ok {
			all = append(all, v)
		}
	}
	if len(all) != 1 {
		panic(fmt.Sprint("the rules overlap or leave a gap: ", all))
	}
	return all[0]
}

func TestTheModelIsToldWhatHappened(t *testing.T) {
	begun := &Call{Begun: true}
	for name, c := range map[string]struct {
		call *Call
		v    Verdict
		says string
	}{
		"in doubt":    {begun, Unknown, "may have run in full, in part or not at all"},
		"not begun":   {&Call{}, Unknown, "was not run"},
		"skipped":     {begun, Skipped, step.SkippedText},
		"lost":        {&Call{Ended: true}, Lost, "has run to its end"},
		"lost error":  {&Call{Ended: true, Error: "disk full", Code: types.ErrDriver}, Lost, "(driver): disk full"},
		"to be run":   {&Call{}, Run, ""},
		"run again":   {begun, Again, ""},
		"undone":      {begun, Undo, ""},
		"attached":    {begun, Attach, ""},
		"is answered": {begun, Answered, ""},
	} {
		if got := Explain(c.call, c.v); !strings.Contains(got, c.says) || c.says == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestPoliciesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]Policy{"": Tell, "tell": Tell, "retry": Retry, "skip": Skip, "fail": Fail} {
		if got, err := ParsePolicy(text); got != want || err != nil {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	if _, err := ParsePolicy("again"); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "tell, retry, skip or fail") {
		t.Errorf("got %v", err)
	}
}

func TestPlansAreShownAsLists(t *testing.T) {
	for _, c := range []struct {
		name, input, want string
		ok                bool
	}{
		{"plan", `{"steps": ["a", "b"]}`, "1. a\n2. b\n", true},
		{"plan", `{"steps": []}`, "", false},
		{"plan", `[1]`, "", false},
		{"replan", `{"reason": "no", "steps": ["c"]}`, "(no)\n1. c\n", true},
		{"replan", `{"reason": "no"}`, "(no)\n", true},
		{"read", `{"steps": ["a"]}`, "", false},
	} {
		if got, ok := PlanOf(c.name, json.RawMessage(c.input)); got != c.want || ok != c.ok {
			t.Errorf("%s %s: %q, %v", c.name, c.input, got, ok)
		}
	}
}
