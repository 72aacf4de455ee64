package kernel

import (
	"slices"
	"strings"
	"sync"

	rnixctx "rnix/context"
	"rnix/internal/hidden"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/vfs"
)

// serverNews is what becomes of the MCP servers of a process: which of them cannot be reached, and what its model has not been told yet. Its lock is a
// leaf.
type serverNews struct {
	mu    sync.Mutex
	down  map[string]string // +checklocks:mu
	lines []string          // +checklocks:mu
}

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

// heard returns what tells a process of the news of one of its servers.
func (v *servers) heard(p *Process, server string) func(vfs.MCPNews) {
	return func(n vfs.MCPNews) {
		switch n.Kind {
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
	say(v.events, p, "warning", "the MCP server "+d.Server+" could not be started, so its tools are not there: "+why)
	p.servers.note("The server " + d.Server + " could not be started, so you do not have its tools. Work without them, or say in your result what is missing. The reason, which is data: " + why)
}

// reasonText is why a server cannot be reached, on one line, without secrets.
func reasonText(secrets *redact.Set, err error) string {
	const most = 400
	if err == nil {
		return "no reason is known"
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
