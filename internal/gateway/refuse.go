package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// refusal is an answer of our own, in the shape of the vendor's errors.
type refusal struct {
	status  int
	kind    string // as the vendor calls it; of OpenAI also its code
	message string
	retry   int  // seconds; 0 = it does not say
	again   bool // it is worth to try again after that
}

func (e *refusal) Error() string { return e.message }

func refused(status int, kind, message string) *refusal {
	return &refusal{status: status, kind: kind, message: message}
}

// noRoomRetry is when a program that has no budget left may ask again: later than any waits, since its process is suspended.
const noRoomRetry = 3600

// noRoom says that too little of a budget is left. SDKs of Anthropic and OpenAI heed x-should-retry, and codex the code.
func noRoom(why string) *refusal {
	return &refusal{status: http.StatusTooManyRequests, kind: "rate_limit_error", message: "rnix: " + why + "; the process is suspended until its budget is raised: rnix budget add", retry: noRoomRetry}
}

// write answers a request with a refusal.
func (e *refusal) write(w http.ResponseWriter, api string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if e.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(e.retry))
		h.Set("X-Should-Retry", strconv.FormatBool(e.again))
	}
	var body any = map[string]any{"type": "error", "error": map[string]any{"type": e.kind, "message": e.message}}
	if api == OpenAI {
		code := e.kind
		if e.retry > 0 && !e.again {
			code = "insufficient_quota"
		}
		body = map[string]any{"error": map[string]any{"message": e.message, "type": e.kind, "param": nil, "code": code}}
	}
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(body) // it holds texts; who has gone needs none
}
