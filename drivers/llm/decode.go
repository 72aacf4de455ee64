package llm

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"

	rnixctx "rnix/context"
	"rnix/types"
	"rnix/vfs"
)

// jsonSpace is what JSON takes for white space.
const jsonSpace = " \t\r\n"

// decoder reads requests. It remembers the bytes of the last one up to the end of its last message,
// so that a request that only adds messages costs what it adds. Not safe for concurrent use.
//
// The result is always the same as that of vfs.DecodeRequest: whatever the short way does not
// understand goes the long way.
type decoder struct {
	head     []byte            // the last document up to and with the [ of "messages"; nil: nothing is remembered
	tail     []byte            // the encoded messages behind head, without the closing ]
	request  LLMRequest        // head, decoded; without Messages
	messages []rnixctx.Message // tail, decoded; only ever appended to
}

// decode returns the request in data, and does not keep data. The request shares its tools and
// messages with later ones; nobody may change them.
func (d *decoder) decode(data []byte) (LLMRequest, error) {
	body := bytes.Trim(data, jsonSpace)
	if len(body) == 0 {
		return LLMRequest{}, types.Errorf(types.ErrInvalid, "Write", "", "the request is empty: write a JSON object, or text for the model")
	}
	if body[0] != '{' {
		return plain(body)
	}
	if req, ok := d.extend(body); ok {
		return req, nil
	}
	var req LLMRequest
	if err := vfs.DecodeRequest(body, &req); err != nil {
		return LLMRequest{}, err
	}
	d.remember(body, req)
	return req, nil
}

// plain takes what a person writes: text that is no JSON object is the intent.
func plain(body []byte) (LLMRequest, error) {
	if !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 {
		return LLMRequest{}, types.Errorf(types.ErrInvalid, "Write", "", "the request is neither a JSON object nor UTF-8 text")
	}
	return LLMRequest{Intent: string(body)}, nil
}

// extend decodes a request that begins like the last one. It reports false if it does not, or if
// anything about it is unusual.
func (d *decoder) extend(body []byte) (LLMRequest, bool) {
	rest, ok := bytes.CutPrefix(body, d.head)
	if !ok || d.head == nil {
		return LLMRequest{}, false
	}
	if rest, ok = bytes.CutPrefix(rest, d.tail); !ok {
		return LLMRequest{}, false
	}
	added, ok := closing(rest)
	if !ok {
		return LLMRequest{}, false
	}
	if len(added) > 0 {
		items := added
		if len(d.messages) > 0 {
			if items[0] != ',' {
				return LLMRequest{}, false
			}
			items = items[1:]
		}
		fresh, err := decodeMessages(items)
		if err != nil || len(fresh) == 0 {
			return LLMRequest{}, false
		}
		d.messages = append(d.messages, fresh...)
		d.tail = append(d.tail, added...)
	}
	req := d.request
	req.Messages = d.messages[:len(d.messages):len(d.messages)]
	return req, true
}

// closing cuts the "]}" off the end of a document and returns what stands before it.
func closing(rest []byte) ([]byte, bool) {
	rest, ok := bytes.CutSuffix(rest, []byte("}"))
	if !ok {
		return nil, false
	}
	rest, ok = bytes.CutSuffix(bytes.TrimRight(rest, jsonSpace), []byte("]"))
	return bytes.Trim(rest, jsonSpace), ok
}

// decodeMessages reads the inside of an array.
func decodeMessages(items []byte) ([]rnixctx.Message, error) {
	dec := json.NewDecoder(io.MultiReader(strings.NewReader("["), bytes.NewReader(items), strings.NewReader("]")))
	dec.DisallowUnknownFields()
	var out []rnixctx.Message
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	return out, nil
}

// remember keeps a valid document for extend, if its last key is "messages", said once, with a list.
func (d *decoder) remember(body []byte, req LLMRequest) {
	*d = decoder{}
	at, ok := messagesAt(body)
	if !ok {
		return
	}
	tail, ok := closing(body[at:])
	if !ok || (len(tail) == 0) != (len(req.Messages) == 0) {
		return
	}
	d.head, d.tail = bytes.Clone(body[:at]), bytes.Clone(tail)
	d.messages = req.Messages
	d.request = req
	d.request.Messages = nil
}

// messagesAt returns the offset behind the [ of the last key, if that key is "messages" and no other
// key could be taken for it.
func messagesAt(body []byte) (int, bool) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		return 0, false
	}
	at := 0
	for dec.More() {
		if at > 0 {
			return 0, false // a key behind it
		}
		key, err := dec.Token()
		if err != nil {
			return 0, false
		}
		if name, _ := key.(string); strings.EqualFold(name, "messages") {
			rest := body[dec.InputOffset():]
			if i := bytes.IndexByte(rest, '['); name == "messages" && i >= 0 && onlyColon(rest[:i]) {
				at = int(dec.InputOffset()) + i + 1
			} else {
				return 0, false
			}
		}
		var skip json.RawMessage
		if dec.Decode(&skip) != nil {
			return 0, false
		}
	}
	return at, at > 0
}

func onlyColon(b []byte) bool { return string(bytes.Trim(b, jsonSpace)) == ":" }
