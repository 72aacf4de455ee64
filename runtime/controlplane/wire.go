package controlplane

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"rnix/types"
)

// Bounds of requests. Part of the wire format.
const (
	maxBody  = 1 << 20
	maxBatch = 100 // activities in one request
	maxPage  = 1000
)

// tokenHeader carries the fencing token. Part of the wire format.
const tokenHeader = "X-Fencing-Token"

// Requests and answers. Part of the wire format; docs/control-plane.md lists them.
type (
	claimRequest struct {
		WorkerID string `json:"workerId"`
		IssueID  string `json:"issueId"`
		ClaimID  string `json:"claimId"` // the same for all attempts of one claim
	}
	ownerAnswer struct {
		Owned bool   `json:"owned"` // somebody has it now
		Owner string `json:"owner"`
		TTLMs int64  `json:"ttlMs"` // what is left of it
		Token uint64 `json:"fencingToken"`
	}
	workerRequest struct {
		WorkerID string `json:"workerId"`
	}
	refreshRequest struct {
		WorkerID     string   `json:"workerId"`
		AckedInject  string   `json:"ackedInject"`
		AckedInjects []string `json:"ackedInjects"`
		DeadLetters  []struct {
			DeliveryID string `json:"deliveryId"`
			Reason     string `json:"reason"`
		} `json:"deadLetteredInjects"`
	}
	refreshAnswer struct {
		Refreshed bool          `json:"refreshed"`
		Stop      bool          `json:"stop,omitempty"`
		TTLMs     int64         `json:"ttlMs,omitempty"`
		Token     uint64        `json:"fencingToken,omitempty"`
		Inject    *injectAnswer `json:"inject,omitempty"`
	}
	injectAnswer struct {
		DeliveryID string `json:"deliveryId"`
		Text       string `json:"text"`
		Kind       string `json:"kind,omitempty"`
		TurnID     string `json:"turnId,omitempty"`
	}
	activityRequest struct {
		WorkerID   string            `json:"workerId"`
		Activity   json.RawMessage   `json:"activity"`
		Activities []json.RawMessage `json:"activities"`
	}
	takenAnswer struct {
		Accepted   int `json:"accepted"`
		Duplicates int `json:"duplicates"`
		MaxBatch   int `json:"maxBatch,omitempty"`
	}
	injectRequest struct {
		DeliveryID string `json:"deliveryId"` // "" = made up
		Text       string `json:"text"`
		Kind       string `json:"kind"`
		TurnID     string `json:"turnId"`
	}
	stopRequest struct {
		Stop *bool `json:"stop"` // nothing = true
	}
	eventAnswer struct {
		Seq  uint64          `json:"seq"`
		At   string          `json:"at"`
		Kind string          `json:"kind"`
		Data json.RawMessage `json:"data"`
	}
	pageAnswer struct {
		Events []eventAnswer `json:"events"`
		Next   uint64        `json:"next"` // after= of the next page; the same when there is no more yet
	}
	injectState struct {
		DeliveryID string `json:"deliveryId"`
		State      string `json:"state"`
		Text       string `json:"text"`
		Reason     string `json:"reason,omitempty"`
	}
	sessionAnswer struct {
		ID         string          `json:"id"`
		Owner      ownerAnswer     `json:"ownership"`
		Stop       bool            `json:"stop,omitempty"`
		Status     json.RawMessage `json:"status,omitempty"`
		Completion json.RawMessage `json:"completion,omitempty"`
		Injects    []injectState   `json:"injects"`
		Counts     map[string]int  `json:"counts"`
		Bytes      int64           `json:"bytes"`
		LastStepAt string          `json:"lastStepHeartbeat,omitempty"`
	}
	errorAnswer struct {
		Error string        `json:"error"`
		Code  types.ErrCode `json:"code"`
	}
)

// statusOf returns the HTTP status that an error has.
func statusOf(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	switch types.CodeOf(err) {
	case types.ErrInvalid:
		return http.StatusBadRequest
	case types.ErrAuth:
		return http.StatusUnauthorized
	case types.ErrNotFound:
		return http.StatusNotFound
	case types.ErrConflict:
		return http.StatusConflict
	case types.ErrExhausted:
		return http.StatusInsufficientStorage
	case types.ErrStorage, types.ErrUnavailable, types.ErrVersion:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	encode(w, v)
}

func encode(w io.Writer, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a client that has gone has no answer
}

// refuse answers with an error. What is wrong with the disk is for our log, not for whoever asks.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	answer := errorAnswer{err.Error(), types.CodeOf(err)}
	if status >= 500 && status != http.StatusInsufficientStorage {
		s.opt.Logger.Error("a request could not be served", "method", r.Method, "path", r.URL.Path, "error", err)
		answer.Error = "the control plane cannot do this now; its log says why"
		w.Header().Set("Retry-After", "2")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encode(w, answer)
}

// decode reads the body of a request: one JSON value, of which keys that are not known are left alone.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return types.Errorf(types.ErrInvalid, "Read", "body", "%w", err)
	}
	if len(strings.TrimSpace(string(body))) == 0 {
		body = []byte("{}")
	}
	if err := json.Unmarshal(body, v); err != nil {
		return types.Errorf(types.ErrInvalid, "Read", "body", "is not the JSON that was agreed on: %w", err)
	}
	return nil
}

// fencingToken reads the header; 0 = there is none.
func fencingToken(r *http.Request) (uint64, error) {
	text := r.Header.Get(tokenHeader)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, types.Errorf(types.ErrInvalid, "Read", tokenHeader, "%q is not a number from 1", text)
	}
	return n, nil
}
