package sandbox

import (
	"path/filepath"
	"slices"

	"rnix/internal/hosts"
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

// Reaches says whether the policy lets a command reach a host: a name or an address, with or without ":port". A host without one is reached if it is at some port.
func (p Policy) Reaches(host string) bool {
	if p.Net != NetHosts {
		return p.Net == NetOpen
	}
	want, err := hosts.ParseTarget(host, 0)
	without := err != nil
	if without {
		if want, err = hosts.ParseTarget(host, 443); err != nil {
			return false
		}
	}
	rules, err := hosts.ParseAll(p.Hosts)
	return err == nil && slices.ContainsFunc(rules, func(r hosts.Rule) bool { return r.Matches(want) || without && r.MatchesHost(want) })
}
