package egress

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// mostHosts bounds the hosts of one table; what comes of others is counted together.
const mostHosts = 100

// others is under what name that is.
const others = "(others)"

// Counts count what went to hosts and came from them. The zero value counts nothing yet. Safe for concurrent use.
type Counts struct {
	mu    sync.Mutex
	hosts map[string]*Count // +checklocks:mu
}

// Count is that of one host.
type Count struct{ requests, refusals, sent, received atomic.Int64 }

// Total is what was counted of one host.
type Total struct {
	Host     string // host:port
	Requests int64  // requests, and connections by CONNECT, that were let through
	Refused  int64
	Sent     int64 // bytes, as they went over the connections
	Received int64
}

// of returns the count of a host.
func (c *Counts) of(host string) *Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hosts == nil {
		c.hosts = map[string]*Count{}
	}
	if c.hosts[host] == nil && len(c.hosts) >= mostHosts {
		host = others
	}
	if c.hosts[host] == nil {
		c.hosts[host] = new(Count)
	}
	return c.hosts[host]
}

func (c *Counts) request(host string) { c.of(host).requests.Add(1) }
func (c *Counts) refused(host string) { c.of(host).refusals.Add(1) }

// Totals returns what was counted, the hosts with the most bytes first.
func (c *Counts) Totals() []Total {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Total, 0, len(c.hosts))
	for host, n := range c.hosts {
		out = append(out, Total{host, n.requests.Load(), n.refusals.Load(), n.sent.Load(), n.received.Load()})
	}
	slices.SortFunc(out, func(a, b Total) int {
		return cmp.Or(cmp.Compare(b.Sent+b.Received, a.Sent+a.Received), cmp.Compare(a.Host, b.Host))
	})
	return out
}
