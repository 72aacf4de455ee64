package web

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// said returns everything that people said in a request.
func said(r llmtest.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		if m.Role == "user" {
			b.WriteString(m.Text + "\n")
		}
	}
	return b.String()
}

// busy has agents that work without end, that wait for a word, and that hang.
func busy(r llmtest.Request) llmtest.Reply {
	switch text := said(r); {
	case strings.Contains(text, "go on now"):
		return llmtest.Reply{Text: "I was steered."}
	case strings.Contains(text, "listen"), strings.Contains(text, "work"):
		return llmtest.Reply{Delay: 150 * time.Millisecond, ToolCalls: []llmtest.ToolCall{{ID: "c" + time.Now().Format("150405.000000"), Name: "list_files", Input: fmt.Sprintf(`{"path":"d/%d"}`, len(r.Messages)%40)}}}
	}
	return llmtest.Reply{Hang: true}
}

// hostileText is what an agent, a tool or a file could say.
const hostileText = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1> [x](javascript:window.pwned=1) \x1b[31mred \u202egnp.exe {{constructor.constructor('window.pwned=1')()}}"

func TestAgentsAreWatchedAndSteeredInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	_, url := llmtest.NewAPI(t, busy)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	for i := range 40 {
		s.Write(fmt.Sprintf("d/%d/file", i), "x")
	}
	none := 0
	parent := s.Spawn(ipc.SpawnRequest{Intent: "hang until the others are done", Name: "parent"})
	worker := s.Spawn(ipc.SpawnRequest{Intent: "work without end", Name: "worker", Parent: parent.PID.String(), MaxSteps: &none})
	listener := s.Spawn(ipc.SpawnRequest{Intent: "listen to what a person says", MaxSteps: &none})
	hostile := s.Spawn(ipc.SpawnRequest{Intent: hostileText})
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work})
	pids, err := json.Marshal(map[string]types.PID{"parent": parent.PID, "worker": worker.PID, "listener": listener.PID, "hostile": hostile.PID})
	if err != nil {
		t.Fatal(err)
	}
	d.scenario(chromium, "live.mjs", func(word string) string {
		switch what, arg, _ := strings.Cut(word, " "); what {
		case "state":
			p, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: arg})
			if err != nil {
				return err.Error()
			}
			return p.State
		case "ps":
			r, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
			if err != nil {
				return err.Error()
			}
			b, err := json.Marshal(r)
			if err != nil {
				return err.Error()
			}
			return string(b)
		case "stop":
			s.Stop()
		case "start":
			s.Start()
		}
		return "done"
	}, "RNIX_PIDS="+string(pids))
}

func TestEveryPageIsAccessible(t *testing.T) {
	chromium := needsBrowser(t)
	_, url := llmtest.NewAPI(t, busy)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	parent := s.Spawn(ipc.SpawnRequest{Intent: "hang " + hostileText, Name: "parent"})
	child := s.Spawn(ipc.SpawnRequest{Intent: "go on now", Name: "child", Parent: parent.PID.String()})
	s.Await(child.PID, event.Exited, nil)
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work, Doctor: healthy})
	params, err := json.Marshal(map[string]string{"process.id": child.UUID.String()})
	if err != nil {
		t.Fatal(err)
	}
	d.scenario(chromium, "every.mjs", nil, "RNIX_PARAMS="+string(params))
}

func TestOtherSitesCanDoNothingInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	d, asked := echoing(t)
	d.scenario(chromium, "security.mjs", nil)
	if len(asked) > 0 {
		t.Errorf("the daemon was asked by a page of another site: %v", <-asked)
	}
}

func TestHostileTextIsText(t *testing.T) {
	chromium := needsBrowser(t)
	text := hostileText + "\x1b[2J\x1b]8;;javascript:1\x07 \u2066 __proto__ " + strings.Repeat("x", 5<<20)
	socket, _ := fakeDaemon(t, func(s *ipc.Server) {
		ipc.HandleStream(s, ipc.WatchProcs, func(ctx context.Context, _ *ipc.Peer, _ ipc.WatchRequest, out *ipc.Stream) error {
			frame := `{"seq":1,"at":"2026-01-01T00:00:00Z","whole":true,"__proto__":{"polluted":1},"totals":{"__proto__":{"polluted":1}},"procs":[` +
				`{"pid":1,"uuid":"__proto__","state":"running","name":"constructor","intent":"__proto__","model":"toString","step":1,"elapsed_ms":1,"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}]}`
			if err := out.SendRaw(1, "table", []byte(frame)); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
		ipc.Handle(s, ipc.SignalTree, func(context.Context, *ipc.Peer, ipc.SignalRequest) (ipc.SignalResponse, error) {
			return ipc.SignalResponse{}, types.Errorf(types.ErrInvalid, "", "", "%s", text)
		})
	})
	serve(t, Options{Socket: socket}).scenario(chromium, "hostile.mjs", nil)
}
