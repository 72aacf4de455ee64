package kernel

import (
	"rnix/agent"
	"rnix/internal/price"
	"rnix/types"
)

// lives is a Lifecycle of functions; those that are nil do nothing.
type lives struct {
	NoLifecycle
	next         func() (types.PID, error)
	freeze, thaw func(types.PID)
	waits        func(*Process) (string, <-chan struct{})
}

func (l *lives) NextPID() (types.PID, error) {
	if l.next == nil {
		return l.NoLifecycle.NextPID()
	}
	return l.next()
}

func (l *lives) Freeze(p types.PID) {
	if l.freeze != nil {
		l.freeze(p)
	}
}

func (l *lives) Thaw(p types.PID) {
	if l.thaw != nil {
		l.thaw(p)
	}
}

func (l *lives) Waits(p *Process) (string, <-chan struct{}) {
	if l.waits == nil {
		return l.NoLifecycle.Waits(p)
	}
	return l.waits(p)
}

// agents is a Catalog with one agent for all names.
type agents struct {
	NoCatalog
	load func(*Process, string) (*agent.Agent, SpawnOpts, error)
}

func (c agents) LoadAgent(p *Process, name string) (*agent.Agent, SpawnOpts, error) {
	return c.load(p, name)
}

// prices is a Catalog of prices by provider.
type prices func(provider string) (price.Rate, string)

func (prices) LoadAgent(p *Process, name string) (*agent.Agent, SpawnOpts, error) {
	return NoCatalog{}.LoadAgent(p, name)
}
func (prices) LoadSkill(p *Process, name string) (agent.Skill, error) {
	return NoCatalog{}.LoadSkill(p, name)
}
func (f prices) Price(_ *Process, provider, _, _ string, _ bool) (price.Rate, string) {
	return f(provider)
}
