package kernel

import (
	"encoding/json"

	"rnix/internal/event"
	"rnix/internal/permit"
	"rnix/internal/step"
	"rnix/types"
)

// reply takes the answer to an ask of a process that runs, durably. NOT_FOUND: nothing of that number is asked here, or not any more.
func (k *asker) reply(r step.Answered) (Ask, error) {
	k.mu.Lock()
	q := k.open[r.Number]
	k.mu.Unlock()
	if q == nil {
		return Ask{}, notAsked(r.Number)
	}
	if len(r.Input) > 0 {
		var object map[string]json.RawMessage
		if json.Unmarshal(r.Input, &object) != nil || object == nil {
			return q.Ask, types.Errorf(types.ErrInvalid, "Answer", number(r.Number), "the input must be a JSON object")
		}
	}
	if len(r.Input) > 0 {
		c := q.Call
		c = permit.Call{Tool: c.Tool, Path: c.Path, Input: r.Input, Dir: c.Dir}
		if v := k.judge.Judge(q.p, &c); v.Decision == permit.Deny && !v.Unasked {
			return q.Ask, types.Errorf(types.ErrPermission, "Answer", number(r.Number), "the rule %q denies what it is changed to", v.Rule)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return Ask{}, notAsked(r.Number)
	}
	if q.reply != nil {
		return q.Ask, types.Errorf(types.ErrConflict, "Answer", number(r.Number), "it was answered already")
	}
	r.CallID = q.CallID
	m, err := step.AnswerMarker(q.PID, &r)
	if err == nil {
		err = mark(q.p, m)
	}
	if err != nil {
		return q.Ask, err
	}
	q.reply = &r
	if !r.Allow && !q.Question() {
		q.p.asks.deny(q.p, q.Refusal(r.Because), k.doing, q.Own)
	}
	k.mu.Lock()
	delete(k.open, r.Number)
	k.mu.Unlock()
	k.events.Append(event.Event{Kind: event.Answered, PID: q.PID, UUID: q.UUID, Args: number(r.Number), Name: q.Tool, Path: q.Path, Result: m.Text, Text: k.doing.logText(r.Because + r.Text)})
	select {
	case q.came <- struct{}{}:
	default:
	}
	return q.Ask, nil
}
