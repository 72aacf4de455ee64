package loop

import (
	"strings"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// nothing handles an answer without text and calls: the model is asked once more, then it is over.
func (l *Loop) nothing(rec *step.StepRecord, resp *Response) (End, bool) {
	l.empties++
	rec.Action, rec.Summary = string(Text), "empty answer"
	if err := l.close(rec); err != nil {
		return storage(err), true
	}
	spent := l.cfg.Budget.Spent()
	switch {
	case spent != nil:
		return outOfBudget(l, spent, l.partial), true
	case resp.StopReason == "refusal":
		return l.giveUp(types.ExitError, "the model refused to answer"), true
	case l.empties > 1:
		return l.giveUp(types.ExitError, "the model gave an empty answer twice"), true
	}
	if err := l.host.Append(rnixctx.Message{Role: rnixctx.RoleUser, Content: "[Your last answer was empty. Go on with the task, or finish it with complete.]"}); err != nil {
		return storage(err), true
	}
	return End{}, false
}

// stopFailed is the stop reason of who says itself that what was asked for has failed: its text is the result, and
// the process has failed. See drivers/llm.
const stopFailed = "task_failed"

// maxCuts is how often an answer that was cut by the output limit is continued.
const maxCuts = 5

// text handles an answer without calls: it is the result, unless the output limit cut it.
func (l *Loop) text(rec *step.StepRecord, resp *Response) (End, bool) {
	rec.Action, rec.Summary = string(Text), firstLine(resp.Content)
	l.partial += resp.Content
	l.empties = 0
	more := resp.StopReason == "max_tokens" && l.cuts < maxCuts
	if more {
		l.cuts++
		note := rnixctx.Message{Role: rnixctx.RoleUser, Content: "[Your answer was cut at the output limit. Go on exactly where it stopped.]"}
		if err := l.host.Append(note); err != nil {
			return storage(err), true
		}
	}
	if !more {
		var err error
		if more, err = stays(l, false); err != nil {
			return storage(err), true
		}
		if !more && resp.StopReason != stopFailed {
			if more, err = unfitText(l, l.partial); err != nil {
				return storage(err), true
			}
		}
		if more {
			l.partial = "" // the next answer is the result
		}
	}
	if more {
		if err := l.close(rec); err != nil {
			return storage(err), true
		}
		return End{}, false
	}
	exit := goodEnd(l, rec)
	if resp.StopReason == stopFailed {
		err := types.Errorf(types.ErrDriver, "Process", "", "the task failed: %s", strings.TrimLeft(firstLine(l.partial), "# "))
		exit = types.ExitStatus{Code: types.ExitError, Reason: err.Err.Error(), Err: err}
	}
	result, why := l.partial, error(nil)
	if l.cfg.Accept != nil {
		result, why = l.cfg.Accept(l.partial)
	}
	end := settled(rec, exit, result, why)
	if err := l.close(rec); err != nil {
		return storage(err), true
	}
	return end, true
}

// goodEnd returns how a run ends that the model has ended with a step.
func goodEnd(l *Loop, rec *step.StepRecord) types.ExitStatus {
	if l.cfg.Completed == nil {
		return types.ExitStatus{Reason: types.ReasonCompleted}
	}
	return l.cfg.Completed(rec)
}

// ending ends a run by what its model has answered, and has the record of the step say so.
func ending(rec *step.StepRecord, exit types.ExitStatus, result string) End {
	rec.End = &step.Ending{Exit: exit, Result: result}
	return End{Exit: exit, Result: result}
}
