package recovery

import (
	"encoding/json"
	"slices"

	"rnix/internal/step"
	"rnix/types"
)

// MaxKeys is how many keys of messages are remembered. A key is asked for again only by a call that was
// interrupted, so the latest are enough.
const MaxKeys = 1024

// Mailbox is the messages to a process, and the children of whose ends it is told by one. Its slices are
// shared with earlier copies and must not be changed.
type Mailbox struct {
	Mail     []step.Mail `json:"mail,omitempty"`      // have not been delivered, oldest first
	MailSeq  uint64      `json:"mail_seq,omitempty"`  // of the last one that has come
	MailKeys []string    `json:"mail_keys,omitempty"` // the latest, the newest last
	Children []Child     `json:"children,omitempty"`
}

// Child is a process that was started and that the process does not wait for where it was started.
type Child struct {
	UUID types.UUID `json:"uuid"`
	// Ended says that the process has got word of its end.
	Ended bool `json:"ended,omitempty"`
}

// put folds a message that has come. It returns how a child has failed of which the message tells.
func (s *Mailbox) put(m *step.Marker) (failed string) {
	mail, ok := step.MailOf(m)
	if !ok {
		return ""
	}
	s.MailSeq = max(s.MailSeq, mail.Seq)
	s.Mail = append(slices.Clip(s.Mail), mail)
	if mail.Key != "" {
		s.MailKeys = append(slices.Clip(s.MailKeys[max(0, len(s.MailKeys)-MaxKeys+1):]), mail.Key)
	}
	if mail.Kind != step.MailChild || mail.Child == (types.UUID{}) {
		return ""
	}
	i := slices.IndexFunc(s.Children, func(c Child) bool { return c.UUID == mail.Child })
	if i < 0 { // it was quicker than the record of its start
		s.Children = append(slices.Clip(s.Children), Child{UUID: mail.Child, Ended: true})
	} else if !s.Children[i].Ended {
		s.Children = slices.Clone(s.Children)
		s.Children[i].Ended = true
	}
	return mail.Failed
}

// remove folds that messages have left the mailbox.
func (s *Mailbox) remove(seqs []uint64) {
	if len(seqs) == 0 || len(s.Mail) == 0 {
		return
	}
	left := make([]step.Mail, 0, len(s.Mail))
	for _, m := range s.Mail {
		if !slices.Contains(seqs, m.Seq) {
			left = append(left, m)
		}
	}
	if s.Mail = left; len(left) == 0 {
		s.Mail = nil
	}
}

// started folds that a call has started a child which may outlive it.
func (s *Mailbox) started(id types.UUID) {
	if !slices.ContainsFunc(s.Children, func(c Child) bool { return c.UUID == id }) {
		s.Children = append(slices.Clip(s.Children), Child{UUID: id})
	}
}

// outlived reports whether the child of a call may live although the call has ended with code.
func outlived(code types.ErrCode) bool { return code == types.ErrTimeout || code == types.ErrCancelled }

// Has reports whether a message has come with a key.
func (s *Mailbox) Has(key string) bool { return key != "" && slices.Contains(s.MailKeys, key) }

// Awaited is the children for which an open call waits: all of them, or any.
type Awaited struct {
	IDs []types.UUID
	Any bool
}

// Awaits returns what the open calls of a history wait for that wait for children.
func Awaits(s *State) (out []Awaited) {
	for _, c := range s.Unknown() {
		switch {
		case c.Intent.Child != nil && !c.Intent.Background:
			out = append(out, Awaited{IDs: []types.UUID{*c.Intent.Child}})
		case Waits(&c):
			var in struct {
				Any bool `json:"any"`
			}
			_ = json.Unmarshal(s.inputOf(c.ID), &in) // it was good when it was run
			a := Awaited{Any: in.Any}
			for _, child := range s.Children {
				if !child.Ended {
					a.IDs = append(a.IDs, child.UUID)
				}
			}
			out = append(out, a)
		}
	}
	return out
}

// Unheard returns the children of whose ends the conversation does not say yet.
func (s *Mailbox) Unheard() (ids []types.UUID) {
	for _, c := range s.Children {
		if !c.Ended || slices.ContainsFunc(s.Mail, func(m step.Mail) bool { return m.Child == c.UUID }) {
			ids = append(ids, c.UUID)
		}
	}
	return ids
}

// Waits reports whether a call is one of the wait action, which does nothing but wait for children.
func Waits(c *Call) bool {
	return c.Name == WaitTool && c.Intent != nil && c.Intent.Path == WaitPath
}

// What the intents of a call that waits for children say.
const (
	WaitTool = "wait"
	WaitPath = "/sys/wait"
)

// Born makes the state that of a fork which begins its own life: messages and children are those of
// its origin, and what has come there with a key has not come here.
func (s *Mailbox) Born() { s.Mail, s.MailKeys, s.Children = nil, nil, nil }

// SeqOf returns the number of the message with a key, or that of the latest if it was delivered already.
func (s *Mailbox) SeqOf(key string) uint64 {
	for _, m := range s.Mail {
		if m.Key == key {
			return m.Seq
		}
	}
	return s.MailSeq
}

// Waits reports whether a message has not been delivered.
func (s *Mailbox) Waits(seq uint64) bool {
	return slices.ContainsFunc(s.Mail, func(m step.Mail) bool { return m.Seq == seq })
}

// MailBytes returns how large the messages are that have not been delivered.
func (s *Mailbox) MailBytes() (n int) {
	for i := range s.Mail {
		n += len(s.Mail[i].Bytes())
	}
	return n
}

// Background reports whether a spawn call with this input does not wait for its child.
func Background(input json.RawMessage) bool {
	var in struct {
		Background bool `json:"background"`
	}
	return json.Unmarshal(input, &in) == nil && in.Background
}
