package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// checks is a doctor whose rounds end when the test says so.
type checks struct {
	rounds chan []Finding
	well   chan struct{} // closed: every round ends at once, and finds nothing
	mu     sync.Mutex
	begun  int // +checklocks:mu
}

func (c *checks) doctor(ctx context.Context) []Finding {
	c.mu.Lock()
	c.begun++
	c.mu.Unlock()
	select {
	case f := <-c.rounds:
		return f
	case <-c.well:
		return nil
	case <-ctx.Done():
		return nil
	}
}

func (e *examiner) wait(patience time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.patience = patience
}

func TestChecksAreMadeOnceHoweverManyAsk(t *testing.T) {
	c := &checks{rounds: make(chan []Finding)}
	d := serve(t, Options{Socket: "/nowhere", Doctor: c.doctor})
	b := d.inside()
	var wg sync.WaitGroup
	answers := make(chan string, 5)
	for range cap(answers) {
		wg.Go(func() {
			_, body := b.do("POST", "/api/v1/doctor", "{}", nil)
			answers <- body
		})
	}
	for under := 0; under < cap(answers); <-time.After(time.Millisecond) { // all of them wait
		d.doors.mu.Lock()
		under = d.doors.calls
		d.doors.mu.Unlock()
	}
	// The last to ask may not be in the examination yet: it gets another one of the same.
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }() // ends when all were answered
	for over := false; !over; {
		select {
		case c.rounds <- []Finding{{Check: "disk", Status: "broken", Detail: "full", Mend: "make room"}}:
		case <-ended:
			over = true
		}
	}
	for range cap(answers) {
		if body := <-answers; !strings.Contains(body, `"findings":[{"check":"disk","status":"broken","detail":"full","mend":"make room"}]`) {
			t.Error(body)
		}
	}
	if c.begun > 2 {
		t.Errorf("%d rounds of checks were made for %d who asked at once", c.begun, cap(answers))
	}
}

func TestCheckThatHangsIsSaid(t *testing.T) {
	c := &checks{rounds: make(chan []Finding)}
	d := serve(t, Options{Socket: "/nowhere", Doctor: c.doctor})
	d.exam.wait(50 * time.Millisecond)
	b := d.inside()
	for range 2 {
		if res, body := b.do("POST", "/api/v1/doctor", "{}", nil); res.StatusCode != http.StatusGatewayTimeout || code(t, body) != "TIMEOUT" {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun != 1 {
		t.Errorf("%d rounds of checks hang", c.begun)
	}
}

func TestStrangersLearnNothingFromDoctor(t *testing.T) {
	c := &checks{rounds: make(chan []Finding)}
	d := serve(t, Options{Socket: "/nowhere", Doctor: c.doctor})
	if res, body := d.browser().do("POST", "/api/v1/doctor", "{}", nil); res.StatusCode != http.StatusUnauthorized || code(t, body) != "PERMISSION" || c.begun > 0 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	none := serve(t, Options{Socket: "/nowhere"})
	if res, body := none.inside().do("POST", "/api/v1/doctor", "{}", nil); res.StatusCode != http.StatusNotFound || code(t, body) != "NOT_FOUND" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestSystemPageSaysWhatIsBrokenAndHowToMendIt(t *testing.T) {
	chromium := needsBrowser(t)
	_, url := llmtest.NewAPI(t, busy)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.Spawn(ipc.SpawnRequest{Intent: "hang", ProcSpec: types.ProcSpec{Name: "alive"}})
	c := &checks{rounds: make(chan []Finding, 1), well: make(chan struct{})}
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work, Doctor: c.doctor})
	d.exam.wait(time.Minute)
	found := []Finding{
		{Check: "daemon", Status: "ok", Detail: "pid 7, version test, socket /run/user/0/rnix/rnix.sock", Mend: ""},
		{Check: "disk", Status: "broken", Detail: "12.0M free at /: agents stop when their record cannot be written", Mend: "make room, or set RNIX_DATA_DIR"},
		{Check: "model", Status: "warning", Detail: "offline/replay: nothing else is set up " + hostileText, Mend: "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or install claude and log in; rnix providers says what each provider lacks"},
		{Check: "cursor-agent", Status: "absent", Detail: "not in PATH; only needed for the provider cursor", Mend: ""},
	}
	d.scenario(chromium, "system.mjs", func(word string) string {
		switch word {
		case "found":
			c.rounds <- found
		case "mended":
			found[1] = Finding{Check: "disk", Status: "ok", Detail: "80.0G free at /", Mend: ""}
			c.rounds <- found
		case "hang":
			d.exam.wait(500 * time.Millisecond) // before the page asks
		case "well":
			d.exam.wait(examPatience)
			close(c.well)
		}
		return "done"
	})
}
