// Package hosts has the rules that say which hosts a program may reach. It is pure: it looks up no name and connects to nothing.
package hosts

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"rnix/types"
)

// Rule names hosts, and ports of these. As text:
//
//	example.com        this name, at the ports 80 and 443
//	example.com:8080   this name at this port
//	example.com:*      this name at any port
//	*.example.com      all names below it, but not itself
//	*                  every name
//	192.0.2.1:5432     an address; [2001:db8::1]:443 one of IPv6
//	10.0.0.0/8         a net of addresses
//	localhost:8080     this machine, as the daemon sees it
//
// Names stand for public addresses: one that is private is reached only if a rule names it, or a net that holds it, at that port.
type Rule struct {
	name  string       // empty = every name
	below bool         // all names below name, but not name itself
	net   netip.Prefix // valid = addresses, and no name
	port  int          // or anyPort, or webPorts
}

const (
	anyPort  = 0
	webPorts = -1 // 80 and 443
)

// localhost is the one name that stands for private addresses.
const localhost = "localhost"

// Parse reads a rule. INVALID says what is wrong with it.
func Parse(text string) (Rule, error) {
	bad := func(why string) (Rule, error) {
		return Rule{}, types.Errorf(types.ErrInvalid, "hosts", "", `%q is no host: %s; write a name such as example.com, *.example.com or example.com:8080, an address, a net such as 10.0.0.0/8, or one of: %s`,
			cut(text), why, strings.Join(PresetNames(), ", "))
	}
	if strings.Contains(text, "://") {
		return bad("it is a URL, of which the host alone counts")
	}
	name, port, err := split(text)
	if err != nil {
		return bad(err.Error())
	}
	r := Rule{port: webPorts}
	switch {
	case port == "*":
		r.port = anyPort
	case port != "":
		n, err := portOf(port)
		if err != nil {
			return bad(err.Error())
		}
		r.port = int(n)
	}
	if address, bits, net := strings.Cut(name, "/"); net {
		_, ip, err := nameOf(address)
		n, e := strconv.Atoi(bits)
		if err != nil || !ip.IsValid() || e != nil || strconv.Itoa(n) != bits {
			return bad("a net is an address and its bits")
		}
		if r.net, err = ip.Prefix(n); err != nil || r.net.Addr() != ip {
			return bad("the address of a net has only zeros behind its bits")
		}
		return r, nil
	}
	if name == "*" {
		return r, nil
	}
	if name, r.below = strings.CutPrefix(name, "*."); strings.Contains(name, "*") {
		return bad(`a * stands for all names below one, as in "*.example.com"`)
	}
	var ip netip.Addr
	if r.name, ip, err = nameOf(name); err != nil {
		return bad(err.Error())
	}
	switch {
	case ip.IsValid() && r.below:
		return bad("there are no names below an address")
	case ip.IsValid():
		r.name, r.net = "", netip.PrefixFrom(ip, ip.BitLen())
	case r.name == localhost && r.port == webPorts:
		return bad("say at which port of this machine, such as localhost:8080")
	}
	return r, nil
}

// String returns the rule as it is written.
func (r Rule) String() string {
	name := r.name
	switch {
	case r.net.IsSingleIP():
		name = r.net.Addr().String()
	case r.net.IsValid():
		name = r.net.String()
	case name == "":
		name = "*"
	case r.below:
		name = "*." + name
	}
	if r.port == webPorts {
		return name
	}
	if r.net.IsValid() && r.net.Addr().Is6() {
		name = "[" + name + "]"
	}
	if r.port == anyPort {
		return name + ":*"
	}
	return name + ":" + strconv.Itoa(r.port)
}

// Web reports whether the rule names no port, and so is about 80 and 443.
func (r Rule) Web() bool { return r.port == webPorts }

// Covers reports whether r is about everything that o is about.
func (r Rule) Covers(o Rule) bool { return portCovers(r.port, o.port) && r.names(o) }

// names reports whether r is about all hosts that o is about, the ports aside.
func (r Rule) names(o Rule) bool {
	switch {
	case r.net.IsValid() || o.net.IsValid():
		return r.net.IsValid() && o.net.IsValid() && r.net.Bits() <= o.net.Bits() && r.net.Contains(o.net.Addr())
	case r.name == "":
		return o.name != localhost // which is this machine, and must be named
	case r.below:
		return strings.HasSuffix(o.name, "."+r.name) || o.below && o.name == r.name
	}
	return !o.below && o.name == r.name
}

func portCovers(a, b int) bool {
	return a == anyPort || a == b || a == webPorts && (b == 80 || b == 443)
}

// meet returns what both are about, if there is anything.
func (r Rule) meet(o Rule) (Rule, bool) {
	port := o.port
	if !portCovers(r.port, o.port) {
		if port = r.port; !portCovers(o.port, r.port) {
			return Rule{}, false
		}
	}
	r.port, o.port = port, port
	if r.names(o) {
		return o, true
	}
	return r, o.names(r)
}

// Matches reports whether the rule is about a target.
func (r Rule) Matches(t Target) bool { return portCovers(r.port, int(t.Port)) && r.MatchesHost(t) }

// MatchesHost reports whether the rule is about the host of a target, at whatever port that is.
func (r Rule) MatchesHost(t Target) bool {
	if t.Addr.IsValid() {
		return r.holds(t.Addr)
	}
	return r.names(Rule{name: t.Name})
}

// holds reports whether the rule names an address, or a net that holds it.
func (r Rule) holds(ip netip.Addr) bool { return r.net.IsValid() && r.net.Contains(ip.Unmap()) }

// Rules are those of one program. The zero value lets it reach nothing.
type Rules []Rule

// ParseAll reads rules and names of presets. INVALID says what is wrong with the first that is neither.
func ParseAll(texts []string) (Rules, error) {
	var out Rules
	for _, text := range texts {
		for _, text := range Expand(text) {
			r, err := Parse(text)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out.canonical(), nil
}

// Strings returns the rules as they are written.
func (rs Rules) Strings() []string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = r.String()
	}
	return out
}

// canonical returns the rules sorted, without those that another one covers.
func (rs Rules) canonical() Rules {
	var out Rules
	for i, r := range rs {
		if !slices.ContainsFunc(rs, func(o Rule) bool { return o != r && o.Covers(r) }) && !slices.Contains(rs[:i], r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Rule) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// Meet returns rules that let a program reach what both let it reach.
func Meet(a, b Rules) Rules {
	var all Rules
	for _, x := range a {
		for _, y := range b {
			if both, ok := x.meet(y); ok {
				all = append(all, both)
			}
		}
	}
	return all.canonical()
}

// Match returns a rule that is about a target.
func (rs Rules) Match(t Target) (Rule, bool) {
	if i := slices.IndexFunc(rs, func(r Rule) bool { return r.Matches(t) }); i >= 0 {
		return rs[i], true
	}
	return Rule{}, false
}

// Names reports whether the rules name an address at a port, so that it may be reached although it is private: as an address, as a net, or as localhost for the
// target localhost.
func (rs Rules) Names(t Target, ip netip.Addr) bool {
	return slices.ContainsFunc(rs, func(r Rule) bool {
		if !portCovers(r.port, int(t.Port)) {
			return false
		}
		return r.holds(ip) || r.name == localhost && !r.below && t.Name == localhost && ip.IsLoopback()
	})
}
