package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// errStranger is the answer to who has no session.
var errStranger = types.Errorf(types.ErrPermission, "Login", "", "this browser was not let in, or the dashboard was started anew: press Enter in the terminal where rnix web runs, and open the link that it shows")

// api passes one call on to the daemon, and its answer back as it comes.
func (s *Server) api(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("method")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		refuse(w, http.StatusMethodNotAllowed, types.Errorf(types.ErrInvalid, name, "", "methods are called with POST"))
		return
	}
	end, err := s.doors.begin(r, time.Now())
	switch {
	case err == errStranger:
		refuse(w, http.StatusUnauthorized, err)
		return
	case err != nil:
		refuse(w, http.StatusTooManyRequests, err)
		return
	}
	defer end()
	change, ok := methods[name]
	if !ok && !slices.Contains(local, name) {
		refuse(w, http.StatusNotFound, types.Errorf(types.ErrNotFound, "Call", name, "no method of the dashboard; what there is beside it, the command line does"))
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, types.Errorf(types.ErrInvalid, name, "", "the body has to be application/json"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, flowing{r.Body, http.NewResponseController(w), s.patience}, ipc.MaxBody))
	if err != nil {
		status, text := http.StatusBadRequest, "the body did not come: %w"
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status, text = http.StatusRequestEntityTooLarge, "the body is too large: %w"
		}
		refuse(w, status, types.Errorf(types.ErrInvalid, name, "", text, err))
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // an answer may take as long as it takes
	switch name {
	case doctorMethod:
		s.doctor(w, r)
		return
	case placeMethod:
		say(w, place{Dir: s.opt.Dir})
		return
	case linkMethod:
		say(w, invitation{Link: s.Link()})
		return
	}
	if change != nil {
		if body, err = change(s.opt, body); err != nil {
			refuse(w, http.StatusForbidden, err)
			return
		}
	}
	s.pass(w, r, name, body)
}

// flowing is the body of a request from a browser that was let in: it may take long, as pictures do on a slow line, as long as some of it comes.
type flowing struct {
	io.ReadCloser
	ctl      *http.ResponseController
	patience time.Duration // for the next part
}

func (f flowing) Read(b []byte) (int, error) {
	_ = f.ctl.SetReadDeadline(time.Now().Add(f.patience))
	return f.ReadCloser.Read(b)
}

// pass sends a request to the daemon. When the browser leaves, the call ends there too.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://rnix/"+ipc.Version+"/"+name, bytes.NewReader(body))
	if err != nil {
		refuse(w, http.StatusInternalServerError, types.Errorf(types.ErrInternal, name, "", "%w", err))
		return
	}
	req.GetBody = nil // a call is never sent twice
	req.Header.Set("Content-Type", "application/json")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := s.wire.RoundTrip(req)
	if err != nil {
		code, text := types.ErrDisconnected, "the daemon closed the connection before it had answered (has it stopped?): %w"
		if typed, ok := errors.AsType[*types.SyscallError](err); ok {
			code, text = typed.Code, "%w"
			err = typed.Err
		}
		refuse(w, http.StatusServiceUnavailable, types.Errorf(code, name, s.opt.Socket, text, err))
		return
	}
	defer res.Body.Close()
	h := w.Header()
	for _, key := range []string{"Content-Type", "Content-Length", "Rnix-Instance"} {
		if v := res.Header.Get(key); v != "" {
			h.Set(key, v)
		}
	}
	w.WriteHeader(res.StatusCode)
	if res.ContentLength < 0 {
		_ = http.NewResponseController(w).Flush() // the page sees that a stream has begun, also while nothing happens
	}
	hand(w, res.Body)
}

// hand copies an answer to the browser, each part as soon as it is there. A browser that stops reading is cut off
// after a while; until then it holds up nobody but itself, and the daemon tells it what it missed.
func hand(w http.ResponseWriter, from io.Reader) {
	ctl := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_ = ctl.SetWriteDeadline(time.Now().Add(stallTimeout))
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			if err := ctl.Flush(); err != nil {
				return
			}
		}
		switch {
		case err == io.EOF:
			return
		case err != nil:
			// The answer broke off: so must ours, or the page would take the half for the whole.
			panic(http.ErrAbortHandler)
		}
	}
}

// Other methods of the page that the daemon knows nothing of.
const (
	placeMethod = "place" // where the dashboard was started
	linkMethod  = "link"  // lets another browser in
)

// local are the methods that are answered here.
var local = []string{doctorMethod, placeMethod, linkMethod}

// invitation is a link that lets one browser in, once. Who was let in may have one: it could do itself all that who follows it can.
type invitation struct {
	Link string `json:"link"`
}

// place is where the dashboard was started.
type place struct {
	Dir string `json:"dir"` // absolute; where agents are started, unless the page names another directory
}

// say answers as the daemon does.
func say(w http.ResponseWriter, data any) {
	b, err := json.Marshal(struct {
		OK   bool `json:"ok"`
		Data any  `json:"data"`
	}{true, data})
	if err != nil {
		refuse(w, http.StatusInternalServerError, types.Errorf(types.ErrInternal, "Answer", "", "%w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stallTimeout)) // the call may have taken long
	_, _ = w.Write(append(b, '\n'))                                                  // a browser that has left needs no answer
}

// refuse answers as the daemon does when it refuses.
func refuse(w http.ResponseWriter, status int, err error) {
	b, _ := json.Marshal(struct {
		OK    bool             `json:"ok"`
		Error *types.WireError `json:"error"`
	}{Error: types.ToWire(err)})
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stallTimeout)) // the call may have taken long
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a browser that has left needs no answer
}
