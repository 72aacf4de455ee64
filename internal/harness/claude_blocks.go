package harness

import (
	"encoding/json"
	"strings"
)

// claudeBlock is one block of a message.
type claudeBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	CallID  string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

// blocks reads a content that is one text or a list of blocks.
func blocks(raw json.RawMessage) []claudeBlock {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []claudeBlock{{Type: "text", Text: text}}
	}
	var list []claudeBlock
	_ = json.Unmarshal(raw, &list) // what has another type is left out
	return list
}

// blockText is the text of a content; what is no text is named.
func blockText(raw json.RawMessage) string {
	var out []string
	for _, b := range blocks(raw) {
		switch {
		case b.Type == "text":
			out = append(out, b.Text)
		case b.Type != "":
			out = append(out, "["+b.Type+"]")
		}
	}
	return strings.Join(out, "\n")
}

// object is the input of a tool, an empty object if it is none.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
		return raw
	}
	return json.RawMessage("{}")
}
