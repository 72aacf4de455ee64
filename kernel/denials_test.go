package kernel

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"rnix/internal/permit"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// denying refuses calls whose input has a word.
type denying struct{ NoPermissions }

func (denying) Judge(_ *Process, c *permit.Call) permit.Verdict {
	if strings.Contains(string(c.Input), "forbidden") {
		return permit.Verdict{Decision: permit.Deny, Rule: "tool"}
	}
	return permit.Verdict{Decision: permit.Allow}
}

// A run is refused if it ends by itself and no call of a later step has done anything since one was refused. What the record says of that at any
// moment is what the process would end with.
func TestARunThatDidNothingAfterARefusalIsRefused(t *testing.T) {
	const no, yes, fails = `tool {"x":"forbidden"}`, `tool {}`, `tool {"x":"fails"}`
	own := func(s *sys, pid types.PID, in string) { // as an agent CLI asks
		p, _ := s.Process(pid)
		if _, err := s.AskFor(t.Context(), p.UUID, "own", permit.Call{Tool: "Bash", Input: []byte(in)}); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		calls [][]string // of each step; nil = an answer, with which it ends
		own   map[int]string
		code  int
	}{
		"nothing is refused":         {[][]string{{yes}, nil}, nil, 0},
		"the last call":              {[][]string{{yes}, {no}, nil}, nil, types.ExitRefused},
		"with a complete":            {[][]string{{no}, {`complete {"result":"done"}`}}, nil, types.ExitRefused},
		"another way":                {[][]string{{no}, {yes}, nil}, nil, 0},
		"another way with the end":   {[][]string{{no}, {yes, `complete {"result":"done"}`}}, nil, 0},
		"another way that fails":     {[][]string{{no}, {fails}, nil}, nil, types.ExitRefused},
		"beside one that is allowed": {[][]string{{yes, no}, nil}, nil, types.ExitRefused},
		"a second time":              {[][]string{{no}, {yes}, {no}, nil}, nil, types.ExitRefused},
		"an own tool":                {[][]string{{yes}, nil}, map[int]string{2: "forbidden"}, types.ExitRefused},
		"an own tool, and then more": {[][]string{{yes}, nil}, map[int]string{1: "forbidden"}, 0},
		"an own tool that may":       {[][]string{nil}, map[int]string{1: "fine"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSys(t, func(c *Config) { c.Permissions = denying{} })
				fail := false
				s.tool = func(context.Context, vfs.Caller) (string, error) {
					if fail {
						return "", errors.New("broken")
					}
					return "ok", nil
				}
				s.model = func(_ context.Context, caller vfs.Caller, turn int) (reply, error) {
					if in := c.own[turn]; in != "" {
						own(s, caller.PID, in)
					}
					calls := c.calls[turn-1]
					fail = strings.Contains(strings.Join(calls, " "), "fails")
					if calls == nil {
						return reply{Content: "done"}, nil
					}
					return reply{Calls: calls}, nil
				}
				pid := s.spawn()
				i, err := s.WaitInfo(t.Context(), pid)
				if err != nil || i.Exit == nil || int(i.Exit.Code) != c.code || i.Result != "done" {
					t.Fatalf("%+v %v", i.Exit, err)
				}
				if want := map[int]string{0: types.ReasonCompleted, types.ExitRefused: types.ReasonRefused}[c.code]; i.Exit.Reason != want || c.code != 0 && types.CodeOf(i.Exit.Err) != types.ErrPermission {
					t.Errorf("%+v", i.Exit)
				}
				var l step.Life
				rec := s.stores.of(i.UUID)
				unmet := 0
				for n := range rec.committed {
					r := rec.committed[n]
					if m := r.Marker; m != nil && m.Name == step.MarkerExit {
						unmet = l.Unmet
					}
					r.Seq = uint64(n + 1)
					l.Apply(&r)
				}
				if (unmet > 0) != (c.code != 0) || l.Unmet != 0 {
					t.Errorf("the record says %d before its end, and %d after it", unmet, l.Unmet)
				}
			})
		})
	}
}
