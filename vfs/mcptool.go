package vfs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"rnix/debug"
	"rnix/internal/hidden"
	"rnix/types"
)

// What one tool may cost the prompt, in bytes. What a server says of its tools is data, not trusted
// text, so it is bounded.
const (
	maxToolDescription = 4 << 10
	maxToolSchema      = 64 << 10
	maxToolName        = 64 // of the name that the model sees; providers allow no more
)

// emptySchema accepts any object.
const emptySchema = `{"type":"object","properties":{}}`

// offer is what a server offers to the model.
type offer struct {
	tools     []Tool
	truncated bool
}

// mcpTool is a tool as a server describes it.
type mcpTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations struct {
		Title          string `json:"title"`
		ReadOnlyHint   bool   `json:"readOnlyHint"`
		IdempotentHint bool   `json:"idempotentHint"`
	} `json:"annotations"`
}

// readOffer makes tools of the result of tools/list. Tools that cannot be named by a path, and a
// second tool of the same name, are left out.
func readOffer(path, server string, list json.RawMessage) (offer, error) {
	var in struct {
		Tools     []mcpTool `json:"tools"`
		Truncated bool      `json:"truncated"`
	}
	if err := json.Unmarshal(list, &in); err != nil {
		return offer{}, types.Errorf(types.ErrDriver, "Mount", path, "the list of tools is malformed: %w", err)
	}
	var usable []mcpTool
	seen := map[string]bool{}
	for _, t := range in.Tools {
		if t.Name == "" || strings.IndexByte(t.Name, 0) >= 0 || seen[t.Name] {
			continue
		}
		seen[t.Name] = true
		usable = append(usable, t)
	}
	names := toolNames(server, usable)
	o := offer{truncated: in.Truncated, tools: make([]Tool, 0, len(usable))}
	for i, t := range usable {
		schema, described := t.schema()
		o.tools = append(o.tools, Tool{
			Name: names[i], Description: t.describe(described), Schema: schema, Path: path + "/tools/" + t.Name,
			Effect: t.effect(), Independent: t.Annotations.ReadOnlyHint,
		})
	}
	// A server may list its tools in any order. In one that changes, nothing behind them is in a provider's cache.
	slices.SortFunc(o.tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return o, nil
}

// effect believes the server's own hints; without any, a tool may do anything.
func (t mcpTool) effect() Effect {
	switch {
	case t.Annotations.ReadOnlyHint:
		return EffectNone
	case t.Annotations.IdempotentHint:
		return EffectIdempotent
	}
	return EffectExternal
}

// schema returns the tool's input schema on one line, and whether it is the server's own. A schema
// that is not that of an object, or is too large for a prompt, is replaced by one that accepts any
// object: the server checks its input anyway.
func (t mcpTool) schema() (json.RawMessage, bool) {
	var shape map[string]json.RawMessage
	var b bytes.Buffer
	if json.Unmarshal(t.InputSchema, &shape) != nil || shape == nil || json.Compact(&b, t.InputSchema) != nil {
		return json.RawMessage(emptySchema), true
	}
	kind, said := shape["type"]
	switch {
	case b.Len() > maxToolSchema:
		return json.RawMessage(emptySchema), false
	case !said && len(shape) == 0:
		return json.RawMessage(emptySchema), true
	case !said: // every input is an object, so this changes nothing but what providers accept
		return legibleSchema(append([]byte(`{"type":"object",`), b.Bytes()[1:]...)), true
	case string(bytes.TrimSpace(kind)) != `"object"`:
		return json.RawMessage(emptySchema), true
	}
	return legibleSchema(b.Bytes()), true
}

// legible returns what a server says of itself as a person would see it: what no screen shows is gone, and what turns the
// direction of writing is named. A model reads the same, and nothing beside it.
func legible(text string) string {
	return hidden.Strip(debug.Sanitize(text))
}

// legibleSchema makes the descriptions and titles in a schema legible. One that is so is returned as it is.
func legibleSchema(schema json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || !mend(v) {
		return schema
	}
	out, err := json.Marshal(v)
	if err != nil {
		return schema
	}
	return out
}

// mend makes the texts in what was decoded legible, and reports whether that changed any.
func mend(v any) (changed bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			changed = mend(x) || changed
		}
	case map[string]any:
		for key, x := range v {
			if text, ok := x.(string); ok && (key == "description" || key == "title") {
				if clean := legible(text); clean != text {
					v[key], changed = clean, true
				}
				continue
			}
			changed = mend(x) || changed
		}
	}
	return changed
}

// describe returns the description, bounded and never empty.
func (t mcpTool) describe(schemaShown bool) string {
	text := legible(t.Description)
	for _, other := range []string{t.Annotations.Title, t.Title, t.Name, "a tool without a description"} {
		if strings.TrimSpace(text) == "" {
			text = legible(other)
		}
	}
	if !schemaShown {
		text = "(The description of its input is too long and left out.) " + text
	}
	if len(text) > maxToolDescription {
		const mark = " [cut]"
		text = text[:cutUTF8(text, maxToolDescription-len(mark))] + mark
	}
	return text
}

// toolNames returns the names that the model sees, mcp__<server>__<tool>, each of 1 to 64 of
// [a-zA-Z0-9_-]. A name that had to be cut, or that two tools would share after other characters were
// replaced, ends in a hash of the true names, so that it depends on no other tool's place in the list.
func toolNames(server string, tools []mcpTool) []string {
	prefix := "mcp__" + sanitise(server) + "__"
	// With such a server the end of its name could be read as the beginning of a tool's.
	unclear := sanitise(server) != server || strings.Contains(server, "__") || strings.HasSuffix(server, "_")
	claims := map[string]int{}
	for _, t := range tools {
		claims[sanitise(t.Name)]++
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		clean := sanitise(t.Name)
		names[i] = prefix + clean
		shared := claims[clean] > 1 && clean != t.Name
		if unclear || shared || len(names[i]) > maxToolName {
			sum := sha256.Sum256([]byte(server + "\x00" + t.Name))
			suffix := "_" + hex.EncodeToString(sum[:5])
			names[i] = names[i][:min(len(names[i]), maxToolName-len(suffix))] + suffix
		}
	}
	return names
}

// sanitise replaces what a tool's name may not contain.
func sanitise(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// cutUTF8 returns the largest length of at most limit at which text can be cut between characters.
func cutUTF8[T string | []byte](text T, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	n := max(limit, 0)
	for back := 0; n > 0 && back < utf8.UTFMax-1 && !utf8.RuneStart(text[n]); back++ {
		n--
	}
	return n
}
