package kernel

import (
	"errors"
	"path"
	"strconv"
	"strings"
	"unicode"

	rnixctx "rnix/context"
	"rnix/internal/hidden"
	"rnix/internal/media"
	"rnix/types"
	"rnix/vfs"
)

// keepAttachment keeps an image or a document in the history of a process and returns what a message says of it. What no model could be
// shown is INVALID.
func keepAttachment(k *KernelImpl, id types.UUID, a *vfs.Attachment) (rnixctx.Attachment, error) {
	name := attachmentName(k.cfg.Secrets.String(a.Name))
	in, err := media.Check(a.Data)
	if err != nil {
		return rnixctx.Attachment{}, types.Errorf(types.ErrInvalid, "Attach", name, "%w", err)
	}
	sum, err := k.store.SaveAttachment(id, a.Data)
	if err != nil {
		return rnixctx.Attachment{}, err
	}
	return rnixctx.Attachment{Name: name, Media: in.Type, SHA256: sum, Bytes: int64(len(a.Data)), Width: in.Width, Height: in.Height, Pages: in.Pages}, nil
}

// keepGiven keeps what a new process is shown with its intent.
func keepGiven(k *KernelImpl, p *Process) (out []rnixctx.Attachment, err error) {
	for i := range p.opts.Attachments {
		a, err := keepAttachment(k, p.UUID, &p.opts.Attachments[i])
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	p.opts.Attachments = nil
	return out, nil
}

// attach keeps what a tool has attached to its answer, and returns the answer with a line for each: its label, or why it cannot be shown.
func (h host) attach(text string, given []vfs.Attachment) (string, []rnixctx.Attachment) {
	var out []rnixctx.Attachment
	lines := make([]string, 0, len(given)+1)
	if text != "" {
		lines = append(lines, strings.TrimSuffix(text, "\n"))
	}
	for i := range given {
		if i == rnixctx.MaxAttachments {
			lines = append(lines, "[more images and documents were given than the "+strconv.Itoa(rnixctx.MaxAttachments)+" that one answer may have]")
			break
		}
		a, err := keepAttachment(h.k, h.p.UUID, &given[i])
		if err != nil {
			lines = append(lines, "["+attachmentName(given[i].Name)+" is not shown: "+plainReason(err)+"]")
			continue
		}
		out, lines = append(out, a), append(lines, a.Label())
	}
	return strings.Join(lines, "\n"), out
}

// attachmentName is a name as it stands in a label: one line, no brackets, no directories.
func attachmentName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r) || r == unicode.ReplacementChar:
			return -1
		case r == '[':
			return '('
		case r == ']':
			return ')'
		}
		return r
	}, hidden.Strip(path.Base(strings.TrimSpace(name))))
	for len(name) > rnixctx.MaxAttachmentName {
		name = strings.ToValidUTF8(name[:rnixctx.MaxAttachmentName], "")
	}
	if strings.Trim(name, "./ ") == "" {
		return "unnamed"
	}
	return name
}

// plainReason is why, without what was called.
func plainReason(err error) string {
	if e, ok := errors.AsType[*types.SyscallError](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}
