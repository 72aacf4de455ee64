package supervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"rnix/agent"
	"rnix/internal/supervisor/supervise"
	"rnix/kernel"
	"rnix/types"
)

// Strategy says which children are started again when one of them is. Empty = OneForOne.
type Strategy = supervise.Strategy

// The strategies, as in Erlang/OTP.
const (
	OneForOne       = supervise.OneForOne       // that one
	OneForAll       = supervise.OneForAll       // all; the others are stopped before
	RestForOne      = supervise.RestForOne      // that one and those that were started after it
	SimpleOneForOne = supervise.SimpleOneForOne // that one; StartChild makes all children of one template
)

// Restart says after which ends a child is started again. Empty = Permanent.
type Restart = supervise.Restart

// The restart types. A child that somebody ended with a signal has not failed.
const (
	Permanent = supervise.Permanent // after every end
	Transient = supervise.Transient // after a failure
	Temporary = supervise.Temporary // never
)

// Backoff is how long a child is down before it is started again. The zero value is not at all.
type Backoff = supervise.Backoff

// Values of ChildSpec.Shutdown that are no durations, and what holds when nothing is said.
const (
	BrutalKill      = supervise.BrutalKill // it is killed at once
	Infinity        = supervise.Infinity   // it is never killed
	DefaultShutdown = 5 * time.Second      // of an agent; a supervisor has as long as it takes
)

// Intensity is how often a supervisor may start children again: MaxRestarts times within Period, a
// restart of several children at once counting as one, and one that is delayed for Period or longer as none. The
// zero value is DefaultIntensity; a Period of 0 is that of DefaultIntensity.
type Intensity struct {
	MaxRestarts int
	Period      time.Duration
}

// DefaultIntensity is the intensity when nothing is said.
var DefaultIntensity = Intensity{MaxRestarts: 3, Period: time.Minute}

// Spec says what a supervisor starts and how it keeps that running.
type Spec struct {
	Name      string
	ParentPID types.PID // 0 = started by a person
	Strategy  Strategy
	Intensity Intensity
	Children  []ChildSpec // in order of their start; SimpleOneForOne: one, the template
	// Opts holds what its children inherit: WorkDir, ReadRoots, rights, Recorded, Env, Secret, Profile, how they are confined at least, and with
	// ContextBudget and BudgetUSD what they may use, all in all and over all restarts. Nothing else of it
	// may be set, except UUID.
	Opts kernel.SpawnOpts
	// Declared is what the history keeps in place of the plain data of the spec, for those who make the spec
	// of it again when the supervisor goes on: with agents and options, of which the plain data has only the
	// names. It must hold no secrets.
	Declared json.RawMessage
}

// ChildSpec says what a child is: an agent, or a supervisor below.
type ChildSpec struct {
	Name     string // among the children of one supervisor there is one of each name
	Restart  Restart
	Shutdown time.Duration // from SIGTERM to SIGKILL, or BrutalKill or Infinity; 0 = the default
	Backoff  Backoff

	Intent string // of a template it may be empty: then StartChild says it
	Agent  *agent.Agent
	Opts   kernel.SpawnOpts // without UUID and ParentPID: each run has a history of its own, below the supervisor
	// Prepare, if set, says Agent and Opts anew before each start. An error is a start that fails.
	Prepare func(ctx context.Context) (*agent.Agent, kernel.SpawnOpts, error)

	Supervisor *Spec // instead of the four above; without a name and a parent
}

// settled returns the spec with what was not said, and an INVALID error if that makes no sense. at is
// the name of the supervisor for the error.
func (s Spec) settled(at string) (Spec, error) {
	bad := func(format string, args ...any) (Spec, error) {
		return s, types.Errorf(types.ErrInvalid, "SpawnSupervisor", at, format, args...)
	}
	if s.Strategy == "" {
		s.Strategy = OneForOne
	}
	if s.Intensity == (Intensity{}) {
		s.Intensity = DefaultIntensity
	}
	if s.Intensity.Period == 0 {
		s.Intensity.Period = DefaultIntensity.Period
	}
	switch {
	case !slices.Contains([]Strategy{OneForOne, OneForAll, RestForOne, SimpleOneForOne}, s.Strategy):
		return bad("the strategy is %q; use %s, %s, %s or %s", s.Strategy, OneForOne, OneForAll, RestForOne, SimpleOneForOne)
	case s.Intensity.MaxRestarts < 0:
		return bad("%d restarts are allowed; give 0 or more", s.Intensity.MaxRestarts)
	case s.Intensity.Period < 0:
		return bad("the period of the restarts is %s; give more than 0", s.Intensity.Period)
	case s.Strategy == SimpleOneForOne && len(s.Children) != 1:
		return bad("%s takes one child, the template, and %d are given", s.Strategy, len(s.Children))
	}
	rest := s.Opts
	rest.UUID, rest.WorkDir, rest.ReadRoots, rest.ContextBudget, rest.BudgetUSD = types.UUID{}, "", nil, nil, nil
	rest.AllowedDevices, rest.DeniedDevices, rest.Env, rest.Secret, rest.Profile, rest.Settings = nil, nil, nil, nil, nil, nil
	rest.Recorded, rest.Sandbox, rest.Net = false, "", ""
	if !reflect.ValueOf(rest).IsZero() {
		return bad("a supervisor has no model, no limits of steps and time and no servers: give them to its children")
	}
	seen := map[string]bool{}
	s.Children = slices.Clone(s.Children)
	for i := range s.Children {
		c := &s.Children[i]
		switch {
		case strings.TrimSpace(c.Name) == "":
			return bad("child %d has no name", i+1)
		case seen[c.Name]:
			return bad("two children are called %q: give each its own name", c.Name)
		}
		seen[c.Name] = true
		var err error
		if *c, err = c.settled(strings.TrimPrefix(at+"/"+c.Name, "/"), s.Strategy == SimpleOneForOne); err != nil {
			return s, err
		}
	}
	return s, nil
}

// settled is that of Spec for a child, or for a template.
func (c ChildSpec) settled(at string, template bool) (ChildSpec, error) {
	bad := func(format string, args ...any) (ChildSpec, error) {
		return c, types.Errorf(types.ErrInvalid, "SpawnSupervisor", at, format, args...)
	}
	if c.Restart == "" {
		c.Restart = Permanent
	}
	if c.Shutdown == 0 {
		if c.Shutdown = DefaultShutdown; c.Supervisor != nil {
			c.Shutdown = Infinity
		}
	}
	b := c.Backoff
	switch {
	case !slices.Contains([]Restart{Permanent, Transient, Temporary}, c.Restart):
		return bad("the restart type is %q; use %s, %s or %s", c.Restart, Permanent, Transient, Temporary)
	case c.Shutdown < 0 && c.Shutdown != BrutalKill && c.Shutdown != Infinity:
		return bad("the time to shut down is %s; give 0 or more", c.Shutdown)
	case b.Initial < 0 || b.Max < 0:
		return bad("the delay before a restart is %s, at most %s; give 0 or more", b.Initial, b.Max)
	case b.Factor != 0 && !(b.Factor >= 1 && b.Factor <= math.MaxFloat64):
		return bad("the delay before a restart grows by %v; give 1 or more", b.Factor)
	case b.Max != 0 && b.Max < b.Initial:
		return bad("the delay before a restart is %s in the beginning and %s at most", b.Initial, b.Max)
	case c.Opts.UUID != types.UUID{} || c.Opts.ParentPID != 0:
		return bad("a child is given neither a UUID nor a parent: each run gets a new UUID, and the supervisor is the parent")
	case c.Supervisor == nil && !template && strings.TrimSpace(c.Intent) == "":
		return bad("the intent is empty")
	case c.Prepare != nil && (c.Agent != nil || !reflect.ValueOf(c.Opts).IsZero()):
		return bad("Prepare says agent and options, so nothing else can")
	case c.Supervisor == nil:
		return c, nil
	case c.Intent != "" || c.Agent != nil || c.Prepare != nil || !reflect.ValueOf(c.Opts).IsZero():
		return bad("it is a supervisor and an agent: give either a supervisor, or intent, agent and options")
	case c.Supervisor.Name != "" || c.Supervisor.ParentPID != 0 || c.Supervisor.Opts.UUID != types.UUID{}:
		return bad("a supervisor below has its child's name, and is given neither a parent nor a UUID")
	}
	below, err := c.Supervisor.settled(at)
	c.Supervisor = &below
	return c, err
}

// intent says what a supervisor is for.
func (s *Spec) intent() string {
	names := make([]string, len(s.Children))
	for i := range s.Children {
		names[i] = s.Children[i].Name
	}
	return strings.TrimSpace("keep running: " + cmp.Or(strings.Join(names, ", "), "no children yet"))
}

// title is what a supervisor is called where an agent has its agent's name.
func (s *Spec) title() string { return Kind + " (" + string(s.Strategy) + ")" }

// policy is what is decided by.
func (s *Spec) policy() supervise.Spec {
	out := supervise.Spec{Strategy: s.Strategy, MaxRestarts: s.Intensity.MaxRestarts, Period: s.Intensity.Period}
	for _, c := range s.Children {
		out.Children = append(out.Children, supervise.Child{Restart: c.Restart, Shutdown: c.Shutdown, Backoff: c.Backoff})
	}
	return out
}

// specRecord is what the history of a supervisor begins with, besides the fields of a process. It
// holds no environment and no secrets. Part of the on-disk format.
type specRecord struct {
	Strategy    Strategy      `json:"strategy"`
	MaxRestarts int           `json:"max_restarts"`
	Period      time.Duration `json:"period_ns"`
	Children    []childRecord `json:"children"`
}

type childRecord struct {
	Name           string        `json:"name"`
	Restart        Restart       `json:"restart"`
	Shutdown       time.Duration `json:"shutdown_ns"` // -1 = killed at once, -2 = never
	Initial        time.Duration `json:"backoff_ns,omitempty"`
	Factor         float64       `json:"backoff_factor,omitempty"`
	Max            time.Duration `json:"backoff_max_ns,omitempty"`
	Intent         string        `json:"intent,omitempty"`
	Agent          string        `json:"agent,omitempty"`
	Provider       string        `json:"provider,omitempty"`
	Model          string        `json:"model,omitempty"`
	Effort         string        `json:"effort,omitempty"`
	MaxSteps       *int          `json:"max_steps,omitempty"`
	ContextBudget  *int          `json:"context_budget,omitempty"`
	BudgetUSD      *float64      `json:"budget_usd,omitempty"`
	Timeout        time.Duration `json:"timeout_ns,omitempty"`
	AllowedDevices []string      `json:"allowed_devices"` // null = what agent and supervisor allow
	DeniedDevices  []string      `json:"denied_devices,omitempty"`
	WorkDir        string        `json:"work_dir,omitempty"`
	ReadRoots      []string      `json:"read_roots,omitempty"`
	Supervisor     *specRecord   `json:"supervisor,omitempty"`
}

// record returns the plain data of a spec.
func (s *Spec) record() specRecord {
	out := specRecord{Strategy: s.Strategy, MaxRestarts: s.Intensity.MaxRestarts, Period: s.Intensity.Period, Children: []childRecord{}}
	for _, c := range s.Children {
		r := childRecord{
			Name: c.Name, Restart: c.Restart, Shutdown: c.Shutdown, Initial: c.Backoff.Initial, Factor: c.Backoff.Factor, Max: c.Backoff.Max,
			Intent: c.Intent, Provider: c.Opts.Provider, Model: c.Opts.Model, Effort: c.Opts.Effort, MaxSteps: c.Opts.MaxSteps,
			ContextBudget: c.Opts.ContextBudget, BudgetUSD: c.Opts.BudgetUSD, Timeout: c.Opts.Timeout, AllowedDevices: c.Opts.AllowedDevices,
			DeniedDevices: c.Opts.DeniedDevices, WorkDir: c.Opts.WorkDir, ReadRoots: c.Opts.ReadRoots,
		}
		if c.Agent != nil {
			r.Agent = c.Agent.Name
		}
		if c.Supervisor != nil {
			below := c.Supervisor.record()
			r.Supervisor = &below
		}
		out.Children = append(out.Children, r)
	}
	return out
}
