package vfs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/types"
)

// defaultMountTimeout bounds a mount whose configuration does not: start, protocol and list of tools.
const defaultMountTimeout = 30 * time.Second

// MountManager puts MCP servers into the name space: it makes a transport, connects it, lists the
// server's tools and registers a device that serves them. It owns every transport that it made, from
// the moment of making to Close. Safe for concurrent use; its one lock is a leaf and is never held
// while a transport works.
type MountManager struct {
	devices *DeviceRegistry
	factory TransportFactory

	mu sync.Mutex
	// +checklocks:mu
	mounts map[string]*mount // by path, from the start of a mount to the end of its unmount
}

// mount is one server, under way, up, or leaving.
type mount struct {
	path    string
	config  MCPConfig // with which it was mounted
	since   time.Time
	life    context.Context         // ends with the unmount
	end     context.CancelCauseFunc // of life
	settled chan struct{}           // closed when the mount is up or has failed
	left    chan struct{}           // closed when nothing is left of it
	served  served
	up      bool           // set before settled is closed: it is in the name space
	leaving bool           // guarded by MountManager.mu: somebody is unmounting it
	work    sync.WaitGroup // reloads, and what lists tools anew; added to under MountManager.mu while it is not leaving
	hearing hearing
}

// PathConfig is a server and where to mount it.
type PathConfig struct {
	Path   string
	Config MCPConfig
	// Spare reports whether the rest of a set is mounted although this server could not be started, for the reason given: it is mounted without
	// tools then, until a reload starts it. nil = never.
	Spare func(reason error) bool
}

// Down is a server of a set that could not be started, and was spared.
type Down struct {
	Path   string
	Server string
	Reason error
}

// MountInfo describes a mount.
type MountInfo struct {
	Path      string    `json:"path"`
	Server    string    `json:"server"`
	PID       types.PID `json:"pid"` // of the process that it is mounted for
	Since     time.Time `json:"since"`
	Tools     int       `json:"tools"`               // how many are offered to the model
	Truncated bool      `json:"truncated,omitempty"` // the server has more tools than are taken
	Mounting  bool      `json:"mounting,omitempty"`  // not up yet
	MCPState
}

// NewMountManager returns a manager without mounts.
func NewMountManager(devices *DeviceRegistry, factory TransportFactory) *MountManager {
	return &MountManager{devices: devices, factory: factory, mounts: map[string]*mount{}}
}

// Mount is MountContext without a context.
func (m *MountManager) Mount(path string, config MCPConfig) error {
	return m.MountContext(context.Background(), path, config)
}

// MountContext mounts a server at path and returns when its tools can be used. It fails with
// ALREADY_MOUNTED if path is taken, also by a mount under way; with CANCELLED or TIMEOUT if ctx, an
// Unmount or the configuration's MountTimeout ends it; and with the transport's own code otherwise.
// The error names the server and the phase that failed. A mount that failed leaves nothing behind.
func (m *MountManager) MountContext(ctx context.Context, path string, config MCPConfig) error {
	_, err := m.mount(ctx, PathConfig{Path: path, Config: config})
	return err
}

// mount is MountContext, and returns why a server is down that was spared.
func (m *MountManager) mount(ctx context.Context, s PathConfig) (down, err error) {
	path, config := s.Path, s.Config
	if err := checkMountPath(path); err != nil {
		return nil, err
	}
	if config.Name == "" {
		config.Name = serverOf(path)
	}
	if config.Disabled {
		return nil, types.Errorf(types.ErrInvalid, "Mount", path, "server %s is disabled in its configuration", config.Name)
	}
	t := &mount{path: path, config: config, since: time.Now(), settled: make(chan struct{}), left: make(chan struct{})}
	t.life, t.end = context.WithCancelCause(context.Background())
	asked := ctx
	ctx, done := t.limit(ctx, config)
	defer done()
	m.mu.Lock()
	if _, taken := m.mounts[path]; taken {
		m.mu.Unlock()
		t.end(nil)
		return nil, types.Errorf(types.ErrAlreadyMounted, "Mount", path, "a server is mounted here already: unmount it first")
	}
	m.mounts[path] = t
	m.mu.Unlock()

	phase, err := m.bringUp(ctx, t)
	if err != nil {
		err = mountError(ctx, t, phase, err)
		if s.Spare != nil && asked.Err() == nil && t.life.Err() == nil && s.Spare(err) {
			t.served.put(config, nil, nil, offer{}, err)
			if rerr := m.devices.RegisterTools(path, mcpFileFactory(&t.served), nil); rerr == nil {
				t.up, down, err = true, err, nil
			}
		}
	}
	if err != nil {
		t.end(nil)
		m.forget(t)
	}
	close(t.settled)
	return down, err
}

// limit returns a context for the start of a server: it ends with ctx, with the mount, and with the time that its configuration gives.
func (t *mount) limit(ctx context.Context, config MCPConfig) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	with := context.AfterFunc(t.life, func() { cancel(context.Cause(t.life)) })
	stop := func() {}
	if limit := config.MountTimeout.Or(defaultMountTimeout); limit > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, limit, errors.New("not ready within "+limit.String()+" (mount_timeout)"))
	}
	return ctx, func() { stop(); with(); cancel(nil) }
}

// bringUp does the work of a mount. When it fails it says in which phase, and has undone everything.
func (m *MountManager) bringUp(ctx context.Context, t *mount) (phase string, err error) {
	transport, err := m.transport(t, t.config)
	if err != nil {
		return "configuration", err
	}
	list, o, phase, err := t.start(ctx, transport, t.config)
	if err != nil {
		_ = transport.Close() // what failed before matters more
		return phase, err
	}
	t.served.put(t.config, transport, list, o, nil)
	if err := m.devices.RegisterTools(t.path, mcpFileFactory(&t.served), o.tools); err != nil {
		_ = transport.Close() // likewise
		return "register", err
	}
	t.up = true
	return "", nil
}

// transport makes a transport of a mount, without connecting it.
func (m *MountManager) transport(t *mount, config MCPConfig) (MCPTransport, error) {
	config.Tell = m.hear(t, config.Tell)
	return m.factory(config)
}

// start connects a transport, and lists the tools. If it fails it says in which phase; the caller closes the transport.
func (t *mount) start(ctx context.Context, transport MCPTransport, config MCPConfig) (list json.RawMessage, o offer, phase string, err error) {
	if err := transport.Connect(ctx); err != nil {
		return nil, o, "connect", err
	}
	if list, err = transport.Call(ctx, "tools/list", nil); err != nil {
		return nil, o, "list tools", err
	}
	if o, err = readOffer(t.path, config.Name, list); err != nil {
		return nil, o, "list tools", err
	}
	return list, o, "list tools", Ended(ctx, "Mount", t.path) // an unmount came too late to stop the listing
}

// forget takes a mount out of the table, for good.
func (m *MountManager) forget(t *mount) {
	m.mu.Lock()
	delete(m.mounts, t.path)
	m.mu.Unlock()
	close(t.left)
}

// Unmount ends the server at path and waits until it is gone; a mount under way is cancelled. It
// fails with NOT_FOUND if nothing is mounted there, and with the transport's error if closing failed;
// the path is free in any case.
func (m *MountManager) Unmount(path string) error {
	m.mu.Lock()
	t, ok := m.mounts[path]
	if !ok {
		m.mu.Unlock()
		return types.Errorf(types.ErrNotFound, "Unmount", path, "not mounted")
	}
	first := !t.leaving
	t.leaving = true
	m.mu.Unlock()
	if !first {
		<-t.left // closed by the one who came first, whose transport closes in bounded time
		return nil
	}
	t.end(errUnmounted)
	<-t.settled
	if t.gone() {
		return nil // the mount failed, or was cancelled, and has cleaned up
	}
	t.work.Wait() // life has ended, and with it what they do
	// New opens first fail to find the device, then open files fail because the server is gone.
	err := m.devices.Unregister(path)
	if transport, _ := t.served.connection(context.Background()); transport != nil { // no reload is under way any more
		if cerr := transport.Close(); cerr != nil {
			err = cerr
		}
	}
	m.forget(t)
	if err != nil {
		return types.Errorf(types.CodeOf(err), "Unmount", path, "server %s: %w", t.config.Name, err)
	}
	return nil
}

func (t *mount) gone() bool {
	select {
	case <-t.left:
		return true
	default:
		return false
	}
}

// errUnmounted is the cause that Unmount gives to a mount under way.
var errUnmounted = errors.New("unmounted while it was being mounted")

// UnmountAll unmounts everything, side by side, and returns the errors joined.
func (m *MountManager) UnmountAll() error {
	m.mu.Lock()
	var paths []string
	for p := range m.mounts {
		paths = append(paths, p)
	}
	m.mu.Unlock()
	return m.unmount(paths)
}

func (m *MountManager) unmount(paths []string) error {
	errs := make([]error, len(paths))
	var wg sync.WaitGroup
	for i, p := range paths {
		wg.Go(func() { // ends with the unmount
			if err := m.Unmount(p); types.CodeOf(err) != types.ErrNotFound {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// MountSet mounts several servers side by side, all or none: the first failure cancels the others
// and unmounts what was up already. Only failures of their own are returned, joined. Servers that are spared are no failure; they are
// mounted without tools, and returned in the order of the set.
func (m *MountManager) MountSet(ctx context.Context, set []PathConfig) ([]Down, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs, downs := make([]error, len(set)), make([]error, len(set))
	var wg sync.WaitGroup
	for i, s := range set {
		wg.Go(func() { // ends with the mount
			if downs[i], errs[i] = m.mount(ctx, s); errs[i] != nil {
				cancel(errSetFailed)
			}
		})
	}
	wg.Wait()
	var up []string
	var spared []Down
	for i, err := range errs {
		if err == nil {
			up = append(up, set[i].Path)
		} else if errors.Is(err, errSetFailed) {
			errs[i] = nil
		}
		if downs[i] != nil {
			spared = append(spared, Down{set[i].Path, cmp.Or(set[i].Config.Name, serverOf(set[i].Path)), downs[i]})
		}
	}
	if len(up) == len(set) {
		return spared, nil
	}
	_ = m.unmount(up) // what failed before matters more
	return nil, errors.Join(errs...)
}

// errSetFailed is the cause of cancelling the rest of a set.
var errSetFailed = errors.New("another server of the set failed")

// List returns the mounts in order of their paths.
func (m *MountManager) List() []MountInfo {
	m.mu.Lock()
	all := make([]*mount, 0, len(m.mounts))
	for _, t := range m.mounts {
		all = append(all, t)
	}
	m.mu.Unlock()
	out := make([]MountInfo, 0, len(all))
	for _, t := range all {
		i := MountInfo{Path: t.path, Server: t.config.Name, PID: t.config.Owner.PID, Since: t.since}
		select {
		case <-t.settled:
			if !t.up {
				continue // it failed since we looked
			}
			i.MCPState, i.Tools, i.Truncated = t.served.state()
		default:
			i.Mounting, i.MCPState = true, MCPState{State: MCPStarting, Since: t.since}
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b MountInfo) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// mountError says which server failed in which phase. The text of the transport's error, which holds
// what the server wrote to its standard error, is kept; so is its code, unless the mount was ended.
func mountError(ctx context.Context, t *mount, phase string, err error) error {
	code := types.CodeOf(err)
	cause := context.Cause(ctx)
	if cause != nil {
		code = types.ErrCancelled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			code = types.ErrTimeout
		}
		if !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
	}
	return types.Errorf(code, "Mount", t.path, "server %s: %s: %w", t.config.Name, phase, err)
}

// checkMountPath refuses paths that could not be opened later or would swallow other devices.
func checkMountPath(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	if strings.Count(path, "/") < 2 || path != cleanPath(path) {
		return types.Errorf(types.ErrInvalid, "Mount", path, "not a path for a mount: use one like /mnt/mcp/7-name")
	}
	return nil
}

// cleanPath returns path without empty, "." and ".." elements.
func cleanPath(path string) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "." || p == ".." })
	return "/" + strings.Join(parts, "/")
}

// serverOf returns the server's part of a path that ends in <pid>-<server>.
func serverOf(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if pid, server, ok := strings.Cut(name, "-"); ok && server != "" && strings.Trim(pid, "0123456789") == "" {
		return server
	}
	return name
}
