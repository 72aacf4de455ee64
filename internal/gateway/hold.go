package gateway

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
)

// maxBody bounds a request, pictures included and unpacked, in bytes.
const maxBody = 64 << 20

// What is held of large requests while they are read, and until they are answered, in bytes: of all processes, and of each.
const (
	maxBodies = 256 << 20
	ownBodies = 2 * maxBody
)

// smallBody is how long a request is that needs no room, in bytes: there are as many as connections. A longer one takes all its room at once, so that none waits for
// others while it holds some: what it says of its length, or as much as there may be.
const smallBody = 1 << 20

// firstPart is the memory that a request takes at first, in bytes. More comes as more is read, whatever it says of its length.
const firstPart = 64 << 10

// A request is read in parts of at most maxPart bytes. Each has to come within partTime, so that one that does not come holds nothing; for room that others hold is waited for as long.
const (
	maxPart  = 1 << 20
	partTime = 30 * time.Second
)

// hold is what is held of one request. One goroutine uses it.
type hold struct {
	own, all *semaphore.Weighted
	n        int64
}

// take holds so many bytes. It fails if others do not make room.
func (h *hold) take(ctx context.Context, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	err := h.own.Acquire(ctx, n)
	if err == nil {
		if err = h.all.Acquire(ctx, n); err != nil {
			h.own.Release(n)
		}
	}
	if err != nil {
		return &refusal{status: http.StatusServiceUnavailable, kind: "overloaded_error", message: "rnix gateway: there are too many large requests at once; try again", retry: int(partTime.Seconds()), again: true}
	}
	h.n = n
	return nil
}

// end gives back what is held. It may be called more than once.
func (h *hold) end() { h.keep(0) }

// keep gives back what is held beyond so many bytes.
func (h *hold) keep(n int64) {
	if back := h.n - n; back > 0 {
		h.own.Release(back)
		h.all.Release(back)
		h.n = n
	}
}

// read reads the body of a request.
func (h *hold) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	defer func() { _ = control.SetReadDeadline(time.Time{}) }() // what serves without deadlines needs none
	var in io.Reader = http.MaxBytesReader(w, r.Body, maxBody)
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		in = &lazyGzip{from: in}
	default:
		return nil, refused(http.StatusUnsupportedMediaType, "invalid_request_error", "rnix gateway: a body in "+encoding+" cannot be read; send it as it is, or in gzip")
	}
	most := int64(maxBody)
	if _, packed := in.(*lazyGzip); !packed && r.ContentLength >= 0 {
		most = min(most, r.ContentLength)
	}
	b := make([]byte, 0, firstPart)
	for {
		if len(b) == cap(b) {
			if len(b) == maxBody && !ended(in) {
				return nil, tooLarge()
			}
			if len(b) == smallBody {
				if err := h.take(r.Context(), most); err != nil {
					return nil, err
				}
			}
			b = append(make([]byte, 0, min(2*cap(b), maxBody)), b...)
		}
		_ = control.SetReadDeadline(time.Now().Add(partTime)) // as above
		n, err := io.ReadFull(in, b[len(b):min(cap(b), len(b)+maxPart)])
		b = b[:len(b)+n]
		switch _, large := errors.AsType[*http.MaxBytesError](err); {
		case large:
			return nil, tooLarge()
		case err == io.EOF || err == io.ErrUnexpectedEOF && ended(in):
			h.keep(int64(cap(b)))
			return b, nil
		case errors.Is(err, gzip.ErrHeader):
			return nil, invalid("the body is not in gzip, as it says")
		case err != nil:
			return nil, invalid("the body was cut off, or does not come")
		}
	}
}

// ended reports whether nothing more comes because all is there: ReadFull says the same of a part that is shorter and of a body that was cut off.
func ended(in io.Reader) bool {
	var one [1]byte
	n, err := in.Read(one[:])
	return n == 0 && err == io.EOF
}

func tooLarge() error {
	return refused(http.StatusRequestEntityTooLarge, "request_too_large", "rnix gateway: the body is larger than 64 MiB")
}
