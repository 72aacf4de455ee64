package step

import (
	"encoding/json"

	rnixctx "rnix/context"
	"rnix/types"
)

// Said is what a person says at the point of resume. On disk it is an input marker: the text is the marker's, and the rest its Detail.
type Said struct {
	Text string `json:"text"`
	// Attachments are images and documents that are shown with it; the text names them.
	Attachments []rnixctx.Attachment `json:"attachments,omitempty"`
}

// Message returns it as a message of the conversation.
func (s *Said) Message() rnixctx.Message {
	return rnixctx.Message{Role: rnixctx.RoleUser, Content: s.Text, Attachments: s.Attachments}
}

// InputMarker returns the marker of what a person says to a process that is resumed as pid.
func InputMarker(pid types.PID, s Said) *Marker {
	m := &Marker{Name: MarkerInput, PID: pid, Text: s.Text}
	if len(s.Attachments) > 0 {
		m.Detail, _ = json.Marshal(inputDetail{s.Attachments}) // words and numbers
	}
	return m
}

// inputDetail is the Detail of an input marker.
type inputDetail struct {
	Attachments []rnixctx.Attachment `json:"attachments"`
}

// SaidBy returns what an input marker says.
func SaidBy(m *Marker) Said {
	var d inputDetail
	if len(m.Detail) > 0 && json.Unmarshal(m.Detail, &d) != nil || len(d.Attachments) == 0 {
		d.Attachments = nil
	}
	return Said{Text: m.Text, Attachments: d.Attachments}
}
