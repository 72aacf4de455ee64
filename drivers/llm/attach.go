package llm

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"

	rnixctx "rnix/context"
	"rnix/types"
)

// What of the attachments of a conversation goes along with one request: the least that the vendors' documents state. With more images than
// that Anthropic takes none above 2000×2000 pixels; its requests have at most 32 MB, and base64 makes of 20 MiB 28 MB. What
// is over is left out, the oldest first and half of all at once, so that the beginning of the prompt stays the same for some steps.
const (
	maxShown      = 20
	maxShownBytes = 20 << 20
)

// Why an attachment is not shown.
const (
	whyNoImages    = "this model is shown no images"
	whyNoDocuments = "this model is shown no PDFs"
	whyOld         = "a request takes no more images and PDFs, and later ones came; read the file again if you need it"
	whyMissing     = "its file is missing from the history"
	whyDamaged     = "its file in the history is damaged"
)

// Showing is Message.Showing for each message, for a driver that shows some attachments and not others. Without attachments it is ms itself.
func Showing(ms []rnixctx.Message, why func(*rnixctx.Message, *rnixctx.Attachment) string) []rnixctx.Message {
	if !slices.ContainsFunc(ms, func(m rnixctx.Message) bool { return len(m.Attachments) > 0 }) {
		return ms
	}
	out := slices.Clone(ms)
	for i := range out {
		if len(out[i].Attachments) > 0 {
			out[i] = out[i].Showing(func(a *rnixctx.Attachment) string { return why(&ms[i], a) })
		}
	}
	return out
}

// Recent returns messages with a line in the place of the oldest attachments, where there are more than one request takes.
func Recent(ms []rnixctx.Message) []rnixctx.Message {
	old, n := tooMany(ms), -1
	return showing(ms, func(*rnixctx.Attachment) string {
		if n++; n < old {
			return whyOld
		}
		return ""
	})
}

// LoadAttachment reads the bytes of an attachment, or says why it cannot.
func LoadAttachment(req *LLMRequest, a *rnixctx.Attachment) (data []byte, why string) {
	if req.Attachment == nil {
		return nil, whyMissing
	}
	data, err := req.Attachment(*a)
	switch {
	case types.CodeOf(err) == types.ErrStorage:
		return nil, whyDamaged
	case err != nil || len(data) == 0:
		return nil, whyMissing
	}
	return data, ""
}

// Described returns messages with a line in the place of each attachment, for models that are asked in words alone: it says that they are not shown it.
func Described(ms []rnixctx.Message) []rnixctx.Message {
	return showing(ms, func(a *rnixctx.Attachment) string {
		if a.Image() {
			return whyNoImages
		}
		return whyNoDocuments
	})
}

// showing is Showing for what does not depend on the message.
func showing(ms []rnixctx.Message, why func(*rnixctx.Attachment) string) []rnixctx.Message {
	return Showing(ms, func(_ *rnixctx.Message, a *rnixctx.Attachment) string { return why(a) })
}

// shown is a conversation as it goes into a request: what is left of its attachments has its bytes in base64.
type shown struct {
	messages []rnixctx.Message
	data     map[string]string // by SHA-256
}

// attached puts a conversation in order and decides which of its attachments the model is shown.
func attached(req LLMRequest, a Abilities, refused *refusals) shown {
	s := shown{data: map[string]string{}}
	ms := conversation(req)
	old, n := tooMany(ms), -1
	s.messages = showing(ms, func(at *rnixctx.Attachment) string {
		n++
		switch {
		case at.Image() && !a.Images:
			return whyNoImages
		case !at.Image() && !a.Documents:
			return whyNoDocuments
		case n < old:
			return whyOld
		}
		if why := refused.why(at.SHA256); why != "" {
			return why
		}
		return s.load(req, at)
	})
	return s
}

// load reads the bytes of an attachment, and says why it cannot.
func (s *shown) load(req LLMRequest, a *rnixctx.Attachment) string {
	if _, ok := s.data[a.SHA256]; ok {
		return ""
	}
	data, why := LoadAttachment(&req, a)
	if why == "" {
		s.data[a.SHA256] = base64.StdEncoding.EncodeToString(data)
	}
	return why
}

// url returns an attachment as an address that holds it.
func (s *shown) url(a *rnixctx.Attachment) string {
	return "data:" + a.Media + ";base64," + s.data[a.SHA256]
}

// tooMany returns how many attachments of a conversation, the oldest, do not go along.
func tooMany(ms []rnixctx.Message) (old int) {
	var sizes []int64
	n, bytes := 0, int64(0)
	for i := range ms {
		for _, a := range ms[i].Attachments {
			sizes = append(sizes, a.Bytes)
			if n, bytes = n+1, bytes+a.Bytes; n <= maxShown && bytes <= maxShownBytes {
				continue
			}
			for n > 1 && (n > maxShown/2 || bytes > maxShownBytes/2) {
				n, bytes, old = n-1, bytes-sizes[old], old+1
			}
		}
	}
	return old
}

// maxRefusals is how many attachments a driver remembers to have been refused.
const maxRefusals = 256

// refusals remembers which attachments a server has refused, so that a conversation goes on without them. Safe for concurrent use. The zero value knows of none.
type refusals struct {
	mu sync.Mutex
	// +checklocks:mu
	by map[string]string // why, by SHA-256
}

func (r *refusals) why(sum string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[sum]
}

// refusalWords stand in what servers say of attachments that they do not take.
var refusalWords = []string{"image", "pdf", "document", "file", "vision", "multimodal", "must be a string", "expected a string", "sequence"}

// learn reports whether a refusal may be about attachments that were not refused before: those that came last, or else all. They are not sent
// again, and the model is told why.
func (r *refusals) learn(err error, req LLMRequest) bool {
	text := strings.ToLower(fmt.Sprint(err))
	if types.CodeOf(err) != types.ErrInvalid || strings.Contains(text, "prompt is too long") || !slices.ContainsFunc(refusalWords, func(w string) bool { return strings.Contains(text, w) }) {
		return false
	}
	last := len(req.Messages)
	for last > 0 && req.Messages[last-1].Role != rnixctx.RoleAssistant {
		last--
	}
	why := "the model's server refuses it: " + rnixctx.Elide(strings.Join(strings.Fields(causeOf(err).Error()), " "), 200)
	return r.add(rnixctx.AttachmentsIn(req.Messages[last:]), why) || r.add(rnixctx.AttachmentsIn(req.Messages[:last]), why)
}

// add reports whether any of as was not known.
func (r *refusals) add(as []rnixctx.Attachment, why string) (added bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range as {
		if _, known := r.by[a.SHA256]; known {
			continue
		}
		if r.by == nil || len(r.by) >= maxRefusals {
			r.by = map[string]string{}
		}
		r.by[a.SHA256], added = why, true
	}
	return added
}
