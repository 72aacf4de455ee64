package llm

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"

	rnixctx "rnix/context"
)

// take returns the kept child of a session, which then belongs to the caller, or nil.
func (d *ClaudeCliDriver) take(session string) *claudeChild {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.kept[session]
	if c != nil {
		delete(d.kept, session)
		c.idle.Stop()
	}
	return c
}

// put keeps a child for the next call of its session. The one that was not used for the longest time
// has to go if there are too many.
func (d *ClaudeCliDriver) put(session string, c *claudeChild) {
	d.mu.Lock()
	old := d.kept[session] // two calls of one session at once
	delete(d.kept, session)
	if d.closed {
		old, c = c, nil
	} else {
		if old == nil && len(d.kept) >= d.cfg.Keep {
			last := ""
			for s, k := range d.kept {
				if last == "" || k.since.Before(d.kept[last].since) {
					last = s
				}
			}
			old = d.kept[last]
			delete(d.kept, last)
		}
		c.since = time.Now()
		c.idle = time.AfterFunc(d.cfg.KeepIdle, func() { d.expire(session, c) })
		d.kept[session] = c
	}
	d.mu.Unlock()
	if old != nil {
		d.retire(old)
	}
}

// retire ends a child that is of no more use, without waiting for it.
func (d *ClaudeCliDriver) retire(c *claudeChild) {
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.work.Add(1)
	}
	d.mu.Unlock()
	if closed { // nobody would wait for it
		c.end(cliGrace)
		return
	}
	go func() { // ends when the child has; waited for by Close
		defer d.work.Done()
		c.end(cliGrace)
	}()
}

// expire ends a kept child that was not used for long.
func (d *ClaudeCliDriver) expire(session string, c *claudeChild) {
	d.mu.Lock()
	if d.kept[session] != c {
		d.mu.Unlock()
		return
	}
	delete(d.kept, session)
	d.work.Add(1)
	d.mu.Unlock()
	defer d.work.Done()
	c.end(cliGrace)
}

// CloseSession ends the kept child of a conversation that is over. It does nothing if there is none.
func (d *ClaudeCliDriver) CloseSession(session string) {
	if c := d.take(session); c != nil {
		c.end(cliGrace)
	}
}

// Close ends all kept children and waits for them. Calls under way end by their own contexts; later
// ones fail.
func (d *ClaudeCliDriver) Close() error {
	d.mu.Lock()
	d.closed = true
	all := d.kept
	d.kept = map[string]*claudeChild{}
	d.mu.Unlock()
	for _, c := range all {
		c.idle.Stop()
		d.work.Go(func() { c.end(cliGrace) }) // side by side; waited for below
	}
	d.work.Wait()
	return nil
}

// goesOn reports whether a request goes on from what the child has seen and answered, and returns what
// it has to be told.
func (c *claudeChild) goesOn(req *LLMRequest, key string) (next string, ok bool) {
	n := c.seen.count
	if c.gone() || c.key != key || len(req.Messages) < n+2 || hashMessages(req.Messages[:n]) != c.seen {
		return "", false
	}
	if m := &req.Messages[n]; m.Role != rnixctx.RoleAssistant || m.Content != c.said.Content || !sameCalls(m.ToolCalls, c.said.ToolCalls) {
		return "", false
	}
	return Continuation(req.Messages[n+1:], req.Messages[n].ToolCalls), true
}

// sameCalls compares calls without their ids, which the kernel may change.
func sameCalls(a, b []rnixctx.ToolCall) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || canonical(a[i].Input) != canonical(b[i].Input) {
			return false
		}
	}
	return true
}

// messagesHash tells conversations apart.
type messagesHash struct {
	count int
	sum   [sha256.Size]byte
}

type messagesHasher struct {
	hash.Hash
	count int
}

func newMessagesHash() *messagesHasher { return &messagesHasher{Hash: sha256.New()} }

func (h *messagesHasher) add(m *rnixctx.Message) {
	h.count++
	h.field(string(m.Role), m.Content, m.ToolCallID)
	failed := "result"
	if m.IsError {
		failed = "error"
	}
	h.field(failed)
	for _, c := range m.ToolCalls {
		h.field(c.ID, c.Name, string(c.Input))
	}
}

// field writes texts with their lengths, so that none can pass for two others.
func (h *messagesHasher) field(texts ...string) {
	for _, s := range texts {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
}

func (h *messagesHasher) sum() (m messagesHash) {
	m.count = h.count
	copy(m.sum[:], h.Sum(nil))
	return m
}
