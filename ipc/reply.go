package ipc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"rnix/types"
)

// statusOf gives the HTTP status for a code. Programs of ours look at the code only; the status is
// for curl and for people.
var statusOf = map[types.ErrCode]int{
	types.ErrTimeout:        http.StatusGatewayTimeout,
	types.ErrNotFound:       http.StatusNotFound,
	types.ErrPermission:     http.StatusForbidden,
	types.ErrInternal:       http.StatusInternalServerError,
	types.ErrDriver:         http.StatusBadGateway,
	types.ErrInvalid:        http.StatusBadRequest,
	types.ErrIsDirectory:    http.StatusBadRequest,
	types.ErrBrokenPipe:     http.StatusGone,
	types.ErrUnavailable:    http.StatusServiceUnavailable,
	types.ErrAlreadyMounted: http.StatusConflict,
	types.ErrExhausted:      http.StatusTooManyRequests,
	types.ErrDisconnected:   http.StatusBadGateway,
	types.ErrCancelled:      499, // the client left; no standard has a number for it
	types.ErrConflict:       http.StatusConflict,
	types.ErrAmbiguous:      http.StatusConflict,
	types.ErrAuth:           http.StatusBadGateway, // it is the provider who refuses, not we
	types.ErrRateLimited:    http.StatusTooManyRequests,
	types.ErrStorage:        http.StatusInsufficientStorage,
	types.ErrVersion:        http.StatusNotImplemented,
}

// envelope is what every answer that is no stream looks like. Part of the wire format.
type envelope[T any] struct {
	OK    bool             `json:"ok"`
	Data  T                `json:"data"`
	Error *types.WireError `json:"error,omitempty"`
}

// failure is an envelope without data.
type failure struct {
	OK    bool             `json:"ok"`
	Error *types.WireError `json:"error"`
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keepBuffer is the size in bytes up to which a buffer is used again.
const keepBuffer = 1 << 20

// reply sends data as the success of the call r.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, data any) {
	if err := s.send(w, http.StatusOK, envelope[any]{OK: true, Data: data}); err != nil {
		s.log.Error("answer cannot be encoded", "path", r.URL.Path, "error", err)
		s.fail(w, r, types.Errorf(types.ErrInternal, "", r.URL.Path, "the answer cannot be encoded: %w", err))
	}
}

// fail sends err as the failure of the call r.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	wire := wireOf(r.Context(), err)
	status := statusOf[wire.Code]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if err := s.send(w, status, failure{Error: wire}); err != nil {
		s.log.Error("error cannot be encoded", "path", r.URL.Path, "error", err)
	}
}

// wireOf returns err for the client. The bare error of a context becomes what ended the context.
func wireOf(ctx context.Context, err error) *types.WireError {
	var typed *types.SyscallError
	if !errors.As(err, &typed) {
		cause := context.Cause(ctx)
		switch {
		case errors.Is(err, context.Canceled) && errors.As(cause, &typed):
			err = cause
		case errors.Is(err, context.Canceled):
			err = types.Errorf(types.ErrCancelled, "", "", "%w", err)
		case errors.Is(err, context.DeadlineExceeded):
			err = types.Errorf(types.ErrTimeout, "", "", "%w", err)
		}
	}
	return types.ToWire(err)
}

// send writes body as JSON in one piece. It returns an error, and has sent nothing, if body cannot be
// encoded; that the client has left is nobody's error.
func (s *Server) send(w http.ResponseWriter, status int, body any) error {
	buf := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= keepBuffer {
			buffers.Put(buf)
		}
	}()
	buf.Reset()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return err
	}
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes())
	return nil
}
