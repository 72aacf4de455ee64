package initfile

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rnix/agent"
	"rnix/internal/pattern"
	"rnix/internal/price"
	"rnix/internal/yamlfile"
)

// The bounds of what a file can say.
const (
	maxSupervisors = 64
	maxChildren    = 256
	maxDepth       = 6    // supervisors below supervisors
	maxRestarts    = 1000 // within one window: each is kept in the history
	maxName        = 64   // bytes
	maxTime        = 10 * 366 * 24 * time.Hour
)

var (
	strategies = []string{"one_for_one", "one_for_all", "rest_for_one", "simple_one_for_one"}
	restarts   = []string{"permanent", "transient", "temporary"}
	envName    = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// services are the types of services that others have, and why none of them is to be started here.
var services = map[string]string{
	"skill_registry": "skills are found when a process needs them",
	"mcp_manager":    "MCP servers are mounted for the processes that use them",
	"log_aggregator": "everything that happens is in the event log: rnix log, rnix strace",
}

func (f *File) check() {
	if f.Version != "" && f.Version != "1" {
		f.Problemf("version", "%q is not known; write \"1\"", f.Version)
	}
	for i := range f.Services {
		f.checkService(i)
	}
	if len(f.Supervisors) > maxSupervisors {
		f.Problemf("supervisors", "%d supervisors; at most %d are taken", len(f.Supervisors), maxSupervisors)
	}
	seen := map[string]int{}
	for i := range f.Supervisors {
		s, key := &f.Supervisors[i], Key(i)
		if f.checkName(key+".name", s.Name); s.Name != "" {
			if first, twice := seen[s.Name]; twice {
				f.Problemf(key+".name", "supervisor %d is called %q too; give each its own name", first+1, s.Name)
			}
			seen[s.Name] = i
		}
		f.checkSupervisor(key, s, 1)
	}
}

// checkService says that a service needs no start, so that nobody believes that its line does something.
func (f *File) checkService(i int) {
	s, key := &f.Services[i], "services["+strconv.Itoa(i)+"].type"
	why, known := services[s.Type]
	switch {
	case known:
		f.doc.Warnf(key, "%s needs no start, and the service does nothing: %s; take it out", s.Type, why)
	case s.Type == "":
		f.Problemf(key, "missing; but there is no service that has to be started: take it out")
	default:
		f.Problemf(key, "there is no service of type %q, nor any other that has to be started: take it out", s.Type)
	}
}

func (f *File) checkSupervisor(key string, s *Supervisor, depth int) {
	f.oneOf(key+".strategy", s.Strategy, strategies)
	if n := s.MaxRestarts; n != nil && (*n < 0 || *n > maxRestarts) {
		f.Problemf(key+".max_restarts", "%d must be between 0 and %d", *n, maxRestarts)
	}
	f.within(key+".max_window", s.MaxWindow)
	if s.MaxWindow == agent.Off {
		f.Problemf(key+".max_window", "must be more than 0")
	}
	f.notNegative(key+".context_budget", s.ContextBudget)
	f.dollars(key+".budget_usd", s.BudgetUSD)
	f.devices(key, s.Allow, s.Deny)
	switch {
	case depth > 1 && s.Name != "":
		f.Problemf(key+".name", "a supervisor below another has the name of its child; take this one out")
	case depth > 1 && s.Required:
		f.Problemf(key+".required", "only a supervisor at the top can be required; those below start with it")
	}
	template := s.Strategy == "simple_one_for_one"
	switch {
	case depth > maxDepth:
		f.Problemf(key, "supervisors are nested deeper than %d levels", maxDepth)
		return
	case len(s.Children) == 0:
		f.Problemf(key+".children", "missing; a supervisor needs at least one child")
	case template && len(s.Children) != 1:
		f.Problemf(key+".children", "simple_one_for_one takes one child, of which all others are made, and here are %d", len(s.Children))
	case len(s.Children) > maxChildren:
		f.Problemf(key+".children", "%d children; at most %d are taken", len(s.Children), maxChildren)
	}
	seen := map[string]int{}
	for i := range s.Children {
		c, key := &s.Children[i], ChildKey(key, i)
		if f.checkName(key+".name", c.Name); c.Name != "" {
			if first, twice := seen[c.Name]; twice {
				f.Problemf(key+".name", "child %d is called %q too; give each its own name", first+1, c.Name)
			}
			seen[c.Name] = i
		}
		f.checkChild(key, c, template, depth)
	}
}

func (f *File) checkChild(key string, c *Child, template bool, depth int) {
	f.oneOf(key+".restart", c.Restart, restarts)
	b := c.Backoff
	for sub, d := range map[string]agent.Duration{".backoff.initial": b.Initial, ".backoff.max": b.Max, ".timeout": c.Timeout} {
		f.within(key+sub, d)
	}
	if time.Duration(c.Shutdown) > maxTime {
		f.Problemf(key+".shutdown", "at most ten years; write infinity for never")
	}
	if b.Factor != 0 && !(b.Factor >= 1 && b.Factor <= math.MaxFloat64) {
		f.Problemf(key+".backoff.factor", "must be 1 or more")
	}
	if b.Max > 0 && b.Max < b.Initial {
		f.Problemf(key+".backoff.max", "is less than initial (%s)", b.Initial)
	}
	if (b.Factor != 0 || b.Max != 0) && b.Initial.Or(0) == 0 {
		f.Problemf(key+".backoff", "initial is missing, so there is no delay to grow")
	}
	if c.Supervisor != nil {
		for _, sub := range []string{"intent", "agent", "provider", "model", "reasoning_effort", "max_steps", "context_budget", "budget_usd", "timeout", "cwd", "env", "mcp", "allow", "deny", "sandbox", "network"} {
			if f.doc.Has(key + "." + sub) {
				f.Problemf(key+"."+sub, "a child is an agent or a supervisor; this one has the key supervisor, and there this may stand")
			}
		}
		f.checkSupervisor(key+".supervisor", c.Supervisor, depth+1)
		return
	}
	if strings.TrimSpace(c.Intent) == "" && !template {
		f.Problemf(key+".intent", "missing; say what the agent is to do")
	}
	for sub, name := range map[string]string{".agent": c.Agent, ".provider": c.Provider} {
		if name != "" && !agent.ValidName(name) {
			f.Problemf(key+sub, "%q cannot be a name", name)
		}
	}
	for sub, word := range map[string]string{".model": c.Model, ".reasoning_effort": c.Effort} {
		if strings.ContainsFunc(word, unicode.IsSpace) || len(word) > 200 {
			f.Problemf(key+sub, "%q must be one word", word)
		}
	}
	f.notNegative(key+".max_steps", c.MaxSteps)
	f.notNegative(key+".context_budget", c.Budget)
	f.dollars(key+".budget_usd", c.USD)
	for i, name := range c.Env {
		if name != "" && !envName().MatchString(name) {
			f.Problemf(key+".env["+strconv.Itoa(i)+"]", "%q cannot be an environment variable; only names stand here, not values", name)
		}
	}
	for i, name := range c.MCP {
		if name != "" && !agent.ValidName(name) {
			f.Problemf(key+".mcp["+strconv.Itoa(i)+"]", "%q cannot be the name of an MCP server", name)
		}
	}
	f.devices(key, c.Allow, c.Deny)
	c.Sandbox = agent.CheckSandbox(f.doc, key+".", c.Sandbox, c.Network, "a child of a supervisor cannot switch the sandbox off; a person does, for all agents, with sandbox: {level: off} in config.yaml")
	c.Network = ""
}

// checkName checks the name of a process, by which people name it.
func (f *File) checkName(key, name string) {
	number := func() bool { _, err := strconv.ParseUint(name, 10, 64); return err == nil }
	switch {
	case strings.TrimSpace(name) == "":
		f.Problemf(key, "missing")
	case len(name) > maxName, strings.TrimSpace(name) != name, strings.ContainsFunc(name, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }):
		f.Problemf(key, "%q cannot be a name: at most %d bytes, no slash, no control character and no blank at its ends", name, maxName)
	case number():
		f.Problemf(key, "%q cannot be a name: a number would be taken for a PID", name)
	}
}

func (f *File) oneOf(key, word string, known []string) {
	if word == "" || slices.Contains(known, word) {
		return
	}
	if near := yamlfile.Nearest(word, known); near != "" {
		f.Problemf(key, "%q is not known; did you mean %s?", word, near)
		return
	}
	f.Problemf(key, "%q is not known; use %s", word, strings.Join(known, ", "))
}

func (f *File) within(key string, d agent.Duration) {
	if time.Duration(d) > maxTime {
		f.Problemf(key, "%s is more than ten years", d)
	}
}

func (f *File) notNegative(key string, n *int) {
	if n != nil && *n < 0 {
		f.Problemf(key, "is negative; write 0 for no limit")
	}
}

func (f *File) dollars(key string, usd *float64) {
	if usd != nil && !(*usd >= 0 && *usd <= price.Max.Float()) {
		f.Problemf(key, "must be between 0, which is no limit, and %v", price.Max.Float())
	}
}

func (f *File) devices(key string, allow, deny []string) {
	for sub, list := range map[string][]string{".allow": allow, ".deny": deny} {
		for i, path := range list {
			at := key + sub + "[" + strconv.Itoa(i) + "]"
			if err := agent.CheckDevice(path, sub == ".deny", agent.Devices()); err != nil && len(f.doc.Problems().Under(at)) == 0 {
				f.Problemf(at, "cannot %s %q: %v", sub[1:], path, err)
			}
		}
	}
}
