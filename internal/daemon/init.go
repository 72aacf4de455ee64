package daemon

import (
	"context"
	"errors"

	"rnix/internal/durable"
	"rnix/internal/service/flows"
	"rnix/ipc"
)

// newBoot is how far the daemon has come with what init.yaml says; why it does not start is noted for clients.
func newBoot(d *Daemon) *flows.Boot {
	b := flows.NewBoot()
	b.Tell = func(why string) {
		if err := ipc.WriteStartFailure(d.places.DataDir, why); err != nil {
			d.log.Warn("start", "err", err)
		}
	}
	return b
}

// noteFailure notes why a daemon does not start, if err says so. Where that cannot be written, err says as much.
func noteFailure(d *Daemon, err error) {
	if err != nil {
		_ = ipc.WriteStartFailure(d.places.DataDir, flows.FailureText(err))
	}
}

// readInit reads init.yaml. What is wrong with it is a warning, unless something that is required cannot be started.
func readInit(d *Daemon) *flows.Init {
	in := &flows.Init{Flows: d.flows, Boot: d.bootstrap, Dir: d.configDir, Home: d.home, Note: d.note, Log: d.log,
		Misread: func(what string) { d.misread = append(d.misread, what) },
		Profile: func() (flows.Profile, error) {
			p, err := d.profiles.Read(d.home, nil, false)
			return d.flowing.Of(p), err
		}}
	in.Read()
	return in
}

// tend begins what looks after processes while the daemon runs.
func tend(ctx context.Context, d *Daemon) {
	if d.auto.Max > 0 {
		d.background.Go(func() { d.auto.Wake(ctx) }) // ends with ctx
	}
	d.background.Go(func() { d.auto.Follow(ctx) }) // ends with ctx
	d.background.Go(func() { d.notices.Run(ctx) }) // ends with ctx
	d.background.Go(d.sandbox.Begin)               // ends with the test
	if len(d.retention) == 0 {
		d.background.Go(func() { d.collector.Run(ctx) }) // ends with ctx
	}
}

// takeUp resumes in the background what an earlier daemon has left, unless the start has failed already, and starts what init.yaml says.
func takeUp(ctx context.Context, d *Daemon, in *flows.Init) {
	over := func(ok bool) {
		if !ok {
			d.stop()
			return
		}
		if ctx.Err() == nil {
			if err := ipc.ClearStartFailure(d.places.DataDir); err != nil && !errors.Is(err, context.Canceled) && !durable.Unwritable(err) {
				d.log.Warn("start", "err", err)
			}
		}
	}
	d.background.Go(func() { in.Run(ctx, func() { d.auto.GoOn(ctx) }, d.looked, over) }) // ends with ctx
}
