package flows

import (
	"context"
	"slices"
	"strings"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// meant returns the run that a request is about, and names it there.
func (s resumer) meant(ctx context.Context, req *ipc.ComposeResumeRequest) (t service.Target, err error) {
	if req.Target != "" || req.Node == "" {
		return s.runs.find(req.Target)
	}
	if t, err = s.runs.withNode(ctx, req.Node); err == nil {
		req.Target = t.UUID.String()
	}
	return t, err
}

// withNode returns the one run whose node can be meant where no run was named: of those that do not run, the one in
// which this node has not succeeded; if there is none, the one that has this node. With several the error lists them.
func (r *runs) withNode(ctx context.Context, node string) (service.Target, error) {
	var has, open []ipc.ComposeRun
	stored := r.index.List()
	for i := range stored {
		info := &stored[i]
		if info.Kind != run.Kind {
			continue
		}
		if _, alive := r.running(info.UUID); alive {
			continue
		}
		c, err := r.describe(ctx, &service.Target{UUID: info.UUID, PID: info.PID, Info: info})
		if err != nil {
			continue // it cannot be read, so it cannot go on
		}
		states := statesOf(&c, node)
		if len(states) > 0 {
			has = append(has, c)
		}
		if slices.ContainsFunc(states, func(s string) bool { return s != string(compose.Succeeded) && s != string(compose.Expanded) }) {
			open = append(open, c)
		}
	}
	if len(open) > 0 {
		has = open
	}
	switch len(has) {
	case 0:
		return service.Target{}, types.Errorf(types.ErrNotFound, "Compose", node, "no run that has stopped has a node of this name; `rnix compose ps -a` lists the runs")
	case 1:
		return r.find(has[0].UUID.String())
	}
	var names []string
	for i := range has {
		c := &has[i]
		names = append(names, c.PID.String()+" ("+c.Name+", "+strings.Join(slices.Compact(statesOf(c, node)), ", ")+", begun "+c.CreatedAt.Local().Format("2006-01-02 15:04")+")")
	}
	if n := len(names) - 8; n > 0 {
		names = append([]string{"..."}, names[n:]...)
	}
	return service.Target{}, types.Errorf(types.ErrAmbiguous, "Compose", node, "%d runs have a node of this name: %s; name one: rnix compose resume RUN --node %s", len(has), strings.Join(names, ", "), node)
}

// statesOf returns the states of a node in a run, of each of its instances.
func statesOf(c *ipc.ComposeRun, node string) (states []string) {
	for i := range c.Nodes {
		if k, ok := compose.ParseKey(c.Nodes[i].Name); ok && k.Node == node {
			states = append(states, c.Nodes[i].State)
		}
	}
	return states
}
