package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rnix/internal/compose"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// family is what a run does about its children.
type family struct{ *Run }

// find looks what has become of the nodes that an earlier run has left.
func (r family) find(ctx context.Context) {
	live := r.state.Live()
	for _, st := range r.state.Report() {
		if id, ok := live[st.Key]; ok && ctx.Err() == nil && r.failed == nil {
			r.adopt(ctx, st.Key, id)
		}
	}
	r.thaw = false
}

// adopt goes on with a node that was started in an earlier run: alive, suspended, ended, or not begun yet.
func (r family) adopt(ctx context.Context, k compose.Key, id types.UUID) {
	if p, ok := r.self.Kernel().ByUUID(id); ok {
		r.watch(ctx, k, p)
		return
	}
	info, err := r.self.Stored(id)
	note, _ := r.state.Latest(k)
	switch {
	case types.CodeOf(err) == types.ErrNotFound:
		r.launch(ctx, k)
		return
	case err != nil:
		r.over1(k, compose.Outcome{Kind: compose.Error, Why: err.Error()})
		return
	case info.Exit != nil && !info.Suspended:
		if info.Exit.Code != types.ExitCancelled || note.Round == r.state.Round() {
			r.over1(k, r.outcome(k, *info.Exit, info.Result, spentOf(info)))
			return
		}
		// It was ended with the run, and goes on with it where it was.
	case info.Why() == types.SuspendPaused && !r.thaw, info.WakeAt.After(time.Now()):
		r.park(k, info.SuspendReason, info.WakeAt)
		return
	}
	if _, err = r.self.Revive(ctx, id); err != nil && ctx.Err() == nil {
		if types.CodeOf(err) == types.ErrConflict && info.Exit != nil && !info.Suspended {
			r.over1(k, r.outcome(k, *info.Exit, info.Result, spentOf(info)))
			return
		}
		if _, ok := r.self.Kernel().ByUUID(id); !ok { // else somebody was quicker, and it is found below
			r.park(k, "it cannot go on: "+err.Error(), time.Time{})
			return
		}
	}
	if p, ok := r.self.Kernel().ByUUID(id); ok {
		r.watch(ctx, k, p)
	} else if ctx.Err() == nil { // it has ended already
		r.again(ctx, k, id)
	}
}

// again takes in a node that went on and has ended before anybody could look.
func (r family) again(ctx context.Context, k compose.Key, id types.UUID) {
	info, err := r.self.Stored(id)
	switch {
	case err != nil:
		r.over1(k, compose.Outcome{Kind: compose.Error, Why: err.Error()})
	case info.Exit != nil && !info.Suspended:
		r.over1(k, r.outcome(k, *info.Exit, info.Result, spentOf(info)))
	default:
		r.park(k, info.SuspendReason, info.WakeAt)
	}
}

// joined takes in a child that has become visible. Nodes that the run starts itself are known where that
// is done.
func (r family) joined(ctx context.Context, c *kernel.Process) {
	for k, id := range r.state.Live() {
		if id == c.UUID && r.alive[k] == nil {
			r.watch(ctx, k, c)
		}
	}
}

// watch waits for a node in the background.
func (r family) watch(ctx context.Context, k compose.Key, p *kernel.Process) {
	r.alive[k] = p
	delete(r.away, k)
	r.state.Unpark(k)
	_ = r.self.By().JoinGroup(p.PID, types.PGID(r.p.PID)) // it may have ended
	r.wg.Go(func() {                                      // one per living node; ends with it or with ctx
		if info, err := r.self.By().WaitInfo(ctx, p.PID); err == nil {
			r.in.putEnd(ending{k, p, info})
		}
	})
	r.publish()
}

// awayPatience is how long it is waited for a node that was stopped to go on, before it counts as suspended.
const awayPatience = 10 * time.Second

// missed parks nodes that were stopped and that nobody has let go on.
func (r family) missed() {
	for k, since := range r.away {
		if time.Since(since) >= awayPatience {
			delete(r.away, k)
			r.park(k, "it was stopped; resume the run to run it", time.Time{})
		}
	}
}

// awake takes in suspended nodes that are alive, and reports whether there are any.
func (r family) awake(ctx context.Context) (any bool) {
	for k, id := range r.state.Live() {
		if p, ok := r.self.Kernel().ByUUID(id); ok && r.alive[k] == nil && p.State() < types.StateZombie {
			r.watch(ctx, k, p)
			any = true
		}
	}
	return any
}

// ended takes in the end of a run of a node. One that ended without an exit status was stopped by somebody who lets it
// go on, and is below this process again in a moment, if it is not already.
func (r family) ended(ctx context.Context, k compose.Key, p *kernel.Process, i kernel.Info) {
	if r.alive[k] != p {
		return
	}
	delete(r.alive, k)
	if q, ok := r.self.Kernel().ByUUID(p.UUID); ok && q != p && i.Exit == nil {
		r.watch(ctx, k, q)
		return
	}
	switch {
	case i.Parked.Waits():
		r.park(k, i.Parked.SuspendReason, i.Wake)
	case i.Exit == nil && r.self.Stopping(): // this process hears of it in a moment
	case i.Exit == nil:
		r.away[k] = time.Now()
	default:
		r.over1(k, r.outcome(k, *i.Exit, i.Result, compose.Outcome{Tokens: i.TokensUsed, CostUSD: i.CostUSD, Unpriced: i.Unpriced}))
	}
}

func (r family) park(k compose.Key, why string, wake time.Time) {
	r.state.Park(k, why, wake)
	n, _ := r.state.Latest(k)
	n.Phase, n.Why = compose.Suspended, why
	r.tell(k, n)
	r.publish()
}

// over1 notes the end of an attempt.
func (r family) over1(k compose.Key, o compose.Outcome) { r.note(k, r.state.Over(k, o, time.Now())) }

// spentOf is what an attempt has used that has ended.
func spentOf(i *step.ProcInfo) compose.Outcome {
	return compose.Outcome{Tokens: i.TokensUsed, CostUSD: i.CostUSD, Unpriced: i.Unpriced}
}

// outcome judges how a process ended that has used what o says.
func (r family) outcome(k compose.Key, exit types.ExitStatus, result string, o compose.Outcome) compose.Outcome {
	code := int(exit.Code)
	o.Kind, o.Exit = KindOf(exit), &code
	if o.Kind != "" {
		if o.Why = exit.Reason; o.Why == "" {
			o.Why = exit.String()
		}
		return o
	}
	if _, err := r.plan.File.Agents[k.Node].Output.Check(result); err != nil {
		o.Kind, o.Why = compose.BadOutput, err.Error()
	} else if left := r.unresolved(k); len(left) > 0 {
		o.Kind, o.Files, o.Why = compose.BadOutput, left, "it has left marks of conflicts in "+strings.Join(left, ", ")
	}
	return o
}

// unresolved returns the files in which a node has left marks of a conflict that it was to resolve.
func (r family) unresolved(k compose.Key) []string {
	if w := r.plan.File.Agents[k.Node].Worktree; w == nil || w.Conflicts != compose.Resolve {
		return nil
	}
	note, _ := r.state.Latest(k)
	return r.start.Unresolved(note.UUID)
}

// KindOf says why a process has failed; empty if it has not.
func KindOf(exit types.ExitStatus) compose.Kind {
	switch {
	case exit.Code == types.ExitOK:
		return ""
	case exit.Code == types.ExitCancelled:
		return compose.Cancelled
	case exit.Code == types.ExitRefused:
		return compose.Refused
	case exit.Code == types.ExitNoProgress, exit.MaxSteps():
		return compose.NoProgress
	}
	if _, late := exit.TimedOut(); late {
		return compose.TimedOut
	}
	return compose.Error
}

// roomPatience is how long a run without any living node waits for room for one: it may be a limit that
// only it has reached.
const roomPatience = time.Minute

// launch starts an attempt that was noted.
func (r family) launch(ctx context.Context, k compose.Key) {
	l, err := papers(r).prepare(k)
	if err == nil {
		_, err = r.start.StartNode(ctx, r.p, l)
	}
	since, waited := r.unborn[k]
	delete(r.unborn, k)
	switch {
	case err == nil:
		if p, ok := r.self.Kernel().ByUUID(l.UUID); ok {
			r.watch(ctx, k, p)
		} else {
			r.again(ctx, k, l.UUID)
		}
	case ctx.Err() != nil || r.self.Stopping(): // it is started when the run goes on
	case noRoom(err) && (len(r.alive) > 0 || !waited || time.Since(since) < roomPatience):
		if r.unborn[k] = since; !waited || len(r.alive) > 0 {
			r.unborn[k] = time.Now()
		}
	default:
		o := compose.Outcome{Kind: compose.Error, Why: "it could not be started: " + err.Error(), Code: types.CodeOf(err)}
		if clash, ok := errors.AsType[*compose.Clash](err); ok {
			o.Kind, o.Why, o.Files = compose.Conflict, clash.Error()+", then: rnix compose resume "+r.spec.Name, clash.Files
		}
		r.over1(k, o)
	}
}

// noRoom reports whether a spawn was refused because as many processes live as may.
func noRoom(err error) bool {
	var s *types.SyscallError
	return errors.As(err, &s) && s.Code == types.ErrExhausted && s.Syscall == "Spawn"
}

// papers is what a run makes of results.
type papers struct{ *Run }

// prepare settles what an attempt is started with.
func (r papers) prepare(k compose.Key) (*Launch, error) {
	f, item := r.plan.File, r.state.Item(k)
	note, _ := r.state.Latest(k)
	node, err := f.Agents[k.Node].Render(&compose.Scope{Vars: f.Vars, Item: item, Index: k.Index})
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Compose", k.String(), "%w", err)
	}
	Defaults(node, f)
	l := &Launch{Key: k, Attempt: note.Attempt, UUID: note.UUID, Origin: note.Origin, Name: r.spec.Name + "/" + k.String(), Node: node, Intent: node.Intent}
	if node.Worktree != nil {
		l.Works = compose.Works(r.state, k.Node)
		for _, w := range l.Works {
			if p, ok := r.self.Kernel().ByUUID(w.UUID); ok && p.State() < types.StateZombie {
				return nil, types.Errorf(types.ErrConflict, "Compose", k.String(), "%s works again, as PID %d, so what it has may be half done: wait for it, then: rnix compose resume %s", w.Key, p.PID, r.spec.Name)
			}
		}
	}
	if ask := node.Output.Ask(); ask != "" {
		l.Intent += "\n\n" + ask
	}
	if note.Told != "" {
		l.Intent += "\n\nAn earlier attempt was not accepted: " + note.Told
	}
	if k.Index >= 0 && compose.Long(item) {
		l.Inputs = append(l.Inputs, input("item", compose.Text(item)))
	}
	given := r.state.Given(k.Node)
	if err := compose.CheckGiven(len(l.Inputs)+len(given), many(given)); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Compose", k.String(), "%w", err)
	}
	for _, g := range given {
		text, err := r.text(g)
		if err != nil {
			return nil, err
		}
		l.Inputs = append(l.Inputs, input(inputName(g.Key), text))
	}
	return l, nil
}

// many says of which nodes several results come.
func many(given []compose.Given) (of []string) {
	count := map[string]int{}
	for _, g := range given {
		count[g.Key.Node]++
	}
	for name, n := range count {
		if n > 1 {
			of = append(of, fmt.Sprintf("%d of %s", n, name))
		}
	}
	return of
}

// input is what a node is given. What agents bring may hold what no input can: NUL and what is no UTF-8 is
// replaced, so that nobody fails for what another has said.
func input(name, text string) step.Input {
	return step.Input{Name: name, Text: strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")}
}

// inputName is the name under which a node finds the result of an instance.
func inputName(k compose.Key) string {
	if k.Index < 0 {
		return k.Node
	}
	return fmt.Sprintf("%s.%d", k.Node, k.Index)
}

// text is what other nodes are given of an instance.
func (r papers) text(g compose.Given) (string, error) {
	if g.Phase != compose.Succeeded {
		of := ""
		if g.Key.Index >= 0 { // who is told must be able to say what is missing
			of = " (" + compose.Label(r.state.Item(g.Key)) + ")"
		}
		return fmt.Sprintf("[%s%s %s: %s]", g.Key, of, g.Phase, g.Why), nil
	}
	if g.UUID == (types.UUID{}) {
		return "[]", nil // of a node with foreach that had no items
	}
	info, err := r.self.Stored(g.UUID)
	switch {
	case err != nil:
		return "", types.Errorf(types.CodeOf(err), "Compose", g.Key.String(), "its result cannot be read: %w", err)
	case info.Exit == nil:
		return "", types.Errorf(types.ErrNotFound, "Compose", g.Key.String(), "its result cannot be read: %s", info.SuspendReason)
	}
	return r.plan.File.Agents[g.Key.Node].Output.Check(info.Result)
}

// Defaults gives a node what the run says. A model that the run names belongs to its provider.
func Defaults(n *compose.Node, f *compose.File) {
	if n.Provider == "" {
		if n.Model == "" {
			n.Model = f.Model
		}
		if !strings.Contains(n.Model, "/") || n.Model == f.Model {
			n.Provider = f.Provider
		}
	}
	if n.FallbackProvider == "" && n.FallbackModel == "" {
		n.FallbackProvider, n.FallbackModel = f.FallbackProvider, f.FallbackModel
	}
	if n.Effort == "" {
		n.Effort = f.Effort
	}
}
