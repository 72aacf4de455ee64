package context

import (
	"fmt"
	"slices"
	"strings"

	"rnix/internal/media"
)

// Attachment is an image or a document that a message has beside its text. It says what the file is; the bytes are kept once in the
// history, under their sum. The text of the message names it (Label), so that who reads only that knows of it. Part of the on-disk format.
type Attachment struct {
	Name   string `json:"name"`             // as people know it: a file name without directories, 1 to MaxAttachmentName bytes
	Media  string `json:"media"`            // one of the types of package media
	SHA256 string `json:"sha256"`           // of the bytes, in hexadecimal
	Bytes  int64  `json:"bytes"`            //
	Width  int    `json:"width,omitempty"`  // in pixels, of an image
	Height int    `json:"height,omitempty"` //
	Pages  int    `json:"pages,omitempty"`  // of a PDF; 0 = not known
}

// MaxAttachmentName is how long the name of an attachment may be, in bytes.
const MaxAttachmentName = 100

// MaxAttachments is how many attachments one message may have.
const MaxAttachments = 20

// Image reports whether it is an image; else it is a document.
func (a *Attachment) Image() bool { return a.Media != media.PDF }

// Label names the attachment in a text: "[image shot.png 640×480, 12 kB]".
func (a *Attachment) Label() string {
	switch {
	case a.Image():
		return fmt.Sprintf("[image %s %d×%d, %s]", a.Name, a.Width, a.Height, media.Size(a.Bytes))
	case a.Pages == 1:
		return fmt.Sprintf("[PDF %s, 1 page, %s]", a.Name, media.Size(a.Bytes))
	case a.Pages > 0:
		return fmt.Sprintf("[PDF %s, %d pages, %s]", a.Name, a.Pages, media.Size(a.Bytes))
	}
	return fmt.Sprintf("[PDF %s, %s]", a.Name, media.Size(a.Bytes))
}

// Tokens of attachments.
const (
	pixelsPerToken = 750    // as Anthropic counts images
	leastImage     = 300    // OpenAI counts a tile for the smallest
	mostImage      = 4_800  // the largest that is left when a vendor has made it smaller
	mostTiled      = 50_000 // with OpenAI's 4o-mini
	pageTokens     = 3_000  // a page's text and its picture, as Anthropic states it
	mostPage       = pageTokens + mostImage
	pageBytes      = 50_000 // of a page, where they could not be counted
)

// tokens estimates what the attachment takes of a model's window.
func (a *Attachment) tokens() int {
	if a.Image() {
		return min(max(a.Width*a.Height/pixelsPerToken, leastImage), mostImage)
	}
	return a.pages() * pageTokens
}

func (a *Attachment) pages() int {
	if a.Pages > 0 {
		return min(a.Pages, media.MaxPages)
	}
	return int(min(a.Bytes/pageBytes+1, media.MaxPages))
}

// Most bounds from above what the attachments of a prompt cost, in tokens: of some images, and of some pages of documents.
func Most(model string, images, pages int) int {
	image := mostImage
	if strings.Contains(model, "4o-mini") {
		image = mostTiled
	}
	return images*image + pages*(mostPage-mostImage+image)
}

// Most returns how many tokens what is attached to the message takes at most.
func (m *Message) Most(model string) int {
	images, pages := m.shows()
	return Most(model, images, pages)
}

// shows counts the images of the message, and the pages of its documents; of one whose pages are not known as many as it may have.
func (m *Message) shows() (images, pages int) {
	for i := range m.Attachments {
		switch a := &m.Attachments[i]; {
		case a.Image():
			images++
		case a.Pages > 0:
			pages += a.Pages
		default:
			pages += media.MaxPages
		}
	}
	return images, pages
}

// Showing returns the message without the attachments for which why gives a reason: a line behind the text says it. It shares nothing
// that it changes with m.
func (m Message) Showing(why func(*Attachment) string) Message {
	var kept []Attachment
	for i := range m.Attachments {
		a := &m.Attachments[i]
		reason := why(a)
		if reason == "" {
			kept = append(kept, *a)
			continue
		}
		line := "[" + a.Name + " is not shown: " + reason + "]"
		if !strings.Contains(m.Content, a.Label()) {
			line = strings.TrimSuffix(a.Label(), "]") + "; not shown: " + reason + "]"
		}
		if m.Content != "" { // of which the beginning stays, by which it is known
			line = "\n" + line
		}
		m.Content += line
	}
	m.Attachments = kept
	return m
}

// Labels returns the labels of attachments, one a line.
func Labels(as []Attachment) string {
	lines := make([]string, len(as))
	for i := range as {
		lines[i] = as[i].Label()
	}
	return strings.Join(lines, "\n")
}

// WithLabels returns a text with a line for each attachment that it does not name yet.
func WithLabels(text string, as []Attachment) string {
	missing := slices.DeleteFunc(slices.Clone(as), func(a Attachment) bool { return strings.Contains(text, a.Label()) })
	switch {
	case len(missing) == 0:
		return text
	case text == "":
		return Labels(missing)
	}
	return text + "\n\n" + Labels(missing)
}

// AttachmentsIn returns the attachments of messages, each once.
func AttachmentsIn(ms []Message) (out []Attachment) {
	for i := range ms {
		for _, a := range ms[i].Attachments {
			if !slices.ContainsFunc(out, func(o Attachment) bool { return o.SHA256 == a.SHA256 }) {
				out = append(out, a)
			}
		}
	}
	return out
}
