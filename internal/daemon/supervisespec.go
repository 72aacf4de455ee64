package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"rnix/agent"
	"rnix/internal/initfile"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// declared is what the history of a supervisor keeps: what a file says of it. Part of the on-disk format.
type declared struct {
	Init bool                `json:"init,omitempty"` // it is of init.yaml
	Spec initfile.Supervisor `json:"spec"`
}

// declaredIn reads what a history has kept.
func declaredIn(spec json.RawMessage, id types.UUID) (d declared, err error) {
	if err = json.Unmarshal(spec, &d); err != nil {
		err = types.Errorf(types.ErrStorage, "Resume", id.String(), "what the supervisor is cannot be read: %w", err)
	}
	return d, err
}

// text returns what is compared to find out whether a file says the same as before.
func (d *declared) text() (json.RawMessage, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, types.Errorf(types.ErrInternal, "Supervise", d.Spec.Name, "encode: %w", err)
	}
	return b, nil
}

// plan turns what is declared into what the kernel takes. With a nil profile it can be looked at and not started.
func (d superviser) plan(p *profile.Profile, decl *declared) (kernel.SupervisorSpec, error) {
	raw, err := decl.text()
	if err != nil {
		return kernel.SupervisorSpec{}, err
	}
	s := &decl.Spec
	out := kernel.SupervisorSpec{Name: s.Name, Strategy: kernel.Strategy(s.Strategy), Declared: raw}
	if s.MaxRestarts != nil || s.MaxWindow != 0 {
		out.Intensity = kernel.DefaultIntensity
		out.Intensity.Period = s.MaxWindow.Or(out.Intensity.Period)
		if s.MaxRestarts != nil {
			out.Intensity.MaxRestarts = *s.MaxRestarts
		}
	}
	if p != nil {
		o := &out.Opts
		o.WorkDir, o.ReadRoots, o.ContextBudget, o.BudgetUSD, o.AllowedDevices, o.DeniedDevices = s.Cwd, p.Config.ReadRoots.V, s.ContextBudget, s.BudgetUSD, s.Allow, s.Deny
		o.Recorded = p.Recorded
		o.Env, o.Secret, o.Profile = proc.ComposeEnv(p.Env, nil, nil), p.Lookup, p
		if o.Settings, err = p.Settings(&agent.Agent{}, nil); err != nil {
			return out, err
		}
	}
	for i := range s.Children {
		c := &s.Children[i]
		k := kernel.ChildSpec{Name: c.Name, Restart: kernel.Restart(c.Restart), Shutdown: time.Duration(c.Shutdown), Intent: c.Intent,
			Backoff: kernel.Backoff{Initial: c.Backoff.Initial.Or(0), Factor: c.Backoff.Factor, Max: c.Backoff.Max.Or(0)}}
		if c.Supervisor != nil {
			below, err := d.plan(p, &declared{Spec: *c.Supervisor})
			if err != nil {
				return out, err
			}
			k.Supervisor = &below
		} else if p != nil {
			k.Prepare = func(context.Context) (*agent.Agent, kernel.SpawnOpts, error) { return d.prepare(p, c) }
		}
		out.Children = append(out.Children, k)
	}
	return out, nil
}

// prepare settles with what a child is started: the same as what a client asks for that is spawned, as the
// configuration is now.
func (d superviser) prepare(p *profile.Profile, c *initfile.Child) (*agent.Agent, kernel.SpawnOpts, error) {
	cp, err := d.profiles.ForStart("Spawn", c.Cwd, p.Env, p.Trust)
	if err != nil {
		return nil, kernel.SpawnOpts{}, err
	}
	cp.Names, cp.Recorded = c.Env, p.Recorded
	ag, opts, _, err := spawner(d).settle(cp, ipc.SpawnRequest{Agent: c.Agent, Provider: c.Provider, Model: c.Model, Effort: c.Effort,
		MaxSteps: c.MaxSteps, ContextBudget: c.Budget, BudgetUSD: c.USD, TimeoutMs: c.Timeout.Or(0).Milliseconds(), Allow: c.Allow, Deny: c.Deny, MCP: c.MCP})
	return ag, opts, err
}

// examine reports at their places what cannot be started as things are.
func (d superviser) examine(p *profile.Profile, f *initfile.File, key string, s *initfile.Supervisor) {
	for i := range s.Children {
		c, key := &s.Children[i], initfile.ChildKey(key, i)
		if c.Supervisor != nil {
			d.examine(p, f, key+".supervisor", c.Supervisor)
			continue
		}
		_, _, err := d.prepare(p, c)
		if err == nil {
			continue
		}
		if e, ok := errors.AsType[*types.SyscallError](err); ok {
			for sub, value := range map[string]string{".agent": c.Agent, ".provider": c.Provider, ".cwd": c.Cwd} {
				if value != "" && e.Device == value {
					f.Problemf(key+sub, "%v", e.Err)
					err = nil
				}
			}
		}
		if err != nil {
			f.Problemf(key, "%v", err)
		}
	}
}

// supervisorAgain makes the body of a supervisor that goes on.
func supervisorAgain(d *Daemon, p *profile.Profile, spec json.RawMessage) (kernel.Body, error) {
	decl, err := declaredIn(spec, types.UUID{})
	if err != nil {
		return nil, err
	}
	s, err := superviser{d}.plan(p, &decl)
	if err != nil {
		return nil, err
	}
	return kernel.NewSupervisor(s)
}
