package step

import (
	"encoding/json"
	"iter"
	"slices"
	"time"
	"unicode/utf8"

	rnixctx "rnix/context"
	"rnix/types"
)

// MailKind says what a message is. Part of the on-disk format.
type MailKind string

// The kinds.
const (
	MailMessage MailKind = "message" // of another process, or of a person: data
	MailSteer   MailKind = "steer"   // of a person: an instruction
	MailChild   MailKind = "child"   // of the kernel: what became of a child
)

// Mail is a message to a process. On disk it is the Detail of a mail marker, without its text, which is
// the marker's.
type Mail struct {
	Seq      uint64     `json:"seq"` // of the messages to this history, from 1
	Kind     MailKind   `json:"kind"`
	From     types.PID  `json:"from,omitempty"` // 0 = a person or the kernel
	FromUUID types.UUID `json:"from_uuid,omitzero"`
	Name     string     `json:"name,omitempty"` // of the sender
	// Key names the sending: what comes with the key of a message that is there is the same message.
	Key  string    `json:"key,omitempty"`
	Time time.Time `json:"time,omitzero"`
	Text string    `json:"text,omitempty"`
	// Data is the message if it is no text.
	Data []byte `json:"data,omitempty"`
	// Attachments are images and documents that are shown with it; the text names them.
	Attachments []rnixctx.Attachment `json:"attachments,omitempty"`
	// Child has ended, of a message of kind child; Failed says how, if it has not completed.
	Child  types.UUID `json:"child,omitzero"`
	Failed string     `json:"failed,omitempty"`
}

// Bytes returns what the message says.
func (m *Mail) Bytes() []byte {
	if m.Data != nil {
		return m.Data
	}
	return []byte(m.Text)
}

// SetBytes sets what the message says.
func (m *Mail) SetBytes(b []byte) {
	if utf8.Valid(b) {
		m.Text, m.Data = string(b), nil
	} else {
		m.Text, m.Data = "", b
	}
}

// MailRecord returns the record of a message.
func MailRecord(m Mail) (Record, error) {
	text := m.Text
	m.Text = ""
	detail, err := json.Marshal(&m)
	if err != nil {
		return Record{}, types.Errorf(types.ErrInternal, "Send", "", "encode: %w", err)
	}
	return Record{Kind: KindMarker, Marker: &Marker{Name: MarkerMail, Text: text, Detail: detail}}, nil
}

// MailOf returns the message of a marker; false if it is of another kind, or cannot be read.
func MailOf(m *Marker) (mail Mail, ok bool) {
	if m.Name != MarkerMail || json.Unmarshal(m.Detail, &mail) != nil || mail.Seq == 0 {
		return Mail{}, false
	}
	mail.Text = m.Text
	return mail, true
}

// TakenRecord returns the record which says that messages were taken out of the mailbox without having
// been put into the conversation.
func TakenRecord(seqs ...uint64) Record {
	detail, _ := json.Marshal(seqs) // numbers
	return Record{Kind: KindMarker, Marker: &Marker{Name: MarkerTaken, Detail: detail}}
}

// DeliveredBy returns the numbers of the messages that a record takes out of the mailbox.
func DeliveredBy(r *Record) (seqs []uint64) {
	if r.Marker != nil && r.Marker.Name == MarkerTaken {
		_ = json.Unmarshal(r.Marker.Detail, &seqs) // it says less then
		return seqs
	}
	return r.Delivered
}

// Letter is a message with what became of it.
type Letter struct {
	Mail
	Delivered bool // into the conversation, or to whoever took it
}

// Letters returns all messages of a history, oldest first, as far as it can be read.
func Letters(records iter.Seq2[Record, error]) ([]Letter, error) {
	var out []Letter
	for r, err := range records {
		if code := types.CodeOf(err); code == types.ErrStorage || code == types.ErrInvalid {
			break
		} else if err != nil {
			return nil, err
		}
		if r.Marker != nil {
			if m, ok := MailOf(r.Marker); ok {
				out = append(out, Letter{Mail: m})
			}
		}
		for _, seq := range DeliveredBy(&r) {
			if i := slices.IndexFunc(out, func(l Letter) bool { return l.Seq == seq }); i >= 0 {
				out[i].Delivered = true
			}
		}
	}
	return out, nil
}
