package confine

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"rnix/internal/egress"
	"rnix/internal/hosts"
	"rnix/internal/permit"
	"rnix/kernel"
	"rnix/types"
)

// mostAsked is how many hosts may wait for a decision at once, of what runs in one box, and mostMatters how many decisions are kept.
const (
	mostAsked   = 16
	mostMatters = 1000
)

// doorman decides by the rules of a process to which hosts connections are made from one box. While a person is asked about a host, all connections there wait,
// and come back to the same ask; what the person says counts until the box ends.
type doorman struct {
	ctx  context.Context // ends with the box
	of   types.UUID
	who  string // as egress.Client.Who
	ask  func(ctx context.Context, of types.UUID, id string, c permit.Call) (kernel.Permission, error)
	hold func() (goOn func()) // stops the time limit of what runs in the box; nil = it has none
	work sync.WaitGroup

	mu sync.Mutex
	// +checklocks:mu
	matters map[string]*matter // by host:port
	// +checklocks:mu
	pending int // of these
}

// matter is a host that is or was decided about.
type matter struct {
	done  chan struct{}  // closed when it is decided
	says  egress.Verdict // written before done is closed, read after; it does not say whether rules name the host
	named bool           // allowed if rules of the sandbox name it
}

func (d *doorman) whose() string { return cmp.Or(d.who, "commands") }

// Judge implements egress.Client.
func (d *doorman) Judge(ctx context.Context, to hosts.Target, named bool) egress.Verdict {
	m, full := d.about(to)
	if full {
		return egress.Verdict{Why: fmt.Sprintf("the sandbox does not let %s reach %s now: %d other hosts wait for a decision, or %d were decided about", d.whose(), to, mostAsked, mostMatters)}
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		return egress.Verdict{Over: context.Cause(ctx)}
	}
	if m.named {
		return egress.Verdict{Allow: named}
	}
	return m.says
}

// about returns what is known about a host, and begins to find it out.
func (d *doorman) about(to hosts.Target) (m *matter, full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := to.String()
	if m = d.matters[key]; m != nil {
		return m, false
	}
	if d.pending >= mostAsked || len(d.matters) >= mostMatters {
		return nil, true
	}
	if d.matters == nil {
		d.matters = map[string]*matter{}
	}
	m = &matter{done: make(chan struct{})}
	d.matters[key] = m
	d.pending++
	d.work.Go(func() { // ends with the box at the latest; waited for by end
		kept := d.decide(m, to)
		d.mu.Lock()
		d.pending--
		if !kept {
			delete(d.matters, key)
		}
		d.mu.Unlock()
		close(m.done)
	})
	return m, false
}

// decide decides about a host, and reports whether that counts as long as the box: what rules or grants allow may be otherwise the next time.
func (d *doorman) decide(m *matter, to hosts.Target) (kept bool) {
	if d.hold != nil {
		defer d.hold()()
	}
	p, err := d.ask(d.ctx, d.of, "host "+to.String(), permit.HostCall(to.String()))
	switch {
	case err != nil && d.ctx.Err() != nil:
		m.says = egress.Verdict{Over: d.ctx.Err()}
	case types.CodeOf(err) == types.ErrNotFound: // none that is in the table: a person has started it by hand, or it is a server of a process that is being started
		m.named = true
	case err != nil:
		m.says = egress.Verdict{Why: fmt.Sprintf("the sandbox does not let %s reach %s, since it cannot be decided: %v", d.whose(), to, err)}
	case p.Decision == permit.Deny:
		m.says, kept = egress.Verdict{Why: fmt.Sprintf("the sandbox does not let %s reach %s: %v", d.whose(), to, permit.Reason(p.Why))}, true
	case p.Decision == permit.Ask, p.Granted:
		m.says, kept = egress.Verdict{Allow: true}, p.Decision == permit.Ask
	default:
		m.named = true
	}
	return kept
}
