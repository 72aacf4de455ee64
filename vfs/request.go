package vfs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	"rnix/types"
)

// RequestFile is a VFSFile for devices whose Write performs a request and whose Read returns the
// answer. It keeps the contract of the package comment around one function. Requests on one file run
// one at a time; a later answer replaces an earlier one. Safe for concurrent use.
type RequestFile struct {
	perform func(ctx context.Context, caller Caller, data []byte) ([]byte, error)
	stat    FileStat
	life    context.Context // ends with Close
	end     context.CancelCauseFunc

	mu     sync.Mutex
	caller Caller // +checklocks:mu
	// +checklocks:mu
	busy bool // a request is under way
	// +checklocks:mu
	asked bool // there is, or was, an answer
	// +checklocks:mu
	answer []byte // what has not been read yet
	// +checklocks:mu
	attached []Attachment // to the answer
}

// errFileClosed is the cause that Close gives to a request under way.
var errFileClosed = errors.New("file is closed")

// NewRequestFile returns a file that performs requests with perform and describes itself with stat.
// perform must honour its context; the context also ends when the file is closed.
func NewRequestFile(stat FileStat, perform func(context.Context, Caller, []byte) ([]byte, error)) *RequestFile {
	life, end := context.WithCancelCause(context.Background())
	return &RequestFile{perform: perform, stat: stat, life: life, end: end}
}

// BindCaller remembers who asks.
func (f *RequestFile) BindCaller(c Caller) error {
	f.mu.Lock()
	f.caller = c
	f.mu.Unlock()
	return nil
}

// Write performs the request in data. It fails with CONFLICT while another one is under way, and with
// CANCELLED or TIMEOUT if ctx ends or the file is closed.
func (f *RequestFile) Write(ctx context.Context, data []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(f.life, func() { cancel(context.Cause(f.life)) })()
	if f.life.Err() != nil {
		return types.Errorf(types.ErrInvalid, "Write", "", "%w", errFileClosed)
	}
	if err := Ended(ctx, "Write", ""); err != nil {
		return err
	}
	f.mu.Lock()
	if f.busy {
		f.mu.Unlock()
		return types.Errorf(types.ErrConflict, "Write", "", "another request is under way on this file: open a second one")
	}
	f.busy = true
	caller := f.caller
	f.mu.Unlock()

	var attached []Attachment
	answer, err := f.perform(context.WithValue(ctx, attachKey{}, &attached), caller, data)

	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = false
	if err != nil {
		if ended := Ended(ctx, "Write", ""); ended != nil && types.CodeOf(err) == types.ErrInternal {
			return ended // a bare context error on its way up
		}
		return err
	}
	f.answer, f.attached, f.asked = answer, attached, true
	return nil
}

// Read returns what is left of the answer, at most length bytes.
func (f *RequestFile) Read(length int) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.readableLocked(); err != nil {
		return nil, err
	}
	n := len(f.answer)
	if length > 0 {
		n = min(n, length)
	}
	out := f.answer[:n:n]
	f.answer = f.answer[n:]
	return out, nil
}

// ReadInto is Read into a buffer of the caller's.
func (f *RequestFile) ReadInto(buf []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.readableLocked(); err != nil {
		return 0, err
	}
	n := copy(buf, f.answer)
	f.answer = f.answer[n:]
	return n, nil
}

// +checklocks:f.mu
func (f *RequestFile) readableLocked() error {
	switch {
	case f.life.Err() != nil:
		return types.Errorf(types.ErrInvalid, "Read", "", "%w", errFileClosed)
	case !f.asked:
		return types.Errorf(types.ErrInvalid, "Read", "", "nothing to read yet: write a request first")
	case len(f.answer) == 0:
		return io.EOF
	}
	return nil
}

// Asked reports whether a request has succeeded on this file.
func (f *RequestFile) Asked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// Close ends a request under way and drops the answer.
func (f *RequestFile) Close() error {
	f.end(errFileClosed)
	return nil
}

// Stat describes the file; its size is that of the unread answer.
func (f *RequestFile) Stat() (FileStat, error) {
	s := f.stat
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked {
		s.Size = int64(len(f.answer))
	}
	return s, nil
}

// Ended returns nil while ctx lives, else an error of code TIMEOUT or CANCELLED with its cause.
func Ended(ctx context.Context, syscall, device string) error {
	if ctx.Err() == nil {
		return nil
	}
	code := types.ErrCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = types.ErrTimeout
	}
	return types.Errorf(code, syscall, device, "%w", context.Cause(ctx))
}

// RequestOp returns the "op" of a request, which must be one JSON object and nothing else.
func RequestOp(data []byte) (string, error) {
	var in struct {
		Op string `json:"op"`
	}
	if err := decode(data, &in, false); err != nil {
		return "", err
	}
	return in.Op, nil
}

// DecodeRequest reads a request, one JSON object, into a pointer to a struct, which should have a
// field for "op" if the device has operations. Fields that the struct does not have are refused; the
// error names the field.
func DecodeRequest(data []byte, into any) error { return decode(data, into, true) }

func decode(data []byte, into any, strict bool) error {
	body := trimSpace(data)
	if len(body) == 0 || body[0] != '{' {
		return types.Errorf(types.ErrInvalid, "Write", "", "the request is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		err = errors.New("something follows the object")
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("field %q must be of type %s, not %s", wrong.Field, jsonType(wrong.Type.Kind().String()), wrong.Value)
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(text, "unknown field ") {
		text += knownIn(into)
	}
	return types.Errorf(types.ErrInvalid, "Write", "", "bad request: %s", text)
}

// knownIn says which fields a request can have, for who has guessed one.
func knownIn(into any) string {
	t := reflect.TypeOf(into)
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return ""
	}
	var names []string
	for _, f := range reflect.VisibleFields(t.Elem()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" && name != "op" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; there are: " + strings.Join(names, ", ")
}

// jsonType names a Go kind as the author of a request knows it.
func jsonType(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "whole number"
	case strings.HasPrefix(kind, "float"):
		return "number"
	case kind == "bool":
		return "true or false"
	case kind == "slice", kind == "array":
		return "list"
	case kind == "struct", kind == "map":
		return "object"
	}
	return kind
}

// NewTextFile returns a read-only file that holds text.
func NewTextFile(stat FileStat, text string) *RequestFile {
	f := NewRequestFile(stat, func(context.Context, Caller, []byte) ([]byte, error) {
		return nil, types.Errorf(types.ErrPermission, "Write", "", "the file is read-only")
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer, f.asked = []byte(text), true
	return f
}
