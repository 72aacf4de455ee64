package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"rnix/ipc"
)

// What a dashboard that cannot be started says goes to no terminal that a program fills, and to nobody who could not be shown its link.
func TestNoDashboardWhereItsLinkCannotBeShown(t *testing.T) {
	conf, run := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(conf, "rnix"), 0o700))
	must(os.WriteFile(filepath.Join(conf, "rnix", "config.yaml"), []byte("web: {port: 7718}\n"), 0o600))
	defer webNote{webReady{"secret", "http://127.0.0.1:7718/", 7718, os.Getpid()}, filepath.Join(run, "one.sock"), "/data/one", true}.note()()
	if text, err := os.ReadFile(filepath.Join(run, "web-7718.json")); err != nil || strings.Contains(string(text), "secret") {
		t.Fatalf("the note: %s, %v", text, err)
	}
	onTerminal := func(a *app) { a.out.err.terminal = true }
	for name, c := range map[string]struct {
		set    func(*app)
		socket string
		want   string
	}{
		"on a terminal":  {onTerminal, "two.sock", "port 7718 is used by the dashboard of the data directory /data/one"},
		"of its own":     {onTerminal, "one.sock", ""},
		"to a file":      {func(*app) {}, "two.sock", ""},
		"quiet":          {func(a *app) { onTerminal(a); a.out.quiet = true }, "two.sock", ""},
		"json":           {func(a *app) { onTerminal(a); a.out.format = asJSON }, "two.sock", ""},
		"web, or filled": {func(a *app) { onTerminal(a); a.noDashboard = true }, "two.sock", ""},
	} {
		var said bytes.Buffer
		a, err := newApp(Host{Args: []string{}, Dir: "/", Environ: []string{"HOME=/nonexistent", "XDG_CONFIG_HOME=" + conf}, Out: &said, Err: &said})
		must(err)
		c.set(a)
		withDashboard(t.Context(), a, filepath.Join(run, c.socket))
		if got := said.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A note that a dashboard has left when it was killed is none, is disturbed by nobody who looks, and is in the way of no other dashboard.
func TestANoteLastsAsLongAsItsDashboard(t *testing.T) {
	run := t.TempDir()
	n := webNote{webReady{"", "http://127.0.0.1:7718/", 7718, os.Getpid()}, filepath.Join(run, "one.sock"), "/data/one", true}
	left, err := json.Marshal(webNote{webReady{"", "http://127.0.0.1:7718/", 7718, os.Getpid() + 1}, n.Socket, "/data/one", true})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web-7718.json", "web-7718.lock"} {
		if err := os.WriteFile(filepath.Join(run, name), left, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := dashboards(run); len(got) != 0 {
		t.Errorf("one that was killed: %+v", got)
	}
	lock, err := ipc.TakeLock(filepath.Join(run, "web-7718.lock"), n.Socket)
	if err != nil {
		t.Fatal(err)
	}
	if got := dashboards(run); len(got) != 0 {
		t.Errorf("one that was killed, while the next has not written its own: %+v", got)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				for _, d := range dashboards(run) {
					if d != n {
						t.Errorf("%+v", d)
					}
				}
			}
		}
	})
	for range 50 {
		end := n.note()
		if got := dashboardAt(n.Socket, 7718); !strings.Contains(got, "in the background, as PID "+strconv.Itoa(os.Getpid())) {
			t.Errorf("that of the daemon: %q", got)
		}
		if got := dashboardAt(filepath.Join(run, "two.sock"), 7718); !strings.Contains(got, "data directory /data/one") {
			t.Errorf("that of another: %q", got)
		}
		end()
	}
	close(stop)
	looking.Wait()
	if got := dashboardAt(n.Socket, 7718); got != "" {
		t.Errorf("at the end: %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(run, "web-*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
