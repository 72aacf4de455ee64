package vfs

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"rnix/internal/media"
	"rnix/types"
)

// block is one piece of content of a result, of any of the protocol's kinds.
type block struct {
	Type     string    `json:"type"`
	Text     string    `json:"text"`
	Data     string    `json:"data"` // base64
	MIMEType string    `json:"mimeType"`
	URI      string    `json:"uri"`
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Resource *contents `json:"resource"`
}

// contents is a resource: a text or bytes.
type contents struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     *string `json:"blob"` // base64
}

// listNames returns the names in the result of a list, or the URIs of what has one.
func listNames(result json.RawMessage, key string) (names []string) {
	var in map[string]json.RawMessage
	var items []struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	if json.Unmarshal(result, &in) != nil || json.Unmarshal(in[key], &items) != nil {
		return nil
	}
	for _, i := range items {
		if name := cmp.Or(i.URI, i.Name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// callText returns the result of tools/call as a model reads it. A result that the tool itself calls
// an error is returned as an error of code DRIVER with the same text. Images and PDFs that a model could be shown are given beside the text.
func callText(result json.RawMessage, limit int) (said []byte, given []Attachment, err error) {
	var in struct {
		Content    []block         `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
		Input      json.RawMessage `json:"inputRequests"`
	}
	if err := json.Unmarshal(result, &in); err != nil {
		return nil, nil, types.Errorf(types.ErrDriver, "Write", "", "the server's answer is malformed: %w", err)
	}
	if len(in.Input) > 0 && len(in.Content) == 0 {
		return nil, nil, types.Errorf(types.ErrDriver, "Write", "", "the tool asks for input while it runs, which is not offered: give it everything in its arguments")
	}
	var parts []string
	hasText := false
	for _, b := range in.Content {
		hasText = hasText || b.Type == "text" && b.Text != ""
		text, a := b.shown(len(given))
		if a != nil {
			given = append(given, *a)
		}
		parts = append(parts, text)
	}
	if !hasText && len(in.Structured) > 0 && string(in.Structured) != "null" {
		var b bytes.Buffer
		if json.Compact(&b, in.Structured) == nil {
			parts = append(parts, b.String())
		}
	}
	text := capText([]byte(strings.Join(parts, "\n")), limit)
	if in.IsError {
		if len(text) == 0 {
			text = []byte("the tool failed without saying why")
		}
		return nil, nil, types.Errorf(types.ErrDriver, "Write", "", "%s", text)
	}
	return text, given, nil
}

// shown returns the block as a model reads it, and what it is shown beside that; nil = nothing. n is how many there are before it.
func (b block) shown(n int) (string, *Attachment) {
	encoded, name := b.Data, b.Name
	switch {
	case b.Type == "resource" && b.Resource != nil && b.Resource.Blob != nil:
		encoded, name = *b.Resource.Blob, b.Resource.URI
	case b.Type != "image":
		return b.String(), nil
	}
	text := b.String()
	if base64Size(encoded) > media.MaxBytes {
		return text, nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	kind := media.Type(data)
	switch {
	case err != nil && b.Type == "image":
		return strings.TrimSuffix(text, "]") + "; not shown: its data is no base64]", nil
	case err != nil, kind == "" && b.Type != "image": // another kind of resource
		return text, nil
	}
	if _, err := media.Check(data); err != nil {
		return strings.TrimSuffix(text, "]") + "; not shown: " + err.Error() + "]", nil
	}
	if name == "" {
		name = fmt.Sprintf("image-%d.%s", n+1, path.Base(kind))
	}
	return text, &Attachment{Name: name, Data: data}
}

// String returns the block as a model reads it: its text, or what it is.
func (b block) String() string {
	switch b.Type {
	case "text":
		return b.Text
	case "image", "audio":
		return fmt.Sprintf("[%s: %s, %d bytes]", b.Type, kindOr(b.MIMEType), base64Size(b.Data))
	case "resource":
		if b.Resource == nil {
			return "[resource without content]"
		}
		return b.Resource.String()
	case "resource_link":
		s := "[link: " + b.URI
		if b.Name != "" && b.Name != b.URI {
			s += ", " + b.Name
		}
		if b.MIMEType != "" {
			s += ", " + b.MIMEType
		}
		if b.Size > 0 {
			s += fmt.Sprintf(", %d bytes", b.Size)
		}
		return s + "]"
	}
	return fmt.Sprintf("[content of unknown type %q]", b.Type)
}

// String returns a resource inside an answer: what it is, and its text if it has one.
func (c contents) String() string {
	if c.Text != nil {
		return fmt.Sprintf("[resource %s: %s, %d bytes]\n%s", c.URI, kindOr(c.MIMEType), len(*c.Text), *c.Text)
	}
	size := 0
	if c.Blob != nil {
		size = base64Size(*c.Blob)
	}
	return fmt.Sprintf("[resource %s: %s, %d bytes]", c.URI, kindOr(c.MIMEType), size)
}

// resourceText returns the result of resources/read: the text; the bytes, if it is one resource that
// is no text; else one after the other, described where they are no text.
func resourceText(result json.RawMessage, limit int) ([]byte, error) {
	var in struct {
		Contents []contents `json:"contents"`
	}
	if err := json.Unmarshal(result, &in); err != nil {
		return nil, types.Errorf(types.ErrDriver, "Read", "", "the server's answer is malformed: %w", err)
	}
	if len(in.Contents) == 1 {
		switch c := in.Contents[0]; {
		case c.Text != nil:
			return capText([]byte(*c.Text), limit), nil
		case c.Blob != nil:
			data, err := base64.StdEncoding.DecodeString(*c.Blob)
			if err != nil {
				return nil, types.Errorf(types.ErrDriver, "Read", "", "the server's answer is malformed: %w", err)
			}
			if len(data) > limit { // a cut picture is no picture
				return nil, types.Errorf(types.ErrExhausted, "Read", "", "the resource has %d bytes, more than max_output (%d) allows: raise it for this server", len(data), limit)
			}
			return data, nil
		}
	}
	var parts []string
	for _, c := range in.Contents {
		parts = append(parts, c.String())
	}
	return capText([]byte(strings.Join(parts, "\n")), limit), nil
}

// listText returns one list of a result, as it is, and says so if it is not complete.
func listText(result json.RawMessage, key string, limit int) ([]byte, error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(result, &in); err != nil {
		return nil, types.Errorf(types.ErrDriver, "Read", "", "the server's answer is malformed: %w", err)
	}
	list := in[key]
	if len(list) == 0 || string(list) == "null" {
		list = json.RawMessage("[]")
	}
	text := capText(list, limit)
	if string(in["truncated"]) == "true" {
		why := "the server has more than is listed"
		if leftOut := ""; json.Unmarshal(in["left_out"], &leftOut) == nil && leftOut != "" {
			why += "; left out: " + leftOut
		}
		text = append(text[:len(text):len(text)], "\n["+why+"]"...)
	}
	return text, nil
}

// capText cuts text at limit bytes between characters and says how much is left out.
func capText(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	n := cutUTF8(text, limit)
	return fmt.Appendf(text[:n:n], "\n[cut: %d of %d bytes are left out (max_output)]", len(text)-n, len(text))
}

func kindOr(mime string) string {
	if mime == "" {
		return "unknown type"
	}
	return mime
}

// base64Size returns how many bytes an encoded text stands for.
func base64Size(s string) int {
	return base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(s, "=")))
}
