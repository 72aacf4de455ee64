package kernel

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rnix/internal/yamlfile"
	"rnix/types"
	"rnix/vfs"
)

// Rights says which device paths a process may open. They fail closed: an empty list allows nothing.
// Values are immutable; every operation returns a new one that allows no more than the old.
type Rights struct {
	// Allowed holds the paths that are allowed, with all below them. nil = everything, which only
	// what a person starts can have; an empty list = nothing.
	Allowed []string
	// Denied holds paths that are refused, with all below them, whatever Allowed says.
	Denied []string
}

// Permits reports whether path may be opened.
func (r Rights) Permits(path string) bool {
	path = strings.TrimRight(path, "/")
	if dotted(path) {
		return false // "/dev/fs/../shell" is not below /dev/fs
	}
	below := func(dir string) bool { return vfs.Below(path, dir) }
	return (r.Allowed == nil || slices.ContainsFunc(r.Allowed, below)) && !slices.ContainsFunc(r.Denied, below)
}

// dotted reports whether a path has "." or ".." elements in its first three, the device part.
func dotted(path string) bool {
	for i, part := range strings.Split(path, "/") {
		if i <= 3 && (part == "." || part == "..") {
			return true
		}
	}
	return false
}

// Narrow returns the rights that r and the list both allow. A nil list changes nothing; an empty one
// leaves nothing.
func (r Rights) Narrow(list []string) Rights {
	if list == nil {
		return r
	}
	list = clean(list)
	if r.Allowed == nil {
		return Rights{Allowed: list, Denied: r.Denied}
	}
	both := []string{}
	for _, a := range r.Allowed {
		for _, b := range list {
			switch {
			case vfs.Below(a, b):
				both = append(both, a)
			case vfs.Below(b, a):
				both = append(both, b)
			}
		}
	}
	return Rights{Allowed: clean(both), Denied: r.Denied}
}

// Without returns the rights without the denied paths.
func (r Rights) Without(denied []string) Rights {
	if len(denied) == 0 {
		return r
	}
	return Rights{Allowed: r.Allowed, Denied: clean(append(slices.Clone(r.Denied), denied...))}
}

// Within returns the rights that r and outer both allow.
func (r Rights) Within(outer Rights) Rights {
	return outer.Narrow(r.Allowed).Without(r.Denied)
}

// clean returns the paths sorted, once each, without trailing slashes. It never returns nil.
func clean(paths []string) []string {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		if p != "/" {
			p = strings.TrimRight(p, "/")
		}
		out = append(out, p)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// CheckPath refuses a path at which no device can be: a slip in a path that is to be denied would deny nothing.
// What is mounted for a process, and the kernel's own rights, have no device yet.
func (k *KernelImpl) CheckPath(path string) error {
	if !strings.HasPrefix(path, "/") {
		return types.Errorf(types.ErrInvalid, "Spawn", path, "not a device path; device paths begin with a slash, such as /dev/shell (see `rnix ls /dev`)")
	}
	known := k.cfg.Devices.Paths()
	for _, device := range append([]string{"/mnt", "/sys"}, known...) {
		if vfs.Below(path, device) || vfs.Below(device, path) {
			return nil
		}
	}
	near := ""
	if n := yamlfile.Nearest(path, known); n != "" {
		near = "did you mean " + n + "? "
	}
	return types.Errorf(types.ErrInvalid, "Spawn", path, "there is no such device; %s`rnix ls /dev` lists them", near)
}

// CheckName refuses a name that a process cannot have. None at all is one.
func CheckName(name string) error {
	if strings.ContainsFunc(name, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }) || len(name) > 64 || strings.TrimSpace(name) != name {
		return types.Errorf(types.ErrInvalid, "Spawn", strconv.Quote(name), "a name has at most 64 bytes, no slash and no control character, and no blank at its ends")
	}
	if _, err := types.ParsePID(name); err == nil {
		return types.Errorf(types.ErrInvalid, "Spawn", name, "a name must not be a number: it would be taken for a PID")
	}
	return nil
}
