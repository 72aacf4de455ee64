package compose

import (
	"fmt"
	"slices"
	"strings"
)

// Plan is a workflow in the order of its dependencies. It does not change.
type Plan struct {
	File  *File
	Order []string            // the nodes, each behind those that it waits for; else as in the file
	next  map[string][]string // who waits for a node, directly
	Width int                 // nodes at once
}

// Plan orders a file that Parse has found no error in.
func (f *File) Plan() *Plan {
	p := &Plan{File: f, next: map[string][]string{}, Width: f.MaxParallel}
	if p.Width == 0 {
		p.Width = DefaultWidth
	}
	names := sorted(f.Agents)
	slices.SortStableFunc(names, func(a, b string) int { return f.Agents[a].Line - f.Agents[b].Line })
	done := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if done[name] {
			return
		}
		done[name] = true
		for _, up := range f.Agents[name].Above() {
			add(up)
		}
		p.Order = append(p.Order, name)
	}
	for _, name := range names {
		add(name)
	}
	for _, name := range p.Order {
		for _, up := range f.Agents[name].Above() {
			p.next[up] = append(p.next[up], name)
		}
	}
	return p
}

// Above returns the nodes for which a node waits, in order of their names.
func (n *Node) Above() []string {
	if n.DependsOn == nil {
		return nil
	}
	return sorted(n.DependsOn.On)
}

// Needs returns for which condition of another node a node waits; false if for none.
func (n *Node) Needs(up string) (Condition, bool) {
	if n.DependsOn == nil {
		return "", false
	}
	c, ok := n.DependsOn.On[up]
	return c, ok
}

// Sinks returns the nodes for which nobody waits: their results are those of the run.
func (p *Plan) Sinks() []string {
	return slices.DeleteFunc(slices.Clone(p.Order), func(n string) bool { return len(p.next[n]) > 0 })
}

// From returns a node and all nodes below it.
func (p *Plan) From(name string) map[string]bool {
	out := map[string]bool{}
	var add func(string)
	add = func(n string) {
		if !out[n] {
			out[n] = true
			for _, below := range p.next[n] {
				add(below)
			}
		}
	}
	add(name)
	return out
}

// Below returns a node and all nodes below it, in order.
func (p *Plan) Below(name string) []string {
	below := p.From(name)
	return slices.DeleteFunc(slices.Clone(p.Order), func(n string) bool { return !below[n] })
}

// graph finds circles and conditions that cannot hold.
func (c *checker) graph() {
	nodes := c.f.Agents
	if circle := c.circle(); circle != nil {
		c.Problemf(c.key+"."+circle[0]+".depends_on", "the nodes wait for each other: %s", strings.Join(circle, " -> "))
		return
	}
	c.given()
	// what must have become of others for a node to have run
	implied := map[string]map[string]Condition{}
	for _, name := range c.f.Plan().Order {
		in := map[string]Condition{}
		implied[name] = in
		for _, up := range nodes[name].Above() {
			cond, _ := nodes[name].Needs(up)
			if cond == OnCompleted {
				continue // it may have been skipped
			}
			need := map[string]Condition{up: cond}
			for n, x := range implied[up] {
				need[n] = x
			}
			for _, n := range sorted(need) {
				if was, said := in[n]; said && was != need[n] {
					c.Problemf(c.key+"."+name+".depends_on", "it can never run: what it waits for needs %s to have %s and to have %s", n, was, need[n])
					return
				}
				in[n] = need[n]
			}
		}
	}
}

// circle returns nodes of which each waits for the next one, the first one again at the end; nil if there
// are none.
func (c *checker) circle() []string {
	const open, done = 1, 2
	mark := map[string]int{}
	var stack, found []string
	var visit func(name string) bool
	visit = func(name string) bool {
		mark[name] = open
		stack = append(stack, name)
		for _, up := range c.f.Agents[name].Above() {
			if mark[up] == open {
				found = append(slices.Clone(stack[slices.Index(stack, up):]), up)
				return true
			}
			if mark[up] == 0 && visit(up) {
				return true
			}
		}
		stack, mark[name] = stack[:len(stack)-1], done
		return false
	}
	for _, name := range sorted(c.f.Agents) {
		if mark[name] == 0 && visit(name) {
			return found
		}
	}
	return nil
}

// Draw writes the graph of a workflow: as "text", "dot" or "mermaid". state may be nil; it says what has
// become of a node.
func (p *Plan) Draw(format string, state func(node string) string) (string, error) {
	if state == nil {
		state = func(string) string { return "" }
	}
	switch format {
	case "", "text":
		return p.text(state), nil
	case "dot":
		return p.dot(state), nil
	case "mermaid":
		return p.mermaid(state), nil
	}
	return "", fmt.Errorf("%q is no format; write text, dot or mermaid", format)
}

func (p *Plan) text(state func(string) string) string {
	var b strings.Builder
	for _, name := range p.Order {
		n := p.File.Agents[name]
		b.WriteString(name)
		if n.ForEach != nil {
			fmt.Fprintf(&b, " (for each %s)", n.ForEach.what())
		}
		if n.Worktree != nil {
			fmt.Fprintf(&b, " (in its own work tree%s)", n.Worktree.what())
		}
		if s := state(name); s != "" {
			fmt.Fprintf(&b, " [%s]", s)
		}
		b.WriteByte('\n')
		for _, up := range n.Above() {
			cond, _ := n.Needs(up)
			fmt.Fprintf(&b, "  <- %s", up)
			if cond != OnSucceeded {
				fmt.Fprintf(&b, " (%s)", cond)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (f *ForEach) what() string {
	switch {
	case f.From != "":
		return "item of " + f.From
	case f.Files != "":
		return "file of " + f.Files
	}
	return fmt.Sprintf("of %d items", len(f.Items))
}

// styles are how the lines of conditions are drawn.
var styles = map[Condition]string{OnFailed: "dashed", OnCompleted: "dotted"}

func (p *Plan) dot(state func(string) string) string {
	var b strings.Builder
	b.WriteString("digraph workflow {\n  rankdir=LR;\n  node [shape=box];\n")
	for _, name := range p.Order {
		n := p.File.Agents[name]
		label := name
		if n.ForEach != nil {
			label += " *"
		}
		if n.Worktree != nil {
			label += `\nwork tree`
		}
		if s := state(name); s != "" {
			label += `\n` + s
		}
		fmt.Fprintf(&b, "  %q [label=\"%s\"];\n", name, label)
		for _, up := range n.Above() {
			cond, _ := n.Needs(up)
			fmt.Fprintf(&b, "  %q -> %q", up, name)
			if style := styles[cond]; style != "" {
				fmt.Fprintf(&b, " [label=%q, style=%s]", string(cond), style)
			}
			b.WriteString(";\n")
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func (p *Plan) mermaid(state func(string) string) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	id := map[string]string{} // names may be words of the language
	for i, name := range p.Order {
		id[name] = fmt.Sprintf("n%d", i)
		n := p.File.Agents[name]
		label := name
		if n.ForEach != nil {
			label += " *"
		}
		if n.Worktree != nil {
			label += "<br/>work tree"
		}
		if s := state(name); s != "" {
			label += "<br/>" + s
		}
		fmt.Fprintf(&b, "  %s[\"%s\"]\n", id[name], label)
	}
	for _, name := range p.Order {
		n := p.File.Agents[name]
		for _, up := range n.Above() {
			if cond, _ := n.Needs(up); cond != OnSucceeded {
				fmt.Fprintf(&b, "  %s -. %s .-> %s\n", id[up], cond, id[name])
				continue
			}
			fmt.Fprintf(&b, "  %s --> %s\n", id[up], id[name])
		}
	}
	return b.String()
}
