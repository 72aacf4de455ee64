package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/internal/parallel"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// needsBrowser is hasBrowser for a test that runs beside others.
func needsBrowser(t *testing.T) string {
	t.Helper()
	endpoint := hasBrowser(t)
	parallel.Test(t)
	return endpoint
}

// theBrowser is the one browser of all tests; it begins with the first that needs it.
var theBrowser struct {
	sync.Mutex
	endpoint string    // +checklocks:Mutex
	end      io.Closer // +checklocks:Mutex
	cmd      *exec.Cmd // +checklocks:Mutex
}

// startBrowser starts the browser, if it does not run yet, and returns where it is.
func startBrowser(chromium string) (string, error) {
	theBrowser.Lock()
	defer theBrowser.Unlock()
	if theBrowser.cmd != nil {
		return theBrowser.endpoint, nil
	}
	cmd := exec.Command("node", "app/e2e/serve.mjs")
	cmd.Env = append(os.Environ(), "RNIX_CHROMIUM="+chromium)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = in.Close()
		return "", fmt.Errorf("the browser has not begun: %w, %w", err, cmd.Wait())
	}
	theBrowser.endpoint, theBrowser.end, theBrowser.cmd = strings.TrimSpace(line), in, cmd
	return theBrowser.endpoint, nil
}

// endBrowser ends the browser and waits for it.
func endBrowser() error {
	theBrowser.Lock()
	defer theBrowser.Unlock()
	if theBrowser.cmd == nil {
		return nil
	}
	_ = theBrowser.end.Close()
	return theBrowser.cmd.Wait()
}

// hasBrowser skips a test without node, its packages and a Chromium, and in gates in which it does not have its turn, and returns
// where a running browser is.
func hasBrowser(t *testing.T) string {
	t.Helper()
	needsNode(t)
	if testing.Short() {
		t.Skip("needs a browser, which takes long")
	}
	for _, name := range []string{"playwright-core", "axe-core"} {
		if _, err := os.Stat("app/node_modules/" + name); err != nil {
			t.Skip("needs the packages of internal/web/app: npm ci there, or ./test")
		}
	}
	path := testenv.Chromium(t)
	soak.Turn(t) // after what is needed: what can never run is skipped, and does not wait
	endpoint, err := startBrowser(path)
	if err != nil {
		t.Fatal(err)
	}
	return endpoint
}

// scenario runs a script of app/e2e on a dashboard. A line "@word" that it writes is a question to us, whose answer it waits
// for. RNIX_SHOTS, if set, is where it keeps pictures. What it says beside that is returned.
func (d *dashboard) scenario(browser, script string, answer func(word string) string, env ...string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join("app/e2e", script))
	cmd.Env = append(append(os.Environ(), "RNIX_LINK="+d.Link(), "RNIX_BROWSER="+browser), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var said, wrong strings.Builder
	cmd.Stderr = &wrong
	in, err := cmd.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if word, asks := strings.CutPrefix(lines.Text(), "@"); asks && answer != nil {
			_, _ = io.WriteString(in, answer(word)+"\n") // if it has ended, Wait says so
			continue
		}
		said.WriteString(lines.Text() + "\n")
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		d.t.Fatalf("%s: %v\n%s%s", script, err, said.String(), wrong.String())
	}
	return said.String()
}

// tables is a daemon that streams the frames it is given as watch_procs.
func tables(t *testing.T, frames ...any) *dashboard {
	t.Helper()
	socket, _ := fakeDaemon(t, func(s *ipc.Server) {
		watch := ipc.Method[map[string]any, json.RawMessage]{Name: "watch_procs", Stream: true}
		ipc.HandleStream(s, watch, func(ctx context.Context, _ *ipc.Peer, _ map[string]any, out *ipc.Stream) error {
			for i, f := range frames {
				if err := out.Send(uint64(i+1), "table", f); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return nil
		})
		ipc.HandleStream(s, ipc.Events, past)
		ipc.Handle(s, ipc.ShowCost, today)
		ipc.Handle(s, ipc.Families, together)
		ipc.Handle(s, ipc.ProviderTraffic, crowd)
		ipc.Handle(s, ipc.ListProcs, gone)
	})
	return serve(t, Options{Socket: socket})
}

// today is what a stand-in says of the costs of the day.
func today(context.Context, *ipc.Peer, ipc.CostRequest) (ipc.CostResponse, error) {
	usd := 1.25
	return ipc.CostResponse{Lines: []ipc.CostLine{}, Total: ipc.CostLine{Tokens: 345678, CostUSD: &usd}}, nil
}

// together is what a stand-in says of the families of its table.
func together(context.Context, *ipc.Peer, ipc.FamiliesRequest) (ipc.FamiliesResponse, error) {
	usd, some := 0.21, 0.12
	return ipc.FamiliesResponse{Families: []ipc.Family{
		{PID: 1, UUID: familyID(1), Tree: &ipc.CostLine{Processes: 6, Tokens: 48200, CostUSD: &usd, FailedCalls: 3}},
		{PID: 6, UUID: familyID(6), Tree: &ipc.CostLine{Processes: 3, Tokens: 9900, CostUSD: &some, Unpriced: 400}},
	}}, nil
}

// crowd is what a stand-in says of the calls of its providers.
func crowd(context.Context, *ipc.Peer, ipc.Empty) (ipc.ProviderCallsResponse, error) {
	return ipc.ProviderCallsResponse{Providers: []ipc.ProviderCalls{{Provider: "anthropic", Running: 4, AtOnce: 4, Waiting: 3, Oldest: time.Now().Add(-12 * time.Second), From: "default"}}}, nil
}

// gone is what a stand-in says of those that have ended.
func gone(context.Context, *ipc.Peer, ipc.ListRequest) (ipc.ListResponse, error) {
	return ipc.ListResponse{Procs: []ipc.Proc{}, Ended: &ipc.Ended{Count: 12, Failed: 3}}, nil
}

// familyID is the UUID of a process of family.
func familyID(n int) (id types.UUID) {
	_ = id.UnmarshalText(fmt.Appendf(nil, "0190f3c1-0000-7000-8000-%012d", n))
	return id
}

// past streams the ends of steps of the last half an hour.
func past(ctx context.Context, _ *ipc.Peer, r ipc.EventsRequest, out *ipc.Stream) error {
	const events = 186 // half an hour, and a minute: the page comes later than the table says
	for i := max(int(r.From)-1, 0); i < events; i++ {
		n := (i*i)%37 + i/4
		e := event.Event{Seq: uint64(i + 1), Time: time.Now().Add(time.Duration(i-events) * 10 * time.Second), Kind: event.StepEnded, Tokens: 120 * n, CostUSD: 0.0004 * float64(n)}
		if err := out.SendRaw(e.Seq, string(e.Kind), event.AppendJSON(nil, &e)); err != nil {
			return err
		}
	}
	if r.Follow {
		<-ctx.Done()
	}
	return nil
}

// family is a frame with agents in every condition.
func family() map[string]any {
	now := time.Now()
	id := func(n int) string { return fmt.Sprintf("0190f3c1-0000-7000-8000-%012d", n) }
	proc := func(n, parent int, more map[string]any) map[string]any {
		p := map[string]any{"pid": n, "uuid": id(n), "ppid": parent, "state": "running", "intent": "Report on the tests of this project", "agent": "assistant",
			"provider": "anthropic", "model": "claude-sonnet", "step": n, "max_steps": 50, "tokens_used": 1234 * n * n, "cost_usd": 0.0123 * float64(n), "elapsed_ms": 61000 * n, "created_at": now}
		if parent > 0 {
			p["parent_uuid"] = id(parent)
		}
		for k, v := range more {
			p[k] = v
		}
		return p
	}
	return map[string]any{"seq": 9, "at": now, "whole": true, "totals": map[string]any{"running": 4, "suspended": 1, "waiting": 2, "failed": 1, "tokens": 345678, "cost_usd": 1.25},
		"procs": []any{
			proc(1, 0, map[string]any{"name": "night", "intent": "Review all open TODOs and mend what is simple", "doing": map[string]any{"tool": "", "since": now.Add(-4 * time.Second), "step": 1, "calls": 1}}),
			proc(2, 1, map[string]any{"name": "tests", "doing": map[string]any{"tool": "shell", "since": now.Add(-40 * time.Second), "step": 2, "calls": 3}}),
			proc(3, 2, map[string]any{"agent": "reviewer", "wait": "rate limit of anthropic", "wait_until": now.Add(31 * time.Second)}),
			proc(4, 1, map[string]any{"state": "suspended", "wait": "paused", "paused_at": now.Add(-12 * time.Second), "intent": "Find the needle in the logs of March"}),
			proc(5, 0, map[string]any{"name": "docs", "wait": "budget: tokens", "mcp_down": []string{"tracker: connect: connection refused"}}),
			proc(6, 0, map[string]any{"kind": "supervisor", "agent": "", "model": "", "name": "workers", "intent": "one_for_one: 3 children", "tokens_used": 0, "cost_usd": 0}),
			proc(7, 6, map[string]any{"state": "zombie", "exit": map[string]any{"code": 1, "reason": "error"}}),
			proc(8, 6, map[string]any{"suspect_since": now.Add(-time.Minute), "intent": "A very long intent that goes on and on, " + string(make([]byte, 3)) + " with \u202e control characters, and that does not fit in any column of any table that anybody would like to look at"}),
		}}
}

func TestOverviewInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	d := tables(t, family())
	d.scenario(chromium, "overview.mjs", nil)
}
