package egress

import (
	"context"
	"errors"
	"net"

	"rnix/internal/hosts"
)

// Direct connects this program itself to hosts, for one client and by the same rules as a proxy does. Safe for concurrent use.
type Direct struct {
	s    *server
	life context.Context // ends with Close
	end  context.CancelFunc
}

// Direct returns the way of a client to hosts. The caller must close it.
func (p *Proxy) Direct(c *Client) *Direct {
	life, end := context.WithCancel(context.Background())
	return &Direct{&server{proxy: p, client: c, told: map[string]bool{}}, life, end}
}

// Dial connects to a host and port, with the address that was checked. It fails with what Refusal knows if the client may not reach that, and may wait for a
// person, until ctx ends.
func (d *Direct) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	if !d.s.enter() {
		return nil, net.ErrClosed
	}
	defer d.s.work.Done()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(d.life, stop)()
	to, err := hosts.ParseTarget(address, 0)
	if err != nil {
		return nil, err
	}
	found, err := d.s.find(ctx, to)
	if err != nil {
		if no, ok := errors.AsType[*refusal](err); ok {
			d.s.refuse(no)
		}
		return nil, err
	}
	d.s.count(to)
	return d.s.connect(ctx, found)
}

// Close ends all connections, and waits for what is under way.
func (d *Direct) Close() {
	d.end()
	d.s.end()
	if d.s.client.End != nil {
		d.s.client.End()
	}
}

// Refusal returns what to say of an error that a refusal is the cause of.
func Refusal(err error) (text string, ok bool) {
	no, ok := errors.AsType[*refusal](err)
	if ok {
		text = no.Error()
	}
	return text, ok
}
