package asks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"rnix/internal/permit"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// maxBecause bounds what the model is told of a refusal, in bytes.
const maxBecause = 4096

// check refuses what is no answer.
func check(req *ipc.AnswerRequest) error {
	bad := func(format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "Answer", strconv.FormatUint(req.Number, 10), format, args...)
	}
	var object map[string]json.RawMessage
	switch {
	case req.Allow && req.Because != "":
		return bad("a reason goes with a refusal")
	case req.Text != "" && (!req.Allow || len(req.Input) > 0 || req.For != "" || req.Match != "" || req.ForMs != 0):
		return bad("a text answers a question, and goes with nothing else")
	case !req.Allow && (len(req.Input) > 0 || req.For != "" || req.Match != "" || req.ForMs != 0):
		return bad("another input, and for what else it counts, go with an answer that allows")
	case len(req.Because) > maxBecause || !utf8.ValidString(req.Because):
		return bad("the reason must be UTF-8 of at most %d bytes", maxBecause)
	case len(req.Input) > 0 && (json.Unmarshal(req.Input, &object) != nil || object == nil):
		return bad("the input must be a JSON object")
	case !slices.Contains([]permit.Scope{"", permit.ForCall, permit.ForProcess, permit.ForFamily}, req.For):
		return bad("%q is not known; want call, process or family", req.For)
	case req.ForMs < 0:
		return bad("the time is negative")
	case req.For == permit.ForCall && (req.Match != "" || req.ForMs != 0), req.For == "" && req.Match != "" && req.ForMs == 0:
		return bad("a pattern or a time is for more than the call itself; say for what: process, family, or how long")
	}
	return nil
}

// answer takes the answer of a person.
func (d *Service) answer(ctx context.Context, peer *ipc.Peer, req ipc.AnswerRequest) (resp ipc.AnswerResponse, err error) {
	if err := service.People(d.Finder, peer, "Answer", "not answer what a person is asked"); err != nil {
		return resp, err
	}
	if err := check(&req); err != nil {
		return resp, err
	}
	if err := d.Finder.Settled(ctx); err != nil {
		return resp, err
	}
	all := d.all(ctx, func(n uint64) bool { return n == req.Number })
	if len(all) == 0 {
		return resp, types.Errorf(types.ErrNotFound, "Answer", strconv.FormatUint(req.Number, 10), "no ask with this number waits for an answer; `rnix asks` lists those that do")
	}
	a := all[0]
	if a.Path == permit.HostPath && len(req.Input) > 0 {
		return resp, types.Errorf(types.ErrInvalid, "Answer", strconv.FormatUint(req.Number, 10), "the command connects to the host that is asked about, and to no other: allow it or deny it")
	}
	if err := fits(&a, &req); err != nil {
		return resp, err
	}
	if mark := d.Secrets.MarkIn(req.Input); mark != "" && bytes.Contains(a.Input, []byte(mark)) {
		return resp, types.Errorf(types.ErrInvalid, "Answer", strconv.FormatUint(a.Number, 10), "the input has %s, which only stands for a secret that is not shown; the call would get these words: write what it needs in another way, allow the call as it is, or deny it", mark)
	}
	if a.Fixed && a.Path == permit.WebPath && len(req.Input) > 0 {
		return resp, types.Errorf(types.ErrInvalid, "Answer", strconv.FormatUint(req.Number, 10), "it is this URL and no other: allow it or deny it")
	}
	if a.Fixed && len(req.Input) > 0 {
		return resp, types.Errorf(types.ErrInvalid, "Answer", strconv.FormatUint(req.Number, 10), "the agent CLI takes nothing else in place of this call; allow it as it is, or refuse it and say why")
	}
	resp = ipc.AnswerResponse{Ask: a, Allowed: req.Allow, Text: req.Text}
	if req.Allow && (req.For != "" && req.For != permit.ForCall || req.ForMs > 0) { // before the answer: what is cut off between them asks nothing twice
		if resp.Grant, err = d.grant(ctx, &a, &req); err != nil {
			return resp, err
		}
	}
	r := step.Answered{Number: req.Number, Allow: req.Allow, Input: req.Input, Because: req.Because, Text: req.Text}
	err = d.tell(ctx, &a, r)
	if g := resp.Grant; g != nil && err != nil { // another answer was first, or who answers has gone: what this one would have granted is not granted
		return resp, errors.Join(err, takeBack(context.WithoutCancel(ctx), d, g))
	}
	return resp, err
}

// takeBack takes back a grant. Grants have the number of their ask: of two persons who have granted at the same moment, both are asked again.
func takeBack(ctx context.Context, d *Service, g *ipc.Grant) error {
	return d.write(ctx, g.UUID, func(pid types.PID) (step.Marker, error) { return step.RevokeMarker(pid, g.Number) },
		func() error { return d.Kernel.RevokeGrant(g.UUID, g.Number) })
}

// tell brings an answer to where it is waited for. A process that is just being suspended or resumed is tried again.
func (d *Service) tell(ctx context.Context, a *ipc.Ask, r step.Answered) error {
	return again(ctx, func() error {
		_, err := d.Kernel.Answer(r)
		if types.CodeOf(err) == types.ErrNotFound {
			err = d.Stored.Answer(ctx, a.UUID, r)
		}
		if code := types.CodeOf(err); (code == types.ErrConflict || code == types.ErrNotFound) && len(d.all(ctx, func(n uint64) bool { return n == a.Number })) == 0 {
			return types.Errorf(types.ErrNotFound, "Answer", strconv.FormatUint(a.Number, 10), "it was answered already, or its process has ended")
		}
		return err
	})
}

// How long something is tried while a process is neither running nor at rest, and how often.
const (
	tellTime  = 5 * time.Second
	tellAgain = 20 * time.Millisecond
)

// again tries once more as long as the history has another owner.
func again(ctx context.Context, do func() error) error {
	for end := time.Now().Add(tellTime); ; {
		err := do()
		if types.CodeOf(err) != types.ErrConflict || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(tellAgain):
		case <-ctx.Done():
			return err
		}
	}
}

// grant writes down what else passes because of an answer.
func (d *Service) grant(ctx context.Context, a *ipc.Ask, req *ipc.AnswerRequest) (*ipc.Grant, error) {
	scope, where := req.For, a.UUID
	if scope == "" {
		scope = permit.ForFamily
	}
	if scope == permit.ForFamily {
		where = d.top(a.UUID)
	}
	info, _ := d.Index.Get(a.UUID)
	call := &permit.Call{Tool: a.Tool, Path: a.Path, Input: a.Input, Dir: info.WorkDir, Real: placeOf}
	var until time.Time
	if req.ForMs > 0 {
		until = time.Now().Add(service.Timeout(req.ForMs))
	}
	g, err := permit.NewGrant(a.Number, call, scope, req.Match, until)
	if err != nil {
		return nil, err
	}
	if err := d.write(ctx, where, func(pid types.PID) (step.Marker, error) { return step.GrantMarker(pid, &g) }, func() error { return d.Kernel.Grant(where, &g) }); err != nil {
		return nil, err
	}
	info, _ = d.Index.Get(where)
	out := wireGrant(&info, g)
	return &out, nil
}

// write writes a marker into a history, wherever that is, and forgets what was known of its grants.
func (d *Service) write(ctx context.Context, id types.UUID, make func(pid types.PID) (step.Marker, error), live func() error) error {
	err := again(ctx, func() error {
		err := live()
		if types.CodeOf(err) == types.ErrNotFound {
			err = d.Stored.Mark(ctx, id, make)
		}
		return err
	})
	d.mu.Lock()
	delete(d.grants, id)
	d.writes++
	d.mu.Unlock()
	return err
}

// revoke takes back what was granted.
func (d *Service) revoke(ctx context.Context, peer *ipc.Peer, req ipc.RevokeRequest) (resp ipc.RevokeResponse, err error) {
	if err := service.People(d.Finder, peer, "Revoke", "not change what a person has granted"); err != nil {
		return resp, err
	}
	if err := d.Finder.Settled(ctx); err != nil {
		return resp, err
	}
	all := d.grantList(types.UUID{})
	at := slices.IndexFunc(all, func(g ipc.Grant) bool { return g.Number == req.Number })
	if at < 0 {
		return resp, types.Errorf(types.ErrNotFound, "Revoke", strconv.FormatUint(req.Number, 10), "no such grant; `rnix asks --grants` lists them")
	}
	g := all[at]
	return ipc.RevokeResponse{Grant: g}, takeBack(ctx, d, &g)
}
