package context

import (
	"slices"

	"rnix/internal/redact"
)

// Conceal has m take the secrets of a set out of all that conversations are given. It is called before m is used.
func (m *Manager) Conceal(secrets *redact.Set) { m.secrets = secrets }

// Concealed returns the message without the secrets of a set. It shares with x what holds none.
func (x Message) Concealed(secrets *redact.Set) Message {
	if secrets.Empty() {
		return x
	}
	x.Content = secrets.String(x.Content)
	if len(x.ToolCalls) > 0 {
		x.ToolCalls = slices.Clone(x.ToolCalls)
	}
	for i := range x.ToolCalls {
		c := &x.ToolCalls[i]
		c.Input, c.ParseError = secrets.JSON(c.Input), secrets.String(c.ParseError)
	}
	if len(x.Reasoning) > 0 {
		x.Reasoning = slices.Clone(x.Reasoning)
	}
	if len(x.Attachments) > 0 {
		x.Attachments = slices.Clone(x.Attachments)
	}
	for i := range x.Attachments { // a name is a text; of a picture nobody knows what it shows
		x.Attachments[i].Name = secrets.String(x.Attachments[i].Name)
	}
	for i := range x.Reasoning {
		x.Reasoning[i].Data = secrets.JSON(x.Reasoning[i].Data)
	}
	return x
}

// ConcealedAll is Concealed for each of ms, which is not changed.
func ConcealedAll(ms []Message, secrets *redact.Set) []Message {
	if secrets.Empty() || len(ms) == 0 {
		return ms
	}
	out := make([]Message, len(ms))
	for i := range ms {
		out[i] = ms[i].Concealed(secrets)
	}
	return out
}
