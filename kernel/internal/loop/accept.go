package loop

import (
	"strings"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// maxRejects is how often in a run a model is told that its result is not what it must be: who has not understood that three times does not later.
const maxRejects = 3

// unfit returns why an action must not end the process, since its result is not what it must be; "" if it may, or is none that does.
func unfit(l *Loop, a *Action) string {
	if l.cfg.Accept == nil || a.Kind != Complete || a.Problem != nil || a.Settled != nil || l.after || !asksAgain(l) {
		return ""
	}
	if _, err := accepted(l, a, ""); err != nil {
		l.rejects++
		return err.Error() + "; call complete again with a result that fits"
	}
	return ""
}

// unfitText is unfit for an answer in words, of which the model is told. The error is of the record.
func unfitText(l *Loop, said string) (again bool, err error) {
	if l.cfg.Accept == nil || !asksAgain(l) {
		return false, nil
	}
	if _, why := l.cfg.Accept(said); why != nil {
		l.rejects++
		return true, l.host.Append(rnixctx.Message{Role: rnixctx.RoleUser, Content: "[Not accepted: " + why.Error() + ". Answer again, with the whole result and nothing else.]"})
	}
	return false, nil
}

// asksAgain reports whether the model can be asked for another result.
func asksAgain(l *Loop) bool { return l.rejects < maxRejects && !lastStep(l) }

// accepted returns the result of a Complete action as it is passed on: the value itself if that is what it must be, else the JSON that it holds as a
// text, or what the model said beside the call.
func accepted(l *Loop, a *Action, said string) (string, error) {
	if l.cfg.Accept == nil {
		return a.result(said), nil
	}
	if raw := strings.TrimSpace(string(a.fields["result"])); raw != "" && raw != "null" {
		if clean, err := l.cfg.Accept(raw); err == nil {
			return clean, nil
		}
	}
	return l.cfg.Accept(a.result(said))
}

// settled is the end of a run with a result, or with the reason for which that is none.
func settled(rec *step.StepRecord, exit types.ExitStatus, result string, why error) End {
	if why != nil && exit.Code == types.ExitOK {
		err := types.Errorf(types.ErrInvalid, "Process", "", "%w", why)
		exit, result = types.ExitStatus{Code: types.ExitError, Reason: why.Error(), Err: err}, ""
	}
	return ending(rec, exit, result)
}
