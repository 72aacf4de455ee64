package daemon_test

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// summarizer is a model that lists files until it has been told to stop, and sums up its conversation when it is asked to.
type summarizer struct {
	t      *testing.T
	s      *testenv.System
	hold   chan struct{} // until it is closed, a summary waits; set while the model is not asked
	hang   atomic.Bool   // in the middle of a summary
	stay   atomic.Bool   // with the question under way
	end    atomic.Bool   // the work is done
	asked  atomic.Int64
	ground atomic.Int64 // questions whose conversation has the summary
	whole  atomic.Int64 // those that have the first answer of a tool
	begun  chan struct{}
	// A question that has the summary and gets no answer.
	reached chan struct{}
}

const (
	wantsSummary = "Write a summary"
	hasSummary   = "ALL OF IT IS LISTED"
)

func newSummarizer(t *testing.T) *summarizer {
	m := &summarizer{t: t, begun: make(chan struct{}, 100), reached: make(chan struct{}, 100)}
	_, url := llmtest.NewAPI(t, m.answer)
	m.s = testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	m.s.Write("FIRST-FILE", "x")
	return m
}

func (m *summarizer) answer(r llmtest.Request) llmtest.Reply {
	if err := answered(r); err != nil {
		m.t.Errorf("request %d: %v", r.N, err)
	}
	body := string(r.Body)
	if strings.Contains(r.Messages[len(r.Messages)-1].Text, wantsSummary) {
		m.asked.Add(1)
		m.begun <- struct{}{}
		if m.hold != nil {
			<-m.hold
		}
		return llmtest.Reply{Text: hasSummary, Hang: m.hang.Load(), Usage: &llmtest.Usage{Input: 1000, Output: 100}}
	}
	if strings.Contains(body, wantsSummary) {
		m.t.Error("the question for a summary is in the conversation")
	}
	if strings.Contains(body, hasSummary) {
		if m.ground.Add(1); m.stay.Load() {
			m.reached <- struct{}{}
		}
	} else if strings.Contains(body, "FIRST-FILE") {
		m.whole.Add(1)
	}
	switch {
	case m.stay.Load():
		return llmtest.Reply{Hang: true}
	case m.end.Load():
		return llmtest.Reply{Text: "done", Usage: &llmtest.Usage{Input: 10, Output: 1}}
	}
	reply := tool("list_files", `{}`)
	reply.Usage = &llmtest.Usage{Input: 10, Output: 1}
	return reply
}

// wish asks for a compaction and returns whether the process runs.
func (m *summarizer) wish(id types.UUID) bool {
	m.t.Helper()
	r, err := ipc.Call(m.t.Context(), m.s.Client, ipc.Compact, ipc.CompactRequest{Target: id.String(), Focus: "the files"})
	if err != nil || r.UUID != id {
		m.t.Fatalf("%+v %v", r, err)
	}
	return r.Running
}

func (m *summarizer) detail(id types.UUID) ipc.ProcDetail {
	m.t.Helper()
	d, err := ipc.Call(m.t.Context(), m.s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: id.String()})
	if err != nil {
		m.t.Fatal(err)
	}
	return d
}

func (m *summarizer) resume(req ipc.ResumeRequest) ipc.ResumeResponse {
	m.t.Helper()
	r, err := ipc.Call(m.t.Context(), m.s.Client, ipc.Resume, req)
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

// TestASummaryOutlivesEveryKillOnce says that a wish for a compaction holds over kills, that a kill in the middle of a summary leaves nothing of it, that it happens once, counts
// once, and that forks from before it have the whole conversation.
func TestASummaryOutlivesEveryKillOnce(t *testing.T) {
	m := newSummarizer(t)
	steps := 0
	p := m.s.Spawn(ipc.SpawnRequest{Intent: "list it all", ProcSpec: types.ProcSpec{Model: "fake", MaxSteps: &steps}})
	m.s.Await(p.PID, event.StepEnded, func(e *event.Event) bool { return e.Step >= 3 })
	m.stay.Store(true)
	m.hang.Store(true)
	if !m.wish(p.UUID) {
		t.Error("it does not run")
	}
	m.s.Kill() // before the summary, or in its middle
	m.s.Start()
	<-m.begun
	m.s.Kill() // in its middle
	if n := m.compactions(p.UUID); n != 0 {
		t.Fatalf("%d compactions after a kill in the middle of one", n)
	}
	m.hang.Store(false)
	m.s.Start()
	m.s.Settle()
	<-m.reached
	m.s.Kill() // behind it
	m.stay.Store(false)
	m.end.Store(true)
	asked := m.asked.Load()
	m.s.Start()
	m.s.Settle()
	m.resume(ipc.ResumeRequest{Target: p.UUID.String()}) // three kills in one step are a reason to wait for a person
	w, err := ipc.Call(t.Context(), m.s.Client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()})
	if err != nil || w.Result != "done" {
		t.Fatalf("%+v %v", w, err)
	}
	if m.asked.Load() != asked {
		t.Error("it is summed up again")
	}
	if n := m.compactions(p.UUID); n != 1 {
		t.Errorf("%d compactions", n)
	}
	d := m.detail(p.UUID)
	if got, least := d.TokensUsed, 11*d.Step+1100; got < least {
		t.Errorf("%d tokens are used, of %d steps and a summary: at least %d", got, d.Step, least)
	}
	used := d.TokensUsed
	m.s.Stop()
	forget(t, m.s, []types.UUID{p.UUID})
	m.s.Start()
	m.s.Settle()
	if d := m.detail(p.UUID); d.TokensUsed != used {
		t.Errorf("%d tokens are used after all but the records is lost, %d before", d.TokensUsed, used)
	}

	// The prompt of a step before it is shown whole; a fork from there has it all, one from behind it the summary.
	r, err := ipc.Call(t.Context(), m.s.Client, ipc.GetStepDetail, ipc.StepRequest{Target: p.UUID.String(), Step: 2})
	if err != nil || len(r.Step.Messages) != 3 {
		t.Errorf("step 2 has %d messages, %v", len(r.Step.Messages), err)
	}
	for at, ground := range map[int]bool{2: false, d.Step: true} {
		m.ground.Store(0)
		m.whole.Store(0)
		f := m.resume(ipc.ResumeRequest{Target: p.UUID.String(), Fork: true, FromStep: &at, NewInput: "and now?", Cwd: t.TempDir()})
		if w := m.s.Wait(f.PID); w.Result != "done" || (m.ground.Load() > 0) != ground || (m.whole.Load() > 0) == ground {
			t.Errorf("a fork from step %d: %+v, with the summary %d, without %d", at, w, m.ground.Load(), m.whole.Load())
		}
	}
}

// compactions counts those of a history that have changed the conversation.
func (m *summarizer) compactions(id types.UUID) (n int) {
	m.t.Helper()
	h, err := step.ReadDir(m.t.Context(), durable.OS, filepath.Join(m.s.Data, "steps", id.String()), id)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, r := range h.Records {
		if r.Marker != nil && r.Marker.Name == step.MarkerCompaction {
			n++
			if ms, ok := step.Compacted(r.Marker); !ok || len(ms) == 0 {
				m.t.Errorf("a compaction without messages: %s", r.Marker.Text)
			}
		}
	}
	return n
}

// TestAWishWaitsForTheNextRun says that the conversation of a process that has ended, or is paused, is compacted when it goes on, and that of a fork is not.
func TestAWishWaitsForTheNextRun(t *testing.T) {
	m := newSummarizer(t)
	steps := 0
	p := m.s.Spawn(ipc.SpawnRequest{Intent: "list it all", ProcSpec: types.ProcSpec{Model: "fake", MaxSteps: &steps}})
	m.s.Await(p.PID, event.StepEnded, func(e *event.Event) bool { return e.Step >= 3 })
	if _, err := ipc.Call(t.Context(), m.s.Client, ipc.Signal, ipc.SignalRequest{Target: p.UUID.String(), Signal: types.SIGPAUSE}); err != nil {
		t.Fatal(err)
	}
	m.wish(p.UUID)
	m.end.Store(true)
	m.resume(ipc.ResumeRequest{Target: p.UUID.String()})
	if w := m.s.Wait(p.PID); w.Result != "done" || m.asked.Load() != 1 || m.ground.Load() == 0 {
		t.Fatalf("%+v, asked %d times", w, m.asked.Load())
	}
	for round := int64(2); round < 4; round++ {
		if m.wish(p.UUID) {
			t.Error("it runs")
		}
		if round == 3 {
			m.s.Kill()
			m.s.Start()
			m.s.Settle()
		}
		f := m.resume(ipc.ResumeRequest{Target: p.UUID.String(), Fork: true, NewInput: "a copy", Cwd: t.TempDir()})
		if m.s.Wait(f.PID); m.asked.Load() != round-1 {
			t.Error("a fork has the wish of its origin")
		}
		r := m.resume(ipc.ResumeRequest{Target: p.UUID.String(), NewInput: "and now?"})
		if w := m.s.Wait(r.PID); w.Result != "done" || m.asked.Load() != round {
			t.Errorf("%+v, asked %d times", w, m.asked.Load())
		}
	}
	m.laterWish(p.UUID)
	if _, err := ipc.Call(t.Context(), m.s.Client, ipc.Compact, ipc.CompactRequest{Target: p.UUID.String(), Focus: strings.Repeat("x", 20_000)}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a focus without end: %v", err)
	}
	if _, err := ipc.Call(t.Context(), m.s.Client, ipc.Compact, ipc.CompactRequest{Target: "nothing"}); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("%v", err)
	}
}

// laterWish has a wish come while an earlier one is met: what is on disk behind the first compaction has it, and the same run meets it.
func (m *summarizer) laterWish(id types.UUID) {
	m.t.Helper()
	m.wish(id)
	for range len(m.begun) {
		<-m.begun
	}
	m.hold = make(chan struct{})
	r := m.resume(ipc.ResumeRequest{Target: id.String(), NewInput: "and then?"})
	<-m.begun
	if !m.wish(id) {
		m.t.Error("it does not run")
	}
	close(m.hold)
	m.s.Wait(r.PID)
	h, err := step.ReadDir(m.t.Context(), durable.OS, filepath.Join(m.s.Data, "steps", id.String()), id)
	if err != nil {
		m.t.Fatal(err)
	}
	var l step.Life
	var left []bool
	for i := range h.Records {
		if l.Apply(&h.Records[i]); h.Records[i].Marker != nil && h.Records[i].Marker.Name == step.MarkerCompaction {
			left = append(left, l.Compact != nil && *l.Compact == "the files")
		}
	}
	if n := len(left); n < 2 || !left[n-2] || left[n-1] {
		m.t.Errorf("whether a wish is left behind each compaction: %v", left)
	}
}

// TestThePlanIsPutBackAfterACompaction says that what a model has planned, and planned anew, stands in the question behind a compaction, which leaves the calls
// out by which it did so; and in that behind a later compaction, after a kill.
func TestThePlanIsPutBackAfterACompaction(t *testing.T) {
	type question struct{ text, body string }
	asked := make(chan question, 100)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if err := answered(r); err != nil {
			t.Errorf("request %d: %v", r.N, err)
		}
		if strings.Contains(r.Messages[len(r.Messages)-1].Text, wantsSummary) {
			return llmtest.Reply{Text: hasSummary}
		}
		if strings.Contains(string(r.Body), hasSummary) {
			var q question
			for _, m := range r.Messages {
				q.text += m.Text + "\n"
			}
			q.body = string(r.Body)
			asked <- q
			if strings.Contains(q.text, "and then?") {
				return llmtest.Reply{Text: "done"}
			}
			return llmtest.Reply{Hang: true}
		}
		switch r.Turns() {
		case 0:
			return tool("plan", `{"steps":["find the leek","pull it"]}`)
		case 1:
			return tool("replan", `{"reason":"it is a leak","steps":["find the leak","mend it"]}`)
		}
		return tool("list_files", `{}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	steps := 0
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake", MaxSteps: &steps}})
	s.Await(p.PID, event.StepEnded, func(e *event.Event) bool { return e.Step >= 4 })
	compact := func() {
		t.Helper()
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Compact, ipc.CompactRequest{Target: p.UUID.String()}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(q question) {
		t.Helper()
		_, plan, ok := strings.Cut(q.text, "[The plan as it stands]\n")
		if !ok || !strings.HasPrefix(plan, "(it is a leak)\n1. find the leak\n2. mend it") || strings.Count(q.body, "find the leak") != 1 || strings.Contains(q.body, "leek") {
			t.Errorf("the model is asked %s", q.text)
		}
	}
	compact()
	check(<-asked)
	s.Kill()
	s.Start()
	s.Settle()
	check(<-asked) // in the next run, without another summary
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: p.UUID.String(), Signal: types.SIGKILL}); err != nil {
		t.Fatal(err)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()}); err != nil {
		t.Fatal(err)
	}
	compact()
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), NewInput: "and then?"})
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Wait(r.PID); w.Result != "done" {
		t.Fatalf("%+v", w)
	}
	check(<-asked)
}
