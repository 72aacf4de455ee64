package web

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	s.Write("flow.yaml", "agents:\n  a: {intent: run true, provider: offline}\n")
	parent := s.Spawn(ipc.SpawnRequest{Intent: "hang until the others are done", ProcSpec: types.ProcSpec{Name: "parent"}})
	worker := s.Spawn(ipc.SpawnRequest{Intent: "work without end", ProcSpec: types.ProcSpec{Name: "worker", MaxSteps: &none}, Parent: parent.PID.String()})
	listener := s.Spawn(ipc.SpawnRequest{Intent: "listen to what a person says", ProcSpec: types.ProcSpec{MaxSteps: &none}})
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
		case "run":
			return command(t, s, arg)
		}
		return "done"
	}, "RNIX_PIDS="+string(pids))
}

func TestAdviceAboutOneProcessIsFollowedInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	if os.Getenv("RNIX_TEST_PROGRAM") == "" {
		t.Skip("needs the program, which ./test builds")
	}
	s := testenv.New(t, "RNIX_DAEMON_AUTO_RESUME=false")
	big := s.Spawn(ipc.SpawnRequest{Intent: "run `seq 400000 >big`", ProcSpec: types.ProcSpec{Provider: "offline"}})
	s.Wait(big.PID)
	bytes := s.Spawn(ipc.SpawnRequest{Intent: "run `printf 'a\\351b\\n' >latin1`", ProcSpec: types.ProcSpec{Provider: "offline"}})
	s.Wait(bytes.PID)
	cut := s.Spawn(ipc.SpawnRequest{Intent: "run `echo up; sleep 600`", ProcSpec: types.ProcSpec{Provider: "offline"}})
	s.Await(cut.PID, event.LogLine, func(e *event.Event) bool { return strings.HasPrefix(e.Text, "up") })
	s.Stop() // in the middle of the call
	s.Start()
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work})
	uuids, err := json.Marshal(map[string]types.UUID{"big": big.UUID, "bytes": bytes.UUID, "cut": cut.UUID})
	if err != nil {
		t.Fatal(err)
	}
	d.scenario(chromium, "advice.mjs", func(word string) string {
		if word == "gone" {
			d.stop()
			return "done"
		}
		return command(t, s, strings.TrimPrefix(word, "run "))
	}, "RNIX_UUIDS="+string(uuids))
}

func TestEveryPageIsAccessible(t *testing.T) {
	chromium := needsBrowser(t)
	_, url := llmtest.NewAPI(t, busy)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	parent := s.Spawn(ipc.SpawnRequest{Intent: "hang " + hostileText, ProcSpec: types.ProcSpec{Name: "parent"}})
	child := s.Spawn(ipc.SpawnRequest{Intent: "go on now", ProcSpec: types.ProcSpec{Name: "child"}, Parent: parent.PID.String()})
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
		ipc.Handle(s, ipc.ShowCost, today)
		ipc.Handle(s, ipc.Families, together)
		ipc.Handle(s, ipc.ProviderTraffic, crowd)
		ipc.Handle(s, ipc.ListProcs, gone)
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

// command runs what a page has advised, as a person does who pastes it into a shell.
func command(t *testing.T, s *testenv.System, line string) string {
	run := func(line string) error {
		c := exec.CommandContext(context.Background(), "sh", "-c", line)
		c.Dir, c.Env = s.Work, append(slices.Clone(s.Env), "PATH="+filepath.Dir(os.Getenv("RNIX_TEST_PROGRAM"))+":"+os.Getenv("PATH"))
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if line == "rnix daemon start" {
		t.Cleanup(func() {
			if err := run("rnix daemon stop"); err != nil {
				t.Error(err)
			}
		})
	}
	if err := run(line); err != nil {
		return strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return "done"
}
