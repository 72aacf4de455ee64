package confine

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"rnix/internal/event"
	"rnix/internal/hosts"
	"rnix/internal/permit"
	"rnix/internal/sandbox"
	"rnix/kernel"
	"rnix/types"
)

// judged is a kernel that decides by one list: of what calls act on.
type judged map[string]permit.Decision

func (judged) Info(types.PID) (kernel.Info, error) { return kernel.Info{}, nil }

func (j judged) AskFor(_ context.Context, _ types.UUID, _ string, c permit.Call) (kernel.Permission, error) {
	p := kernel.Permission{Decision: permit.Allow}
	if d, ok := j[c.Tool+" "+c.On()]; ok {
		p.Decision = d
	}
	if p.Decision == permit.Deny {
		p.Why = types.Errorf(types.ErrPermission, "Tool", c.Tool, "a rule says so")
	}
	return p, nil
}

// A process fetches what its commands reach, and of that public addresses alone, unless another one is named.
func TestPagesAreReachedAsCommandsReachHosts(t *testing.T) {
	w := newWorld(t)
	w.Refusals.Events = event.New(64)
	var dialed string
	w.Network = &Network{
		Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			at := map[string]string{"inner.test": "10.0.0.7", "turned.test": "127.0.0.1"}[name]
			return []netip.Addr{netip.MustParseAddr(cmp.Or(at, "93.184.216.34"))}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = address
			here, there := net.Pipe()
			return here, there.Close()
		},
	}
	w.Kernel = func() Kernel {
		return judged{"host asked.test:443": permit.Ask, "host denied.test:443": permit.Deny}
	}
	none, some, open, off := sandbox.Usual(), sandbox.Usual(), sandbox.Usual(), sandbox.Usual()
	some.Net, some.Hosts = sandbox.NetHosts, hosts.Say("", "a.test", "turned.test", "denied.test", "10.0.0.7:443", "inner.test")
	open.Net, off.Level = sandbox.NetOpen, sandbox.LevelOff
	const refused, nowhere = "the sandbox does not let web_fetch reach ", "this process no network"
	for _, c := range []struct {
		name     string
		settings sandbox.Settings
		to, want string // an address that is dialled, or why none is
	}{
		{"none", none, "a.test:443", nowhere},
		{"hosts", some, "a.test:443", "93.184.216.34:443"},
		{"hosts", some, "b.test:443", refused + "b.test:443, which is not among the allowed hosts"},
		{"hosts", some, "asked.test:443", "93.184.216.34:443"},
		{"hosts", some, "denied.test:443", refused + "denied.test:443: a rule says so"},
		{"hosts", some, "turned.test:443", refused + "turned.test:443, which leads to 127.0.0.1, an address of this machine"},
		{"hosts", some, "10.0.0.7:443", "10.0.0.7:443"},
		{"hosts", some, "inner.test:443", "10.0.0.7:443"}, // the address is named, too
		{"open", open, "b.test:8080", "93.184.216.34:8080"},
		{"open", open, "93.184.216.34:80", "93.184.216.34:80"},
		{"open", open, "denied.test:443", refused + "denied.test:443: a rule says so"},
		{"open", open, "127.0.0.1:80", refused + "127.0.0.1:80, which is an address of this machine"},
		{"open", open, "inner.test:443", "a private or reserved address"},
		{"open", open, "169.254.169.254:80", "as services for metadata have"},
		{"off", off, "b.test:443", "93.184.216.34:443"},
		{"off", off, "turned.test:80", "an address of this machine"},
	} {
		w.profile.Sandbox = c.settings
		if Networked(w.profile) == (c.name == "none") {
			t.Errorf("%s: it is said otherwise whether it has a network", c.name)
		}
		dialed = ""
		got := func() string {
			way, err := pageOf(w.Service, w.caller, permit.WebTool, func() func() { return func() {} })
			if err != nil {
				return err.Error()
			}
			defer way.Close()
			conn, err := way.Dial(t.Context(), "tcp", c.to)
			if err != nil {
				return err.Error()
			}
			_ = conn.Close() // it was a pipe
			return dialed
		}()
		if !strings.Contains(got, c.want) || strings.HasPrefix(c.want, "the ") && dialed != "" {
			t.Errorf("%s, %s: %s (dialed %q), want %s", c.name, c.to, got, dialed, c.want)
		}
	}
	if n := len(w.counted.totals(w.caller.UUID)); n < 6 {
		t.Errorf("%d hosts are counted", n)
	}
	if Networked(nil) {
		t.Error("what is not known has a network")
	}
}

func TestWhereRedirectsLeadIsDecidedAsCallsAre(t *testing.T) {
	w := newWorld(t)
	w.profile.Sandbox.Net = sandbox.NetOpen
	w.Kernel = func() Kernel { return judged{"web_fetch https://b.test/": permit.Deny} }
	held := 0
	way, err := pageOf(w.Service, w.caller, permit.WebTool, func() func() { held++; return func() { held-- } })
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	if err := way.Follow(t.Context(), "https://a.test/"); err != nil {
		t.Error(err)
	}
	if err := way.Follow(t.Context(), "https://b.test/"); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "a rule says so") {
		t.Error(err)
	}
	if held != 0 {
		t.Errorf("the time is held by %d", held)
	}
}
