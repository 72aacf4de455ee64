package vfs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// served is what a mount has of its server at the moment. A reload puts another one in its place. Its lock is held while the tools of the
// device are set, and is a leaf otherwise.
type served struct {
	mu sync.Mutex
	// +checklocks:mu
	config MCPConfig
	// +checklocks:mu
	transport MCPTransport // nil = there is none
	// +checklocks:mu
	list json.RawMessage // the result of tools/list, as it was told last
	// +checklocks:mu
	offer offer
	// +checklocks:mu
	down error // why there is no transport
	// +checklocks:mu
	since time.Time // of what was put last
	// +checklocks:mu
	reload chan struct{} // not nil while a reload is under way; closed when it is over
}

// connection returns the way to the server, after a reload that is under way, or why there is none.
func (s *served) connection(ctx context.Context) (MCPTransport, error) {
	for {
		s.mu.Lock()
		transport, down, reload := s.transport, s.down, s.reload
		s.mu.Unlock()
		switch {
		case reload != nil:
			select {
			case <-reload:
				continue
			case <-ctx.Done():
				return nil, Ended(ctx, "Call", "")
			}
		case down != nil:
			return nil, down
		}
		return transport, nil
	}
}

// told returns the list of tools as it was told last, or why there is none.
func (s *served) told() (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		return nil, s.down
	}
	return s.list, nil
}

// put notes a server that was started, or why it was not.
func (s *served) put(config MCPConfig, transport MCPTransport, list json.RawMessage, o offer, down error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, s.transport, s.list, s.offer, s.down, s.since = config, transport, list, o, down, time.Now()
}

// limit is how many bytes one answer may have.
func (s *served) limit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.MaxOutput <= 0 {
		return defaultMaxOutput
	}
	return s.config.MaxOutput
}

// configured returns with what it was started.
func (s *served) configured() MCPConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

// begin begins a reload, and returns the transport that it replaces. false if another one is under way.
func (s *served) begin() (before MCPTransport, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reload != nil {
		return nil, false
	}
	s.reload, s.since = make(chan struct{}), time.Now()
	return s.transport, true
}

// end ends a reload with another transport, or why there is none. A list of nil leaves the tools as they were told: calls of them connect again.
func (s *served) end(config MCPConfig, transport MCPTransport, list json.RawMessage, o offer, down error) ToolChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.reload)
	s.config, s.transport, s.down, s.reload, s.since = config, transport, down, nil, time.Now()
	if list == nil {
		return ToolChange{}
	}
	c := CompareTools(s.offer.tools, o.tools)
	s.list, s.offer = list, o
	return c
}

// relist takes a list that the server of a transport has told anew, and returns what is different. It is left alone if there is another
// transport by now. What is different is given to set before a reload can begin, so that it takes the place of
// nothing newer.
func (s *served) relist(of MCPTransport, list json.RawMessage, o offer, set func([]Tool)) (c ToolChange, current bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transport != of || s.reload != nil {
		return c, false
	}
	c = CompareTools(s.offer.tools, o.tools)
	s.list, s.offer = list, o
	if !c.None() {
		set(o.tools)
	}
	return c, true
}

// state says how the server is, and how many tools it has told of.
func (s *served) state() (st MCPState, tools int, truncated bool) {
	s.mu.Lock()
	transport := s.transport
	st = MCPState{State: MCPRunning, Since: s.since}
	switch tools, truncated = len(s.offer.tools), s.offer.truncated; {
	case s.reload != nil:
		st.State, transport = MCPRestarting, nil
	case s.down != nil:
		st.State, st.Reason, transport = MCPFailed, s.down, nil
	}
	s.mu.Unlock()
	if t, ok := transport.(MCPStater); ok {
		st = t.State()
	}
	return st, tools, truncated
}

// ToolChange is what is different between two lists of tools, by the names that a model sees, in order.
type ToolChange struct {
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Changed []string `json:"changed,omitempty"` // another description, input, or effect
}

// None reports whether nothing is different.
func (c *ToolChange) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// String says in a line what is different: "new: a, b; gone: c; changed: d". At most ten names of each kind are there.
func (c *ToolChange) String() string {
	var parts []string
	for _, k := range []struct {
		what  string
		names []string
	}{{"new: ", c.Added}, {"gone: ", c.Removed}, {"changed: ", c.Changed}} {
		const most = 10
		names, more := k.names, ""
		if len(names) > most {
			names, more = names[:most], ", ..."
		}
		if len(names) > 0 {
			parts = append(parts, k.what+strings.Join(names, ", ")+more)
		}
	}
	return cmp.Or(strings.Join(parts, "; "), "nothing")
}

// CompareTools says what is different between two lists.
func CompareTools(was, now []Tool) (c ToolChange) {
	before := map[string]*Tool{}
	for i := range was {
		before[was[i].Name] = &was[i]
	}
	for i := range now {
		t := &now[i]
		old := before[t.Name]
		delete(before, t.Name)
		switch {
		case old == nil:
			c.Added = append(c.Added, t.Name)
		case old.Description != t.Description || string(old.Schema) != string(t.Schema) || old.Effect != t.Effect || old.Independent != t.Independent:
			c.Changed = append(c.Changed, t.Name)
		}
	}
	for name := range before {
		c.Removed = append(c.Removed, name)
	}
	slices.Sort(c.Added)
	slices.Sort(c.Changed)
	slices.Sort(c.Removed)
	return c
}

// errReloaded is what calls are told that were under way when their server was reloaded.
var errReloaded = errors.New("the server was reloaded while the call was under way: whether it has had an effect is not known")
