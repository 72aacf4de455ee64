package config

import (
	"encoding"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"rnix/agent"
	"rnix/internal/permit"
	"rnix/internal/yamlfile"
)

// layer is config.yaml as it is written.
type layer struct {
	DataDir       *string     `yaml:"data_dir"`
	DefaultAgent  *string     `yaml:"default_agent"`
	MaxSteps      *int        `yaml:"max_steps"`
	FailedSteps   *int        `yaml:"max_failed_steps"`
	ContextBudget *int        `yaml:"context_budget"`
	BudgetUSD     *float64    `yaml:"budget_usd"`
	Budget        budgetLayer `yaml:"budget"`
	Durability    *string     `yaml:"durability"`
	Shell         struct {
		Timeout *agent.Duration `yaml:"timeout"`
	} `yaml:"shell"`
	ReadRoots   []string        `yaml:"read_roots"`
	Concurrency *int            `yaml:"concurrency"`
	GC          gcLayer         `yaml:"gc"`
	Daemon      daemonLayer     `yaml:"daemon"`
	Checkpoint  checkpointLayer `yaml:"checkpoint"`
	Snapshots   snapshotsLayer  `yaml:"snapshots"`
	Disk        diskLayer       `yaml:"disk"`
	Limits      limitsLayer     `yaml:"limits"`
	Heartbeat   heartbeatLayer  `yaml:"heartbeat"`
	Platform    platformLayer   `yaml:"platform"`
	Sandbox     sandboxLayer    `yaml:"sandbox"`
	Permissions permit.Rules    `yaml:"permissions"`
	Notify      notifyLayer     `yaml:"notify"`
	Web         webLayer        `yaml:"web"`
}

// sink takes the values of one layer: where each comes from, and where to report what is wrong.
type sink struct {
	origin  func(key string) string
	problem func(key, format string, args ...any)
	warn    func(key, format string, args ...any)
	contain func(key, format string, args ...any) // problem for what a project may not say; nothing is looser for it
	home    string
	project bool // may only tighten
}

func (c *Config) readFile(src []byte, file, home string, project bool) {
	var l layer
	d := yamlfile.Decode(src, &l, yamlfile.Options{File: file, AllowEmpty: true})
	if !project && l.DataDir == nil && len(d.Problems()) > 0 && !d.Has("data_dir") {
		l.DataDir = dataDirIn(src)
	}
	c.apply(l, sink{origin: d.Origin, problem: d.Problemf, warn: d.Warnf, contain: d.Containf, home: home, project: project})
	c.Problems = append(c.Problems, d.Problems()...)
}

// dataDirIn looks for the data directory in a file that is no YAML as a whole, so that what lies there is found
// while the mistake is mended; nil if there is none.
func dataDirIn(src []byte) *string {
	for line := range strings.Lines(string(src)) {
		var l struct {
			DataDir *string `yaml:"data_dir"`
		}
		if strings.HasPrefix(line, "data_dir:") && len(yamlfile.Decode([]byte(line), &l, yamlfile.Options{}).Problems()) == 0 {
			return l.DataDir
		}
	}
	return nil
}

// variables reads the environment, whose names are those of the keys.
type variables struct {
	Sources
	sink
}

func variable(key string) string {
	return "RNIX_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// readEnv reads the variables.
func (c *Config) readEnv(s Sources) {
	var l layer
	v := variables{s, sink{
		home:   s.Home,
		origin: func(key string) string { return "environment " + variable(key) },
		problem: func(key, format string, args ...any) {
			c.Problems = append(c.Problems, agent.Problem{File: fromEnvironment, Key: variable(key), Message: fmt.Sprintf(format, args...)})
		},
	}}
	v.text("data_dir", &l.DataDir)
	v.text("default_agent", &l.DefaultAgent)
	v.text("durability", &l.Durability)
	v.number("max_steps", &l.MaxSteps)
	v.number("max_failed_steps", &l.FailedSteps)
	v.number("context_budget", &l.ContextBudget)
	v.number("concurrency", &l.Concurrency)
	parse(v, "shell.timeout", &l.Shell.Timeout)
	readStorageEnv(&l, v)
	readLimitsEnv(&l, v)
	readBudgetEnv(&l, v)
	readHeartbeatEnv(&l, v)
	readPlatformEnv(&l, v)
	readSandboxEnv(&l, v)
	c.apply(l, v.sink)
}

// text reads a variable as it is; an empty one is not set.
func (v variables) text(key string, to **string) {
	if s := v.env(variable(key)); s != "" {
		*to = &s
	}
}

func (v variables) number(key string, to **int) {
	s := v.env(variable(key))
	if s == "" {
		return
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		v.problem(key, "%q is not a whole number", s)
		return
	}
	*to = &n
}

func (v variables) flag(key string, to **bool) {
	s := v.env(variable(key))
	if s == "" {
		return
	}
	b, err := strconv.ParseBool(s)
	if err != nil {
		v.problem(key, "%q must be true or false", s)
		return
	}
	*to = &b
}

// parse reads a variable of a type that has its own form.
func parse[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](v variables, key string, to **T) {
	s := v.env(variable(key))
	if s == "" {
		return
	}
	t := new(T)
	if err := P(t).UnmarshalText([]byte(s)); err != nil {
		v.problem(key, "%v", err)
		return
	}
	*to = t
}

// apply takes over the values of a layer that are right and, from a project, tighter.
func (c *Config) apply(l layer, s sink) {
	if v := l.DataDir; v != nil && s.usersOnly("data_dir") {
		if dir, ok := s.directory("data_dir", *v); ok {
			c.DataDir = Value[string]{dir, s.origin("data_dir")}
		}
	}
	if l.ReadRoots != nil && s.usersOnly("read_roots") {
		roots := []string{}
		for i, v := range l.ReadRoots {
			if dir, ok := s.directory(fmt.Sprintf("read_roots[%d]", i), v); ok {
				roots = append(roots, dir)
			}
		}
		c.ReadRoots = Value[[]string]{roots, s.origin("read_roots")}
	}
	if v := l.DefaultAgent; v != nil {
		if agent.ValidName(*v) {
			c.DefaultAgent = Value[string]{*v, s.origin("default_agent")}
		} else {
			s.problem("default_agent", "%q cannot be the name of an agent", *v)
		}
	}
	s.limit("max_steps", l.MaxSteps, &c.MaxSteps)
	s.limit("max_failed_steps", l.FailedSteps, &c.FailedSteps)
	s.limit("context_budget", l.ContextBudget, &c.ContextBudget)
	if v := l.Durability; v != nil {
		switch d := Durability(*v); {
		case d != DurabilityFull && d != DurabilityNone:
			s.problem("durability", "%q is not known; write full or none", *v)
		case s.project && d == DurabilityNone && c.Durability.V == DurabilityFull:
			s.loosens("durability", c.Durability.Origin)
		default:
			c.Durability = Value[Durability]{d, s.origin("durability")}
		}
	}
	if v := l.Shell.Timeout; v != nil && *v != 0 {
		have := c.ShellTimeout.V
		if s.project && have != agent.Off && (*v == agent.Off || *v > have) {
			s.loosens("shell.timeout", c.ShellTimeout.Origin)
		} else {
			c.ShellTimeout = Value[agent.Duration]{*v, s.origin("shell.timeout")}
		}
	}
	if v := l.Concurrency; v != nil {
		switch {
		case *v < 1 || *v > maxConcurrency:
			s.problem("concurrency", "%d must be between 1 and %d", *v, maxConcurrency)
		case s.project && *v > c.Concurrency.V:
			s.loosens("concurrency", c.Concurrency.Origin)
		default:
			c.Concurrency = Value[int]{*v, s.origin("concurrency")}
		}
	}
	c.applyStorage(l, s)
	c.applyLimits(l, s)
	c.applyBudget(l, s)
	c.applyHeartbeat(l, s)
	c.applyPlatform(l, s)
	c.applySandbox(l, s)
	c.applyPermissions(l, s)
	c.Notify.apply(&l.Notify, s)
	c.Search.apply(&l.Web.Search, s)
	if v := l.Web.Port; v != nil && s.usersOnly("web.port") {
		if *v != 0 && (*v < 1024 || *v > 65535) {
			s.problem("web.port", "%d is no port that the dashboard can have; use one from 1024 to 65535, such as 7718, or 0 for none", *v)
		} else {
			c.WebPort = Value[int]{*v, s.origin("web.port")}
		}
	}
}

// limit takes over a limit of which 0 means that there is none.
func (s sink) limit(key string, v *int, have *Value[int]) {
	switch {
	case v == nil:
	case *v < 0:
		s.problem(key, "is negative; write 0 for no limit")
	case s.project && have.V > 0 && (*v == 0 || *v > have.V):
		s.loosens(key, have.Origin)
	default:
		*have = Value[int]{*v, s.origin(key)}
	}
}

// usersOnly reports whether the layer may set the key at all.
func (s sink) usersOnly(key string) bool {
	if s.project {
		s.contain(key, "a project cannot set this; write it into your own config.yaml")
	}
	return !s.project
}

func (s sink) loosens(key, origin string) {
	s.contain(key, "a project may only tighten this, and it is tighter already (%s)", origin)
}

// directory returns an absolute path; ~/ stands for the home directory.
func (s sink) directory(key, v string) (string, bool) {
	if rest, ok := strings.CutPrefix(v, "~/"); ok && s.home != "" {
		v = filepath.Join(s.home, rest)
	}
	if !filepath.IsAbs(v) {
		if v != "" { // an empty item was reported when it was read
			s.problem(key, "%q must be an absolute path, or begin with ~/", v)
		}
		return "", false
	}
	return filepath.Clean(v), true
}
