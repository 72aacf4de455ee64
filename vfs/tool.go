package vfs

import (
	"encoding/json"
)

// Effect says what running a tool can do to the world; it decides whether an interrupted call may
// be run again. Part of the on-disk format.
type Effect string

// The effect classes.
const (
	EffectNone       Effect = "none"       // reads only
	EffectIdempotent Effect = "idempotent" // running it twice is the same as once
	EffectReversible Effect = "reversible" // changes the workspace only; a snapshot takes it back
	EffectExternal   Effect = "external"   // anything else
)

// Tool is an operation of a device as it is offered to a model.
//
// To run it the kernel opens Path for reading and writing, writes the input (one JSON object, with
// "op" set to Op when Op is not empty), reads the answer to its end, and closes the file.
type Tool struct {
	Name        string          `json:"name"`         // [a-zA-Z0-9_-]{1,64}, unique among a process's tools
	Description string          `json:"description"`  // for the model
	Schema      json.RawMessage `json:"input_schema"` // JSON Schema of the input, an object
	Path        string          `json:"path"`         // what to open
	Op          string          `json:"op,omitempty"` // which operation of the device
	Effect      Effect          `json:"effect"`       //
	Independent bool            `json:"independent"`  // may run beside other independent calls
}

// Input returns the bytes to write to Path for the given input, which must be a JSON object or
// empty (which means {}). The operation is set last, so that an "op" in the input cannot change it.
func (t Tool) Input(input json.RawMessage) []byte {
	body := trimObject(input)
	if t.Op == "" {
		return append(append([]byte{'{'}, body...), '}')
	}
	op, _ := json.Marshal(t.Op) // a string always marshals
	out := make([]byte, 0, len(body)+len(op)+10)
	out = append(out, '{')
	if len(body) > 0 {
		out = append(append(out, body...), ',')
	}
	return append(append(append(out, `"op":`...), op...), '}')
}

// trimObject returns what stands between the outer braces of a JSON object.
func trimObject(b json.RawMessage) []byte {
	s := trimSpace(b)
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return nil
	}
	return trimSpace(s[1 : len(s)-1])
}

func trimSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
