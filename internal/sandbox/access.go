package sandbox

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Access is what a command may do with a file. More is greater.
type Access int

// The accesses.
const (
	AccessNone  Access = iota // neither read nor write
	AccessRead                // read, execute, list
	AccessWrite               // also write, create, remove
)

// String returns none, read or write.
func (a Access) String() string { return [...]string{"none", "read", "write"}[a] }

// Access returns what the policy lets a command do with a path, which must be absolute. Symbolic links are not followed.
func (p Policy) Access(path string) Access {
	path = filepath.Clean(path)
	access := p.at("/", AccessNone)
	for i := 1; i <= len(path); i++ {
		if path != "/" && (i == len(path) || path[i] == '/') {
			access = p.at(path[:i], access)
		}
	}
	return access
}

// at returns the access at a path below a directory with another access.
func (p Policy) at(path string, above Access) Access {
	switch {
	case slices.Contains(p.Hide, path):
		return AccessNone
	case slices.Contains(p.Write, path):
		above = AccessWrite
	case slices.Contains(p.Read, path):
		above = AccessRead
	}
	if slices.Contains(p.Protect, path) {
		above = min(above, AccessRead)
	}
	return above
}

// Allows says whether the policy lets a command do that much with a path.
func (p Policy) Allows(path string, want Access) bool { return p.Access(path) >= want }

// Reaches says whether the policy lets a command reach a host: a name or an address, with or without ":port". With a policy that
// names a port, a host without one is not reached.
func (p Policy) Reaches(host string) bool {
	if p.Net != NetHosts {
		return p.Net == NetOpen
	}
	want, err := parseHost(host)
	if err != nil || want.wild {
		return false
	}
	return slices.ContainsFunc(p.Hosts, func(h string) bool {
		have, err := parseHost(h)
		return err == nil && have.covers(want)
	})
}

// hostPattern is a host of a policy.
type hostPattern struct {
	name string
	wild bool // all names below name, but not name itself
	port int  // 0: any
}

func parseHost(text string) (hostPattern, error) {
	h := hostPattern{name: strings.ToLower(text)}
	wrong := func(want string) (hostPattern, error) {
		return hostPattern{}, fmt.Errorf("invalid host %q: want %s", text, want)
	}
	if name, port, err := net.SplitHostPort(h.name); err == nil {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port {
			return wrong("a port from 1 to 65535")
		}
		h.name, h.port = name, n
	} else {
		h.name = strings.TrimSuffix(strings.TrimPrefix(h.name, "["), "]")
	}
	if name, ok := strings.CutPrefix(h.name, "*."); ok {
		h.name, h.wild = name, true
	}
	if ip := net.ParseIP(h.name); ip != nil {
		if h.wild {
			return wrong("no * before an address")
		}
		h.name = ip.String()
		return h, nil
	}
	for label := range strings.SplitSeq(h.name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return wrong("a name such as example.com, example.com:443, *.example.com or an address")
		}
	}
	return h, nil
}

func (h hostPattern) String() string {
	name := h.name
	if h.wild {
		name = "*." + name
	}
	if h.port != 0 {
		return net.JoinHostPort(name, strconv.Itoa(h.port))
	}
	return name
}

// covers says whether h matches whatever o matches.
func (h hostPattern) covers(o hostPattern) bool {
	if h.port != 0 && h.port != o.port {
		return false
	}
	if h.wild {
		return h.name == "" || strings.HasSuffix(o.name, "."+h.name) || o.wild && o.name == h.name
	}
	return !o.wild && h.name == o.name
}

// meet returns what both match, if there is anything.
func (h hostPattern) meet(o hostPattern) (hostPattern, bool) {
	if h.port != 0 && o.port != 0 && h.port != o.port {
		return h, false
	}
	port := max(h.port, o.port)
	h.port, o.port = port, port
	if h.covers(o) {
		return o, true
	}
	return h, o.covers(h)
}
