package kernel

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel/internal/mailbox"
)

// What a mailbox of an agent holds. Messages of the kernel and of persons find room when those of other
// processes do not.
const (
	mailMax   = mailbox.DefaultMax // messages
	mailBytes = 8 << 20
)

// post is the way of a message into the mailbox of an agent: it is numbered, written into the history
// together with those that come at the same time, and then put into the box.
//
// Locks: writing > mu > the box. Under writing the history is written, which is a commit of it: only those
// who send to this process wait for it.
type post struct {
	seq atomic.Uint64 // of the last message

	writing sync.Mutex // held by who writes a batch

	mu sync.Mutex
	// The batch that is being collected; nil = none.
	batch *batch // +checklocks:mu
	// Messages that are accepted and not in the box yet.
	queued int // +checklocks:mu
	// The size of the messages that are accepted and not taken.
	bytes int // +checklocks:mu
	// The keys of the latest messages that have one.
	keys map[string]uint64 // +checklocks:mu
	// All keys of keys, the oldest first.
	order  []string // +checklocks:mu
	closed bool     // +checklocks:mu
	// An interrupt has come that is not taken yet.
	interrupted bool // +checklocks:mu
	// Closed when a message is taken, or no more come; nil when nobody waits.
	room chan struct{} // +checklocks:mu
}

// batch is messages that are written in one piece. msgs is guarded by post.mu until it is taken out of the
// post, then it belongs to who writes it; done and err by post.writing.
type batch struct {
	msgs []*Message
	done bool
	err  error
}

// records reports whether messages to a process are kept in its history.
func (ml *mailer) records(p *Process) bool { return ml.keeps && p.opts.Body == nil }

// post puts a message into the mailbox of an agent and returns its number. Without wait a full box is an
// error.
func (ml *mailer) post(ctx context.Context, p *Process, m step.Mail, wait bool) (uint64, error) {
	if !ml.secrets.Empty() {
		m.SetBytes(ml.secrets.Bytes(m.Bytes()))
	}
	for {
		p.post.mu.Lock()
		seq, known := p.post.keys[m.Key]
		switch {
		case known && m.Key != "":
			b := p.post.batch
			p.post.mu.Unlock()
			if err := ml.flush(p, b); err != nil || p.post.has(m.Key) { // it was not written yet, perhaps
				return seq, err
			}
			continue
		case p.post.closed:
			p.post.mu.Unlock()
			return 0, sendError(p.PID, mailbox.ErrClosed)
		case MailRoom(p.box.Len()+p.post.queued, p.post.bytes, &m):
			b := p.post.acceptLocked(&m)
			p.post.mu.Unlock()
			if err := ml.flush(p, b); err != nil {
				return 0, err
			}
			return m.Seq, nil
		}
		if !wait {
			p.post.mu.Unlock()
			return 0, sendError(p.PID, mailbox.ErrFull)
		}
		if p.post.room == nil {
			p.post.room = make(chan struct{})
		}
		room := p.post.room
		p.post.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return 0, sendError(p.PID, context.Cause(ctx))
		}
	}
}

// acceptLocked numbers a message and adds it to the batch that is being collected.
//
// +checklocks:o.mu
func (o *post) acceptLocked(m *step.Mail) *batch {
	m.Seq = o.seq.Add(1)
	bare := *m
	bare.Text, bare.Data = "", nil
	if o.batch == nil {
		o.batch = new(batch)
	}
	o.batch.msgs = append(o.batch.msgs, &Message{Seq: m.Seq, From: m.From, Data: m.Bytes(), mail: &bare})
	o.queued++
	o.bytes += len(m.Bytes())
	o.rememberLocked(m.Key, m.Seq)
	return o.batch
}

// rememberLocked keeps a key, and forgets the oldest.
//
// +checklocks:o.mu
func (o *post) rememberLocked(key string, seq uint64) {
	if key == "" {
		return
	}
	if o.keys == nil {
		o.keys = map[string]uint64{}
	}
	o.keys[key] = seq
	if o.order = append(o.order, key); len(o.order) > recovery.MaxKeys {
		delete(o.keys, o.order[0])
		o.order = o.order[1:]
	}
}

// flush returns when a batch is in the history and in the box: it writes it, unless somebody has whose
// message is in it too. nil is everything that was accepted before.
func (ml *mailer) flush(p *Process, b *batch) error {
	o := &p.post
	o.writing.Lock()
	defer o.writing.Unlock()
	if b == nil {
		return nil // whoever had it held the lock
	}
	ml.flushLocked(p, b)
	return b.err
}

// flushLocked writes a batch, if nobody has.
//
// +checklocks:p.post.writing
func (ml *mailer) flushLocked(p *Process, b *batch) {
	if b.done {
		return
	}
	o := &p.post
	o.mu.Lock()
	o.batch = nil
	o.mu.Unlock()
	b.done, b.err = true, recordMail(p, b.msgs)

	o.mu.Lock()
	o.queued -= len(b.msgs)
	for _, m := range b.msgs {
		if b.err == nil {
			b.err = sendError(p.PID, p.box.Put(m)) // nil, but for a box without a history that is filled at the same time
		}
		if b.err == nil {
			continue
		}
		o.bytes -= len(m.Data)
		if m.mail.Key != "" {
			delete(o.keys, m.mail.Key)
			o.order = slices.DeleteFunc(o.order, func(key string) bool { return key == m.mail.Key })
		}
	}
	o.mu.Unlock()
	if b.err != nil {
		return
	}
	for _, m := range b.msgs {
		ml.events.Append(event.Event{Kind: event.Messaged, PID: p.PID, UUID: p.UUID, PPID: m.From, Name: string(m.mail.Kind), Args: strconv.FormatUint(m.Seq, 10),
			Text: rnixctx.Elide(string(m.Data[:min(len(m.Data), 2*traceMax)]), traceMax)})
	}
}

// recordMail writes messages into the history, durably.
func recordMail(p *Process, msgs []*Message) error {
	recs := make([]step.Record, len(msgs))
	for i, m := range msgs {
		mail := *m.mail
		mail.SetBytes(m.Data)
		var err error
		if recs[i], err = step.MailRecord(mail); err != nil {
			return err
		}
	}
	if err := p.rec.Add(recs...); err != nil {
		return err
	}
	return p.rec.Commit()
}

// took notes that messages have left the box.
func (o *post) took(msgs ...*Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range msgs {
		if m.mail != nil {
			o.bytes -= len(m.Data)
			o.interrupted = o.interrupted && !isInterrupt(m.mail)
		}
	}
	o.wakeLocked()
}

// wakeLocked wakes who waits for room.
//
// +checklocks:o.mu
func (o *post) wakeLocked() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// seal ends the taking of messages if none is there, or in every case if force is set, and reports whether
// it has ended. What was accepted is in the history then.
func (ml *mailer) seal(p *Process, force bool) bool {
	if p.opts.Body != nil {
		return true // its box is closed when it has ended
	}
	o := &p.post
	o.writing.Lock()
	defer o.writing.Unlock()
	o.mu.Lock()
	if o.closed = o.closed || force; o.closed {
		o.wakeLocked()
	}
	b := o.batch
	o.mu.Unlock()
	if b != nil {
		ml.flushLocked(p, b)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !force && (o.queued > 0 || p.box.Len() > 0 || !ml.keeps && !p.box.CloseEmpty()) {
		return false
	}
	o.closed = true
	o.wakeLocked()
	return true
}

// has reports whether a message has come with a key.
func (o *post) has(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.keys[key]
	return ok
}

// load puts the messages into a box that an earlier run has left.
func (o *post) load(box *mailbox.Box[*Message], s *recovery.Mailbox) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seq.Store(s.MailSeq)
	for _, key := range s.MailKeys {
		o.rememberLocked(key, s.SeqOf(key))
	}
	for _, m := range s.Mail {
		data := m.Bytes()
		o.bytes += len(data)
		o.interrupted = o.interrupted || isInterrupt(&m)
		m.Text, m.Data = "", nil
		_ = box.Put(&Message{Seq: m.Seq, From: m.From, Data: data, mail: &m}) // it is open and has room
	}
}
