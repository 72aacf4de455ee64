package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/internal/harness"
	"rnix/internal/proc"
	"rnix/ipc"
	"rnix/runtime/state"
	"rnix/types"
	"rnix/vfs"
)

// sheet is a command line that is a shell script. It prints events as agent.MarshalEvent writes them.
type sheet struct {
	scripts []string // of each start, the last one of all others; $R is the session to go on with
	starts  *[]agent.Spec
	mute    bool // it cannot be told anything while it works
	hook    bool // it asks by Place.Judge, which is in $1 and following
	begins  bool
	images  bool // it takes them
}

func (sheet) Name() string { return "sheet" }
func (c sheet) Can() harness.Abilities {
	return harness.Abilities{Resume: true, Steer: !c.mute, OwnToolsOff: true, Hook: c.hook, Begins: c.begins, Images: c.images}
}
func (sheet) Lines(agent.UsageEvent) harness.Lines { return &sheetLines{} }
func (sheet) Judge(e agent.PermitEvent, v harness.Verdict) []byte {
	return []byte(strings.TrimSpace("judged "+e.RequestID+" "+string(v.Decision)+" "+v.Why+string(v.Input)) + "\n")
}
func (sheet) Question(b []byte) (agent.PermitEvent, error) {
	e, err := agent.UnmarshalEvent(b)
	if p, ok := e.(agent.PermitEvent); ok {
		return p, nil
	}
	return agent.PermitEvent{}, types.Errorf(types.ErrInvalid, "Judge", "sheet", "no question: %v", err)
}
func (sheet) Asks(line []byte) (p agent.PermitEvent, ok bool) {
	e, err := agent.UnmarshalEvent(line)
	if err == nil {
		p, ok = e.(agent.PermitEvent)
	}
	return p, ok
}
func (sheet) Asked(e agent.PermitEvent) string              { return e.ToolUseID }
func (sheet) Began(e agent.ToolUseEvent) string             { return e.ToolUseID }
func (sheet) Interrupt() ([]byte, error)                    { return nil, nil }
func (sheet) Kept(string, func(string) string) harness.Kept { return harness.Kept{} }
func (sheet) ToolName(server, tool string) string           { return server + "-" + tool }
func (c sheet) Steer(t string, shown ...agent.Attachment) ([]byte, error) {
	for i := range shown {
		t += " <" + shown[i].Media + " " + string(shown[i].Data) + ">"
	}
	return steerLine(c.mute, t)
}

func steerLine(mute bool, t string) ([]byte, error) {
	if mute {
		return nil, types.Errorf(types.ErrUnavailable, "Steer", "sheet", "it hears nothing")
	}
	return fmt.Appendf(nil, "%q\n", t), nil
}

func (c sheet) Command(s agent.Spec, at harness.Place) (*harness.Command, error) {
	n := len(*c.starts)
	*c.starts = append(*c.starts, s)
	script := c.scripts[min(n, len(c.scripts)-1)]
	stdin, _ := steerLine(false, s.Prompt)
	return &harness.Command{Program: "/bin/sh", Args: append([]string{"-c", script, "sheet"}, at.Judge...), Env: map[string]string{"R": s.Resume, "PATH": os.Getenv("PATH")},
		Stdin: stdin, KeepStdin: !c.mute, Files: []harness.File{{Name: "own/config", Data: []byte("x")}}}, nil
}

func (sheet) Login() harness.Login { return harness.Login{} }

func (sheet) Vendors(harness.User) ([]harness.Vendor, error) { return nil, nil }

type sheetLines struct{ ended bool }

func (l *sheetLines) Line(b []byte) []agent.Event {
	e, err := agent.UnmarshalEvent(b)
	if err != nil {
		return []agent.Event{agent.SystemEvent{Subtype: "unreadable", Message: string(b)}}
	}
	l.ended = agent.Terminal(e)
	return []agent.Event{e}
}

func (l *sheetLines) End(x harness.Exit) agent.Event {
	if l.ended {
		return nil
	}
	return agent.ErrorEvent{Code: harness.WhyNoResult, Message: fmt.Sprintf("exit %d %s", x.Code, x.Stderr)}
}

// The lines of scripts.
const (
	begun  = `echo '{"kind":"init","sessionId":"s-1","model":"m"}'` + "\n"
	heard  = `read L; echo '{"kind":"system","subtype":"heard"}'` + "\n"
	shell  = `echo '{"kind":"assistant_text","text":"I look."}'; echo '{"kind":"tool_use","toolUseId":"t1","toolName":"Bash","input":{"command":"ls"}}'; echo '{"kind":"usage","inputTokens":10,"outputTokens":5}'; echo '{"kind":"tool_result","toolUseId":"t1","content":"a b"}'` + "\n"
	kernel = `echo '{"kind":"tool_use","toolUseId":"t2","toolName":"mcp__rnix__fs_read","input":{"path":"x"}}'` + "\n"
	finish = `echo '{"kind":"result","success":true,"message":"all done","usage":{"inputTokens":12,"outputTokens":9,"total":true}}'` + "\n"
	hang   = "read NEVER; exit 0\n"
)

// bench is a driver over a sheet.
type bench struct {
	*Driver
	t      *testing.T
	bridge *Bridge
	dir    string
	starts []agent.Spec
	ms     []rnixctx.Message
}

// running returns the session of the conversation.
func (b *bench) running() *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[sessionID]
}

func newBench(t *testing.T, mute bool, scripts ...string) *bench {
	t.Helper()
	return benchOf(t, sheet{scripts: scripts, mute: mute})
}

// newImageBench is newBench for one that takes images.
func newImageBench(t *testing.T, mute bool, scripts ...string) *bench {
	t.Helper()
	return benchOf(t, sheet{scripts: scripts, mute: mute, images: true})
}

func benchOf(t *testing.T, cli sheet) *bench {
	t.Helper()
	procs, err := proc.NewManager(filepath.Join(t.TempDir(), "procs"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(procs.Close)
	b := &bench{t: t, dir: t.TempDir(), bridge: NewBridge("/opt/rnix", "/run/rnix.sock")}
	cli.starts = &b.starts
	b.Driver = New(Config{Name: "sheet-agent", CLI: cli, OwnTools: true, Start: procs, Bridge: b.bridge,
		Dir:     func(id string) string { return filepath.Join(b.dir, id) },
		StateOf: func(id, _ string) StatePlace { return StatePlace{filepath.Join(b.dir, id), "I-1", "w-1"} }})
	t.Cleanup(func() { _ = b.Close() })
	b.ms = []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "the task"}}
	return b
}

// patient is how long a request may take.
const patient = 2 * time.Minute

const sessionID = "0191d3b0-0000-7000-8000-000000000001"

// ask makes one request as the loop does it, and puts the answer into the conversation.
func (b *bench) ask() *llm.LLMResponse {
	b.t.Helper()
	r, err := b.try(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.ms = append(b.ms, rnixctx.Message{Role: rnixctx.RoleAssistant, Content: r.Content, ToolCalls: r.ToolCalls, Reasoning: r.Blocks})
	for _, d := range r.Done {
		b.answer(d.ID, d.Output)
	}
	return r
}

func (b *bench) try(ctx context.Context) (*llm.LLMResponse, error) {
	ctx, cancel := context.WithTimeout(llm.WithCaller(ctx, vfs.Caller{PID: 7, UUID: sessionUUID(b.t)}), patient)
	defer cancel()
	return b.Call(ctx, llm.LLMRequest{Session: sessionID, WorkDir: b.dir, Messages: b.ms, SystemPrompt: "be good",
		Tools: []llm.ToolSpec{{Name: "fs_read", Schema: json.RawMessage(`{}`)}, {Name: "complete"}}})
}

// sessionUUID is sessionID.
func sessionUUID(t *testing.T) (u types.UUID) {
	t.Helper()
	if err := u.UnmarshalText([]byte(sessionID)); err != nil {
		t.Fatal(err)
	}
	return u
}

func (b *bench) answer(id, text string) {
	b.ms = append(b.ms, rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: id, Content: text})
}

func (b *bench) say(text string) {
	b.ms = append(b.ms, rnixctx.Message{Role: rnixctx.RoleUser, Content: text})
}

// credential is what the MCP server of the session finds.
func (b *bench) credential() string {
	b.t.Helper()
	path := filepath.Join(b.dir, sessionID, credentialFile)
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		b.t.Fatalf("%v, %v", st, err)
	}
	text, err := os.ReadFile(path)
	var f ipc.SessionFile
	if err != nil || json.Unmarshal(text, &f) != nil || f.Socket != "/run/rnix.sock" {
		b.t.Fatalf("%s, %v", text, err)
	}
	return f.Credential
}

func TestItsOwnCallsAreAnswersThatHaveRun(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+finish+hang)
	r := b.ask()
	if r.Content != "I look." || len(r.ToolCalls) != 1 || r.ToolCalls[0].Name != "Bash" || len(r.Done) != 1 || r.Done[0].Output != "a b" || r.Usage.Total() != 15 {
		t.Fatalf("%+v", r)
	}
	r = b.ask()
	if r.Content != "all done" || len(r.ToolCalls) != 0 || r.Usage != (llm.Usage{Input: 2, Output: 4}) {
		t.Errorf("the end: %+v", r)
	}
	if s := b.starts[0]; s.Prompt != "the task" || s.SystemPromptAppend != "be good" || s.NoOwnTools || s.CWD != b.dir {
		t.Errorf("started with %+v", s)
	}
	b.CloseSession(sessionID)
	if _, err := os.Stat(filepath.Join(b.dir, sessionID, credentialFile)); !os.IsNotExist(err) {
		t.Errorf("its credential is left: %v", err)
	}
	if st, err := state.NewStore().Read(filepath.Join(b.dir, sessionID)); err != nil || st.CurrentStep != stepCompleted || st.ProviderSessionID != "s-1" {
		t.Errorf("state.json: %+v, %v", st, err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, sessionID, "*.json")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWhatItWantsOfTheKernelIsACallAndGetsItsAnswer(t *testing.T) {
	b := newBench(t, false, begun+heard+kernel+"read NEVER\n", begun)
	type got struct {
		text   string
		failed bool
		err    error
	}
	first := make(chan got, 1)
	var cred string
	go func() {
		for cred == "" {
			if text, err := os.ReadFile(filepath.Join(b.dir, sessionID, credentialFile)); err == nil {
				var f ipc.SessionFile
				_ = json.Unmarshal(text, &f)
				cred = f.Credential
			}
		}
		text, failed, err := b.bridge.Call(t.Context(), cred, "fs_read", json.RawMessage(`{"path":"x"}`))
		first <- got{text, failed, err}
	}()
	r := b.ask()
	if len(r.ToolCalls) != 1 || r.ToolCalls[0].Name != "fs_read" || string(r.ToolCalls[0].Input) != `{"path":"x"}` || len(r.Done) != 0 {
		t.Fatalf("%+v", r)
	}
	b.answer(r.ToolCalls[0].ID, "the text of x")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := b.try(ctx); done <- err }()
	if g := <-first; g.text != "the text of x" || g.failed || g.err != nil {
		t.Errorf("the answer: %+v", g)
	}
	cancel() // as a pause does
	if err := <-done; err == nil {
		t.Error("an answer though nothing was said")
	}
	id, tools, err := b.bridge.Tools(b.credential())
	if err != nil || id != sessionID || len(tools) != 1 || tools[0].Name != "fs_read" {
		t.Errorf("tools: %s, %+v, %v", id, tools, err)
	}
	over := make(chan error, 1)
	cred2 := b.credential()
	go func() { _, _, err := b.bridge.Call(t.Context(), cred2, "fs_read", nil); over <- err }()
	b.CloseSession(sessionID)
	if err := <-over; err == nil {
		t.Error("a call outlives its session")
	}
	if _, _, err := b.bridge.Call(t.Context(), cred2, "fs_read", nil); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("the credential of a session that is over: %v", err)
	}
}

func TestACrashGoesOnWithTheSameSessionAndWhatHasHappened(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+"read L; kill -9 $$\n", begun+heard+`[ "$R" = s-1 ] && `+finish+hang)
	if r := b.ask(); len(r.Done) != 1 {
		t.Fatalf("%+v", r)
	}
	b.say("mind the gap")
	_, err := b.try(t.Context())
	if types.CodeOf(err) != types.ErrUnavailable {
		t.Fatalf("a crash is %v", err)
	}
	r := b.ask() // as Retry does
	if r.Content != "all done" {
		t.Errorf("%+v", r)
	}
	if s := b.starts[1]; s.Resume != "s-1" || !strings.Contains(s.Prompt, "mind the gap") || !strings.Contains(s.Prompt, "interrupted") {
		t.Errorf("it went on with %+v", s)
	}
}

func TestAnotherDaemonGoesOnWithTheSession(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+hang, begun+heard+finish+hang)
	b.ask()
	b.CloseSession(sessionID) // the process is suspended
	b.say("go faster")
	if r := b.ask(); r.Content != "all done" {
		t.Fatalf("%+v", r)
	}
	if s := b.starts[1]; s.Resume != "s-1" || !strings.Contains(s.Prompt, "go faster") {
		t.Errorf("it went on with %+v", s)
	}
}

func TestAForkIsToldTheConversation(t *testing.T) {
	b := newBench(t, false, begun+heard+finish+hang)
	b.ms = append(b.ms, rnixctx.Message{Role: rnixctx.RoleAssistant, Content: "half done", Reasoning: []rnixctx.Block{{Provider: "harness-sheet",
		Data: json.RawMessage(`{"session":"s-0","uuid":"another","dir":"` + b.dir + `"}`)}}})
	b.say("the other way")
	b.ask()
	if s := b.starts[0]; s.Resume != "" || !strings.Contains(s.Prompt, "half done") || !strings.Contains(s.Prompt, "the other way") {
		t.Errorf("a fork began with %+v", s)
	}
}

func TestASessionThatIsGoneIsToldTheConversation(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+hang, "echo gone >&2; exit 1\n", begun+heard+finish+hang)
	b.ask()
	b.CloseSession(sessionID)
	if r := b.ask(); r.Content != "all done" || b.starts[1].Resume != "s-1" {
		t.Errorf("%+v, started with %+v", r, b.starts[1])
	}
	if s := b.starts[2]; s.Resume != "" || !strings.Contains(s.Prompt, "the task") || !strings.Contains(s.Prompt, "a b") {
		t.Errorf("it began anew with %+v", s)
	}
}

func TestWhatIsSaidMeanwhileIsHeard(t *testing.T) {
	again := begun + heard + shell + `read L; case $L in *faster*) ;; *) exit 3;; esac; echo '{"kind":"system","subtype":"heard"}'` + "\n" + finish + hang
	b := newBench(t, false, again)
	b.ask()
	b.say("go faster")
	if r := b.ask(); r.Content != "all done" {
		t.Errorf("%+v", r)
	}
	mute := newBench(t, true, begun+shell+finish, begun+finish)
	mute.ask()
	mute.say("go faster")
	if r := mute.ask(); r.Content != "all done" || len(mute.starts) != 2 || mute.starts[1].Resume != "s-1" || !strings.Contains(mute.starts[1].Prompt, "go faster") {
		t.Errorf("%+v, started with %+v", r, mute.starts)
	}
}

func TestOneThatLeavesAfterItsTurnIsStartedAgainForTheNext(t *testing.T) {
	b := newBench(t, true, begun+finish+"sleep 0.3; echo x >saved\n", begun+finish)
	b.ask()
	b.say("go on") // while it is still there
	if r := b.ask(); r.Content != "all done" || len(b.starts) != 2 || b.starts[1].Resume != "s-1" || !strings.Contains(b.starts[1].Prompt, "go on") {
		t.Errorf("%+v, started with %+v", r, b.starts)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "saved")); err != nil {
		t.Error("it had no time to write its session: ", err)
	}
}

func TestAnAnswerThatWasNotTakenIsGivenAgain(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+hang)
	one, err := b.try(t.Context())
	two, err2 := b.try(t.Context())
	if err != nil || err2 != nil || one.ToolCalls[0].ID != two.ToolCalls[0].ID || one.Usage != two.Usage || one.Content != two.Content {
		t.Errorf("%+v %v, then %+v %v", one, err, two, err2)
	}
}

func TestLongLinesDoNotHoldTheChild(t *testing.T) {
	if testing.Short() {
		t.Skip("needs time: a line of 70 MB")
	}
	b := newBench(t, false, begun+heard+"head -c 70000000 /dev/zero | tr '\\0' x; echo\n"+finish+hang)
	if r := b.ask(); r.Content != "all done" {
		t.Errorf("%.100v", r)
	}
}

func TestWithoutAProcessThereIsNoSession(t *testing.T) {
	b := newBench(t, false, begun)
	for _, session := range []string{"", sessionID} {
		for _, caller := range []vfs.Caller{{}, {PID: 8, UUID: types.UUID{1}}} { // a person, and another process
			if _, err := b.Call(llm.WithCaller(t.Context(), caller), llm.LLMRequest{Intent: "x", Session: session}); types.CodeOf(err) != types.ErrInvalid {
				t.Error(err)
			}
		}
	}
	if len(b.starts) > 0 {
		t.Error("something was started")
	}
}
