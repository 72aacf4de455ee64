package mcp

import (
	"fmt"
	"net/netip"
	"syscall"

	"rnix/types"
)

// guard decides which addresses may be dialled. It sees the address that will be dialled, after names
// were resolved, so that no name can lead around it.
type guard struct {
	loopback bool // the URL itself names a loopback address
	private  bool // private addresses are allowed
}

// Networks that netip does not tell.
var (
	shared       = netip.MustParsePrefix("100.64.0.0/10")  // of carriers; some clouds serve credentials there
	benchmarking = netip.MustParsePrefix("198.18.0.0/15")  //
	thisNetwork  = netip.MustParsePrefix("0.0.0.0/8")      //
	reserved     = netip.MustParsePrefix("240.0.0.0/4")    //
	protocols    = netip.MustParsePrefix("192.0.0.0/24")   //
	nat64        = netip.MustParsePrefix("64:ff9b::/96")   // holds an IPv4 address in its last 32 bits
	localNAT64   = netip.MustParsePrefix("64:ff9b:1::/48") //
	sixToFour    = netip.MustParsePrefix("2002::/16")      // holds one in bits 16 to 47
	teredo       = netip.MustParsePrefix("2001::/32")      //
	metadata     = map[netip.Addr]bool{                    // serve a cloud's credentials to whoever asks
		netip.MustParseAddr("fd00:ec2::254"):   true,
		netip.MustParseAddr("100.100.100.200"): true,
		netip.MustParseAddr("192.0.0.192"):     true,
	}
)

// control is called by the dialer before it connects.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return types.Errorf(types.ErrPermission, "Connect", address, "not an address")
	}
	if why := g.refuses(at.Addr()); why != "" {
		return types.Errorf(types.ErrPermission, "Connect", address, "the URL leads to %s, which is not allowed", why)
	}
	return nil
}

// refuses says what an address is, if it may not be dialled.
func (g guard) refuses(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	switch {
	case metadata[a], a.IsLinkLocalUnicast():
		return "an address of the machine's own surroundings, where clouds keep credentials"
	case a.IsMulticast(), a.IsUnspecified(), thisNetwork.Contains(a), reserved.Contains(a), protocols.Contains(a), benchmarking.Contains(a), teredo.Contains(a):
		return "an address of no host"
	case a.IsLoopback() && !g.loopback && !g.private:
		return "this machine"
	case (a.IsPrivate() || shared.Contains(a) || localNAT64.Contains(a)) && !g.private:
		return "a private address"
	}
	if a.Is6() {
		b := a.As16()
		inner := netip.Addr{}
		switch {
		case nat64.Contains(a):
			inner = netip.AddrFrom4([4]byte(b[12:16]))
		case sixToFour.Contains(a):
			inner = netip.AddrFrom4([4]byte(b[2:6]))
		}
		if inner.IsValid() {
			if why := (guard{private: g.private}).refuses(inner); why != "" {
				return fmt.Sprintf("%s (%s)", inner, why)
			}
		}
	}
	return ""
}
