package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"rnix/embed"
	"rnix/kernel"
	"rnix/types"
)

// histories are on disk: what the end of a program cuts off goes on in the next.
func (p *program) histories(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "embed")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	first, err := open(dir)
	if err != nil {
		return err
	}
	pid, err := first.Kernel.Spawn("Work for a while", nil, kernel.SpawnOpts{ProcSpec: types.ProcSpec{Provider: "slow"}})
	if err != nil {
		return errors.Join(err, closed(ctx, first))
	}
	for i := (kernel.Info{}); i.Step < 1; time.Sleep(time.Millisecond) { // until its first step is on disk
		if i, err = first.Kernel.Info(pid); err != nil {
			return errors.Join(err, closed(ctx, first))
		}
	}
	if err := closed(ctx, first); err != nil { // it is suspended in its second step
		return err
	}

	models["slow"] = strings.Replace(models["slow"], "1h", "0s", 1) // it is quicker today
	second, err := open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed(ctx, second)) }()
	began, err := second.Resume(ctx)
	if err != nil {
		return err
	}
	for _, pid := range began {
		i, err := second.Kernel.WaitInfo(ctx, pid)
		if err != nil {
			return err
		}
		p.say("histories: %q went on after step 1 as PID %d, and said %q", i.Intent, i.PID, i.Result)
	}
	return p.fallback(ctx, second)
}

// fallback has a second model answer for one that cannot, and tells a secret that nobody sees.
func (p *program) fallback(ctx context.Context, sys *embed.System) error {
	pid, err := sys.Kernel.Spawn("Deploy with "+token, nil, kernel.SpawnOpts{ProcSpec: types.ProcSpec{Provider: "down", FallbackProvider: "deployer"}})
	if err != nil {
		return err
	}
	i, err := sys.Kernel.WaitInfo(ctx, pid)
	if err != nil {
		return err
	}
	p.say("fallback: %s answered %q", i.Provider, i.Result)
	h := sys.Histories()
	p.say("secrets: the record of its intent is %q", h[len(h)-1].Intent)
	return nil
}
