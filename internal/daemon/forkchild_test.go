package daemon_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"rnix/ipc"
)

// A fork that the daemon breaks off in its first step does not take the children of its origin for its own.
func TestForkHasNoneOfTheChildrenOfItsOriginAlsoAfterACrash(t *testing.T) {
	var stop atomic.Bool
	s, p, _ := led(t, &stop, "RNIX_DAEMON_AUTO_RESUME=false")
	f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true, Cwd: s.Work})
	if err != nil {
		t.Fatal(err)
	}
	s.Wait(f.PID)
	s.Kill()
	cutBehind(t, s, f.UUID, `"name":"input"`)
	s.Start()
	s.Settle()
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: f.UUID.String(), Env: s.Env})
	if err != nil || len(r.Woken) != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if w := s.Wait(r.PID); w.Suspended || !strings.Contains(w.Result, "outcome is unknown") {
		t.Errorf("%+v", w)
	}
}
