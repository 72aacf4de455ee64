package lifecycle

import (
	"iter"
	"strings"

	rnixctx "rnix/context"
	"rnix/internal/step"
)

// since is what a process was told behind the record at which a fork of it begins.
type since struct {
	said    []step.Said // by persons: what they have said while it worked, and when it was resumed
	letters int         // of others: of its children and its parent, of the kernel about them, and what was sent as data
}

// saidSince looks for it in the records of a history. What a message of the conversation is, its text does not say for sure: the record of a steer names
// its mail, and that of a resume is a marker, behind the notices that the kernel has put before it. All other messages of the user are the kernel's.
func saidSince(records iter.Seq2[step.Record, error], cut uint64) (out since) {
	kinds := map[uint64]step.MailKind{} // by number
	for r, err := range records {
		if err != nil { // what is behind damage is of no history
			return out
		}
		if r.Marker != nil {
			if m, ok := step.MailOf(r.Marker); ok {
				kinds[m.Seq] = m.Kind
			}
		}
		switch {
		case r.Seq <= cut:
		case r.Marker != nil && r.Marker.Name == step.MarkerInput:
			in := step.SaidBy(r.Marker)
			m := in.Message()
			before, _ := step.Notices(&m)
			if in.Text = strings.TrimSpace(in.Text[before:]); in.Text != "" {
				out.said = append(out.said, in)
			}
		case r.Message != nil && r.Message.Role == rnixctx.RoleUser:
			for i, seq := range r.Delivered {
				switch {
				case kinds[seq] != step.MailSteer:
					out.letters++
				case i == 0: // each comes alone
					out.said = append(out.said, step.Said{Text: r.Message.Content, Attachments: r.Message.Attachments})
				}
			}
		}
	}
	return out
}

// together returns it as one text, with what was shown with it.
func (s *since) together() (text string, shown []rnixctx.Attachment) {
	for _, in := range s.said {
		text, shown = text+"\n\n"+in.Text, append(shown, in.Attachments...)
	}
	return text, shown
}
