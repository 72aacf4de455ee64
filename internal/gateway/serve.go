package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"rnix/types"
)

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := h.route(r)
	if err == nil && r.Method == http.MethodHead && r.URL.Path == "/" { // claude asks whether somebody is there
		return
	}
	var secrets map[string]string
	if err == nil {
		secrets, err = h.credentials(r.Header)
	}
	if err == nil {
		err = h.serve(w, r, c, secrets)
	}
	if no, ok := errors.AsType[*refusal](err); ok {
		no.write(w, h.up.API)
	}
}

// calls are what each API has, by its path behind /v1.
var calls = map[string]map[string]call{
	Anthropic: {"/messages": messages, "/messages/count_tokens": free},
	OpenAI:    {"/chat/completions": chat, "/responses": responses},
}

// route finds out what is called.
func (h *Handler) route(r *http.Request) (call, error) {
	if r.Header.Get("Origin") != "" { // a page in a browser that an agent has started
		return free, refused(http.StatusForbidden, "permission_error", "rnix gateway: pages may not ask models")
	}
	if r.Method == http.MethodHead && r.URL.Path == "/" {
		return free, nil
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/v1")
	c, known := calls[h.up.API][path]
	switch {
	case ok && r.Header.Get("Upgrade") != "" && known:
		return free, refused(http.StatusUpgradeRequired, "invalid_request_error", "rnix gateway: there are no WebSockets here; use POST")
	case ok && known && r.Method == http.MethodPost:
		return c, nil
	case ok && known:
		return free, refused(http.StatusMethodNotAllowed, "invalid_request_error", "rnix gateway: use POST, not "+r.Method)
	case ok && r.Method == http.MethodGet && (path == "/models" || strings.HasPrefix(path, "/models/") && !strings.Contains(path, "..")):
		return free, nil
	}
	return free, refused(http.StatusNotFound, "not_found_error", "rnix gateway: "+r.Method+" "+r.URL.Path+" is not served: it only asks models ("+served[h.up.API]+")")
}

var served = map[string]string{
	Anthropic: "POST /v1/messages, POST /v1/messages/count_tokens, GET /v1/models",
	OpenAI:    "POST /v1/chat/completions, POST /v1/responses, GET /v1/models",
}

// credentialHeaders are where credentials stand. No other header of these is sent on.
var credentialHeaders = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// credentials takes the credentials out of the header of a request, and returns those that are put in, by their headers.
func (h *Handler) credentials(in http.Header) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range credentialHeaders {
		value := in.Get(name)
		in.Del(name)
		if value == "" {
			continue
		}
		if len(h.up.Keys) == 0 {
			out[name] = value
			continue
		}
		scheme, placeholder, ok := strings.Cut(value, " ")
		if !ok {
			scheme, placeholder = "", value
		}
		for _, k := range h.up.Keys {
			if placeholder == k.Placeholder {
				out[name] = strings.TrimSpace(scheme + " " + k.Secret)
			}
		}
	}
	switch {
	case len(out) > 0:
		return out, nil
	case len(h.up.Keys) > 0:
		return nil, refused(http.StatusUnauthorized, "authentication_error", "rnix gateway: the request has not the placeholder of the key that "+h.up.Name+" was started with")
	case h.up.Header != nil:
		return out, nil
	}
	return nil, refused(http.StatusUnauthorized, "authentication_error", "rnix gateway: the request has no login, and there is no key: log in to the program, or set its key where you start rnix")
}

// serve sends a request on, and its answer back. The error is a *refusal, of which nothing was written yet.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, c call, secrets map[string]string) error {
	x := &exchange{h: h, w: w, r: r, secrets: secrets}
	x.ctx, x.cancel = context.WithCancel(r.Context())
	defer func() { x.cancel() }()
	if r.Method == http.MethodGet {
		return x.free(nil)
	}
	held := &hold{own: h.bodies, all: h.via.bodies}
	defer held.end()
	body, err := held.read(w, r)
	if err != nil {
		return err
	}
	if x.sent = held.end; c == free {
		return x.free(pieces{body})
	}
	q, err := read(c, body, &h.up)
	if err != nil {
		return err
	}
	changes := map[string]string{}
	q.counting(changes)
	tokens, usd := h.purse.Limited()
	if tokens || usd {
		q.weigh()
	}
	if usd {
		q.priced(&h.up, changes)
	}
	claim, err := h.purse.Reserve(r.Context(), q.Question)
	switch types.CodeOf(err) {
	case "":
	case types.ErrExhausted:
		return noRoom(reason(err))
	case types.ErrInvalid:
		return invalid("%s", reason(err))
	default:
		return refused(http.StatusServiceUnavailable, "api_error", "rnix gateway: "+reason(err))
	}
	if n := claim.Answer(); n > 0 {
		if n < q.Answer || !q.bounded() {
			q.shorten(n, changes)
		}
		q.Answer = n
	}
	x.cancel()
	x.ctx, x.cancel = context.WithCancel(claim.Context())
	asked := q.Question // without the body, which goes when the vendor has it
	return x.metered(q.with(changes), &asked, c, q.stream, claim)
}

// bounded reports whether the body itself says how long the answer may be.
func (r *request) bounded() bool { return r.has(r.shape) }

// gone reports whether a request was given up by who made it, or by the end of its process.
func gone(ctx context.Context) bool { return ctx.Err() != nil }

// reason is the text of an error, without the words that say where it happened.
func reason(err error) string {
	if e, ok := errors.AsType[*types.SyscallError](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}
