package vfs

import (
	"context"
	"sync"
	"time"

	"rnix/agent"
	"rnix/types"
)

// Reload ends the server that is mounted at path and starts it anew, as server says; its name, its directory and its owner stay. It returns what is different in
// its tools. Calls under way fail, and are told that nobody knows what they have done; calls that come during the reload wait for it. If the server
// cannot be started, NewsFailed is told, the mount stays with the tools that it had, and the next call tries again. NOT_FOUND if nothing is mounted there, CONFLICT if
// another reload is under way, and the codes of MountContext. A server whose configuration is refused, as one that may not be started, is left as it is.
func (m *MountManager) Reload(ctx context.Context, path string, server agent.MCPServer) (ToolChange, error) {
	t, done, err := m.enter("Reload", path)
	if err != nil {
		return ToolChange{}, err
	}
	defer done()
	config := t.served.configured()
	server.Name = config.Name
	config.MCPServer, config.Pinned = server, nil
	ctx, stop := t.limit(ctx, config)
	defer stop()
	transport, err := m.transport(t, config)
	if err != nil {
		return ToolChange{}, mountError(ctx, t, "configuration", err)
	}
	before, first := t.served.begin()
	if !first {
		_ = transport.Close() // it is not connected
		return ToolChange{}, types.Errorf(types.ErrConflict, "Reload", path, "the server is being reloaded already")
	}
	closeFor(before, errReloaded)
	list, o, phase, err := t.start(ctx, transport, config)
	if err == nil {
		err = m.devices.SetTools(path, o.tools)
	}
	if err == nil {
		return t.served.end(config, transport, list, o, nil), nil
	}
	err = mountError(ctx, t, phase, err)
	if d, ok := transport.(MCPDropper); ok { // a connection that gives no tools
		d.Drop(err)
	}
	if config.Tell != nil && t.life.Err() == nil { // before a call can connect it again, which tells that
		config.Tell(MCPNews{Kind: NewsFailed, Reason: err})
	}
	if known, _ := t.served.told(); known == nil { // no call could connect it again
		closeFor(transport, err)
		t.served.end(config, nil, nil, offer{}, err)
		return ToolChange{}, err
	}
	t.served.end(config, transport, nil, offer{}, nil)
	return ToolChange{}, err
}

// closeFor closes a transport, which may be nil. Its error is left alone: another one takes its place.
func closeFor(t MCPTransport, reason error) {
	if c, ok := t.(MCPCloser); ok {
		_ = c.CloseFor(reason)
	} else if t != nil {
		_ = t.Close()
	}
}

// enter finds a mount that is up, and keeps an unmount waiting until done is called.
func (m *MountManager) enter(syscall, path string) (t *mount, done func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.mounts[path]
	if ok {
		select {
		case <-t.settled:
		default:
			return nil, nil, types.Errorf(types.ErrConflict, syscall, path, "the server is being started")
		}
	}
	if !ok || t.leaving || !t.up {
		return nil, nil, types.Errorf(types.ErrNotFound, syscall, path, "not mounted")
	}
	t.work.Add(1)
	return t, t.work.Done, nil
}

// hearing makes one listing of all the news that come while another one is under way.
type hearing struct {
	mu    sync.Mutex
	busy  bool // +checklocks:mu
	again bool // +checklocks:mu
}

// listingRest is how long the tools of a server are not listed anew after they were: a server that says again and again that they have changed keeps
// nobody busy.
const listingRest = 5 * time.Second

// hear returns what a transport tells its news. What was told of tools is compared, and passed on if something is different.
func (m *MountManager) hear(t *mount, tell func(MCPNews)) func(MCPNews) {
	return func(n MCPNews) {
		if n.Kind == NewsBack || n.Kind == NewsList {
			m.listAnew(t, tell)
		}
		if n.Kind != NewsList && tell != nil {
			tell(n)
		}
	}
}

// listAnew lists the tools of a mount beside everything else.
func (m *MountManager) listAnew(t *mount, tell func(MCPNews)) {
	t.hearing.mu.Lock()
	defer t.hearing.mu.Unlock()
	if t.hearing.again = true; t.hearing.busy {
		return
	}
	_, done, err := m.enter("Reload", t.path)
	if err != nil {
		return // it is being mounted, and lists them, or it is leaving
	}
	t.hearing.busy = true
	go func() { // ends when nothing was told meanwhile, or with the mount, whose unmount waits for it
		defer done()
		for t.hearing.next() {
			m.list(t, tell)
			select {
			case <-time.After(listingRest):
			case <-t.life.Done():
			}
		}
	}()
}

// next reports whether the tools are to be listed once more; if not, nobody is busy any more.
func (h *hearing) next() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy, h.again = h.again, false
	return h.busy
}

// list lists the tools of a mount, and tells what is different. A failure is told by the call that finds the server gone.
func (m *MountManager) list(t *mount, tell func(MCPNews)) {
	transport, err := t.served.connection(t.life)
	if err != nil || transport == nil {
		return
	}
	list, err := transport.Call(t.life, "tools/list", nil)
	if err != nil {
		return
	}
	o, err := readOffer(t.path, t.config.Name, list)
	if err != nil {
		return
	}
	set := func(tools []Tool) { _ = m.devices.SetTools(t.path, tools) } // it is registered as long as it is not left
	if c, current := t.served.relist(transport, list, o, set); current && !c.None() && tell != nil {
		tell(MCPNews{Kind: NewsTools, Tools: c})
	}
}

// Configured returns with what the server at path was started last; false if nothing is mounted there.
func (m *MountManager) Configured(path string) (MCPConfig, bool) {
	t, done, err := m.enter("Mount", path)
	if err != nil {
		return MCPConfig{}, false
	}
	defer done()
	return t.served.configured(), true
}
