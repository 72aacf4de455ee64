package flows

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"rnix/agent"
	"rnix/internal/initfile"
	"rnix/internal/step"
	"rnix/internal/supervisor"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// MaxFile bounds a file of supervisors, in bytes.
const MaxFile = 256 << 10

// Declared is what the history of a supervisor keeps: what a file says of it. Part of the on-disk format.
type Declared struct {
	Init bool                `json:"init,omitempty"` // it is of init.yaml
	Spec initfile.Supervisor `json:"spec"`
}

// declaredIn returns what a history says that its supervisor is. was is what its last run was started with.
func declaredIn(was *step.Settled, id types.UUID) (d Declared, err error) {
	if was.Body == nil {
		return d, types.Errorf(types.ErrStorage, "Start", id.String(), "the history does not say what it is")
	}
	return parsed(was.Body.Spec, id)
}

// parsed reads what a history has kept.
func parsed(spec json.RawMessage, id types.UUID) (d Declared, err error) {
	if err = json.Unmarshal(spec, &d); err != nil {
		err = types.Errorf(types.ErrStorage, "Resume", id.String(), "what the supervisor is cannot be read: %w", err)
	}
	return d, err
}

// text returns what is compared to find out whether a file says the same as before.
func (d *Declared) text() (json.RawMessage, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, types.Errorf(types.ErrInternal, "Supervise", d.Spec.Name, "encode: %w", err)
	}
	return b, nil
}

// plan turns what is declared into what the kernel takes. With a nil profile it can be looked at and not started.
func (d *Declared) plan(p Profile) (supervisor.Spec, error) {
	raw, err := d.text()
	if err != nil {
		return supervisor.Spec{}, err
	}
	s := &d.Spec
	out := supervisor.Spec{Name: s.Name, Strategy: supervisor.Strategy(s.Strategy), Declared: raw}
	if s.MaxRestarts != nil || s.MaxWindow != 0 {
		out.Intensity = supervisor.DefaultIntensity
		out.Intensity.Period = s.MaxWindow.Or(out.Intensity.Period)
		if s.MaxRestarts != nil {
			out.Intensity.MaxRestarts = *s.MaxRestarts
		}
	}
	if p != nil {
		if out.Opts, err = p.Program(); err != nil {
			return out, err
		}
		o := &out.Opts
		o.WorkDir, o.ContextBudget, o.BudgetUSD, o.AllowedDevices, o.DeniedDevices = s.Cwd, s.ContextBudget, s.BudgetUSD, s.Allow, s.Deny
	}
	for i := range s.Children {
		c := &s.Children[i]
		k := supervisor.ChildSpec{Name: c.Name, Restart: supervisor.Restart(c.Restart), Shutdown: time.Duration(c.Shutdown), Intent: c.Intent,
			Backoff: supervisor.Backoff{Initial: c.Backoff.Initial.Or(0), Factor: c.Backoff.Factor, Max: c.Backoff.Max.Or(0)}}
		if c.Supervisor != nil {
			below, err := (&Declared{Spec: *c.Supervisor}).plan(p)
			if err != nil {
				return out, err
			}
			k.Supervisor = &below
		} else if p != nil {
			k.Prepare = func(context.Context) (*agent.Agent, kernel.SpawnOpts, error) {
				ag, opts, _, err := prepare(p, c)
				return ag, opts, err
			}
		}
		out.Children = append(out.Children, k)
	}
	return out, nil
}

// prepare settles with what a child is started: the same as what a client asks for that is spawned, as the
// configuration is now. problems say what it does not get.
func prepare(p Profile, c *initfile.Child) (ag *agent.Agent, o kernel.SpawnOpts, problems []string, err error) {
	if p, err = p.In("Spawn", c.Cwd, c.Env); err != nil {
		return nil, o, nil, err
	}
	return p.Agent(&ipc.SpawnRequest{Agent: c.Agent, ProcSpec: types.ProcSpec{Provider: c.Provider, Model: c.Model, Effort: c.Effort, MaxSteps: c.MaxSteps, ContextBudget: c.Budget, BudgetUSD: c.USD, AllowedDevices: c.Allow, DeniedDevices: c.Deny, Sandbox: string(c.Sandbox.Level), Net: string(c.Sandbox.Net), Bounds: c.Sandbox.Bounds()}, OnlyHosts: c.Sandbox.Hosts, TimeoutMs: c.Timeout.Or(0).Milliseconds(), MCP: c.MCP})
}

// trusting is a profile with the trust that a supervisor asks for.
func trusting(p Profile, s *initfile.Supervisor) Profile {
	if s.Trust {
		return p.Trusting()
	}
	return p
}

// Examine reports at their places in a file what of a supervisor cannot be started as things are.
func Examine(p Profile, f *initfile.File, i int) {
	s := &f.Supervisors[i]
	examine(trusting(p, s), f, initfile.Key(i), s)
}

func examine(p Profile, f *initfile.File, key string, s *initfile.Supervisor) {
	for i := range s.Children {
		c, key := &s.Children[i], initfile.ChildKey(key, i)
		if c.Supervisor != nil {
			examine(p, f, key+".supervisor", c.Supervisor)
			continue
		}
		_, _, problems, err := prepare(p, c)
		for _, what := range problems {
			f.Warnf(key, "%s", what)
		}
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

// SupervisorAgain makes the body of a supervisor that is resumed, from what its history keeps.
func SupervisorAgain(p Profile, spec json.RawMessage) (kernel.Body, error) {
	decl, err := parsed(spec, types.UUID{})
	if err != nil {
		return nil, err
	}
	s, err := decl.plan(p)
	if err != nil {
		return nil, err
	}
	return supervisor.New(s)
}
