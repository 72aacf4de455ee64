package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"rnix/agent"
	"rnix/internal/yamlfile"
)

// Problems are the mistakes of a file, each with its line and column.
type Problems = yamlfile.Problems

// Source is a file to be read, and what it is read with.
type Source struct {
	Name string // of the file, in positions
	Text []byte
	Vars map[string]string // values for variables; they go before the file's
	// AnyVars takes variables for given that have no value, where only the file is looked at.
	AnyVars bool
	// ReadFile reads a file that a node's output names, of at most 256 KiB; nil: schemas must be inline.
	ReadFile func(path string) ([]byte, error)
}

// Parse reads a workflow. All mistakes are found together. The file can be planned if none of them is an
// error.
func Parse(src Source) (*File, Problems) {
	f := new(File)
	d := yamlfile.Decode(src.Text, f, yamlfile.Options{File: src.Name})
	if !d.Has("") {
		return f, d.Problems()
	}
	c := checker{Doc: d, f: f, src: &src, key: "agents"}
	c.file()
	if len(d.Problems().Errors()) == 0 {
		c.graph()
	}
	return f, d.Problems()
}

// checker checks a file after it was decoded.
type checker struct {
	*yamlfile.Doc
	f   *File
	src *Source
	key string // of the nodes
}

func (c *checker) file() {
	f := c.f
	if c.Has("version") && f.Version != "" && f.Version != "1" && f.Version != "1.0" {
		c.Problemf("version", "%q is not known; this program reads version \"1.0\"", f.Version)
	}
	if f.Name != "" && !namePattern().MatchString(f.Name) {
		c.Problemf("name", "%q cannot be a name; use letters, digits, '-' and '_', a letter first, at most 48", f.Name)
	}
	if f.MaxParallel < 0 || f.MaxParallel > MaxParallel {
		c.Problemf("max_parallel", "is %d; from 1 to %d nodes can run at once", f.MaxParallel, MaxParallel)
	}
	c.dollars("budget_usd", f.BudgetUSD)
	c.models("", f.Provider, f.FallbackProvider, f.Model, f.FallbackModel, f.Effort)
	c.vars()
	c.nodes()
}

func (c *checker) vars() {
	f := c.f
	for _, name := range sorted(f.Vars) {
		if !namePattern().MatchString(name) || slices.Contains(itemNames, name) {
			c.Problemf("vars."+name, "%q cannot be the name of a variable", name)
		}
		if strings.Contains(f.Vars[name], "${") {
			c.Problemf("vars."+name, "a value holds no references")
		}
	}
	used := c.used()
	for _, name := range sorted(c.src.Vars) {
		if _, known := f.Vars[name]; !known && !slices.Contains(used, name) {
			near := ""
			if n := yamlfile.Nearest(name, append(sorted(f.Vars), used...)); n != "" {
				near = "; did you mean " + n + "?"
			}
			c.Problemf("vars", "the variable %q is given and nothing uses it%s", name, near)
		}
	}
	if f.Vars == nil && len(c.src.Vars) > 0 {
		f.Vars = map[string]string{}
	}
	for name, v := range c.src.Vars {
		f.Vars[name] = v
	}
}

// used returns the names of the variables to which any text refers.
func (c *checker) used() []string {
	names := map[string]bool{}
	add := func(s string) {
		for _, r := range refs(s) {
			names[r] = true
		}
	}
	for _, nodes := range []map[string]*Node{c.f.Agents, c.f.Nodes} {
		for _, n := range nodes {
			for _, s := range n.texts() {
				add(*s)
			}
			if n.ForEach != nil {
				add(n.ForEach.Files)
				for _, x := range n.ForEach.Items {
					if s, ok := x.(string); ok {
						add(s)
					}
				}
			}
		}
	}
	return sorted(names)
}

func (c *checker) nodes() {
	f := c.f
	if c.Has("nodes") {
		if c.key = "nodes"; c.Has("agents") {
			c.Problemf("nodes", "the nodes stand below agents already (%s); it is another name of the same key, so put all of them below one", c.Origin("agents"))
		}
		f.Agents, f.Nodes = f.Nodes, nil
	}
	names := c.Keys(c.key)
	switch {
	case len(names) == 0:
		c.Problemf(c.key, "there are no nodes; write agents: and below it name: {intent: ...}")
	case len(names) > MaxNodes:
		c.Problemf(c.key, "%d nodes, and at most %d are possible; use foreach for work of the same kind", len(names), MaxNodes)
		return
	}
	for _, name := range names {
		key := c.key + "." + name
		if !namePattern().MatchString(name) {
			c.Problemf(key, "%q cannot be the name of a node; use letters, digits, '-' and '_', a letter first, at most 48", name)
			continue
		}
		n := f.Agents[name]
		if n == nil {
			if len(c.problemsAt(key)) == 0 {
				c.Problemf(key, "the node says nothing; it needs an intent")
			}
			continue
		}
		n.Line = c.Line(key)
		c.node(key, n)
	}
}

func (c *checker) problemsAt(key string) Problems { return c.Problems().Under(key) }

func (c *checker) node(key string, n *Node) {
	if strings.TrimSpace(n.Intent) == "" && len(c.problemsAt(key+".intent")) == 0 {
		c.Problemf(key+".intent", "missing; say what the node is to do")
	}
	c.models(key+".", n.Provider, n.FallbackProvider, n.Model, n.FallbackModel, n.Effort)
	if n.Agent != "" && !strings.Contains(n.Agent, "${") && !agent.ValidName(n.Agent) {
		c.Problemf(key+".agent", "%q cannot be the name of an agent", n.Agent)
	}
	for list, names := range map[string][]string{"skills": n.Skills, "mcp": n.MCP} {
		for i, name := range names {
			if !agent.ValidName(name) {
				c.Problemf(fmt.Sprintf("%s.%s[%d]", key, list, i), "%q cannot be a name", name)
			}
		}
	}
	for list, paths := range map[string][]string{"allow": n.Allow, "deny": n.Deny} {
		for i, p := range paths {
			at := fmt.Sprintf("%s.%s[%d]", key, list, i)
			if err := agent.CheckDevice(p, list == "deny", agent.Devices()); err != nil && len(c.problemsAt(at)) == 0 {
				c.Problemf(at, "cannot %s %q: %v", list, p, err)
			}
		}
	}
	n.Sandbox = agent.CheckSandbox(c.Doc, key+".", n.Sandbox, n.Network, "a node cannot switch the sandbox off; a person does, for all nodes, with: rnix compose up --sandbox off")
	n.Network = ""
	c.dollars(key+".budget_usd", n.BudgetUSD)
	if n.MaxSteps != nil && *n.MaxSteps < 0 {
		c.Problemf(key+".max_steps", "is negative; write 0 for no limit")
	}
	if n.Retries != nil {
		c.retries(key+".retries", n.Retries)
	}
	c.depends(key, n)
	if n.Worktree != nil {
		c.worktree(key+".worktree", n)
	}
	if n.ForEach != nil {
		c.forEach(key+".foreach", n)
	}
	c.references(key, n)
	if n.Output != nil {
		c.output(key+".output", n.Output)
	}
}

func (c *checker) retries(key string, r *Retries) {
	if r.Max < 0 || r.Max > MaxAttempts {
		c.Problemf(key+".max", "is %d; from 0 to %d attempts more are possible", r.Max, MaxAttempts)
	}
	if r.On != nil && len(r.On) == 0 {
		c.Problemf(key+".on", "an empty list: nothing would be tried again; leave it out for all failures")
	}
	if b := r.Backoff; b != nil {
		if b.Factor != 0 && (b.Factor < 1 || b.Factor > 100) {
			c.Problemf(key+".backoff.factor", "is %v; from 1 to 100 is possible", b.Factor)
		}
		if b.Max > 0 && b.Max < b.Initial {
			c.Problemf(key+".backoff.max", "%s is shorter than initial, which is %s", b.Max, b.Initial)
		}
	}
}

// depends brings both forms into one and looks for nodes that are not there.
func (c *checker) depends(key string, n *Node) {
	d := n.DependsOn
	if d == nil {
		return
	}
	for i, name := range d.List {
		if d.On == nil {
			d.On = map[string]Condition{}
		}
		if _, twice := d.On[name]; twice {
			c.Problemf(fmt.Sprintf("%s.depends_on[%d]", key, i), "%q stands here twice", name)
		}
		d.On[name] = OnSucceeded
		c.there(fmt.Sprintf("%s.depends_on[%d]", key, i), name)
	}
	for _, name := range sorted(d.On) {
		if len(d.List) == 0 {
			c.there(key+".depends_on."+name, name)
		}
	}
	d.List = nil
}

func (c *checker) there(key, name string) {
	if c.f.Agents[name] != nil {
		return
	}
	names := c.Keys(c.key)
	if slices.Contains(names, name) {
		return
	}
	if n := yamlfile.Nearest(name, names); n != "" {
		c.Problemf(key, "there is no node %q; did you mean %q?", name, n)
		return
	}
	c.Problemf(key, "there is no node %q; nodes are %s", name, brief(strings.Join(names, ", ")))
}

func (c *checker) forEach(key string, n *Node) {
	f := n.ForEach
	said := 0
	for _, is := range []bool{f.Items != nil, f.From != "", f.Files != ""} {
		if is {
			said++
		}
	}
	if said != 1 {
		c.Problemf(key, "write a list, or from: NODE, or files: PATTERN, and one of them only")
	}
	if f.Max < 0 || f.Max > MaxFan {
		c.Problemf(key+".max", "is %d; from 1 to %d is possible", f.Max, MaxFan)
	}
	if len(f.Items) > MaxFan {
		c.Problemf(key, "%d items, and at most %d are possible", len(f.Items), MaxFan)
	}
	if f.From != "" {
		if c.there(key+".from", f.From); n.DependsOn == nil {
			n.DependsOn = &Depends{}
		}
		if cond, said := n.DependsOn.On[f.From]; said && cond != OnSucceeded {
			c.Problemf(key+".from", "it is made from the output of %q, which must have succeeded, but depends_on says %s", f.From, cond)
		}
		if n.DependsOn.On == nil {
			n.DependsOn.On = map[string]Condition{}
		}
		n.DependsOn.On[f.From] = OnSucceeded
	}
	if f.Files != "" && !doublestar.ValidatePattern(f.Files) {
		c.Problemf(key+".files", "%q is not a pattern; write one such as src/**/*.go", f.Files)
	}
}

// references checks what the texts of a node refer to.
func (c *checker) references(key string, n *Node) {
	for sub, s := range n.texts() {
		c.text(key+"."+sub, *s, n.ForEach != nil)
	}
	if f := n.ForEach; f != nil {
		c.text(key+".foreach.files", f.Files, false)
		for i, x := range f.Items {
			if s, ok := x.(string); ok {
				c.text(fmt.Sprintf("%s.foreach[%d]", key, i), s, false)
			}
		}
	}
}

func (c *checker) text(key, s string, items bool) {
	ps, err := pieces(s)
	if err != nil {
		c.Problemf(key, "%v", err)
		return
	}
	for _, p := range ps {
		if !p.ref {
			continue
		}
		name, _, deep := strings.Cut(p.text, ".")
		_, known := c.f.Vars[name]
		switch {
		case slices.Contains(itemNames, name) && (items || known):
		case slices.Contains(itemNames, name):
			c.Problemf(key, "${%s} stands for something only in the node's own texts, and only if it has foreach", p.text)
		case name == "nodes" && deep:
			c.Problemf(key, "${%s}: what other nodes have done is given to this one as its inputs; name them in depends_on", p.text)
		case deep:
			c.Problemf(key, "${%s}: a variable has no fields", p.text)
		case known || c.src.AnyVars:
		default:
			near := ""
			if v := yamlfile.Nearest(name, append(sorted(c.f.Vars), "item", "index")); v != "" {
				near = "did you mean ${" + v + "}? "
			}
			c.Problemf(key, "${%s} has no value; %sgive it one with --var %s=..., or set a default below vars", name, near, name)
		}
	}
}

func (c *checker) models(prefix string, provider, fallback string, words ...string) {
	for key, name := range map[string]string{"provider": provider, "fallback_provider": fallback} {
		if name != "" && !strings.Contains(name, "${") && !agent.ValidName(name) {
			c.Problemf(prefix+key, "%q cannot be the name of a provider", name)
		}
	}
	for i, key := range []string{"model", "fallback_model", "reasoning_effort"} {
		if s := words[i]; !strings.Contains(s, "${") && strings.ContainsAny(s, " \t\r\n") || len(s) > 200 {
			c.Problemf(prefix+key, "%q must be one word", brief(s))
		}
	}
}

func (c *checker) dollars(key string, usd *float64) {
	if usd != nil && !(*usd >= 0 && *usd <= 1e9) {
		c.Problemf(key, "is %v; write dollars such as 2.50; 0 = unlimited", *usd)
	}
}
