package main

import (
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"

	"rnix/internal/harness/vendortest"
	"rnix/runtime/controlplane"
	"rnix/runtime/state"
)

// state returns the one state.json of the user's sessions.
func (u *user) state() *state.State {
	u.t.Helper()
	found, err := filepath.Glob(filepath.Join(u.Home, "data", "steps", "*", "harness"))
	if err != nil || len(found) != 1 {
		u.t.Fatalf("%v %v", found, err)
	}
	st, err := state.NewStore().Read(found[0])
	if err != nil {
		u.t.Fatal(err)
	}
	return st
}

func TestTheStateOfARealSessionIsTrueAfterAKill(t *testing.T) { // C9
	for _, how := range []string{"process", "daemon"} {
		t.Run(how, func(t *testing.T) {
			u := newUser(t, "claude", nil)
			cp, err := controlplane.Open(controlplane.Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if err := cp.AddToken("secret-token-of-a-test"); err != nil {
				t.Fatal(err)
			}
			plane := httptest.NewServer(cp)
			t.Cleanup(func() {
				plane.Close()
				if err := cp.Close(); err != nil {
					t.Error(err)
				}
			})
			u.env = append(u.env, "RNIX_PLATFORM_URL="+plane.URL, "RNIX_PLATFORM_TOKEN=secret-token-of-a-test", "RNIX_DAEMON_AUTO_RESUME=false")
			u.allowed("Bash")
			u.Answer(vendortest.Play(use("Bash", map[string]any{"command": waits, "description": "waits"})))
			u.must("run", "--detach", "--session", "S-1", "--issue", "ENG-1", "--harness", "claude", "--name", "p", "wait for the gate")
			u.exists("began")
			st := u.state()
			if st.IssueIdentifier != "ENG-1" || st.WorkerID == "" || st.LastHeartbeat < st.StartedAt || st.CurrentStep != "streaming" || st.PID == 0 || st.OSStartTime == 0 {
				t.Errorf("while it works: %+v", st)
			}
			if how == "process" {
				u.must("kill", "-KILL", "p")
				u.rnix("wait", "p")
			} else {
				if err := syscall.Kill(u.daemon(), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				u.must("daemon", "start")
			}
			u.must("daemon", "stop")
			if st = u.state(); st.IssueIdentifier != "ENG-1" || st.CurrentStep != "stopped" || st.PID != 0 {
				t.Errorf("after the kill: %+v", st)
			}
		})
	}
}
