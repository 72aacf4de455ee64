package testenv

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"rnix/internal/daemon"
	"rnix/internal/service/confine"
)

// NetEnv is the variable that gives the daemon of a system a network for the proxies of its boxes: pairs "name:port=host:port" between blanks. Each name has a public
// address, which is checked as any other, and at which what listens at the second place is reached.
const NetEnv = "RNIX_TESTENV_NET"

// network gives a daemon that of NetEnv, if there is one.
func network(to *daemon.Options) error {
	text := os.Getenv(NetEnv)
	if text == "" {
		return nil
	}
	names, places := map[string]netip.Addr{}, map[string]string{}
	for pair := range strings.FieldsSeq(text) {
		from, place, ok := strings.Cut(pair, "=")
		name, port, err := net.SplitHostPort(from)
		if !ok || err != nil {
			return fmt.Errorf("%s: %q is no name:port=host:port", NetEnv, pair)
		}
		if _, known := names[name]; !known {
			names[name] = netip.AddrFrom4([4]byte{93, 184, 216, byte(len(names) + 1)})
		}
		places[net.JoinHostPort(names[name].String(), port)] = place
	}
	to.Network = &confine.Network{
		Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			if ip, ok := names[name]; ok {
				return []netip.Addr{ip}, nil
			}
			return nil, fmt.Errorf("lookup %s: no such host", name)
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if to, ok := places[address]; ok {
				return new(net.Dialer).DialContext(ctx, network, to)
			}
			return nil, fmt.Errorf("dial %s: connection refused", address)
		},
	}
	return nil
}
