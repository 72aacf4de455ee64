package confine

import (
	"context"
	"sync"

	"rnix/internal/egress"
	"rnix/internal/permit"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// Network is how the proxies of boxes reach hosts.
type Network = egress.Proxy

// outlet gives a box whose network is of hosts its proxy. by names what runs in it; empty = a command.
func outlet(s *Service, box *proc.Box, c *vfs.Caller, by string) error {
	network := s.Network
	if network == nil {
		network = &s.usual
	}
	of := *c
	client := egress.Client{Refused: func(r sandbox.Refusal) {
		if of.PID != 0 {
			s.Refusals.tell(of, by, []sandbox.Refusal{r}, nil)
		}
	}}
	if box.Plan.Policy.Net == sandbox.NetHosts {
		ctx, stop := context.WithCancel(context.Background())
		d := &doorman{ctx: ctx, of: c.UUID, ask: func(ctx context.Context, of types.UUID, id string, c permit.Call) (kernel.Permission, error) {
			return s.Kernel().AskFor(ctx, of, id, c)
		}}
		box.Clock = func(hold func() (goOn func())) { d.hold = hold }
		client.Counts, client.Judge, client.End = s.counted.of(c.UUID), d.Judge, func() {
			stop()
			d.work.Wait()
		}
	}
	return egress.Fit(box, network, client)
}

// counts are what went to hosts and came from them, of each process. The zero value has counted nothing.
type counts struct {
	mu  sync.Mutex
	all map[types.UUID]*egress.Counts // +checklocks:mu
}

// of returns the counts of a process.
func (c *counts) of(id types.UUID) *egress.Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[types.UUID]*egress.Counts{}
	}
	if c.all[id] == nil {
		c.all[id] = new(egress.Counts)
	}
	return c.all[id]
}

// totals returns what was counted of a process.
func (c *counts) totals(id types.UUID) []egress.Total {
	c.mu.Lock()
	n := c.all[id]
	c.mu.Unlock()
	if n == nil {
		return nil
	}
	return n.Totals()
}

// forget forgets those of a process that has ended.
func (c *counts) forget(id types.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, id)
}
