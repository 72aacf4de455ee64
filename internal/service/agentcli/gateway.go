package agentcli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/config"
	"rnix/internal/gateway"
	"rnix/internal/plumbing"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"

	clis "rnix/internal/harness"
)

// gatewayPath is where on a road the model gateway is; behind it stand the name of a vendor and the path of a call.
const gatewayPath = clis.GatewayPath + "/"

// Metered reports whether each request to a model counts by itself that the agent CLI of a process makes, whose provider is pr. If not, why is the reason
// for which a budget cannot be kept.
func (d *Service) Metered(c vfs.Caller, pr config.Provider) (metered bool, why string) {
	cli, err := clis.Lookup(pr.Harness())
	if err != nil {
		return false, ""
	}
	_, _, err = vendorsOf(d, &c, cli, cmp.Or(c.Model, pr.DefaultModel))
	if err != nil {
		return false, reason(err)
	}
	return true, ""
}

func reason(err error) string {
	if e, ok := errors.AsType[*types.SyscallError](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// vendorsOf returns whom the agent CLI of a caller asks: as it is told, and as they are called.
func vendorsOf(d *Service, c *vfs.Caller, cli clis.CLI, model string) (*clis.Gateway, []*gateway.Handler, error) {
	vendors, err := cli.Vendors(userOf(c, cli, model))
	if err != nil {
		return nil, nil, err
	}
	p, _ := d.process(c.PID)
	told := &clis.Gateway{}
	handlers := make([]*gateway.Handler, 0, len(vendors))
	for _, v := range vendors {
		up := gateway.Upstream{Name: v.Name, API: v.API, Base: v.Base, Unbounded: v.Unbounded}
		v.Keys = slices.Clone(v.Keys)
		for i := range v.Keys {
			k := gateway.Key{Placeholder: clis.Placeholder(), Secret: v.Keys[i].Value}
			up.Keys, v.Keys[i].Value = append(up.Keys, k), k.Placeholder
		}
		h, err := gateway.New(up, purse{d.Kernel, c.UUID, namer(p, v.Name)}, d.vendors)
		if err != nil {
			return nil, nil, err
		}
		told.Vendors, handlers = append(told.Vendors, v), append(handlers, h)
	}
	return told, handlers, nil
}

// process returns a process that lives; there is no kernel yet when the daemon opens.
func (d *Service) process(pid types.PID) (*kernel.Process, bool) {
	if d.Kernel == nil {
		return nil, false
	}
	return d.Kernel.Process(pid)
}

// userOf says what the agent CLI of a caller finds of its user.
func userOf(c *vfs.Caller, cli clis.CLI, model string) clis.User {
	env := func(name string) string {
		if c.Secret != nil {
			if v, ok := c.Secret(name); ok && v != "" {
				return v
			}
		}
		return os.Getenv(name)
	}
	home, login := env("HOME"), cli.Login()
	dir := ""
	if login.Variable != "" {
		if dir = env(login.Variable); !filepath.IsAbs(dir) {
			dir = ""
		}
	}
	return clis.User{Env: env, Model: model, File: func(name string) []byte {
		path := login.At(home, dir, name)
		if name == login.Facts && dir != "" {
			path = filepath.Join(dir, filepath.Base(name))
		}
		text, _, err := plumbing.ReadFile(path, maxUserFile)
		if err != nil {
			return nil
		}
		return text
	}}
}

// maxUserFile is how long a file of a CLI may be that is looked at, in bytes.
const maxUserFile = 64 << 20

// gate opens the gateway of an agent CLI that is about to start, at an address of its process's road. end closes it.
func (d *Service) gate(c *vfs.Caller, cli clis.CLI, road string) (g *clis.Gateway, end func(), err error) {
	p, ok := d.process(c.PID)
	if !ok {
		return nil, nil, types.Errorf(types.ErrNotFound, "Gateway", c.UUID.String(), "its process has ended")
	}
	g, handlers, err := vendorsOf(d, c, cli, cmp.Or(c.Model, kernel.ModelOf(p).Model))
	if err != nil {
		return nil, nil, types.Errorf(types.ErrUnavailable, "Start", cli.Name(), "the model gateway, which was there when the process began, is not any more: %s", reason(err))
	}
	own := map[string]http.Handler{}
	for i := range g.Vendors {
		own[g.Vendors[i].Name] = handlers[i]
	}
	d.mu.Lock()
	if d.gates == nil {
		d.gates = map[types.PID]map[string]http.Handler{}
	}
	d.gates[c.PID] = own
	d.mu.Unlock()
	g.URL = "http://" + road + clis.GatewayPath
	return g, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if maps.EqualFunc(d.gates[c.PID], own, func(a, b http.Handler) bool { return a == b }) {
			delete(d.gates, c.PID)
		}
	}, nil
}

// served answers what comes over a road for the gateway: by the process that calls, and the vendor that the path names.
func (d *Service) served(w http.ResponseWriter, r *http.Request, peer *ipc.Peer) {
	owner, inside := d.Callers.AgentOf(peer)
	vendor, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, gatewayPath), "/")
	d.mu.Lock()
	h := d.gates[owner][vendor]
	d.mu.Unlock()
	if !inside || h == nil {
		http.Error(w, "rnix gateway: the process that calls has no agent CLI with this vendor", http.StatusNotFound)
		return
	}
	http.StripPrefix(gatewayPath+vendor, h).ServeHTTP(w, r)
}

// namer returns as which the price of a model of a vendor is looked up.
func namer(p *kernel.Process, vendor string) func(model string) []vfs.ModelName {
	var card vfs.ModelCard
	if p != nil {
		card = kernel.ModelOf(p)
	}
	return func(model string) []vfs.ModelName {
		return []vfs.ModelName{{Provider: card.Provider, Driver: card.Driver, Model: model}, {Provider: card.Provider, Driver: card.Driver, Model: vendor + "/" + model}, {Provider: vendor, Model: model}}
	}
}

// purse is what a process may use.
type purse struct {
	kernel Kernel
	id     types.UUID
	names  func(model string) []vfs.ModelName
}

// Limited implements gateway.Purse.
func (p purse) Limited() (tokens, usd bool) { return p.kernel.MeterLimited(p.id) }

// Reserve implements gateway.Purse.
func (p purse) Reserve(ctx context.Context, q gateway.Question) (gateway.Claim, error) {
	m, err := p.kernel.Meter(ctx, p.id, kernel.Question{Names: p.names(q.Model), Bytes: q.Bytes, Extra: q.Extra, Answer: q.Answer,
		Weighed: q.Weighed, Parts: q.Parts, Hour: q.Hour, Open: q.Open, Odd: q.Odd})
	if err != nil {
		return nil, err
	}
	return claim{m: m}, nil
}

// claim is a reservation of the kernel.
type claim struct{ m *kernel.Metering }

// Answer implements gateway.Claim.
func (c claim) Answer() int { return c.m.Answer }

// Context implements gateway.Claim.
func (c claim) Context() context.Context { return c.m.Context() }

// Drop implements gateway.Claim.
func (c claim) Drop() { c.m.Drop() }

// Settle implements gateway.Claim.
func (c claim) Settle(u gateway.Usage) error {
	return c.m.Settle(kernel.Took{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, CacheHour: u.CacheHour, Estimated: u.Estimated, Dear: u.Dear, Model: u.Model})
}
