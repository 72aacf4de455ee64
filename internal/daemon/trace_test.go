package daemon_test

import (
	"strings"
	"testing"

	"rnix/internal/trace"
	"rnix/ipc"
	"rnix/types"
)

func TestTraceShowsTheStepsOfALivingAndADeadProcess(t *testing.T) {
	s, p := written(t, false)
	r, err := ipc.Call(t.Context(), s.Client, ipc.ShowTrace, ipc.TraceRequest{Target: p.UUID.String()})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	var sum int64
	for _, x := range r.Spans {
		said = append(said, string(x.Kind))
	}
	for _, c := range r.Critical {
		sum += int64(c.To.Sub(c.From))
	}
	if got, want := strings.Join(said, " "), "process step model tool step model tool step model tool step model"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if r.Root != p.UUID || r.Live || sum != int64(r.Spans[0].Dur) || r.Spans[0].Status != trace.OK || len(r.Blame) != 0 || r.Cut != 0 {
		t.Errorf("%+v, the path takes %d", r, sum)
	}
	if r, err = ipc.Call(t.Context(), s.Client, ipc.ShowTrace, ipc.TraceRequest{Target: p.UUID.String(), Limit: 3}); err != nil || len(r.Spans) != 3 || r.Cut != 9 {
		t.Errorf("%v: %d spans, %d left out", err, len(r.Spans), r.Cut)
	}
	for _, req := range []ipc.TraceRequest{{Target: "nobody"}, {Target: p.UUID.String(), Limit: -1}, {Target: p.UUID.String(), Limit: 1e6}} {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.ShowTrace, req); types.CodeOf(err) != types.ErrNotFound && types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", req, err)
		}
	}
}
