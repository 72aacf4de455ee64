package config

import (
	"strings"
	"time"

	"rnix/agent"
	"rnix/internal/pattern"
)

// DefaultPlatformToken is the variable in which the token for the platform is looked for.
const DefaultPlatformToken = "RNIX_PLATFORM_TOKEN"

// The bounds of platform.interval.
const (
	minPlatformInterval = time.Second
	maxPlatformInterval = time.Hour
)

// Platform says where sessions are told of that belong to a platform (rnix run --session). It is the user's
// only: it says where what agents do is sent.
type Platform struct {
	URL      Value[string]         // "" = there is none
	TokenEnv Value[string]         // the variable that holds the token
	Worker   Value[string]         // what the platform knows this host by; "" = its host name and the end of the UUID of each process
	Interval Value[agent.Duration] // between two refreshes of a lease; 0 = the usual one
}

type platformLayer struct {
	URL      *string         `yaml:"url"`
	TokenEnv *string         `yaml:"token_env"`
	Worker   *string         `yaml:"worker"`
	Interval *agent.Duration `yaml:"interval"`
}

var workerName = pattern.New(`^[A-Za-z0-9._-]{1,128}$`)

func (c *Config) platformDefaults() {
	c.Platform = Platform{URL: Value[string]{"", FromDefault}, TokenEnv: Value[string]{DefaultPlatformToken, FromDefault},
		Worker: Value[string]{"", FromDefault}, Interval: Value[agent.Duration]{0, FromDefault}}
}

func readPlatformEnv(l *layer, v variables) {
	v.text("platform.url", &l.Platform.URL)
	v.text("platform.token_env", &l.Platform.TokenEnv)
	v.text("platform.worker", &l.Platform.Worker)
	parse(v, "platform.interval", &l.Platform.Interval)
}

// applyPlatform takes over what a layer says of the platform.
func (c *Config) applyPlatform(l layer, s sink) {
	text := func(key string, v *string, to *Value[string], ok bool, mend string) {
		if v == nil || !s.usersOnly(key) {
			return
		}
		if !ok {
			s.problem(key, "%s", mend)
			return
		}
		*to = Value[string]{strings.TrimSuffix(*v, "/"), s.origin(key)}
	}
	p := &l.Platform
	text("platform.url", p.URL, &c.Platform.URL, p.URL == nil || *p.URL == "" || validURL(*p.URL), "must begin with http:// or https:// and name a host, without user and password")
	text("platform.token_env", p.TokenEnv, &c.Platform.TokenEnv, p.TokenEnv == nil || variableName().MatchString(*p.TokenEnv), "must be the name of a variable; the token itself must not stand in a file")
	text("platform.worker", p.Worker, &c.Platform.Worker, p.Worker == nil || workerName().MatchString(*p.Worker), "must be letters, digits, '.', '_' and '-', at most 128")
	if v := p.Interval; v != nil && s.usersOnly("platform.interval") {
		if d := time.Duration(*v); d < minPlatformInterval || d > maxPlatformInterval {
			s.problem("platform.interval", "%s must be between %s and %s", *v, minPlatformInterval, maxPlatformInterval)
			return
		}
		c.Platform.Interval = Value[agent.Duration]{*v, s.origin("platform.interval")}
	}
}
