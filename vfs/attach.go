package vfs

import (
	"context"
	"slices"
)

// Attachment is an image or a document that a device gives beside the text of its answer.
type Attachment struct {
	Name string // for people: a file name
	Data []byte // not changed any more
}

// Attacher is implemented by files whose answers can have attachments. RequestFile is one.
type Attacher interface {
	// Attachments returns those of the last answer. The caller must not change them.
	Attachments() []Attachment
}

// attachKey is the key of the attachments of a request under way, in its context.
type attachKey struct{}

// Attach adds an attachment to the answer of the request of a RequestFile that ctx belongs to, and reports whether anybody takes it. The kernel
// looks at what it is, and keeps it only if a model could be shown it.
func Attach(ctx context.Context, name string, data []byte) bool {
	to, ok := ctx.Value(attachKey{}).(*[]Attachment)
	if ok {
		*to = append(*to, Attachment{Name: name, Data: data})
	}
	return ok
}

// Attachments returns those of the last answer.
func (f *RequestFile) Attachments() []Attachment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clip(f.attached)
}
