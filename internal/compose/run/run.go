// Package run is the body of a process that runs a workflow: its children are the nodes. It starts what
// internal/compose decides, and keeps a note of each start and each end in the history of its process
// before anything follows from it, so that it goes on after a stop with what was there: nothing that has
// succeeded is done again, and nothing is started twice.
//
// It knows no configuration: a Starter settles each node as every other process is settled.
package run

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"rnix/internal/compose"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// Kind is the kind of the body. Part of the on-disk format.
const Kind = compose.ProcessKind

// Spec is what the history of a run keeps of it. Part of the on-disk format.
type Spec struct {
	File   *compose.File  `json:"file"`
	Path   string         `json:"path,omitempty"` // of the file
	Name   string         `json:"name"`
	Dir    string         `json:"dir"`              // absolute; patterns and directories of nodes are below it
	Rounds []compose.Redo `json:"rounds,omitempty"` // after the first one
}

// Launch is an attempt of a node that is to be started.
type Launch struct {
	Key     compose.Key
	Attempt int
	UUID    types.UUID
	Origin  types.UUID    // of the first attempt, if this is a later one
	Name    string        // of the process
	Node    *compose.Node // with the defaults of the run, and without references
	Intent  string        // with what its result must be
	Inputs  []step.Input
	Works   []compose.Work // with which its work tree begins
}

// Starter settles and starts a process below p. A spawn that fails leaves no trace.
type Starter interface {
	// The error is a *compose.Clash if what its work tree is to begin with does not merge.
	StartNode(ctx context.Context, p *kernel.Process, l *Launch) (types.PID, error)
	// Unresolved returns the files of the work tree of an attempt in which there are still marks of a conflict that it was to resolve.
	Unresolved(id types.UUID) []string
}

// Run is the body. Its fields are exclusive to the process's goroutine unless they say something else.
type Run struct {
	spec  Spec
	plan  *compose.Plan
	start Starter
	self  kernel.Self
	p     *kernel.Process

	state  *compose.State
	alive  map[compose.Key]*kernel.Process
	unborn map[compose.Key]time.Time // noted, and there is no room for them, since when
	away   map[compose.Key]time.Time // stopped by somebody who lets them go on at once, since when
	redo   bool                      // a round was added for this run
	held   bool                      // the process is paused, and so are the nodes
	thaw   bool                      // its nodes were paused with it, and go on with it
	failed error                     // of the record
	wg     sync.WaitGroup            // of those who wait for nodes

	in  inbox
	now view
}

var (
	_ kernel.Body   = (*Run)(nil)
	_ kernel.Pauser = (*Run)(nil)
)

// New makes the body of a run. The file has no errors.
func New(spec Spec, start Starter) *Run {
	return &Run{spec: spec, plan: spec.File.Plan(), start: start, alive: map[compose.Key]*kernel.Process{}, unborn: map[compose.Key]time.Time{},
		away: map[compose.Key]time.Time{}, in: inbox{wake: make(chan struct{}, 1)}}
}

// ParseSpec reads what a history has kept.
func ParseSpec(raw json.RawMessage) (Spec, error) {
	var s Spec
	if err := compose.Unmarshal(raw, &s); err != nil || s.File == nil || len(s.File.Agents) == 0 {
		return s, types.Errorf(types.ErrStorage, "Compose", "", "the history does not say which workflow it ran: %w", err)
	}
	return s, nil
}

// Redo makes a run that is about to go on do something again, as a round of its own. One that has ended
// does again what has failed, if nobody says something else.
func (r *Run) Redo(what compose.Redo) {
	r.spec.Rounds, r.redo = append(slices.Clip(r.spec.Rounds), what), true
}

// Spec returns what the run is of.
func (r *Run) Spec() Spec { return r.spec }

// Attach implements kernel.Body.
func (r *Run) Attach(self kernel.Self, was *recovery.State) (err error) {
	r.self, r.p = self, self.Process()
	var notes map[string]json.RawMessage
	if was != nil {
		notes, r.thaw = was.Notes, was.Paused
		_, ending := EndingIn(notes, len(r.spec.Rounds)) // somebody lets it go on that has not come to its end
		if (was.Phase == recovery.Ended || ending) && !r.redo {
			r.Redo(compose.Redo{})
		}
	}
	if r.state, err = compose.NewState(r.plan, r.spec.Rounds, notes); err != nil {
		return types.Errorf(types.ErrStorage, "Compose", r.p.UUID.String(), "%w", err)
	}
	r.publish()
	return nil
}

// Record implements kernel.Body.
func (r *Run) Record() (step.BodyRecord, error) {
	b, err := json.Marshal(&r.spec)
	return step.BodyRecord{Kind: Kind, Spec: b}, err
}

// Joined implements kernel.Body: a node may go on because somebody else has resumed it.
func (r *Run) Joined(child *kernel.Process) {
	r.in.putJoined(child)
}

// Ended implements kernel.Body: who is no node, such as a copy of one, has nobody else to reap it.
func (r *Run) Ended(child *kernel.Process) {
	r.in.putLeft(child)
}

// GateMoved implements kernel.Pauser.
func (r *Run) GateMoved() { r.in.poke() }

// Run starts nodes until all have ended, none can go on, or the context ends.
func (r *Run) Run(ctx context.Context) kernel.End {
	defer r.publish()
	group := types.PGID(r.p.PID)
	_ = r.self.By().JoinGroup(r.p.PID, group) // it is alive
	family{r}.find(ctx)
	for {
		r.listen(ctx)
		if cause := context.Cause(ctx); cause != nil {
			return family{r}.cut(cause)
		}
		if r.failed != nil {
			_ = family{r}.cut(r.failed)
			err := types.Errorf(types.ErrStorage, "Compose", r.spec.Name, "the history cannot be written: %w", r.failed)
			return kernel.End{Exit: types.ExitStatus{Code: types.ExitError, Reason: err.Err.Error(), Err: err}}
		}
		if r.held {
			r.wait(ctx, time.Time{})
			continue
		}
		if end, over := r.act(ctx, r.state.Next(time.Now())); over {
			return end
		}
	}
}

// act does what is to be done, and reports whether the run is over.
func (r *Run) act(ctx context.Context, acts []compose.Action) (kernel.End, bool) {
	for _, a := range acts {
		if ctx.Err() != nil || r.failed != nil || r.paused() {
			break
		}
		switch a.Do {
		case compose.Start:
			if r.note(a.Key, r.state.Began(a.Key, types.NewUUID(), time.Now())) {
				family{r}.launch(ctx, a.Key)
			}
		case compose.Expand:
			papers{r}.expand(a.Key)
		case compose.Skip:
			r.note(a.Key, compose.Note{Round: r.state.Round(), Phase: compose.Skipped, Why: a.Why, At: time.Now()})
		case compose.Wait:
			r.wait(ctx, a.Until)
		case compose.Suspend:
			if r.self.Stopping() { // its nodes may have heard of it before
				<-ctx.Done()
				break
			}
			if (family{r}).awake(ctx) { // somebody has let one go on in this moment
				break
			}
			return kernel.End{Exit: types.ExitStatus{Code: types.ExitBudget, Reason: "waits for " + a.Why}, Wait: types.SuspendFor(types.SuspendNodes, a.Why), Wake: a.Until}, true
		case compose.End:
			return papers{r}.over(), true
		}
	}
	return kernel.End{}, false
}

func (r *Run) paused() bool {
	_, shut := r.self.PausedSince()
	return shut != r.held || r.self.Held()
}

// note makes durable what has become of a node, and then counts on it.
func (r *Run) note(k compose.Key, n compose.Note) bool {
	if r.failed != nil {
		return false
	}
	if err := r.self.Note(k.String(), n); err != nil {
		r.failed = err
		return false
	}
	r.state.Apply(k, n)
	r.tell(k, n)
	r.publish()
	return true
}

// tell says to those who look what has become of a node.
func (r *Run) tell(k compose.Key, n compose.Note) {
	e := event.Event{Kind: event.NodeChanged, Name: k.String(), Result: string(n.Phase), Step: n.Attempt, Text: n.Why}
	if n.UUID != (types.UUID{}) {
		e.Args = n.UUID.String()
	}
	if n.Phase == compose.Expanded {
		e.Total = len(n.Items)
	}
	r.self.Tell(e)
}

// wait waits until something happens, at the latest until a time.
func (r *Run) wait(ctx context.Context, until time.Time) {
	if len(r.unborn) > 0 { // for room, of which nobody tells
		if soon := time.Now().Add(roomEvery); until.IsZero() || soon.Before(until) {
			until = soon
		}
	}
	for _, since := range r.away {
		if last := since.Add(awayPatience); until.IsZero() || last.Before(until) {
			until = last
		}
	}
	r.self.SetWait(r.waits(), time.Time{})
	var alarm <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		alarm = t.C
	}
	select {
	case <-r.in.wake:
	case <-alarm:
	case <-ctx.Done():
	}
}

// roomEvery is how often it is looked whether there is room for another process.
const roomEvery = time.Second

// listen takes in what has happened.
func (r *Run) listen(ctx context.Context) {
	if ctx.Err() != nil {
		return // what ends now ends with the run
	}
	joined, left, ends := r.in.take()
	for _, c := range joined {
		family{r}.joined(ctx, c)
	}
	for _, e := range ends {
		family{r}.ended(ctx, e.key, e.p, e.info)
	}
	family{r}.missed()
	for _, c := range left {
		if !slices.Contains(r.nodes(), c) {
			_, _ = r.self.By().WaitInfo(ctx, c.PID) // it has ended
		}
	}
	if len(r.unborn) > 0 && ctx.Err() == nil && !r.paused() {
		for _, st := range r.state.Report() {
			if _, due := r.unborn[st.Key]; due {
				family{r}.launch(ctx, st.Key)
			}
		}
	}
	if _, shut := r.self.PausedSince(); shut != r.held {
		r.held = shut
		sig := types.SIGRESUME
		if shut {
			sig = types.SIGPAUSE
		}
		for _, c := range r.nodes() {
			_, _ = r.self.By().SignalTree(c.PID, sig) // it may have ended
		}
	}
	r.publish()
}

// nodes returns the living nodes.
func (r *Run) nodes() []*kernel.Process {
	var out []*kernel.Process
	for _, st := range r.state.Report() {
		if p := r.alive[st.Key]; p != nil {
			out = append(out, p)
		}
	}
	return out
}
