package kernel

import (
	"crypto/sha256"
	"encoding/hex"
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

// attachmentStore keeps the images and documents of messages. Store is one, and so is what keeps histories that do not run.
type attachmentStore interface {
	SaveAttachment(id types.UUID, data []byte) (sum string, err error)
}

// concealer takes secrets out of names. *redact.Set is one.
type concealer interface{ String(text string) string }

// KeepAttachments makes images and documents that go along with a message durable, before that is accepted, and returns what the message
// says of them. What no model could be shown, and more than one message may have, is INVALID.
func KeepAttachments(store attachmentStore, secrets concealer, id types.UUID, given []vfs.Attachment) (out []rnixctx.Attachment, err error) {
	if err := CheckAttachments("Attach", given); err != nil {
		return nil, err
	}
	for i := range given {
		a, err := keepAttachment(store, secrets, id, &given[i])
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// CheckAttachments refuses what cannot go along with one message.
func CheckAttachments(syscall string, given []vfs.Attachment) error {
	if len(given) > rnixctx.MaxAttachments {
		return types.Errorf(types.ErrInvalid, syscall, "", "%d files are attached and at most %d are taken", len(given), rnixctx.MaxAttachments)
	}
	for i := range given {
		if _, err := media.Check(given[i].Data); err != nil {
			return types.Errorf(types.ErrInvalid, syscall, attachmentName(given[i].Name), "cannot be attached: %w", err)
		}
	}
	return nil
}

// keepAttachment keeps an image or a document in the history of a process and returns what a message says of it. What no model could be
// shown is INVALID.
func keepAttachment(store attachmentStore, secrets concealer, id types.UUID, a *vfs.Attachment) (rnixctx.Attachment, error) {
	out, err := describeAttachment(secrets, a)
	if err != nil {
		return rnixctx.Attachment{}, err
	}
	if out.SHA256, err = store.SaveAttachment(id, a.Data); err != nil {
		return rnixctx.Attachment{}, err
	}
	return out, nil
}

// describeAttachments returns what a message says of what goes along with it, which is not kept yet.
func describeAttachments(secrets concealer, given []vfs.Attachment) (out []rnixctx.Attachment, err error) {
	if err := CheckAttachments("Attach", given); err != nil {
		return nil, err
	}
	for i := range given {
		a, err := describeAttachment(secrets, &given[i])
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func describeAttachment(secrets concealer, a *vfs.Attachment) (rnixctx.Attachment, error) {
	name := attachmentName(secrets.String(a.Name))
	in, err := media.Check(a.Data)
	if err != nil {
		return rnixctx.Attachment{}, types.Errorf(types.ErrInvalid, "Attach", name, "%w", err)
	}
	sum := sha256.Sum256(a.Data)
	return rnixctx.Attachment{Name: name, Media: in.Type, SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(a.Data)), Width: in.Width, Height: in.Height, Pages: in.Pages}, nil
}

// keepGiven keeps what a process is shown with its intent, or with what is said when it is resumed.
func keepGiven(k *KernelImpl, p *Process) ([]rnixctx.Attachment, error) {
	out, err := KeepAttachments(k.store, k.cfg.Secrets, p.UUID, p.opts.Attachments)
	p.opts.Attachments = nil
	return out, err
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
		a, err := keepAttachment(h.k.store, h.k.cfg.Secrets, h.p.UUID, &given[i])
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
