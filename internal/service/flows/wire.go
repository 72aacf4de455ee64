package flows

import (
	"rnix/internal/compose"
	"rnix/ipc"
)

// wireWorkflow is a workflow on the wire. It must have been parsed.
func wireWorkflow(f *compose.File) *ipc.Workflow {
	if f == nil {
		return nil
	}
	return &ipc.Workflow{Version: f.Version, Name: f.Name, Intent: f.Intent, Provider: f.Provider, Model: f.Model, FallbackProvider: f.FallbackProvider,
		FallbackModel: f.FallbackModel, Effort: f.Effort, Budget: (*int)(f.Budget), BudgetUSD: f.BudgetUSD, Timeout: f.Timeout, MaxParallel: f.MaxParallel,
		Vars: f.Vars, Agents: byName(f.Agents, wireNode)}
}

func wireNode(n *compose.Node) *ipc.WorkflowNode {
	if n == nil {
		return nil
	}
	w := &ipc.WorkflowNode{Intent: n.Intent, Agent: n.Agent, Provider: n.Provider, Model: n.Model, FallbackProvider: n.FallbackProvider,
		FallbackModel: n.FallbackModel, Effort: n.Effort, SystemPrompt: n.SystemPrompt, Skills: n.Skills, MCP: n.MCP, Allow: n.Allow, Deny: n.Deny, Cwd: n.Cwd, Sandbox: n.Sandbox,
		Budget: (*int)(n.Budget), BudgetUSD: n.BudgetUSD, MaxSteps: n.MaxSteps, Timeout: n.Timeout,
		ForEach: (*ipc.WorkflowForEach)(n.ForEach), Output: (*ipc.WorkflowOutput)(n.Output), Line: n.Line}
	if t := n.Worktree; t != nil {
		w.Worktree = &ipc.WorkflowWorktree{Own: t.Own, Branch: t.Branch, Base: t.Base, Conflicts: string(t.Conflicts)}
	}
	if r := n.Retries; r != nil {
		w.Retries = &ipc.WorkflowRetries{Max: r.Max, Backoff: (*ipc.WorkflowBackoff)(r.Backoff)}
		for _, k := range r.On {
			w.Retries.On = append(w.Retries.On, string(k))
		}
	}
	if n.DependsOn != nil {
		w.DependsOn = &ipc.WorkflowDepends{On: byName(n.DependsOn.On, func(c compose.Condition) string { return string(c) })}
	}
	return w
}

// byName returns what wire makes of each value of a map; null stays null.
func byName[A, B any](m map[string]A, wire func(A) B) map[string]B {
	if m == nil {
		return nil
	}
	out := make(map[string]B, len(m))
	for name, v := range m {
		out[name] = wire(v)
	}
	return out
}
