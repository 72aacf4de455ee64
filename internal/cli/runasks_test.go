package cli

import (
	"strings"
	"testing"

	"rnix/internal/permit"
	"rnix/ipc"
	"rnix/types"
)

func TestATypedLineAnswersAnAsk(t *testing.T) {
	call, question := &ipc.Ask{Number: 3}, &ipc.Ask{Number: 3, Question: &ipc.Question{Text: "Which?", Default: "SQLite"}}
	for _, c := range []struct {
		ask  *ipc.Ask
		line string
		want ipc.AnswerRequest
		ok   bool
	}{
		{call, "y", ipc.AnswerRequest{Allow: true}, true},
		{call, "YES", ipc.AnswerRequest{Allow: true}, true},
		{call, "n", ipc.AnswerRequest{}, true},
		{call, "no not on a Friday", ipc.AnswerRequest{Because: "not on a Friday"}, true},
		{call, "a", ipc.AnswerRequest{Allow: true, For: permit.ForProcess}, true},
		{call, "f", ipc.AnswerRequest{Allow: true, For: permit.ForFamily}, true},
		{call, "", ipc.AnswerRequest{}, false},
		{call, "yes but", ipc.AnswerRequest{Allow: true}, false}, // what is meant is not known
		{call, "ls", ipc.AnswerRequest{}, false},
		{question, "2", ipc.AnswerRequest{Allow: true, Text: "2"}, true},
		{question, "n", ipc.AnswerRequest{Allow: true, Text: "n"}, true},
		{question, "", ipc.AnswerRequest{Allow: true, Text: "SQLite"}, true},
		{question, strings.Repeat("x", permit.MaxAnswer+1), ipc.AnswerRequest{Allow: true, Text: strings.Repeat("x", permit.MaxAnswer+1)}, false},
	} {
		c.want.Number = 3
		got, ok := reply(c.ask, c.line)
		if ok != c.ok || got.Allow != c.want.Allow || got.For != c.want.For || got.Because != c.want.Because || got.Text != c.want.Text || got.Number != 3 {
			t.Errorf("%.20q: %+v %t, want %+v %t", c.line, got, ok, c.want, c.ok)
		}
	}
}

func TestAnUnknownPriceIsExplainedOnceForEachModel(t *testing.T) {
	var procs []ipc.Proc
	for _, m := range []string{"b", "a", "b", "c", "d"} {
		procs = append(procs, ipc.Proc{ProcStatus: types.ProcStatus{Provider: "p", Model: m, Unpriced: 7}})
	}
	procs = append(procs, ipc.Proc{ProcStatus: types.ProcStatus{Provider: "p", Model: "known", TokensUsed: 7}})
	var err strings.Builder
	out := newOutput(&strings.Builder{}, &err, func(string) (string, bool) { return "", false })
	sayUnpriced(out, procs)
	sayUnpriced(out, procs[5:])
	if want := "cost ?: no price is known for p/a, p/b, p/c and 1 more; set it in prices.yaml, as this shows: rnix help cost\n"; err.String() != want {
		t.Errorf("it says %q", err.String())
	}
}
