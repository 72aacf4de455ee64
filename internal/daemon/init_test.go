package daemon_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/internal/daemon"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// initStatus waits until what became of init.yaml is known, and returns it as "name how".
func initStatus(t *testing.T, s *testenv.System, n int) (ipc.Status, string) {
	t.Helper()
	var st ipc.Status
	until(t, "what became of init.yaml", func() bool {
		var err error
		if st, err = ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{}); err != nil {
			t.Fatal(err)
		}
		return !st.Recovering && !st.Starting && len(st.Init) >= n
	})
	var out []string
	for _, i := range st.Init {
		out = append(out, i.Name+" "+i.How)
	}
	return st, strings.Join(out, ", ")
}

func TestInitStartsOnceAndGoesOnUnlessTheFileHasChanged(t *testing.T) {
	s := stage(t)
	s.Stop()
	file := "supervisors:\n  - {name: one, children: [{name: a, intent: wait, model: m}]}\n  - {name: two, children: [{name: b, intent: wait, model: m}]}\n"
	configure(t, s, "init.yaml", file)
	s.Start()
	if _, got := initStatus(t, s, 2); got != "one started, two started" {
		t.Fatal(got)
	}
	one, two := states(t, s, "one", "a running"), states(t, s, "two", "b running")
	if !one.Init {
		t.Errorf("%+v", one)
	}
	s.Await(one.Children[0].PID, event.StepStarted, nil)
	all := histories(t, s)
	for _, end := range []func(){s.Stop, s.Kill} {
		end()
		s.Start()
		if _, got := initStatus(t, s, 2); got != "one goes on, two goes on" {
			t.Errorf("again: %s", got)
		}
		if a := states(t, s, "one", "a running"); a.UUID != one.UUID || a.Children[0].UUID != one.Children[0].UUID || histories(t, s) != all {
			t.Errorf("%+v, was %+v; %d histories, were %d", a, one, histories(t, s), all)
		}
	}
	s.Stop()
	configure(t, s, "init.yaml", strings.Replace(file, "intent: wait, model: m}]}\n  - {name: two", "intent: wait longer, model: m}]}\n  - {name: three", 1))
	s.Start()
	st, got := initStatus(t, s, 2)
	if got != "one started, three started" {
		t.Errorf("changed: %s", got)
	}
	for _, want := range []string{`the supervisor "one"`, `the supervisor "two"`} {
		if !slices.ContainsFunc(st.Recovered, func(line string) bool {
			return strings.Contains(line, want) && strings.Contains(line, "is ended with its children")
		}) {
			t.Errorf("nobody says that %s was ended: %q", want, st.Recovered)
		}
	}
	if a := states(t, s, "one", "a running"); a.UUID == one.UUID {
		t.Error("the old one goes on")
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range l.Procs {
		old := p.UUID == one.UUID || p.UUID == two.UUID || p.UUID == one.Children[0].UUID || p.UUID == two.Children[0].UUID
		if ended := p.State == "dead" && p.Exit != nil && p.Exit.Code == types.ExitCancelled; ended != old {
			t.Errorf("%s (PID %d) is %s: %v", p.Name, p.PID, p.State, p.Exit)
		}
	}
}

func TestWhatAPersonHasPausedOfInitStaysPaused(t *testing.T) {
	s := stage(t)
	s.Stop()
	configure(t, s, "init.yaml", "supervisors: [{name: one, children: [{name: a, intent: wait, model: m}]}]")
	s.Start()
	st, _ := initStatus(t, s, 1)
	signal(t, s, st.Init[0].PID, types.SIGPAUSE)
	s.Stop()
	s.Start()
	if _, got := initStatus(t, s, 1); got != "one paused" {
		t.Error(got)
	}
}

func TestWhatIsNotRequiredOfInitIsAWarning(t *testing.T) {
	s := stage(t)
	s.Stop()
	configure(t, s, "init.yaml", `supervisors:
  - {name: bad, strategy: nosuch, children: [{name: a, intent: x}]}
  - {name: lost, children: [{name: a, intent: x, agent: nosuch}]}
  - {name: good, required: true, children: [{name: a, intent: wait, model: m}]}
services: [{type: skill_registry}]
`)
	s.Start()
	st, got := initStatus(t, s, 3)
	if got != "bad failed, lost failed, good started" || !strings.Contains(st.Init[1].Error, "init.yaml:3:") || len(st.Misread) != 1 {
		t.Errorf("%s: %+v %q", got, st.Init, st.Misread)
	}
}

func TestWithoutWhatIsRequiredOfInitTheDaemonDoesNotStart(t *testing.T) {
	dir, err := os.MkdirTemp("", "rnix") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := filepath.Join(dir, ".config", "rnix")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"an agent that is not there": {"supervisors: [{name: s, required: true, children: [{name: a, intent: x, agent: nosuch}]}]", "init.yaml:1:80: supervisors[0].children[0].agent: no agent"},
		"a mistake":                  {"supervisors: [{name: s, required: true}]", "init.yaml:1:15: supervisors[0].children: missing"},
		"no YAML":                    {"supervisors:\n\t- name: s\n  required: true\n", "something is required and cannot be read"},
		"a start that fails":         {"supervisors: [{name: s, required: true, children: [{name: a, intent: x, provider: offline, mcp: [gone]}]}]", "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(config, "init.yaml"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(config, "mcp.yaml"), []byte("servers: {gone: {command: /nonexistent/server}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := refusedStart(t, dir)
			if types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if f, ok := ipc.ReadStartFailure(filepath.Join(dir, "data")); !ok || !strings.Contains(f.Text, c.want) || time.Since(f.Time) > time.Minute {
				t.Errorf("what is left for others: %+v", f)
			}
		})
	}
	if err := os.Remove(filepath.Join(config, "init.yaml")); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": dir, "RNIX_DATA_DIR": filepath.Join(dir, "data"), "XDG_RUNTIME_DIR": dir}
	err = daemon.Run(t.Context(), daemon.Options{Idle: time.Second / 2, Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if _, left := ipc.ReadStartFailure(filepath.Join(dir, "data")); left || err != nil {
		t.Errorf("after a start: %v, %t", err, left)
	}
}

func TestADaemonWithSupervisorsIsNotIdle(t *testing.T) {
	s := stage(t, testenv.IdleEnv+"=500ms")
	release := kept(t, s)
	supervise(t, s, "supervisors: [{name: one, children: [{name: c, intent: end, model: m, backoff: {initial: 24h}}]}]")
	states(t, s, "one", "c delayed")
	release()
	if _, ended := s.Ended(2 * time.Second); ended {
		t.Error("the daemon has ended, and nobody starts the child again")
	}
}
