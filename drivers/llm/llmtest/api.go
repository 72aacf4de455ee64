package llmtest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// API is a stand-in for the HTTP APIs of model vendors on one address: POST /v1/messages (and its
// count_tokens), POST /v1/chat/completions, POST /v1/responses, GET /v1/models and HEAD /, streamed or not,
// as real clients use them. Script decides on the answers; nil echoes what the user said last. What was asked is kept
// in memory only. Safe for concurrent use; Script is called from several goroutines.
type API struct {
	mu sync.Mutex
	// +checklocks:mu
	Script func(Request) Reply // set before it serves, or by Answer
	// +checklocks:mu
	Key      string    // if set, requests without this key get status 401; set likewise, or by Require
	requests []Request // +checklocks:mu
}

// Request is what a client asked for.
type Request struct {
	N        int // from 0, over all paths
	Method   string
	Path     string // with the query
	Header   http.Header
	Model    string
	System   string
	Messages []Message
	Tools    []string // names
	Stream   bool
	Body     json.RawMessage
}

// Message is one turn of a request.
type Message struct {
	Role    string
	Text    string     // of all text parts
	Calls   []ToolCall // of the model
	Results []Result   // of tools
}

// Result is the answer of a tool.
type Result struct {
	ID, Text string
	IsError  bool
}

// Turns returns how often the model has answered before.
func (r Request) Turns() (n int) {
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// LastUser returns the text that the user said last.
func (r Request) LastUser() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" && m.Text != "" {
			return m.Text
		}
	}
	return ""
}

// LastResult returns the tool answer with which the conversation ends; what the system says after it does
// not count.
func (r Request) LastResult() (Result, bool) {
	for _, m := range slices.Backward(r.Messages) {
		if n := len(m.Results); n > 0 {
			return m.Results[n-1], true
		}
		if m.Role != "system" {
			break
		}
	}
	return Result{}, false
}

// ToolCall is a tool that the model wants to run. Input is sent as it is, JSON or not. Only the Responses
// API has namespaces, whose tools are listed as "namespace/name", and custom tools, whose input is text.
type ToolCall struct {
	ID, Name, Input string
	Namespace       string
	Custom          bool
}

// Usage is what the API says it counted. The parts do not overlap. Nil pointers in a Reply stand for
// counts made up from lengths; NoUsage for none at all.
type Usage struct{ Input, Output, CacheRead, CacheWrite int }

// Reply is what the API answers. The zero Reply is an empty answer.
type Reply struct {
	Text      string
	Reasoning string
	ToolCalls []ToolCall
	Stop      string // as the vendor's API spells it; "" = what fits
	Model     string // "" = as asked
	Usage     *Usage
	NoUsage   bool

	Delay    time.Duration // before the status line
	Chunks   int           // pieces of Text; 0 = one
	Pause    time.Duration // before each piece
	Endless  bool          // Text again and again, until the client goes away
	Hang     bool          // after Text nothing, until the client goes away
	Ping     time.Duration // after Text nothing but a ping each time, until the client goes away
	Cut      bool          // the stream ends properly after Text, but without its end mark
	Reset    bool          // the connection is dropped after Text
	MidError string        // after Text an error event of this type, such as overloaded_error

	Status int         // other than 0 and 200: an error with Text as its message
	Header http.Header // added to the answer's
	Raw    string      // the whole body, as it is; with Header's Content-Type
}

// Answer sets the script while the API is served.
func (a *API) Answer(script func(Request) Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Script = script
}

// Require sets the key while the API is served.
func (a *API) Require(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Key = key
}

func (a *API) script() func(Request) Reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Script
}

func (a *API) required() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Key
}

// Requests returns what was asked for so far, without HEAD and listings.
func (a *API) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// Start serves the API on a free loopback port. stop ends it with all its connections.
func (a *API) Start() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { // ends when stop closes the server, which waits for it
		defer close(done)
		_ = s.Serve(l) // always http.ErrServerClosed
	}()
	return "http://" + l.Addr().String(), func() { _ = s.Close(); <-done }, nil
}

// NewAPI starts an API for the time of a test and returns it with its address.
func NewAPI(t testing.TB, script func(Request) Reply) (*API, string) {
	t.Helper()
	a := &API{Script: script}
	url, stop, err := a.Start()
	if err != nil {
		t.Fatalf("llmtest: %v", err)
	}
	t.Cleanup(stop)
	return a, url
}

// NewMessagesAPI is NewAPI for clients of the Messages API.
func NewMessagesAPI(t testing.TB, script func(Request) Reply) (*API, string) {
	return NewAPI(t, script)
}

// NewChatAPI is NewAPI with the base address that clients of the Chat Completions API want.
func NewChatAPI(t testing.TB, script func(Request) Reply) (*API, string) {
	a, url := NewAPI(t, script)
	return a, url + "/v1"
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return
	}
	if key := a.required(); key != "" && r.Header.Get("X-Api-Key") != key && r.Header.Get("Authorization") != "Bearer "+key {
		fail(w, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
		return
	}
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case strings.HasSuffix(path, "/responses") && r.Header.Get("Upgrade") != "":
		fail(w, http.StatusUpgradeRequired, "invalid_request_error", "there are no sockets here") // clients go back to POST
	case strings.HasSuffix(path, "/models"):
		writeJSON(w, map[string]any{"object": "list", "data": []any{map[string]any{"id": "fake-1", "object": "model", "type": "model", "display_name": "Fake"}}, "has_more": false})
	case r.Method != http.MethodPost:
		fail(w, http.StatusMethodNotAllowed, "invalid_request_error", "use POST")
	case strings.HasSuffix(path, "/messages/count_tokens"):
		body, _ := io.ReadAll(r.Body) // a torn request counts as what came
		writeJSON(w, map[string]int{"input_tokens": len(body)/4 + 1})
	case strings.HasSuffix(path, "/messages"):
		a.serve(w, r, messagesAPI{})
	case strings.HasSuffix(path, "/chat/completions"):
		a.serve(w, r, chatAPI{})
	case strings.HasSuffix(path, "/responses"):
		a.serve(w, r, responsesAPI{})
	default:
		fail(w, http.StatusNotFound, "not_found_error", "no such path: "+path)
	}
}

// dialect is one vendor's way to say the same things.
type dialect interface {
	// parse reads a request's body.
	parse(body []byte, into *Request) error
	// whole is the answer to a request that does not stream.
	whole(id string, req Request, r Reply, u Usage) any
	// stream writes the events around the pieces of the text. It returns false if the client has gone.
	stream(out *events, id string, req Request, r Reply, u Usage, text func(piece func(string) bool) bool) bool
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, d dialect) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
	req := Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header, Body: body}
	if err == nil {
		err = d.parse(body, &req)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	a.mu.Lock()
	req.N = len(a.requests)
	a.requests = append(a.requests, req)
	a.mu.Unlock()

	reply := Reply{Text: "echo: " + req.LastUser()}
	if script := a.script(); script != nil {
		reply = script(req)
	}
	play(w, r, d, req, reply)
}

func fail(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writeJSON(w, map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}})
}

func writeJSON(w http.ResponseWriter, v any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	_ = json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}
