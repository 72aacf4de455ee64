package loop

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/internal/weigh"
	"rnix/types"
	"rnix/vfs"
)

// Host is what a loop needs of its process. All methods are called from the loop's goroutine, except
// Run and Undo, which are called in the threads of independent actions.
type Host interface {
	// Wait returns when the process may go on, or the cause of ctx's end.
	Wait(ctx context.Context) error
	// Prompt returns the conversation so far.
	Prompt() (*rnixctx.PromptResult, error)
	// Append adds messages to the conversation and to the record.
	Append(ms ...rnixctx.Message) error
	// Said is Append for a model's answer.
	Said(m rnixctx.Message, a *step.Answer) error
	// Ask has the model answer a request. The bytes are valid until it returns. ErrHeld says that a
	// pause has cut it off.
	// A *vfs.CutOff in the chain of an error says that it may be billed.
	Ask(ctx context.Context, request []byte) (*Response, error)
	// CutOff records what a request may have taken that has no answer. It is durable when it returns or, if ctx has
	// ended, with the end of the step or of the run, which follows.
	CutOff(ctx context.Context, a *step.Answer) error
	// Permit decides which of the actions may run: those that may not have a Problem then, and of those about which a person has to be asked
	// first the indexes are returned. That they are asked is durable when it returns.
	Permit(step int, actions []Action) (asked []int, err error)
	// Answered waits until a person has answered about one of the actions that are asked about, takes the answer over into that, and returns
	// its place in asked; or why the process ends meanwhile: the cause of ctx's end.
	Answered(ctx context.Context, actions []Action, asked []int) (at int, held error)
	// Intend makes durable that the actions are about to run.
	Intend(step int, actions []Action) error
	// Suspends reports whether the end of a context for this cause is not the end of the process.
	Suspends(cause error) bool
	// Undo puts the files back that an interrupted call may have changed.
	Undo(ctx context.Context, c *recovery.Call) error
	// Deliver puts the messages that have come into the conversation. It is called when that ends with a
	// complete turn.
	Deliver() error
	// Leave reports why the process has to go on although it could end: mail has come, or else what note
	// says. final says that it ends now if no mail has come: it takes none any more then.
	Leave(final bool) (mail bool, note string)
	// Run performs one action and returns what the model is told.
	Run(ctx context.Context, a *Action) (string, error)
	// Complete is told that the model says that it is done, and why that does not count; nil = it does.
	Complete(a *Action, err error)
	// Finish records how the actions ended.
	Finish(step int, actions []Action, outs []Outcome) error
	// Record makes the step durable.
	Record(rec *step.StepRecord) error
	// Emit appends to the event log.
	Emit(e event.Event)
	// Progress publishes the loop's counters after each change.
	Progress(p Progress)
}

// Progress is what others may know of a loop.
type Progress struct {
	Step      int
	Tokens    int
	Estimated bool // some of the tokens were counted by us
	CostUSD   float64
	Unpriced  int             // tokens of which nobody knows what they cost
	Spending  []step.Spending // what was used when, and of which model; never changed, only replaced
	Failed    int             // calls that failed, of the steps that have ended
	Taken     int             // of these: what a fork has of its origin
	Provider  string
	Model     string
}

// Config is what does not change during a run.
type Config struct {
	Head     Head
	Now      Now          // nil = all of it stays as Head, Specs and Tools have it, there is no plan, and its clock never stands still
	Specs    []byte       // the tools as they are offered: a JSON array of ToolSpec; not changed
	Weight   []weigh.Part // of Specs; nil = they are bounded by their bytes
	Tools    map[string]vfs.Tool
	Meta     map[string]Kind
	MaxSteps int // 0 = no limit
	// Completed returns how a run ends that the model has ended with a step, which is not recorded yet; nil = as completed.
	Completed func(rec *step.StepRecord) types.ExitStatus
	// Accept returns a result as it is passed on, or why it is not what it must be; nil = any will do.
	Accept   func(result string) (string, error)
	FailStop int // it ends after so many steps in a row in which every call failed; 0 = 40, negative = never
	Budget   Budget
	Window   int // context window in tokens; 0 = unknown
	// Compactor makes the conversation shorter.
	Compactor Compactor
	// Aside says that the model can be asked for a summary of the conversation.
	Aside bool
	// Several says that more than one model may answer, whose counts of a prompt differ.
	Several bool
	// StepTimeout bounds one step: the model call fails, tools are cancelled and the model is told.
	// 0 = none.
	StepTimeout time.Duration
	// Thread starts f as a thread of the process, for an action beside others, and returns what waits for
	// its end. The context of f is ctx, and ends with the process too. nil = a goroutine.
	Thread func(ctx context.Context, intent string, f func(context.Context)) (join func(), err error)
	Open   *Open // what an earlier run has left open; nil = nothing
	End    *End  // with what an earlier run has ended, whose end was not recorded; nil = it has not
}

// Now is what changes of a process while it runs, as it stands.
type Now interface {
	// System returns the system prompt, which grows when the process activates a skill.
	System() string
	// Offer returns the tools, and how they are offered.
	Offer() Offered
	// Plan returns the plan of the process; "" = there is none.
	Plan() string
	// Stood returns how long the clock of the process has stood still by now, which counts for no step.
	Stood() time.Duration
}

// Offered is the tools as they are now.
type Offered struct {
	Specs  []byte
	Weight []weigh.Part
	Tools  map[string]vfs.Tool
}

// ErrHeld is what Host.Ask returns when a pause has cut the model off.
var ErrHeld = errors.New("cut off by a pause")

// Waiting is an error of Host.Run: the call cannot end before something happens that may take days. The
// process is suspended, with the call left open.
type Waiting struct {
	For  types.Suspension
	Hint string
}

func (w *Waiting) Error() string { return "waits for " + w.For.SuspendReason }

// Outcome is how one action ended.
type Outcome struct {
	Output   string
	Err      error
	Duration time.Duration
}

// End is how a run of the loop ended.
type End struct {
	Exit   types.ExitStatus
	Result string
	// Cause is set when the context ended: then Exit is not set, and the host decides what it means.
	Cause error
	// Paused says that the context ended while the loop waited at the gate.
	Paused bool
	// Wait says that the process is not done but suspended, and what it waits for; Hint is the command
	// that lets it go on, without the name of the process. Wake is when it can go on by itself; zero = not
	// known.
	Wait types.Suspension
	Hint string
	Wake time.Time
	// Purse is the budget that it waits for; nil = it waits for none.
	Purse *step.PurseWait
}

// Loop runs the steps of one process.
type Loop struct {
	cfg      Config
	host     Host
	req      *request
	progress Progress
	repeats  repeats
	scale    float64 // the provider's count of the last prompt over our estimate of it, tools included
	counted  counted
	weight   weight
	partial  string // an answer that was cut by the output limit, so far
	cuts     int
	empties  int
	rejects  int       // how often a result was not what it must be
	after    bool      // something is said when the step in hand has ended, whatever it ends with
	again    time.Time // when the step in hand was reopened; zero = it was begun in this run
}

// New returns a loop that begins behind start.Step.
func New(cfg Config, start Progress, host Host) (*Loop, error) {
	if cfg.Thread == nil {
		cfg.Thread = goroutine
	}
	req, err := newRequest(cfg.Head, cfg.Specs)
	if err != nil {
		return nil, err
	}
	return &Loop{cfg: cfg, host: host, req: req, progress: start, scale: 1, repeats: repeats{most: cfg.FailStop}}, nil
}

// Steps runs steps until the process is done, a limit is reached or ctx ends. The End is not on the stack of the caller. Its frame, and that of question, are on the stack of a
// process for as long as it waits for its model; what comes before and after that is in functions of its own, so that
// the stacks of many waiting processes are small and none has to grow when it ends.
func Steps(ctx context.Context, l *Loop) *End {
	for open := l.cfg.Open; ; open = nil {
		end := ready(ctx, l, open)
		if end == nil && open == nil {
			end = l.step(ctx, question(ctx, l))
		}
		if end != nil {
			return end
		}
	}
}

// ready returns when the next step may begin, or why it does not. A step that an earlier run has left open is ended.
func ready(ctx context.Context, l *Loop, open *Open) *End {
	if err := l.host.Wait(ctx); err != nil {
		if context.Cause(ctx) == nil { // the pause could not be recorded
			return over(storage(err))
		}
		return &End{Cause: err, Paused: true}
	}
	if l.cfg.End != nil {
		return l.cfg.End
	}
	if b := l.cfg.Budget.Spent(); b != nil {
		return over(outOfBudget(l, b, l.partial))
	}
	if open != nil {
		if end, done := l.reopen(ctx, open); done {
			return over(end)
		}
		return nil
	}
	if l.cfg.MaxSteps > 0 && l.progress.Step >= l.cfg.MaxSteps {
		return over(l.giveUp(types.ExitError, types.ReasonMaxSteps))
	}
	if err := l.host.Deliver(); err != nil {
		return over(storage(err))
	}
	l.next()
	return nil
}

func over(end End) *End { return &end }

// next counts a step and announces it. It is apart so that the event is not on the stack of a process
// that waits for its model.
func (l *Loop) next() {
	l.progress.Step++
	l.host.Progress(l.progress)
	l.host.Emit(event.Event{Kind: event.StepStarted, Step: l.progress.Step, Total: l.cfg.MaxSteps})
}

func fail(code int, reason string, err error) End {
	return End{Exit: types.ExitStatus{Code: code, Reason: reason, Err: err}}
}

// giveUp is fail with what there is of an answer that was cut.
func (l *Loop) giveUp(code int, reason string) End {
	end := fail(code, reason, nil)
	end.Result = l.partial
	return end
}

// stoodRest is how often it is looked at least whether a step has still time left whose clock stands still.
const stoodRest = 100 * time.Millisecond

// limit returns a context that ends with ctx, or with the step's own time, if it has one.
func (l *Loop) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	d := l.cfg.StepTimeout
	if d <= 0 {
		return ctx, func() {}
	}
	why := types.Errorf(types.ErrTimeout, "Step", "", "the step took longer than its limit of %s", d)
	if l.cfg.Now == nil {
		return context.WithTimeoutCause(ctx, d, why)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	began, stood := time.Now(), l.cfg.Now.Stood()
	var timer *time.Timer
	timer = time.AfterFunc(math.MaxInt64, func() {
		switch left := d - time.Since(began) + l.cfg.Now.Stood() - stood; {
		case ctx.Err() != nil:
		case left <= 0:
			cancel(why)
		default:
			timer.Reset(max(left, stoodRest))
		}
	})
	timer.Reset(d) // behind which timer is set
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// unanswered ends a process whose model has not answered. timeout is why the step was cut off, if it was.
func (l *Loop) unanswered(rec *step.StepRecord, err, timeout error) (End, bool) {
	if timeout != nil {
		err = timeout
	}
	rec.Action, rec.Error = string(Text), err.Error()
	rec.Summary = "no answer: " + rnixctx.Elide(err.Error(), 400)
	if werr := l.close(rec); werr != nil {
		return storage(werr), true
	}
	end := fail(types.ExitError, rnixctx.Elide(err.Error(), 400), err)
	switch {
	case tooLong(err):
		end.Exit.Code, end.Hint = types.ExitBudget, "--model MODEL"
		end.Wait = types.SuspendFor(types.SuspendContext, "context: it is full, and cannot be made any shorter")
	case keyMissing(err):
		end.Exit.Code = types.ExitBudget
		end.Wait = types.SuspendFor(types.SuspendKey, "key: "+rnixctx.Elide(reason(err), 200))
	case types.CodeOf(err) == types.ErrRateLimited:
		end.Exit.Code = types.ExitBudget
		end.Wait, end.Wake = types.SuspendFor(types.SuspendLimit, "rate limit: "+rnixctx.Elide(reason(err), 200)), time.Now().Add(retryIn(err))
	}
	return end, true
}

// limitRest is when a process whose provider does not say how long its rate limit lasts asks again.
const limitRest = 15 * time.Minute

// retryIn returns how long the provider asks to wait.
func retryIn(err error) time.Duration {
	var asked interface{ RetryIn() time.Duration }
	if errors.As(err, &asked) && asked.RetryIn() > 0 {
		return asked.RetryIn()
	}
	return limitRest
}

// storage ends a process whose record cannot be written: what is not recorded must not go on.
func storage(err error) End { return fail(types.ExitError, "storage: "+err.Error(), err) }

// close makes the step durable and announces it.
func (l *Loop) close(rec *step.StepRecord) error {
	rec.Duration = time.Since(rec.Timestamp)
	if !l.again.IsZero() { // between the runs nobody has worked
		rec.Duration, l.again = rec.ModelTime+time.Since(l.again), time.Time{}
	}
	if err := l.host.Record(rec); err != nil {
		return err
	}
	if rec.FailedCalls > 0 {
		l.progress.Failed += rec.FailedCalls
		l.host.Progress(l.progress)
	}
	l.host.Emit(event.Event{Kind: event.StepEnded, Step: rec.StepNumber, Total: l.cfg.MaxSteps, Name: rec.Action,
		Text: rec.Summary, Tokens: rec.TokensUsed, CostUSD: rec.CostUSD, Dur: rec.Duration, Err: rec.Error})
	return nil
}

// firstLine returns the first line of s that is not blank, bounded, for a summary.
func firstLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	return rnixctx.Elide(s, 160)
}
