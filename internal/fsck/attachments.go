package fsck

import (
	"errors"
	"fmt"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// attachments looks for the images and documents of the conversation, and of the messages that wait for it. Nothing can bring back what is lost; the
// model is told that it is missing, and what it has said of it is in the conversation.
func (o *Options) attachments(h *history) {
	seen := map[string]bool{}
	look := func(as []rnixctx.Attachment) {
		for i := range as {
			a := &as[i]
			if seen[a.SHA256] {
				continue
			}
			seen[a.SHA256] = true
			if _, err := step.ReadAttachment(o.FS, h.dir, a.SHA256); err != nil {
				if e, ok := errors.AsType[*types.SyscallError](err); ok && e.Err != nil {
					err = e.Err
				}
				h.find(Finding{File: step.AttachmentFile(a.SHA256), Severity: Warning, What: fmt.Sprintf("a model cannot be shown %s again: %v", a.Label(), err)})
			}
		}
	}
	for i := range h.records {
		look(step.AttachedTo(&h.records[i]))
	}
	if h.state != nil {
		for i := range h.state.Mail {
			look(h.state.Mail[i].Attachments)
		}
	}
}
