package vfs

import (
	gopath "path"
	"slices"
	"strings"
	"sync/atomic"

	"rnix/types"
	"rnix/xsync"
)

// device is what a path is registered with.
type device struct {
	open  VFSFileFactory
	tools atomic.Pointer[[]Tool] // what it points to is not changed
}

// DeviceRegistry maps paths to factories. A path is found exactly, else by its longest registered
// parent; "/dev/fsx" is not below "/dev/fs". Lookups probe the path and then its parents, at the
// depths that some device has, so they cost neither the number of devices nor the length of what
// stands behind the device. Safe for concurrent use.
type DeviceRegistry struct {
	registry xsync.Registry[*device]
	depths   [maxDepth + 1]atomic.Int32 // how many paths with so many elements are registered
}

// maxDepth is how many elements the path of a device may have.
const maxDepth = 16

// NewDeviceRegistry returns an empty registry.
func NewDeviceRegistry() *DeviceRegistry { return &DeviceRegistry{} }

// Register adds a device at path, which must be absolute, clean and not taken.
func (r *DeviceRegistry) Register(path string, factory VFSFileFactory) error {
	return r.RegisterTools(path, factory, nil)
}

// RegisterTools is Register for a device that offers tools. The tools' paths must be path or below.
func (r *DeviceRegistry) RegisterTools(path string, factory VFSFileFactory, tools []Tool) error {
	if err := checkPath(path); err != nil || path == "/" || path != gopath.Clean(path) {
		return types.Errorf(types.ErrInvalid, "Register", path, "not an absolute, clean path")
	}
	d := &device{open: factory}
	if err := d.offer(path, tools); err != nil {
		return err
	}
	depth := strings.Count(path, "/")
	if depth > maxDepth {
		return types.Errorf(types.ErrInvalid, "Register", path, "path has more than %d elements", maxDepth)
	}
	r.depths[depth].Add(1) // before the path can be found
	if err := r.registry.Register(path, d); err != nil {
		r.depths[depth].Add(-1)
		return types.Errorf(types.ErrInvalid, "Register", path, "path is taken")
	}
	return nil
}

// offer sets the tools of a device that has this path.
func (d *device) offer(path string, tools []Tool) error {
	for _, t := range tools {
		if !Below(t.Path, path) {
			return types.Errorf(types.ErrInvalid, "Register", path, "tool %s has path %s outside the device", t.Name, t.Path)
		}
	}
	own := slices.Clone(tools)
	d.tools.Store(&own)
	return nil
}

// SetTools replaces the tools of the device registered at exactly path. Their paths must be path or below. NOT_FOUND without such a device.
func (r *DeviceRegistry) SetTools(path string, tools []Tool) error {
	d, ok := r.registry.Lookup(path)
	if !ok {
		return types.Errorf(types.ErrNotFound, "Register", path, "no such device")
	}
	return d.offer(path, tools)
}

// Unregister removes the device at path. Files that are open stay open.
func (r *DeviceRegistry) Unregister(path string) error {
	if !r.registry.Unregister(path) {
		return types.Errorf(types.ErrNotFound, "Unregister", path, "no such device")
	}
	r.depths[strings.Count(path, "/")].Add(-1)
	return nil
}

// Open opens path with the device that serves it.
func (r *DeviceRegistry) Open(path string, flags OpenFlag) (VFSFile, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	d, subpath, ok := r.lookup(path)
	if !ok {
		return nil, types.Errorf(types.ErrNotFound, "Open", path, "no such device")
	}
	return d.open(subpath, flags)
}

// lookup finds the device of path and the rest of the path behind it.
func (r *DeviceRegistry) lookup(path string) (*device, string, bool) {
	var ends [maxDepth + 1]int // where the first elements of path end
	depth := 0
	for end := 0; end < len(path) && depth < maxDepth; {
		if next := strings.IndexByte(path[end+1:], '/'); next >= 0 {
			end += 1 + next
		} else {
			end = len(path)
		}
		depth++
		ends[depth] = end
	}
	for ; depth > 0; depth-- {
		if r.depths[depth].Load() == 0 {
			continue
		}
		if d, ok := r.registry.Lookup(path[:ends[depth]]); ok {
			return d, path[ends[depth]:], true
		}
	}
	return nil, "", false
}

// Paths returns the registered paths in order.
func (r *DeviceRegistry) Paths() []string {
	var out []string
	r.registry.Range(func(p string, _ *device) bool { out = append(out, p); return true })
	slices.Sort(out)
	return out
}

// Tools returns the tools of the device registered at exactly path, or nil. The caller must not
// change them.
func (r *DeviceRegistry) Tools(path string) []Tool {
	if d, ok := r.registry.Lookup(path); ok {
		return *d.tools.Load()
	}
	return nil
}

// Below reports whether path is dir or lies below it.
func Below(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || dir == "/" || path[len(dir)] == '/')
}

// checkPath refuses what is not an absolute path without NUL bytes. What stands behind the path of a
// device may hold anything, as resource URIs of MCP servers do; "." and ".." mean nothing here, so
// they never lead from one device to another.
func checkPath(path string) error {
	if path == "" || path[0] != '/' || strings.IndexByte(path, 0) >= 0 {
		return types.Errorf(types.ErrInvalid, "Open", path, "not an absolute path")
	}
	return nil
}
