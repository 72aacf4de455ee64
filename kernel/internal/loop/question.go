package loop

import (
	"context"
	"errors"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
)

// asked is what became of a question.
type asked struct {
	rec  *step.StepRecord
	resp *Response
	err  error
	end  *End               // the loop has ended while a pause held the question
	work context.Context    // ends with the step's time
	stop context.CancelFunc // of work
}

// question has the model answer for a new step. A pause cuts it off, and it is asked again.
func question(ctx context.Context, l *Loop) *asked {
	q := &asked{rec: &step.StepRecord{StepNumber: l.progress.Step, Timestamp: time.Now()}}
	for {
		q.work, q.stop = l.limit(ctx)
		q.resp, q.err = l.ask(q.work, q.rec)
		if !errors.Is(q.err, ErrHeld) {
			return q
		}
		q.stop() // its time begins anew when it goes on
		if q.end = held(ctx, l); q.end != nil {
			return q
		}
	}
}

// held returns when a pause is over and the question can be asked again, or why it cannot.
func held(ctx context.Context, l *Loop) *End {
	if err := l.host.Wait(ctx); err != nil {
		return &End{Cause: err, Paused: context.Cause(ctx) != nil}
	}
	if err := l.host.Deliver(); err != nil {
		return over(storage(err))
	}
	return nil
}

// step does what becomes of a question. It returns how the loop has ended; nil = it has not.
func (l *Loop) step(ctx context.Context, q *asked) *End {
	defer q.stop()
	if q.end != nil {
		return q.end
	}
	conclude := q.answered
	if q.err != nil {
		conclude = q.broken
	}
	if end, done := conclude(ctx, l); done {
		return over(end)
	}
	return nil
}

// broken ends a process, or a step, whose model could not be asked or has not answered.
func (q *asked) broken(ctx context.Context, l *Loop) (End, bool) {
	if cause := context.Cause(ctx); cause != nil {
		return End{Cause: cause}, true
	}
	if b, ok := errors.AsType[*Broke](q.err); ok {
		l.progress.Step-- // it is begun again when the process goes on
		l.host.Progress(l.progress)
		return outOfBudget(l, b, l.partial), true
	}
	return l.unanswered(q.rec, q.err, context.Cause(q.work))
}

// answered does what the model has answered.
func (q *asked) answered(ctx context.Context, l *Loop) (End, bool) {
	rec, resp := q.rec, q.resp
	said := rnixctx.Message{Role: rnixctx.RoleAssistant, Content: resp.Content, ToolCalls: resp.ToolCalls, Reasoning: resp.Blocks}
	actions := Parse(resp, l.cfg.Tools, l.cfg.Meta)
	said.ToolCalls = resp.ToolCalls // their ids are unique now
	if len(actions) == 0 {
		return l.nothing(rec, resp)
	}
	if err := l.host.Said(said, rec.Answer()); err != nil {
		return storage(err), true
	}
	if b := l.cfg.Budget.Spent(); b != nil && !allElsewhere(actions) { // what has run is put on record first
		return outOfBudget(l, b, l.partial+resp.Content), true
	}
	return l.conclude(ctx, q.work, rec, resp, actions, nil)
}
