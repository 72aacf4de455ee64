package kernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rnix/agent"
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
	if path = strings.TrimRight(path, "/"); path == "" {
		path = "/"
	}
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
// leaves nothing. A list that names no model keeps those that r names: it says nothing of models.
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
	out := Rights{Allowed: clean(both), Denied: r.Denied}
	switch before, named := modelsIn(r.Allowed), modelsIn(list); {
	case len(modelsIn(out.Allowed)) > 0 || len(before) == 0 && len(named) == 0:
	case len(named) == 0 && len(list) > 0:
		out.Allowed = clean(append(out.Allowed, before...))
	default: // no model is in both; without one, the list would say nothing of models any more
		out = out.Without([]string{modelRoot})
	}
	return out
}

// modelsIn returns those of the paths that name models.
func modelsIn(paths []string) (out []string) {
	for _, p := range paths {
		if vfs.Below(p, modelRoot) {
			out = append(out, p)
		}
	}
	return out
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

// CheckDevices refuses lists of devices in which a path stands that has no effect there: to deny it would deny nothing.
func (k *KernelImpl) CheckDevices(allow, deny []string) error {
	if len(allow)+len(deny) == 0 {
		return nil // the usual case costs no memory
	}
	known := knownDevices(k.cfg.Devices)
	for _, path := range allow {
		if err := agent.CheckDevice(path, false, known); err != nil {
			return types.Errorf(types.ErrInvalid, "Spawn", path, "cannot allow %q: %w", path, err)
		}
	}
	for _, path := range deny {
		if err := agent.CheckDevice(path, true, known); err != nil {
			return types.Errorf(types.ErrInvalid, "Spawn", path, "cannot deny %q: %w", path, err)
		}
	}
	return nil
}

// knownDevices are the paths that a list of devices can name.
func knownDevices(registered *vfs.DeviceRegistry) []string {
	known := agent.Devices()
	for _, path := range registered.Paths() {
		if !vfs.Below(path, mcpRoot) && !slices.Contains(known, path) { // the servers of one process have no name for others
			known = append(known, path)
		}
	}
	return known
}

// VoidDenials returns what rights deny to no effect, with the reason. Only a history of an earlier version has such rights.
func (k *KernelImpl) VoidDenials(denied []string) (out []string) {
	for _, path := range denied {
		if err := k.CheckDevices(nil, []string{path}); err != nil {
			out = append(out, fmt.Sprintf("it was started with a denial that has no effect: %v", err.(*types.SyscallError).Err))
		}
	}
	return out
}

// refuses reports whether r denies what a process opens at path under another name that it has there: its own files
// below /proc, and its servers, which the lists name as the configuration does.
func (r Rights) refuses(p *Process, path string) bool {
	if len(r.Denied) == 0 {
		return false
	}
	names := []string{path, collapsed(path)} // devices that cut their paths at slashes see no empty elements
	self, own := "/proc/self", "/proc/"+p.PID.String()
	for _, name := range names[:2] {
		if vfs.Below(name, self) {
			names = append(names, own+strings.TrimPrefix(name, self))
		} else if vfs.Below(name, own) {
			names = append(names, self+strings.TrimPrefix(name, own))
		}
	}
	if in, ok := strings.CutPrefix(path, mcpRoot+"/"+p.PID.String()+"-"); ok {
		names = append(names, mcpRoot+"/"+in)
	}
	denied := Rights{Denied: r.Denied}
	return slices.ContainsFunc(names, func(name string) bool { return !denied.Permits(name) })
}

// collapsed returns a path without empty elements.
func collapsed(path string) string {
	return "/" + strings.Join(strings.FieldsFunc(path, func(r rune) bool { return r == '/' }), "/")
}

// fallbackIn returns the path of the second model that a path of a model names; "" if there is none.
func fallbackIn(path string) string {
	if !strings.Contains(path, "fallback") { // the usual case costs no memory
		return ""
	}
	parts := strings.Split(strings.TrimPrefix(collapsed(path), modelRoot+"/"), "/")
	if !vfs.Below(collapsed(path), modelRoot) || len(parts) < 3 || parts[1] != "fallback" {
		return ""
	}
	return modelRoot + "/" + parts[2]
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
