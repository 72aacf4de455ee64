package service

import (
	"errors"
	"io/fs"
	"testing"

	"rnix/ipc"
	"rnix/types"
)

func TestErrorsNameProcessesAsTheCallerDid(t *testing.T) {
	const id = "01a200aa-01b6-758f-a754-7e896ba5c0ca"
	inner := types.Errorf(types.ErrStorage, "Read", "/steps/"+id, "%w", fs.ErrNotExist)
	for _, c := range []struct {
		err  error
		said string
		want string
	}{
		{types.Errorf(types.ErrNotFound, "Send", id, "it has ended; see rnix resume %s", id), "night", "Send night: it has ended; see rnix resume night"},
		{types.Errorf(types.ErrNotFound, "Send", id, "it has ended"), id, "Send " + id + ": it has ended"},
		{types.Errorf(types.ErrStorage, "Open", "3", "%w", inner), "3", "Open 3: Read /steps/" + id + ": file does not exist"},
		{types.Errorf(types.ErrNotFound, "Send", "3", "it has ended"), "3", "Send 3: it has ended"},
		{errors.New(id + " is odd"), "3", "3 is odd"},
	} {
		got := reworded(c.err, id, c.said)
		if got.Error() != c.want {
			t.Errorf("%q said as %q is %q, want %q", c.err, c.said, got, c.want)
		}
		if types.CodeOf(got) != types.CodeOf(c.err) || errors.Is(got, fs.ErrNotExist) != errors.Is(c.err, fs.ErrNotExist) {
			t.Errorf("%q has lost its code or its cause: %#v", c.err, got)
		}
	}
}

func TestNamesOfARequestAreThoseOfProcesses(t *testing.T) {
	if got := namesIn(ipc.DURequest{Targets: []string{"1", "night"}}); len(got) != 2 || got[1] != "night" {
		t.Errorf("names %q", got)
	}
	if got := namesIn(ipc.TargetRequest{Target: "3"}); len(got) != 1 || got[0] != "3" {
		t.Errorf("names %q", got)
	}
	if got := namesIn(ipc.Empty{}); len(got) != 0 {
		t.Errorf("names %q", got)
	}
}
