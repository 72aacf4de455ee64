package config

// Limits bound what agents can start by themselves, whichever way. They are the user's only, and count from
// the start of the daemon.
type Limits struct {
	Depth     Value[int] // limits.depth: generations below what a person started
	Children  Value[int] // limits.children: living ones of one agent
	Family    Value[int] // limits.family: living agents that descend from one that a person started
	Total     Value[int] // limits.total: living agents
	SpawnRate Value[int] // limits.spawn_rate: agents that a family starts within a minute
}

// The defaults. internal/daemon hands them to the kernel.
const (
	DefaultDepth     = 8
	DefaultChildren  = 32
	DefaultFamily    = 256
	DefaultTotal     = 1 << 20
	DefaultSpawnRate = 240
)

type limitsLayer struct {
	Depth     *int `yaml:"depth"`
	Children  *int `yaml:"children"`
	Family    *int `yaml:"family"`
	Total     *int `yaml:"total"`
	SpawnRate *int `yaml:"spawn_rate"`
}

func (c *Config) limitsDefaults() {
	n := func(v int) Value[int] { return Value[int]{v, FromDefault} }
	c.Limits = Limits{Depth: n(DefaultDepth), Children: n(DefaultChildren), Family: n(DefaultFamily), Total: n(DefaultTotal), SpawnRate: n(DefaultSpawnRate)}
}

func readLimitsEnv(l *layer, v variables) {
	v.number("limits.depth", &l.Limits.Depth)
	v.number("limits.children", &l.Limits.Children)
	v.number("limits.family", &l.Limits.Family)
	v.number("limits.total", &l.Limits.Total)
	v.number("limits.spawn_rate", &l.Limits.SpawnRate)
}

// applyLimits takes over what a layer says about limits. There is none without one: an agent that starts agents for
// ever takes the whole machine.
func (c *Config) applyLimits(l layer, s sink) {
	const most = 1 << 20
	s.between("limits.depth", l.Limits.Depth, 1, 1000, &c.Limits.Depth)
	s.between("limits.children", l.Limits.Children, 1, most, &c.Limits.Children)
	s.between("limits.family", l.Limits.Family, 1, most, &c.Limits.Family)
	s.between("limits.total", l.Limits.Total, 1, most, &c.Limits.Total)
	s.between("limits.spawn_rate", l.Limits.SpawnRate, 1, most, &c.Limits.SpawnRate)
}
