package types

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestSignalsAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]Signal{
		"TERM": SIGTERM, "SIGTERM": SIGTERM, "term": SIGTERM, "-TERM": SIGTERM, "15": SIGTERM, "-15": SIGTERM, "HUP": SIGTERM,
		"9": SIGKILL, "-9": SIGKILL, "KILL": SIGKILL, "2": SIGINT, "INT": SIGINT,
		"STOP": SIGPAUSE, "19": SIGPAUSE, "PAUSE": SIGPAUSE, "CONT": SIGRESUME, "18": SIGRESUME, "resume": SIGRESUME,
	} {
		if got, err := ParseSignal(text); err != nil || got != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "SIG", "0", "3", "99999999999999999999", "TERMX", "5 "} {
		if got, err := ParseSignal(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestNamesGoThroughJSONAndBack(t *testing.T) {
	for s := SIGTERM; s <= SIGRESUME; s++ {
		var back Signal
		roundTrip(t, s, &back)
		if back != s {
			t.Errorf("%v came back as %v", s, back)
		}
	}
	for s := StateCreated; s <= StateDead; s++ {
		var back ProcessState
		roundTrip(t, s, &back)
		if back != s {
			t.Errorf("%v came back as %v", s, back)
		}
	}
	var s ProcessState
	if err := json.Unmarshal([]byte(`"suspended"`), &s); err == nil {
		t.Error("suspended is no state")
	}
}

func roundTrip(t *testing.T, v, back any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, back)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestErrorsKeepTheirCodeAndTextOverTheWire(t *testing.T) {
	cause := &SyscallError{Syscall: "Open", PID: 3, Device: "/dev/x", Code: ErrPermission, Err: errors.New("no")}
	for _, err := range []error{cause, fmt.Errorf("while reading: %w", cause), ErrNotFound, io.EOF} {
		b, merr := json.Marshal(ToWire(err))
		var w WireError
		if merr != nil || json.Unmarshal(b, &w) != nil {
			t.Fatal(merr)
		}
		back := w.FromWire()
		if back.Error() != err.Error() || CodeOf(back) != CodeOf(err) || !errors.Is(back, CodeOf(err)) {
			t.Errorf("%v (%s) came back as %v (%s)", err, CodeOf(err), back, CodeOf(back))
		}
	}
	if ToWire(nil) != nil || (*WireError)(nil).FromWire() != nil || CodeOf(nil) != "" {
		t.Error("no error became one")
	}
	if got := cause.Error(); got != "Open /dev/x (pid 3): no" {
		t.Errorf("text %q", got)
	}
}

func TestExitStatusGoesThroughJSONAndBack(t *testing.T) {
	for _, e := range []ExitStatus{{}, {Code: 1, Reason: "bad", Err: Errorf(ErrTimeout, "Write", "/dev/llm/x", "too slow")}} {
		var back ExitStatus
		roundTrip(t, e, &back)
		if back.Code != e.Code || back.Reason != e.Reason || CodeOf(back.Err) != CodeOf(e.Err) {
			t.Errorf("%+v came back as %+v", e, back)
		}
	}
}

func TestPIDsAreDecimalAndNotZero(t *testing.T) {
	if p, err := ParsePID("42"); err != nil || p != 42 {
		t.Error(p, err)
	}
	for _, text := range []string{"", "0", "-1", "1.5", "0x10", "18446744073709551616", "abc"} {
		if p, err := ParsePID(text); err == nil {
			t.Errorf("%q was read as %d", text, p)
		}
	}
}
