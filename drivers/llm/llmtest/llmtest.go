// Package llmtest holds what tests of models need: a scripted model that can misbehave (Scripted), the
// suite that every LLMDriver passes (Run), and loopback stand-ins for the HTTP APIs of the vendors
// (API), which real clients accept too.
//
// It owns no driver and knows no process. Nothing in it is random, and nothing leaves the machine.
package llmtest

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/types"
)

// Turn is what the scripted model does when it is asked once. The zero Turn answers with nothing.
type Turn struct {
	Text      string
	Reasoning string
	ToolCalls []rnixctx.ToolCall
	Blocks    []rnixctx.Block
	Stop      string        // "" = end_turn, or tool_use if there are calls
	Usage     llm.Usage     // zero = estimated from the lengths
	CostUSD   float64       //
	Delay     time.Duration // before the first piece
	Pieces    int           // Text comes in this many pieces; 0 = one
	Pause     time.Duration // before each piece
	Endless   bool          // Text is repeated until the call ends
	Hang      bool          // after Text nothing comes any more until the call ends
	Cut       bool          // the stream breaks off after Text
	Err       error         // the call fails after Text, with this
}

// Say answers with text.
func Say(text string) Turn { return Turn{Text: text} }

// Call asks for one tool. input is encoded as JSON, unless it is a json.RawMessage or a string, which
// must hold JSON.
func Call(tool string, input any) Turn {
	raw, ok := input.(json.RawMessage)
	if s, isText := input.(string); isText {
		raw, ok = json.RawMessage(s), true
	}
	if !ok {
		var err error
		if raw, err = json.Marshal(input); err != nil {
			panic("llmtest: the input of a call cannot be encoded: " + err.Error())
		}
	}
	return Turn{ToolCalls: []rnixctx.ToolCall{{Name: tool, Input: raw}}}
}

// Calls asks for the tools of several turns at once.
func Calls(turns ...Turn) Turn {
	var all Turn
	for _, t := range turns {
		all.Text += t.Text
		all.ToolCalls = append(all.ToolCalls, t.ToolCalls...)
	}
	return all
}

// BadArguments asks for a tool with arguments that are not JSON, as drivers report them.
func BadArguments(tool, raw string) Turn {
	text, _ := json.Marshal(raw) // a string always encodes
	return Turn{ToolCalls: []rnixctx.ToolCall{{Name: tool, Input: text, ParseError: "the arguments are not a JSON object"}}}
}

// Fail fails with a code.
func Fail(code types.ErrCode, text string) Turn {
	return Turn{Err: types.Errorf(code, "Call", "", "%s", text)}
}

// Limited fails because of a rate limit.
func Limited(after time.Duration) Turn {
	limit := &llm.RateLimit{RetryAfter: after, Message: "too many requests"}
	return Turn{Err: types.Errorf(types.ErrRateLimited, "Call", "", "%w", limit)}
}

// Endless says the text again and again until the call ends.
func Endless(text string) Turn { return Turn{Text: text, Endless: true} }

// Hang says the text and then nothing until the call ends.
func Hang(text string) Turn { return Turn{Text: text, Hang: true} }

// CutOff says the text and breaks off.
func CutOff(text string) Turn { return Turn{Text: text, Cut: true} }

// Empty answers with nothing at all.
func Empty() Turn { return Turn{} }

// Garbled answers with text that looks like a broken action, with control characters in it.
func Garbled() Turn {
	return Turn{Text: "{\"action\": tool_call, \x00\x1b[31m \ufffd ]]"}
}

// After delays the turn's first piece.
func (t Turn) After(d time.Duration) Turn { t.Delay = d; return t }

// LastText returns the content of the last message of a request, or its intent.
func LastText(req llm.LLMRequest) string {
	if n := len(req.Messages); n > 0 {
		return req.Messages[n-1].Content
	}
	return req.Intent
}

// pieces divides text into n parts on character borders.
func pieces(text string, n int) []string {
	if text == "" {
		return nil
	}
	runes := []rune(text)
	n = max(1, min(n, len(runes)))
	if n == 1 {
		return []string{text}
	}
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, string(runes[i*len(runes)/n:(i+1)*len(runes)/n]))
	}
	return out
}

// suiteTool splits "tool: name {json}".
func suiteTool(text string) (name, input string, ok bool) {
	rest, ok := strings.CutPrefix(text, "tool: ")
	if !ok {
		return "", "", false
	}
	name, input, _ = strings.Cut(rest, " ")
	return name, input, true
}

func callID(n int) string { return "call_" + strconv.Itoa(n) }
