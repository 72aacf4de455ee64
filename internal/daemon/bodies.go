package daemon

import (
	"context"
	"encoding/json"

	"rnix/agent"
	"rnix/internal/compose/run"
	"rnix/internal/config"
	"rnix/internal/profile"
	"rnix/internal/service/flows"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// bodies make the bodies of processes without a model again, from what their histories keep: by the kind
// that step.BodyRecord names.
var bodies = map[string]func(d *Daemon, p *profile.Profile, spec json.RawMessage) (kernel.Body, error){
	kernel.SupervisorKind: func(d *Daemon, p *profile.Profile, spec json.RawMessage) (kernel.Body, error) {
		return flows.SupervisorAgain(flowProfile{d, p}, spec)
	},
	run.Kind: func(d *Daemon, _ *profile.Profile, spec json.RawMessage) (kernel.Body, error) {
		return d.flows.RunAgain(spec)
	},
}

// settleBody decides with what a process without a model goes on.
func (d reviver) settleBody(r *ready, p *profile.Profile, req *ipc.ResumeRequest) (err error) {
	was := &r.was
	id := was.UUID.String()
	if req.NewInput != "" || req.Provider != "" || req.Model != "" || req.FallbackProvider != "" || req.FallbackModel != "" || req.MaxSteps != nil {
		return types.Errorf(types.ErrInvalid, "Resume", id, "it is no agent (%s): it takes no input, no model and no step limit", was.Body.Kind)
	}
	p.Recorded, r.agent = true, &agent.Agent{}
	if r.opts, err = d.optsOf(r.again, p, r.agent, config.Choice{}, req); err != nil {
		return err
	}
	make, ok := bodies[was.Body.Kind]
	if !ok {
		return types.Errorf(types.ErrInvalid, "Resume", id, "this version of rnix cannot go on with a process of kind %q", was.Body.Kind)
	}
	if r.opts.Body, err = make(d.Daemon, p, was.Body.Spec); err != nil {
		return err
	}
	r.opts.Settings = was.Settings
	r.opts.From = &kernel.From{State: r.state, Rec: r.rec, Was: r.was}
	if r.damage != "" {
		r.warnings = append(r.warnings, r.damage)
	}
	return nil
}

// reviveChild resumes a suspended history for the body of its parent, with the parent's environment.
func (d resumer) reviveChild(ctx context.Context, parent *kernel.Process, id types.UUID) (types.PID, error) {
	req := &ipc.ResumeRequest{}
	if p, ok := profile.Of(parent); ok {
		req.Env = p.Env
	}
	info, ok := d.stored(id)
	switch {
	case !ok:
		return 0, types.Errorf(types.ErrNotFound, "Resume", id.String(), "there is no such history")
	case info.Exit != nil && !info.Suspended && info.Exit.Code != types.ExitCancelled: // what was ended with its parent goes on with it
		return 0, types.Errorf(types.ErrConflict, "Resume", id.String(), "it has ended")
	}
	hold := make(chan struct{})
	defer close(hold)
	a, err := reviver(d).open(ctx, id)
	if err != nil {
		return 0, err
	}
	switch crashes := (autoResumer(d)).crashes(a.state); { // what goes on by itself does so here, too
	case a.state.Paused:
		a.close()
		return 0, types.Errorf(types.ErrUnavailable, "", "", "paused; resume it: rnix resume %d", a.was.PID)
	case crashes >= maxCrashes:
		a.close()
		return 0, types.Errorf(types.ErrUnavailable, "", "", "%d crashes; resume it: rnix resume %d (the daemon has broken off in its step %d each time)", crashes, a.was.PID, a.state.Step+1)
	}
	resp, err := reviver(d).start(ctx, a, req, hold)
	if err != nil {
		return 0, err
	}
	d.wakeBelow(ctx, a.state, req, hold)
	return resp.PID, nil
}
