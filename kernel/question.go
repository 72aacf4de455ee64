package kernel

import (
	"strconv"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/permit"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// settle settles a question of the agent about which no person is asked, and returns whether it is one: its input cannot be read, or no person is there.
func settle(a *loop.Action, v permit.Verdict) bool {
	switch _, err := permit.ReadQuestion(a.Call.Input); {
	case err != nil:
		a.Problem = types.Errorf(types.ErrInvalid, "Tool", a.Call.Name, "%w", permit.Reason(err))
		return true
	case v.Decision == permit.Allow || v.Unasked:
		a.Answer(&step.Answered{CallID: a.Call.ID, Withdrawn: true})
		return true
	}
	return false
}

// asked is what is written down of a call about which a person is asked for the first time.
func (k *asker) asked(n uint64, a *loop.Action, c *permit.Call, v permit.Verdict) *step.Ask {
	now := time.Now().Round(0)
	out := &step.Ask{Number: n, CallID: a.Call.ID, Tool: a.Call.Name, Path: c.Path, Rule: v.Rule, Since: now}
	if a.Kind != loop.Ask {
		out.Text = rnixctx.Elide(k.doing.secrets.String(a.Brief()), wordsOfAsk) + loop.MoreLines(a.Field("command"))
		return out
	}
	q, _ := permit.ReadQuestion(a.Call.Input) // settle has read it
	first, _, _ := strings.Cut(strings.TrimSpace(k.doing.secrets.String(q.Text)), "\n")
	out.Text = strconv.Quote(rnixctx.Elide(first, wordsOfAsk)) + loop.MoreLines(q.Text)
	if v.After > 0 && q.Default != "" {
		out.Until = now.Add(v.After)
	}
	return out
}

// nap bounds how long is waited at once: the clock of a timer stands still while the host sleeps.
const nap = time.Minute

// due returns a channel that fires when it is to be looked at whether a default counts, and what ends that. Without a default it never fires.
func (k *asker) due(actions []loop.Action, asked []int) (<-chan time.Time, func() bool) {
	var first time.Time
	for _, i := range asked {
		if until := actions[i].Ask.Until; !until.IsZero() && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	if first.IsZero() {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(min(max(time.Until(first), 0), nap))
	return t.C, t.Stop
}

// byDefault answers the questions whose time is over as the agent itself would. A person who was faster has answered; what cannot be written is tried
// again later.
func (k *asker) byDefault(p *Process, actions []loop.Action, asked []int) {
	now := time.Now()
	for _, i := range asked {
		a := &actions[i]
		if a.Ask.Until.IsZero() || now.Before(a.Ask.Until) {
			continue
		}
		q, _ := permit.ReadQuestion(a.Call.Input) // it was read when it was asked
		if _, err := k.reply(step.Answered{Number: a.Ask.Number, Allow: true, Text: q.Default, Default: true}); err != nil && types.CodeOf(err) != types.ErrConflict {
			a.Ask.Until = now.Add(nap) // in this run
			k.doing.logFailed(p, a, err)
		}
	}
}
