package loop

import (
	"bytes"
	"encoding/json"

	rnixctx "rnix/context"
	"rnix/internal/weigh"
)

// Prompt is what a model is about to be sent, as far as a budget depends on it. It is a value, since there is one for each question.
type Prompt struct {
	Tokens   int  // estimated, rather too many
	Bytes    int  // of the document, but for a few
	Attached bool // it has images or documents, so that its tokens say nothing of its bytes

	loop *Loop
	sent *rnixctx.PromptResult
	made *weight // of the conversation before
}

// Parts returns all that a vendor reads of it. It is called before the loop goes on.
func (q Prompt) Parts() []weigh.Part {
	l := q.loop
	all := append([]weigh.Part{weigh.Added()}, weigh.Text(l.req.said.SystemPrompt)...)
	if l.cfg.Weight != nil {
		all = append(all, l.cfg.Weight...)
	} else if len(l.cfg.Specs) > 0 {
		all = append(all, weigh.Of(l.cfg.Specs))
	}
	return append(all, q.made.of(q.sent, l.progress.Model)...)
}

// weight is the parts of the messages of a conversation, which only grows while the generation stays the same. The loop's goroutine owns it.
type weight struct {
	generation uint64
	parts      []weigh.Part
}

// of returns the parts of the messages of p. What it has made it does not make again.
func (w *weight) of(p *rnixctx.PromptResult, model string) []weigh.Part {
	if w.generation != p.Generation || len(w.parts) > len(p.Messages) {
		*w = weight{generation: p.Generation}
	}
	for i := len(w.parts); i < len(p.Messages); i++ {
		w.parts = append(w.parts, messagePart(&p.Messages[i], model))
	}
	return w.parts
}

// MessageParts returns messages as parts, but for those to which something is attached: a vendor may not have been sent that.
func MessageParts(ms []rnixctx.Message) (parts []weigh.Part) {
	for i := range ms {
		if len(ms[i].Attachments) == 0 {
			parts = append(parts, messagePart(&ms[i], ""))
		}
	}
	return parts
}

// messagePart bounds a message by its document, and by what images and documents take that it only names.
func messagePart(m *rnixctx.Message, model string) weigh.Part {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(m) // the conversation has encoded it already
	part := weigh.Of(b.Bytes())
	part.Most += m.Most(model)
	return part
}

// weighed describes a prompt of about so many tokens. w has what was made of the conversation before.
func (l *Loop) weighed(p *rnixctx.PromptResult, tokens int, w *weight) Prompt {
	return Prompt{Tokens: tokens, Bytes: l.req.size(p), Attached: p.Images+p.Pages > 0, loop: l, sent: p, made: w}
}
