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
	// Offered reports whether a process with this Caller.Profile is offered the tool; nil = each is that may open Path. One that is not may still call it: the device
	// says why that is refused.
	Offered func(profile any) bool `json:"-"`
}

// Input returns the bytes to write to Path for the given input, which must be a JSON object or
// empty (which means {}). The operation is set last, so that an "op" in the input cannot change it.
// For any other input it returns bytes that are not JSON and that say so: every device refuses them,
// where leaving the input out would run the operation with nothing, and passing it on could smuggle
// an operation in.
func (t Tool) Input(input json.RawMessage) []byte {
	object := trimSpace(input)
	if len(object) == 0 {
		object = []byte("{}")
	}
	if object[0] != '{' || !json.Valid(object) {
		return append([]byte("the input is not a JSON object: "), object...)
	}
	if t.Op == "" {
		return append([]byte(nil), object...)
	}
	body := trimSpace(object[1 : len(object)-1])
	op, _ := json.Marshal(t.Op) // a string always marshals
	out := make([]byte, 0, len(body)+len(op)+10)
	out = append(out, '{')
	if len(body) > 0 {
		out = append(append(out, body...), ',')
	}
	return append(append(append(out, `"op":`...), op...), '}')
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
