package config

import (
	"time"

	"rnix/agent"
)

// HeartbeatPolicy says what becomes of a process that makes no progress.
type HeartbeatPolicy string

// The policies.
const (
	HeartbeatWarn    HeartbeatPolicy = "warn"    // it is shown, and told of once
	HeartbeatRestart HeartbeatPolicy = "restart" // it is suspended and goes on from its record
	HeartbeatKill    HeartbeatPolicy = "kill"    // it is ended
)

// The defaults of the heartbeat.
const (
	DefaultStall             = 30 * time.Minute
	DefaultHeartbeatInterval = 30 * time.Second
	DefaultHeartbeatRestarts = 2

	minHeartbeatInterval = time.Second
	maxHeartbeatInterval = time.Hour
	maxHeartbeatRestarts = 100
)

// Heartbeat says how it is looked for processes that make no progress. It is the user's only.
type Heartbeat struct {
	Enabled     Value[bool]
	Stall       Value[agent.Duration]  // of processes whose agent has no step_timeout; Off = none
	Policy      Value[HeartbeatPolicy] //
	Interval    Value[agent.Duration]  // between two looks
	MaxRestarts Value[int]             // of one process in one step
}

// heartbeatLayer is the section of config.yaml as it is written.
type heartbeatLayer struct {
	Enabled     *bool           `yaml:"enabled"`
	Stall       *agent.Duration `yaml:"stall"`
	Policy      *string         `yaml:"policy"`
	Interval    *agent.Duration `yaml:"interval"`
	MaxRestarts *int            `yaml:"max_restarts"`
}

// heartbeatDefaults sets what nobody has said.
func (c *Config) heartbeatDefaults() {
	c.Heartbeat = Heartbeat{
		Enabled:     Value[bool]{true, FromDefault},
		Stall:       Value[agent.Duration]{agent.Duration(DefaultStall), FromDefault},
		Policy:      Value[HeartbeatPolicy]{HeartbeatWarn, FromDefault},
		Interval:    Value[agent.Duration]{agent.Duration(DefaultHeartbeatInterval), FromDefault},
		MaxRestarts: Value[int]{DefaultHeartbeatRestarts, FromDefault},
	}
}

// readHeartbeatEnv reads the variables of the section.
func readHeartbeatEnv(l *layer, v variables) {
	v.flag("heartbeat.enabled", &l.Heartbeat.Enabled)
	parse(v, "heartbeat.stall", &l.Heartbeat.Stall)
	v.text("heartbeat.policy", &l.Heartbeat.Policy)
	parse(v, "heartbeat.interval", &l.Heartbeat.Interval)
	v.number("heartbeat.max_restarts", &l.Heartbeat.MaxRestarts)
}

// applyHeartbeat takes over what a layer says of the heartbeat.
func (c *Config) applyHeartbeat(l layer, s sink) {
	h := &l.Heartbeat
	s.truth("heartbeat.enabled", h.Enabled, &c.Heartbeat.Enabled)
	if v := h.Stall; v != nil && *v != 0 && s.usersOnly("heartbeat.stall") {
		c.Heartbeat.Stall = Value[agent.Duration]{*v, s.origin("heartbeat.stall")}
	}
	if v := h.Policy; v != nil && s.usersOnly("heartbeat.policy") {
		switch p := HeartbeatPolicy(*v); p {
		case HeartbeatWarn, HeartbeatRestart, HeartbeatKill:
			c.Heartbeat.Policy = Value[HeartbeatPolicy]{p, s.origin("heartbeat.policy")}
		default:
			s.problem("heartbeat.policy", "%q is not known; write warn, restart or kill", *v)
		}
	}
	if v := h.Interval; v != nil && *v != 0 && s.usersOnly("heartbeat.interval") {
		if d := time.Duration(*v); d < minHeartbeatInterval || d > maxHeartbeatInterval {
			s.problem("heartbeat.interval", "%s must be between %s and %s; heartbeat.enabled: false switches it off", *v, minHeartbeatInterval, maxHeartbeatInterval)
		} else {
			c.Heartbeat.Interval = Value[agent.Duration]{*v, s.origin("heartbeat.interval")}
		}
	}
	s.between("heartbeat.max_restarts", h.MaxRestarts, 0, maxHeartbeatRestarts, &c.Heartbeat.MaxRestarts)
}
