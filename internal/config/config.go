// Package config settles what the user, the project and the environment say: config.yaml,
// providers.yaml, and the choice of a model provider. Each value carries its origin. Whatever a
// project says may only tighten what the user has. Loading never fails: the right keys of a file with a
// mistake count, its wrong ones keep the default, and all are reported. A default may be looser than what
// was meant, so whoever starts something asks Mistakes first, and refuses if there are any.
//
// It is pure over the directories and the environment that it is given, so that a daemon can ask it
// with the environment of each client. It starts nothing, watches nothing, and never holds the value
// of a credential.
package config

import (
	"time"

	"rnix/agent"
	"rnix/internal/permit"
	"rnix/internal/yamlfile"
)

// Lookup returns the value of an environment variable, and whether it is set.
type Lookup = agent.Lookup

// Problem is one mistake, with its place.
type Problem = yamlfile.Problem

// Problems are the mistakes found in files and variables.
type Problems = yamlfile.Problems

// Sources say where configuration is read. An empty directory is left out; a nil Lookup is an empty
// environment.
type Sources struct {
	UserDir    string // such as ~/.config/rnix
	ProjectDir string // the project's root, which holds .rnix
	Home       string
	Lookup     Lookup
	// TrustProject lets the project's providers.yaml name programs, arguments, addresses and the
	// variables of keys.
	TrustProject bool
}

// env returns a variable, "" if it is not set.
func (s Sources) env(name string) string {
	if s.Lookup == nil {
		return ""
	}
	v, _ := s.Lookup(name)
	return v
}

// Value is a setting and where it comes from: "default", file:line, or a variable.
type Value[T any] struct {
	V      T
	Origin string
}

// FromDefault is the Origin of what nobody said.
const FromDefault = "default"

// Durability says how far a record is on its way to the disk when a step goes on.
type Durability string

// The kinds of durability.
const (
	DurabilityFull Durability = "full" // on the disk: survives a power failure
	DurabilityNone Durability = "none" // with the operating system: survives the end of the program only
)

// The defaults that are no zero values.
const (
	DefaultShellTimeout = 2 * time.Minute
	DefaultConcurrency  = 4
	DefaultFailedSteps  = 40
	maxConcurrency      = 256
)

// Config is config.yaml of all layers.
type Config struct {
	DataDir       Value[string]         // "" = the usual place; the user's only
	DefaultAgent  Value[string]         // agent.DefaultAgent unless said
	MaxSteps      Value[int]            // 0 = no limit
	FailedSteps   Value[int]            // steps in a row in which every call failed, after which an agent ends; 0 = no limit
	ContextBudget Value[int]            // tokens; 0 = unlimited
	Budget        Budget                // dollars
	Durability    Value[Durability]     //
	ShellTimeout  Value[agent.Duration] // agent.Off = no limit
	ReadRoots     Value[[]string]       // absolute directories that agents may read besides the project; the user's only
	Concurrency   Value[int]            // calls at once to one provider, unless the provider says
	GC            GC
	Resume        Resume
	Checkpoint    Checkpoint
	Snapshots     Snapshots
	Disk          Disk
	Limits        Limits
	Heartbeat     Heartbeat
	Platform      Platform
	Sandbox       Sandbox
	Notify        Notify
	Search        Search
	WebPort       Value[int]     // of the dashboard that is started with the daemon, by a command that can show its link; 0 = none is. The user's only
	Permissions   []permit.Rules // of the user, and of the project
	Problems      Problems
}

// Load reads the user's config.yaml, the project's, and the variables, which are named after the
// keys, such as RNIX_DATA_DIR, RNIX_SHELL_TIMEOUT and RNIX_GC_RETENTION_DAYS, and which every key has
// but read_roots and the lists of sandbox; a later one wins. It never fails: Problems says what was not used.
func Load(s Sources) Config {
	c := Config{
		DataDir:       Value[string]{"", FromDefault},
		DefaultAgent:  Value[string]{agent.DefaultAgent, FromDefault},
		MaxSteps:      Value[int]{0, FromDefault},
		FailedSteps:   Value[int]{DefaultFailedSteps, FromDefault},
		ContextBudget: Value[int]{0, FromDefault},
		Durability:    Value[Durability]{DurabilityFull, FromDefault},
		ShellTimeout:  Value[agent.Duration]{agent.Duration(DefaultShellTimeout), FromDefault},
		ReadRoots:     Value[[]string]{nil, FromDefault},
		Concurrency:   Value[int]{DefaultConcurrency, FromDefault},
	}
	c.storageDefaults()
	c.limitsDefaults()
	c.budgetDefaults()
	c.heartbeatDefaults()
	c.platformDefaults()
	c.sandboxDefaults()
	c.Notify, c.Search, c.WebPort = notifyDefaults(), searchDefaults(), Value[int]{0, FromDefault}
	if src, file, ok := s.userFile("config.yaml", &c.Problems); ok {
		c.readFile(src, file, s.Home, false)
	}
	if src, file, ok := s.projectFile("config.yaml", &c.Problems); ok {
		c.readFile(src, file, s.Home, true)
	}
	c.readEnv(s)
	return c
}
