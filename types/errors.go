package types

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrCode classifies a failure. The list is closed and part of the wire format; new codes go to
// the end.
type ErrCode string

// The codes.
const (
	ErrTimeout        ErrCode = "TIMEOUT"
	ErrNotFound       ErrCode = "NOT_FOUND"
	ErrPermission     ErrCode = "PERMISSION"
	ErrInternal       ErrCode = "INTERNAL"
	ErrDriver         ErrCode = "DRIVER"
	ErrInvalid        ErrCode = "INVALID"
	ErrIsDirectory    ErrCode = "IS_DIRECTORY"
	ErrBrokenPipe     ErrCode = "BROKEN_PIPE"
	ErrUnavailable    ErrCode = "SERVICE_UNAVAILABLE"
	ErrAlreadyMounted ErrCode = "ALREADY_MOUNTED"
	ErrExhausted      ErrCode = "RESOURCE_EXHAUSTED"
	ErrDisconnected   ErrCode = "DEVICE_DISCONNECTED"
	ErrCancelled      ErrCode = "CANCELLED"    // the caller or a signal ended the call
	ErrConflict       ErrCode = "CONFLICT"     // the thing changed under the caller
	ErrAmbiguous      ErrCode = "AMBIGUOUS"    // a name or prefix matches several
	ErrAuth           ErrCode = "AUTH"         // the provider refused the credentials
	ErrRateLimited    ErrCode = "RATE_LIMITED" // the provider asks to wait
	ErrStorage        ErrCode = "STORAGE"      // the disk refused a write that must not be lost
	ErrVersion        ErrCode = "VERSION"      // written by a newer program
	ErrInDoubt        ErrCode = "IN_DOUBT"     // nobody knows whether an interrupted call has run
)

// Error makes a code usable as a target of errors.Is: errors.Is(err, types.ErrNotFound).
func (c ErrCode) Error() string { return strings.ToLower(strings.ReplaceAll(string(c), "_", " ")) }

// SyscallError is a failure of an operation of the kernel or of a device.
type SyscallError struct {
	Syscall string  // the operation, such as "Open"; may be empty
	PID     PID     // the process concerned; 0 if none
	Device  string  // the path concerned; may be empty
	Err     error   // the cause; may be nil
	Code    ErrCode // never empty when made by this package
}

// Errorf makes a SyscallError whose cause is formatted text; %w keeps a cause findable.
func Errorf(code ErrCode, syscall, device, format string, args ...any) *SyscallError {
	return &SyscallError{Syscall: syscall, Device: device, Code: code, Err: fmt.Errorf(format, args...)}
}

// Error returns "syscall device: cause", without the parts that are empty. A cause that begins with the device, as a mistake in a file begins with the
// file, names it alone.
func (e *SyscallError) Error() string {
	cause := e.Code.Error
	if e.Err != nil {
		cause = e.Err.Error
	}
	text := cause()
	var b strings.Builder
	b.Grow(len(e.Syscall) + len(e.Device) + len(text) + len(" ") + len(" (pid 18446744073709551615): "))
	b.WriteString(e.Syscall)
	if e.Device != "" && !strings.HasPrefix(text, e.Device+":") {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.Device)
	}
	if e.PID != 0 {
		b.WriteString(" (pid ")
		b.WriteString(e.PID.String())
		b.WriteByte(')')
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(text)
	return b.String()
}

// Unwrap returns the cause.
func (e *SyscallError) Unwrap() error { return e.Err }

// Is reports whether target is e's code.
func (e *SyscallError) Is(target error) bool { c, ok := target.(ErrCode); return ok && c == e.Code }

// CodeOf returns the code of the first SyscallError in err's chain, ErrInternal for any other
// error, and "" for nil.
func CodeOf(err error) ErrCode {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*SyscallError](err); ok {
		return e.Code
	}
	if c, ok := errors.AsType[ErrCode](err); ok {
		return c
	}
	return ErrInternal
}

// WireError is the form of a SyscallError in JSON. Part of the wire format.
type WireError struct {
	Code    ErrCode `json:"code"`
	Message string  `json:"message"`
	Syscall string  `json:"syscall,omitempty"`
	Device  string  `json:"device,omitempty"`
	PID     PID     `json:"pid,omitempty"`
}

// ToWire returns err as it is sent to a client. It returns nil for nil.
func ToWire(err error) *WireError {
	if err == nil {
		return nil
	}
	w := &WireError{Code: CodeOf(err), Message: err.Error()}
	var e *SyscallError
	if errors.As(err, &e) {
		w.Syscall, w.Device, w.PID = e.Syscall, e.Device, e.PID
	}
	return w
}

// wireCause keeps a message that already names its operation from being prefixed again.
type wireCause struct{ *SyscallError }

func (w wireCause) Error() string { return w.Err.Error() }
func (w wireCause) Unwrap() error { return w.SyscallError }

// FromWire returns the error that ToWire was given, as far as it can be told apart: the text is
// the same, and errors.As finds a SyscallError with the same fields.
func (w *WireError) FromWire() error {
	if w == nil {
		return nil
	}
	return wireCause{&SyscallError{Syscall: w.Syscall, Device: w.Device, PID: w.PID, Code: w.Code, Err: errors.New(w.Message)}}
}

// MarshalJSON writes code, reason and the cause's text.
func (e ExitStatus) MarshalJSON() ([]byte, error) {
	w := exitWire{Code: e.Code, Reason: e.Reason}
	if e.Err != nil {
		w.Error = ToWire(e.Err)
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *ExitStatus) UnmarshalJSON(b []byte) error {
	var w exitWire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*e = ExitStatus{Code: w.Code, Reason: w.Reason}
	if w.Error != nil {
		e.Err = w.Error.FromWire()
	}
	return nil
}

type exitWire struct {
	Code   int        `json:"code"`
	Reason string     `json:"reason"`
	Error  *WireError `json:"error,omitempty"`
}
