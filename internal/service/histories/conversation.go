package histories

import (
	"context"
	"time"
	"unicode/utf8"

	rnixctx "rnix/context"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// pageBytes bounds the texts of one answer.
const pageBytes = 16 << 20

// list returns a part of a conversation.
func (d *Service) list(ctx context.Context, peer *ipc.Peer, req ipc.MessagesRequest) (ipc.MessagesResponse, error) {
	if err := fillMessages(&req); err != nil {
		return ipc.MessagesResponse{}, err
	}
	t, err := d.Finder.Find(peer, "list_messages", req.Target)
	if err != nil {
		return ipc.MessagesResponse{}, err
	}
	var r ipc.MessagesResponse
	err = d.outline(ctx, &t, req.Target, func(out *step.Outline) error {
		r, err = d.part(ctx, &t, &req, out)
		return err
	})
	return r, err
}

// part reads what a request wants of a conversation where its outline says that it stands.
func (d *Service) part(ctx context.Context, t *service.Target, req *ipc.MessagesRequest, out *step.Outline) (ipc.MessagesResponse, error) {
	view, compactions, err := out.View(req.Step)
	if err != nil {
		return ipc.MessagesResponse{}, service.Named(err, "list_messages", req.Target)
	}
	r := ipc.MessagesResponse{PID: t.PID, UUID: t.UUID, Total: len(view), Compactions: compactions, Damage: out.Damage}
	first, behind := page(view, req.From, req.Limit)
	r.Messages = make([]ipc.ConversationMessage, behind-first)
	if first > 0 {
		r.Prev = view[max(first-req.Limit, 0)].N
	}
	if behind < len(view) {
		r.Next = view[behind].N
	}
	err = step.ReadPlaces(ctx, d.Journal, t.UUID, view[first:behind], func(i int, at time.Time, m *rnixctx.Message) {
		skip := 0
		if i == 0 {
			skip = req.Skip
		}
		r.Messages[i] = wireMessage(&view[first+i], m, at, skip, req.MaxBytes)
	})
	return r, d.Finder.Lost(t, req.Target, err)
}

// fillMessages checks a request and fills in what it does not say.
func fillMessages(req *ipc.MessagesRequest) error {
	for _, f := range []struct {
		name         string
		value        *int
		usual, limit int
	}{
		{"limit", &req.Limit, ipc.PageMessages, ipc.MaxPageMessages}, {"max_bytes", &req.MaxBytes, ipc.TextBytes, ipc.MaxTextBytes},
		{"skip", &req.Skip, 0, 1 << 62}, {"step", &req.Step, 0, 1 << 62},
	} {
		if *f.value < 0 || *f.value > f.limit {
			return types.Errorf(types.ErrInvalid, "list_messages", "", "%s is %d, and may be 0 to %d", f.name, *f.value, f.limit)
		}
		if *f.value == 0 {
			*f.value = f.usual
		}
	}
	req.Limit = min(req.Limit, max(pageBytes/req.MaxBytes, 1))
	return nil
}

// page returns which messages of a conversation a request means: from the message numbered from on, or the next higher number that
// is there, or so many from the end.
func page(view []step.Place, from, limit int) (first, behind int) {
	switch {
	case from < 0:
		first = max(len(view)+from, 0)
	case from > 1:
		first = len(view)
		for i := range view {
			if n := view[i].N; n >= from && (first == len(view) || n < view[first].N) {
				first = i
			}
		}
	}
	return first, min(first+limit, len(view))
}

// wireMessage is a message of which at most limit bytes of each text are shown.
func wireMessage(p *step.Place, m *rnixctx.Message, at time.Time, skip, limit int) ipc.ConversationMessage {
	w := ipc.ConversationMessage{N: p.N, Step: p.Step, Time: at, Role: string(m.Role), ToolCallID: m.ToolCallID, IsError: m.IsError, Bytes: len(m.Content),
		From: p.From, Shortened: p.Shortened, Attachments: service.Each(m.Attachments, wireAttached)}
	w.Content, w.Skipped, w.Cut = part(m.Content, skip, limit)
	w.NoticeBefore, w.NoticeBehind = step.Notices(m)
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		call := ipc.ConversationCall{ID: c.ID, Name: c.Name, Bytes: len(c.Input)}
		call.Input, _, call.Cut = part(string(c.Input), 0, limit)
		limit = max(limit-len(call.Input), 0) // together they stay within it
		w.ToolCalls = append(w.ToolCalls, call)
	}
	return w
}

// part returns what of a text begins behind skip bytes and has at most limit, cut between characters, and how many bytes are before
// and behind it. It shares no memory with the text.
func part(s string, skip, limit int) (text string, before, behind int) {
	before = min(skip, len(s))
	for before < len(s) && !utf8.RuneStart(s[before]) {
		before++
	}
	end := min(before+limit, len(s))
	for end > before && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	if end == before && limit > 0 && end < len(s) { // whoever asks for less than a character gets one
		_, n := utf8.DecodeRuneInString(s[end:])
		end += n
	}
	return string([]byte(s[before:end])), before, len(s) - end
}
