package fsck

import (
	"errors"
	"fmt"

	"rnix/internal/step"
	"rnix/types"
)

// attachments looks for the images and documents of the conversation. Nothing can bring back what is lost; the model is told that it is
// missing, and what it has said of it is in the conversation.
func (o *Options) attachments(h *history) {
	seen := map[string]bool{}
	for i := range h.records {
		m := h.records[i].Message
		if m == nil {
			continue
		}
		for j := range m.Attachments {
			a := &m.Attachments[j]
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
}
