package kernel

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/hidden"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// serverNews is what becomes of the MCP servers of a process: which of them cannot be reached, and what its model has not been told yet. Its mu is a
// leaf.
type serverNews struct {
	mu    sync.Mutex
	down  map[string]string // +checklocks:mu
	lines []string          // +checklocks:mu
	begun bool              // +checklocks:mu
	// What belongs into the log, which begins with the process.
	early []event.Event // +checklocks:mu

	renewing sync.Mutex // held while what the process is offered is made anew; outside of all other locks
}

// maxEarly bounds what is kept for the log of a process that has not begun.
const maxEarly = 200

// How much a model is told of its servers at once: so many lines, of so many bytes.
const (
	maxNewsLines = 8
	maxNewsLine  = 600
)

// note keeps a line for the model. What is too much is left out: the log has it.
func (n *serverNews) note(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if text = rnixctx.Elide(text, maxNewsLine); len(n.lines) < maxNewsLines && !slices.Contains(n.lines, text) {
		n.lines = append(n.lines, text)
	}
}

// take returns what the model has not been told yet; "" if there is nothing.
func (n *serverNews) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.lines) == 0 {
		return ""
	}
	text := "[MCP SERVERS] " + strings.Join(n.lines, "\n")
	n.lines = nil
	return text
}

// set notes that a server cannot be reached, and why; an empty reason that it can. It reports whether that is new.
func (n *serverNews) set(server, reason string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was, known := n.down[server]
	if reason == "" {
		delete(n.down, server)
		return known
	}
	if n.down == nil {
		n.down = map[string]string{}
	}
	n.down[server] = reason
	return was != reason
}

// list returns the servers that cannot be reached, each with the reason, in order.
func (n *serverNews) list() (out []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for server, reason := range n.down {
		out = append(out, server+": "+reason)
	}
	slices.Sort(out)
	return out
}

// log appends an event to the log, or keeps it until the process begins: a start that fails leaves nothing.
func (n *serverNews) log(events *event.Log, e event.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.begun:
		events.Append(e)
	case len(n.early) < maxEarly:
		e.Time = time.Now()
		n.early = append(n.early, e)
	}
}

// begins appends what was kept.
func (n *serverNews) begins(events *event.Log) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.early {
		events.Append(e)
	}
	n.begun, n.early = true, nil
}

// serverLine is the event of a line that a server has said for people; p is nil for one that a person has mounted.
func serverLine(secrets *redact.Set, p *Process, server string, n vfs.MCPNews) event.Event {
	e := event.Event{Kind: event.ServerLine, Path: mcpRoot + "/" + server, Name: n.Stream, Text: secrets.String(n.Line)}
	if p != nil {
		e.PID, e.UUID = p.PID, p.UUID
	}
	return e
}

// heard returns what tells a process of the news of one of its servers.
func (v *servers) heard(p *Process, server string) func(vfs.MCPNews) {
	return func(n vfs.MCPNews) {
		switch n.Kind {
		case vfs.NewsLine:
			p.servers.log(v.events, serverLine(v.secrets, p, server, n))
			return
		case vfs.NewsLost:
			say(v.events, p, "warning", "the MCP server "+server+" was lost, and its next call connects again: "+reasonText(v.secrets, n.Reason))
		case vfs.NewsFailed:
			why := reasonText(v.secrets, n.Reason)
			if p.servers.set(server, why) {
				say(v.events, p, "warning", "the MCP server "+server+" cannot be connected again: "+why)
			}
		case vfs.NewsBack:
			p.servers.set(server, "")
			say(v.events, p, "output", "the MCP server "+server+" is connected again")
		case vfs.NewsTools:
			say(v.events, p, "warning", "the tools of the MCP server "+server+" have changed: "+n.Tools.String())
			p.servers.note(changedText(server, &n.Tools))
		}
		v.doing.touch(p)
	}
}

// changedText tells a model that the tools of a server are others than those that it is offered.
func changedText(server string, c *vfs.ToolChange) string {
	text := "The tools of the server " + server + " have changed (" + c.String() + ")."
	if len(c.Removed) > 0 {
		text += " Do not call those that are gone."
	}
	if len(c.Changed) > 0 {
		text += " Those that have changed may take another input than you were told."
	}
	if len(c.Added) > 0 {
		text += " New ones are not offered to you in this run."
	}
	return text
}

// startFailed tells a process, before it begins, that one of its servers could not be started.
func (v *servers) startFailed(p *Process, d *vfs.Down) {
	why := reasonText(v.secrets, d.Reason)
	p.servers.set(d.Server, why)
	p.servers.log(v.events, event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: "warning", Text: rnixctx.Elide("the MCP server "+d.Server+" could not be started, so its tools are not there: "+why, maxLine)})
	p.servers.note("The server " + d.Server + " could not be started, so you do not have its tools. Work without them, or say in your result what is missing. The reason, which is data: " + why)
}

// reasonText is why a server cannot be reached, on one line, without secrets.
func reasonText(secrets *redact.Set, err error) string {
	const most = 400
	if err == nil {
		return "no reason is known"
	}
	if e, ok := errors.AsType[*types.SyscallError](err); ok && e.Err != nil { // the path says nothing new
		err = e.Err
	}
	text := hidden.Strip(secrets.String(err.Error()))
	return rnixctx.Elide(strings.Join(strings.Fields(text), " "), most)
}

// deliverNews tells the model what it has not been told of its servers.
func (h postman) deliverNews() error {
	text := h.p.servers.take()
	if text == "" {
		return nil
	}
	said := rnixctx.Message{Role: rnixctx.RoleUser, Content: text}
	if err := h.k.ctxMgr.Append(h.p.CtxID, said); err != nil {
		return err
	}
	return h.p.rec.Add(step.Record{Kind: step.KindMessage, Message: &said})
}

// heardByPeople returns what tells the news of a server that a person has mounted: its lines.
func (v *servers) heardByPeople(path string) func(vfs.MCPNews) {
	server := strings.TrimPrefix(path, mcpRoot+"/")
	return func(n vfs.MCPNews) {
		if n.Kind == vfs.NewsLine {
			v.events.Append(serverLine(v.secrets, nil, server, n))
		}
	}
}

// Reload ends the server at path and starts it anew, as server says, and returns in which tools of it the process is offered others. The process that has it is offered them as they are
// now from its next question on, and its model is told. The errors are those of vfs.MountManager.Reload.
func (k *KernelImpl) Reload(ctx context.Context, path string, server agent.MCPServer) (vfs.ToolChange, error) {
	pid, name, _ := strings.Cut(strings.TrimPrefix(path, mcpRoot+"/"), "-")
	n, _ := strconv.ParseUint(pid, 10, 64) // else it is 0, which no process has
	p, err := k.table.lookup("Reload", types.PID(n))
	if err != nil {
		return vfs.ToolChange{}, err
	}
	defer k.doing.touch(p)
	return k.servers.reload(ctx, k.kits, p, name, path, server)
}

// reload reloads a server of a process.
func (v *servers) reload(ctx context.Context, ks *kits, p *Process, name, path string, server agent.MCPServer) (vfs.ToolChange, error) {
	m, ok := v.manager.(interface {
		Reload(context.Context, string, agent.MCPServer) (vfs.ToolChange, error)
	})
	if !ok {
		return vfs.ToolChange{}, noMounts(path)
	}
	c, err := m.Reload(ctx, path, server)
	if err != nil {
		if why := reasonText(v.secrets, err); !slices.Contains(p.servers.list(), name+": "+why) { // else it is down, and was told to be
			say(v.events, p, "warning", "the MCP server "+name+" was not reloaded: "+why)
		}
		return c, err
	}
	p.servers.set(name, "")
	c, err = v.renew(ks, p, name, path)
	say(v.events, p, "output", "the MCP server "+name+" was reloaded; different tools: "+c.String())
	return c, err
}

// renew offers a process the tools that its servers have now, and tells its model what is different from those that it was offered, which may have
// changed before the reload too. It returns what is different in those of the server at path.
func (v *servers) renew(ks *kits, p *Process, name, path string) (vfs.ToolChange, error) {
	p.servers.renewing.Lock()
	defer p.servers.renewing.Unlock()
	was := offered(p)
	now, err := ks.made(p)
	if err != nil {
		return vfs.ToolChange{}, err
	}
	if all := vfs.CompareTools(was.list, now.list); !all.None() {
		p.renewed.Store(now)
		p.servers.note("The server " + name + " was started anew, and your tools are others now (" + all.String() + "). You are offered them as they are now.")
	}
	others := func(t vfs.Tool) bool { return !vfs.Below(t.Path, path) }
	return vfs.CompareTools(slices.DeleteFunc(slices.Clone(was.list), others), slices.DeleteFunc(slices.Clone(now.list), others)), nil
}
