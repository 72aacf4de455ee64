package sandbox

import (
	"slices"

	"rnix/internal/hosts"
)

// Meet returns the policy that allows what both allow: for each path the lesser access, for each host and socket both, for each
// limit the smaller, and the stricter level. A child gets the meet of its own policy and its parent's, so it never has more than
// the parent. The result is canonical; order and repetition change nothing. Paths are compared as they are written: call Resolve
// first if they may contain symbolic links. Both policies must have passed Check.
func Meet(a, b Policy) Policy {
	out := Policy{
		Version: Version, Level: later(levels, a.Level, b.Level), Net: nets[min(slices.Index(nets, a.Net), slices.Index(nets, b.Net))],
		Sockets: meetTrees(a.Sockets, b.Sockets), Limits: a.Limits, Run: a.Run, Single: a.Single || b.Single,
	}
	switch {
	case a.Run == nil:
		out.Run = b.Run
	case b.Run != nil:
		out.Run = append([]string{}, meetTrees(a.Run, b.Run)...)
	}
	other := b.Limits.named()
	for i, l := range out.Limits.named() {
		if o := *other[i].value; *l.value == 0 || o != 0 && o < *l.value {
			*l.value = o
		}
	}
	meetPaths(a, b, &out)
	if out.Net == NetHosts {
		out.Hosts = meetHosts(a, b)
	}
	return out
}

func later[T comparable](order []T, a, b T) T {
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// meetPaths finds the lesser access at each path where that of a or b changes, and keeps those where it differs from what is above.
func meetPaths(a, b Policy, out *Policy) {
	points := sortPaths(slices.Concat(a.Read, a.Write, a.Hide, a.Protect, b.Read, b.Write, b.Hide, b.Protect))
	type kept struct {
		path   string
		access Access
	}
	var above []kept
	for _, path := range points {
		for len(above) > 0 && !within(path, above[len(above)-1].path) {
			above = above[:len(above)-1]
		}
		inherited := AccessNone
		if len(above) > 0 {
			inherited = above[len(above)-1].access
		}
		access := min(a.Access(path), b.Access(path))
		if access == inherited {
			continue
		}
		above = append(above, kept{path, access})
		switch {
		case access == AccessNone:
			out.Hide = append(out.Hide, path)
		case access == AccessWrite:
			out.Write = append(out.Write, path)
		case inherited == AccessWrite:
			out.Protect = append(out.Protect, path)
		default:
			out.Read = append(out.Read, path)
		}
	}
}

// meetTrees returns the trees that are in a tree of a and in one of b, without those that are in another.
func meetTrees(a, b []string) []string {
	var out []string
	for _, x := range a {
		for _, y := range b {
			if within(x, y) {
				out = append(out, x)
			} else if within(y, x) {
				out = append(out, y)
			}
		}
	}
	var top []string
	for _, path := range sortPaths(out) {
		if len(top) == 0 || !within(path, top[len(top)-1]) {
			top = append(top, path)
		}
	}
	return top
}

// meetHosts returns the hosts that both policies let be reached.
func meetHosts(a, b Policy) []string {
	ra, _ := hosts.ParseAll(a.Hosts) // both have passed Check
	rb, _ := hosts.ParseAll(b.Hosts)
	switch {
	case a.Net == NetOpen:
		return rb.Strings()
	case b.Net == NetOpen:
		return ra.Strings()
	}
	return hosts.Meet(ra, rb).Strings()
}
