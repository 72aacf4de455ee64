package heartbeat

import "slices"

// Bounds of what is remembered of injects.
const (
	maxDead = 128
	maxDone = 256
)

// deadLetter says why a message will never be delivered. Part of the wire format.
type deadLetter struct {
	DeliveryID string `json:"deliveryId"`
	Reason     string `json:"reason"`
}

// postbag is what is to be told of messages. Guarded by Pulser.mu.
type postbag struct {
	latest string       // the last one that was acknowledged: told each time
	acked  []string     // and not told yet
	dead   []deadLetter // and not told yet
	done   []string     // the last that were acknowledged or are dead, so that none is handed out twice
	failed map[string]string
}

func (b *postbag) owed() bool { return len(b.acked) > 0 || len(b.dead) > 0 }

func (b *postbag) ack(id string) {
	if id == "" || slices.Contains(b.acked, id) || b.isDead(id) {
		return
	}
	b.latest, b.acked = id, append(b.acked, id)
	b.finish(id)
}

// bury adds a dead letter; it returns one that had to go for it.
func (b *postbag) bury(id, reason string) (gone string) {
	if id == "" || b.isDead(id) || slices.Contains(b.done, id) {
		return ""
	}
	if len(b.dead) == maxDead {
		gone = b.dead[0].DeliveryID
		b.dead = slices.Delete(b.dead, 0, 1)
	}
	b.dead = append(b.dead, deadLetter{id, reason})
	if b.failed == nil {
		b.failed = map[string]string{}
	}
	b.failed[id] = reason
	b.finish(id)
	return gone
}

func (b *postbag) isDead(id string) bool { _, ok := b.failed[id]; return ok }

func (b *postbag) finish(id string) {
	if slices.Contains(b.done, id) {
		return
	}
	if len(b.done) == maxDone {
		delete(b.failed, b.done[0])
		b.done = slices.Delete(b.done, 0, 1)
	}
	b.done = append(b.done, id)
}

// again makes a message that is offered though it is done be told of once more, and reports whether it is done.
func (b *postbag) again(id string) bool {
	if id == "" || !slices.Contains(b.done, id) {
		return false
	}
	if reason, dead := b.failed[id]; !dead {
		b.ack(id)
	} else if !slices.ContainsFunc(b.dead, func(d deadLetter) bool { return d.DeliveryID == id }) && len(b.dead) < maxDead {
		b.dead = append(b.dead, deadLetter{id, reason})
	}
	return true
}

// told forgets what a request has said that was answered.
func (b *postbag) told(r refresh) {
	b.acked = slices.DeleteFunc(b.acked, func(id string) bool { return id == r.AckedInject || slices.Contains(r.AckedInjects, id) })
	b.dead = slices.DeleteFunc(b.dead, func(d deadLetter) bool { return slices.Contains(r.DeadLetteredInjects, d) })
}

// report returns what the next request says of messages.
func (b *postbag) report() refresh {
	r := refresh{AckedInject: b.latest, DeadLetteredInjects: slices.Clone(b.dead)}
	if len(b.acked) > 1 || len(b.acked) == 1 && b.acked[0] != b.latest {
		r.AckedInjects = slices.Clone(b.acked)
	}
	return r
}

// offered hands a message out, unless nobody takes messages or it is done already.
func (p *Pulser) offered(m InjectPayload) {
	if p.cfg.OnInject == nil {
		return
	}
	p.mu.Lock()
	done := p.post.again(m.DeliveryID)
	p.mu.Unlock()
	if !done && p.cfg.OnInject(m) {
		p.AckInject(m.DeliveryID)
	}
}

// AckInject says that a message has been delivered; the next refresh tells the platform.
func (p *Pulser) AckInject(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.post.ack(id)
}

// DeadLetterInject says that a message will never be delivered, and why; the next refresh tells the platform. One that was
// acknowledged stays so. At most 128 wait; then the oldest is offered again instead.
func (p *Pulser) DeadLetterInject(id, reason string) {
	p.mu.Lock()
	gone := p.post.bury(id, reason)
	p.mu.Unlock()
	if gone != "" {
		p.cfg.Logger.Warn("too many undeliverable messages wait for the platform; one will be offered again", "session", p.cfg.SessionID, "delivery", gone)
	}
}
