package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
)

// play gives a reply to a client in its dialect.
func play(w http.ResponseWriter, r *http.Request, d dialect, req Request, reply Reply) {
	if pause(r.Context(), reply.Delay) != nil {
		return
	}
	maps.Copy(w.Header(), reply.Header)
	switch {
	case reply.Status != 0 && reply.Status != http.StatusOK && reply.Raw == "":
		fail(w, reply.Status, kindOf(reply.Status), reply.Text)
		return
	case reply.Raw != "":
		if reply.Status != 0 {
			w.WriteHeader(reply.Status)
		}
		_, _ = io.WriteString(w, reply.Raw) // a client that is gone needs no answer
		return
	}
	reply.ToolCalls = slices.Clone(reply.ToolCalls) // a script gives the same ones to many
	for i := range reply.ToolCalls {
		if reply.ToolCalls[i].ID == "" {
			reply.ToolCalls[i].ID = fmt.Sprintf("toolu_%d_%d", req.N, i)
		}
	}
	if reply.Model == "" {
		reply.Model = req.Model
	}
	u := Usage{Input: len(req.Body)/4 + 1, Output: len(reply.Text)/4 + 1}
	if reply.Usage != nil {
		u = *reply.Usage
	}
	id := fmt.Sprintf("fake_%d", req.N)
	if !req.Stream {
		writeJSON(w, d.whole(id, req, reply, u))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out := &events{w: w, ctx: r.Context()}
	text := func(piece func(string) bool) bool {
		for {
			for _, p := range pieces(reply.Text, reply.Chunks) {
				if pause(r.Context(), reply.Pause) != nil || !piece(p) {
					return false
				}
			}
			if !reply.Endless || reply.Text == "" {
				return out.after(reply)
			}
		}
	}
	d.stream(out, id, req, reply, u, text)
}

// kindOf names an error as the vendors do.
func kindOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// events writes server-sent events.
type events struct {
	w   http.ResponseWriter
	ctx context.Context
}

// send writes one event and reports whether the client is still there.
func (e *events) send(name string, v any) bool {
	data, err := json.Marshal(v)
	if err != nil {
		panic("llmtest: an event cannot be encoded: " + err.Error())
	}
	return e.raw(name, string(data))
}

func (e *events) raw(name, data string) bool {
	if name != "" {
		name = "event: " + name + "\n"
	}
	if _, err := fmt.Fprintf(e.w, "%sdata: %s\n\n", name, data); err != nil {
		return false
	}
	return http.NewResponseController(e.w).Flush() == nil && e.ctx.Err() == nil
}

// after does what a reply has planned for the moment after its text. It returns false if nothing may
// follow.
func (e *events) after(r Reply) bool {
	switch {
	case r.Hang:
		<-e.ctx.Done()
		return false
	case r.Ping > 0:
		for pause(e.ctx, r.Ping) == nil && e.raw("ping", `{"type":"ping"}`) {
		}
		return false
	case r.Reset:
		panic(http.ErrAbortHandler) // how net/http is told to drop a connection
	case r.MidError != "":
		e.send("error", map[string]any{"type": "error", "error": map[string]string{"type": r.MidError, "message": "the fake was told to fail"}})
		return false
	}
	return !r.Cut
}
