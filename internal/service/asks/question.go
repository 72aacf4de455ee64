package asks

import (
	"strconv"

	"rnix/internal/permit"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// fits refuses an answer to a question that is none, and the text of one to a call. The text of an answer becomes the choice that is meant.
func fits(a *ipc.Ask, req *ipc.AnswerRequest) error {
	n := strconv.FormatUint(a.Number, 10)
	q := a.Question
	switch {
	case q == nil && req.Text != "":
		return types.Errorf(types.ErrInvalid, "Answer", n, "a call waits there, and no question; answer with `rnix allow %s` or `rnix deny %s`", n, n)
	case q == nil || !req.Allow:
		return nil
	case req.Text == "":
		return types.Errorf(types.ErrInvalid, "Answer", n, "it is a question; answer it with `rnix answer %s TEXT`, or say with `rnix deny %s` that you do not", n, n)
	}
	if err := permit.CheckAnswer(req.Text); err != nil {
		return types.Errorf(types.ErrInvalid, "Answer", n, "%w", permit.Reason(err))
	}
	of := permit.Question{Choices: q.Choices}
	req.Text = of.Answer(req.Text)
	return nil
}

// asksItself fills in what an agent wants to know, if an ask is such a question.
func asksItself(out *ipc.Ask, a *step.Ask) {
	if !a.Question() {
		return
	}
	out.Question = &ipc.Question{Text: a.Text, Until: a.Until} // what is known without its input
	if q, err := permit.ReadQuestion(out.Input); err == nil {
		out.Question = &ipc.Question{Text: q.Text, Choices: q.Choices, Default: q.Default, Until: a.Until}
	}
}
