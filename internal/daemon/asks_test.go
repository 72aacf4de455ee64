package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/permit"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// oneCommand has the model run the command that is its task, and end.
func oneCommand(r llmtest.Request) llmtest.Reply {
	task := r.Messages[0].Text
	_, question := strings.CutPrefix(task, "ask ")
	switch {
	case len(r.Messages) > 1 && question:
		res, _ := r.LastResult()
		return llmtest.Reply{Text: res.Text}
	case len(r.Messages) > 1:
		return llmtest.Reply{Text: "done"}
	case question:
		return tool("ask", fmt.Sprintf(`{"question":%q,"choices":["no","yes"]}`, task))
	}
	return tool("shell", fmt.Sprintf("{%q:%q}", "command", r.Messages[0].Text))
}

func asksOf(s *testenv.System, target string) ([]ipc.Ask, error) {
	r, err := ipc.Call(context.Background(), s.Client, ipc.ListAsks, ipc.AsksRequest{Target: target})
	return r.Asks, err
}

// awaitAsk waits until a process is asked about.
func awaitAsk(t *testing.T, s *testenv.System, target string) ipc.Ask {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if list, err := asksOf(s, target); err == nil && len(list) > 0 {
			return list[0]
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("nothing is asked about %s", target)
	return ipc.Ask{}
}

// madeIn counts what commands have written into a file, which need not be there.
func madeIn(s *testenv.System, name string) int {
	b, _ := os.ReadFile(filepath.Join(s.Work, name))
	return strings.Count(string(b), "made")
}

// story is what a history says of its asks.
type story struct{ asks, allowed, denied, begun int }

func storyOf(t *testing.T, s *testenv.System, id types.UUID) (out story) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(step.Dir(s.Data, id), step.StepsFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var r step.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		switch {
		case r.Intent != nil:
			if out.begun++; out.allowed+out.denied == 0 {
				t.Errorf("%s: the call was begun before its answer", id)
			}
		case r.Marker == nil:
		case r.Marker.Name == step.MarkerAsk:
			if out.asks++; out.allowed+out.denied > 0 {
				t.Errorf("%s: it was asked again after an answer", id)
			}
		case r.Marker.Name == step.MarkerAnswer && (r.Marker.Text == string(permit.Allow) || r.Marker.Text == string(step.Told)):
			out.allowed++
		case r.Marker.Name == step.MarkerAnswer:
			out.denied++
		}
	}
	return out
}

// The daemon is killed at random moments around an ask and its answer: nothing runs without an answer, no answer is lost, and none is asked for twice.
func TestAsksAreAnsweredOnceHoweverOftenTheDaemonIsKilled(t *testing.T) {
	_, url := llmtest.NewAPI(t, oneCommand)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	rounds := soak.Number(t, "RNIX_ASKS_ROUNDS", "asks around which the daemon is killed", 5, 200)
	for round := range rounds {
		file := fmt.Sprintf("made%d", round)
		// A call, or a question of the agent.
		task, question := "echo made >>"+file, rand.IntN(3) == 0
		if question {
			task = "ask " + file
		}
		p := s.Spawn(ipc.SpawnRequest{Intent: task, Rules: permit.Rules{Ask: []string{"shell"}}, ProcSpec: types.ProcSpec{Model: "fake"}})
		target := p.UUID.String()
		if rand.IntN(3) > 0 {
			awaitAsk(t, s, target)
		}
		allow, told := rand.IntN(3) > 0, make(chan error, 1)
		answer := func(n uint64) ipc.AnswerRequest {
			r := ipc.AnswerRequest{Number: n, Allow: allow}
			if question && allow {
				r.Text = "2"
			}
			return r
		}
		client := s.Client
		go func() {
			for {
				r, err := ipc.Call(t.Context(), client, ipc.ListAsks, ipc.AsksRequest{Target: target})
				if err == nil && len(r.Asks) > 0 {
					_, err = ipc.Call(t.Context(), client, ipc.AnswerAsk, answer(r.Asks[0].Number))
					told <- err
					return
				}
				if err != nil {
					told <- err
					return
				}
			}
		}()
		<-time.After(time.Duration(rand.IntN(30_000)) * time.Microsecond)
		for range 1 + rand.IntN(2) {
			s.Kill()
			s.Start()
			<-time.After(time.Duration(rand.IntN(50_000)) * time.Microsecond)
		}
		answered := <-told == nil
		s.Settle()
		if !answered { // nobody knows whether it was; if it was not, it is asked still
			until(t, "it is answered", func() bool {
				list, err := asksOf(s, target)
				if err != nil {
					t.Fatal(err)
				}
				if len(list) > 0 {
					_, err = ipc.Call(t.Context(), s.Client, ipc.AnswerAsk, answer(list[0].Number))
					if err != nil {
						t.Fatal(err)
					}
				}
				d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: target})
				return err != nil || d.State == "dead" || len(list) > 0
			})
		}
		w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: target})
		if err != nil {
			t.Fatalf("%+v %v", w, err)
		}
		made, got := madeIn(s, file), storyOf(t, s, p.UUID)
		if question {
			if told := strings.HasSuffix(w.Result, "\nyes"); told != allow || got.asks != 1 || got.allowed+got.denied != 1 || (got.allowed == 1) != allow || w.Denied != 0 {
				t.Errorf("round %d (answer: %v): %+v, told %q", round, allow, got, w.Result)
			}
			continue
		}
		if got.asks != 1 || got.allowed+got.denied != 1 || (got.allowed == 1) != allow || made > got.allowed || got.begun != got.allowed {
			t.Errorf("round %d (allow: %v): %+v, and made %d times", round, allow, got, made)
		}
	}
}

// A pause, a stop, a limit of time, a signal, a fork and a resume meet a call that waits for its answer.
func TestWhatMeetsAnAsk(t *testing.T) {
	_, url := llmtest.NewAPI(t, oneCommand)
	const canary = "canary-key-0123456789"
	s := testenv.New(t, "ANTHROPIC_API_KEY="+canary, "ANTHROPIC_BASE_URL="+url)
	spawn := func(file string, change func(r *ipc.SpawnRequest)) (types.UUID, ipc.Ask) {
		r := ipc.SpawnRequest{Intent: "echo made >>" + file, Rules: permit.Rules{Ask: []string{"shell"}}, ProcSpec: types.ProcSpec{Model: "fake"}}
		if change != nil {
			change(&r)
		}
		p := s.Spawn(r)
		return p.UUID, awaitAsk(t, s, p.UUID.String())
	}
	allow := func(n uint64) {
		t.Helper()
		if _, err := ipc.Call(t.Context(), s.Client, ipc.AnswerAsk, ipc.AnswerRequest{Number: n, Allow: true}); err != nil {
			t.Fatal(err)
		}
	}
	ends := func(id types.UUID, file string, code, made int) {
		t.Helper()
		w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: id.String()})
		if err != nil || w.Exit.Code != code || madeIn(s, file) != made {
			t.Errorf("%s: %+v %v, made %d times", file, w, err, madeIn(s, file))
		}
	}

	id, a := spawn("paused", nil)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: id.String(), Signal: types.SIGPAUSE}); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.AnswerAsk, ipc.AnswerRequest{Number: a.Number, Allow: true})
	if err != nil || !r.Ask.Paused {
		t.Errorf("it is not said that it is paused: %+v %v", r, err)
	}
	<-time.After(50 * time.Millisecond)
	if madeIn(s, "paused") > 0 {
		t.Error("a paused process has run what was allowed")
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), Env: s.Env}); err != nil {
		t.Fatal(err)
	}
	ends(id, "paused", 0, 1)

	const limit = 4 * time.Second // on a busy machine it can be a second until it asks
	id, a = spawn("limit", func(r *ipc.SpawnRequest) { r.TimeoutMs = limit.Milliseconds() })
	<-time.After(limit)
	allow(a.Number)
	ends(id, "limit", 0, 1)

	id, a = spawn("ended", nil)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: id.String(), Signal: types.SIGTERM}); err != nil {
		t.Fatal(err)
	}
	ends(id, "ended", types.ExitCancelled, 0)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.AnswerAsk, ipc.AnswerRequest{Number: a.Number, Allow: true}); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("an answer to what has ended: %v", err)
	}
	if r, err := ipc.Call(t.Context(), s.Client, ipc.ListAsks, ipc.AsksRequest{}); err != nil || len(r.Asks) != 0 {
		t.Errorf("%+v %v", r.Asks, err)
	}

	id, a = spawn("stopped", nil)
	for range 2 { // it is asked still, under the same number
		s.Stop()
		s.Start()
		s.Settle()
		if again := awaitAsk(t, s, id.String()); again.Number != a.Number || string(again.Input) != string(a.Input) || !again.Since.Equal(a.Since) {
			t.Errorf("%+v, was %+v", again, a)
		}
	}
	f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), Env: s.Env, Fork: true, NewInput: "echo fork >>stopped"})
	if err != nil {
		t.Fatal(err)
	}
	if own, err := asksOf(s, f.UUID.String()); err == nil && len(own) > 0 && own[0].Number == a.Number {
		t.Errorf("a fork has the ask of its origin: %+v", own)
	}
	allow(a.Number)
	ends(id, "stopped", 0, 1)

	id, _ = spawn("loosened", nil)
	s.Stop()
	s.Env = append(s.Env, "RNIX_DAEMON_AUTO_RESUME=false")
	s.Start()
	s.Settle()
	if list, err := asksOf(s, id.String()); err != nil || len(list) != 1 || !list[0].Suspended || !strings.Contains(string(list[0].Input), "echo made") {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), Env: s.Env, Rules: permit.Rules{Allow: []string{"shell echo *"}}}); err != nil {
		t.Fatal(err)
	}
	awaitAsk(t, s, id.String()) // the command writes a file, which no pattern covers
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: id.String(), Signal: types.SIGKILL}); err != nil {
		t.Fatal(err)
	}
	ends(id, "loosened", types.ExitCancelled, 0)

	// What is denied after an answer is denied.
	id, a = spawn("tightened", nil)
	s.Stop()
	s.Start()
	s.Settle()
	allow(a.Number)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), Env: s.Env, Rules: permit.Rules{Deny: []string{"shell echo *"}}}); err != nil {
		t.Fatal(err)
	}
	ends(id, "tightened", types.ExitRefused, 0)
	// ... and what a person changes a call to, too.
	_, a = spawn("changed", func(r *ipc.SpawnRequest) { r.Rules.Deny = []string{"shell git push *"} })
	if _, err := ipc.Call(t.Context(), s.Client, ipc.AnswerAsk, ipc.AnswerRequest{Number: a.Number, Allow: true, Input: []byte(`{"command":"git push"}`)}); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("a change to what a rule denies: %v", err)
	}
	allow(a.Number)

	// A change that would run the words that stand for a secret is not taken.
	_, a = spawn("secret; : "+canary, nil)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.AnswerAsk, ipc.AnswerRequest{Number: a.Number, Allow: true, Input: a.Input}); types.CodeOf(err) != types.ErrInvalid || strings.Contains(fmt.Sprint(err), canary) {
		t.Errorf("%s: %v", a.Input, err)
	}
	allow(a.Number)
}
