package actions

import (
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// ask words what a person has answered to a question, which is known before the action runs.
func ask(a *loop.Action) (string, error) {
	r := a.Reply
	switch {
	case r == nil:
		return "", types.Errorf(types.ErrInternal, "Ask", "", "it was not asked")
	case r.Withdrawn:
		return "(No person is there to answer. Decide by yourself, and say in your result what you have decided.)", nil
	case r.Default:
		return "(No person has answered in time; your default counts.)\n" + r.Text, nil
	case !r.Allow && r.Because != "":
		return "(The user does not answer this question.)\n" + r.Because, nil
	case !r.Allow:
		return "(The user does not answer this question. Decide by yourself, and say in your result what you have decided.)", nil
	}
	return "(The user answers:)\n" + r.Text, nil
}
