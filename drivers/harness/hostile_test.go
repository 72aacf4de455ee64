package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm"
	"rnix/ipc"
	"rnix/types"
)

// The lines of scripts, beside those of harness_test.go.
const (
	hears = `read L; printf '%s\n' "{\"kind\":\"system\",\"subtype\":\"heard\",\"message\":$L}"` + "\n"
	used  = `echo '{"kind":"usage","inputTokens":10,"outputTokens":5}'` + "\n"
)

// credentialSoon waits for the credential of the session that is being started.
func (b *bench) credentialSoon() string {
	for b.t.Context().Err() == nil {
		var f ipc.SessionFile
		if text, err := os.ReadFile(filepath.Join(b.dir, sessionID, credentialFile)); err == nil && json.Unmarshal(text, &f) == nil {
			return f.Credential
		}
	}
	return ""
}

// wanting calls the kernel as the MCP server of the session does, and gives what came of it.
func (b *bench) wanting(ctx context.Context, credential string) <-chan string {
	out := make(chan string, 1)
	go func() {
		if credential == "" {
			credential = b.credentialSoon()
		}
		text, _, err := b.bridge.Call(ctx, credential, "fs_read", json.RawMessage(`{}`))
		if err != nil {
			text = "error: " + err.Error()
		}
		out <- text
	}()
	return out
}

func TestWhatIsSaidWhileAnAnswerIsLostLosesNeither(t *testing.T) {
	b := newBench(t, false, begun+heard+"read L; case $L in *faster*) ;; *) exit 3;; esac; echo '{\"kind\":\"system\",\"subtype\":\"heard\"}'\n"+`while [ ! -e go ]; do sleep 0.05; done`+"\n"+finish+hang)
	got := b.wanting(t.Context(), "")
	one, err := b.try(t.Context())
	if err != nil || len(one.ToolCalls) != 1 {
		t.Fatalf("%+v, %v", one, err)
	}
	b.say("go faster") // a pause has cut the answer off, and something was said before it was asked for again
	two := b.ask()
	if len(two.ToolCalls) != 1 || two.ToolCalls[0].ID != one.ToolCalls[0].ID {
		t.Fatalf("the answer is lost: %+v", two)
	}
	b.answer(two.ToolCalls[0].ID, "the text")
	go func() {
		if text := <-got; text != "the text" {
			t.Errorf("the call has %q", text)
		}
		_ = os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600)
	}()
	if r := b.ask(); r.Content != "all done" {
		t.Errorf("%+v", r)
	}
}

func TestAConversationThatWasMadeShorterStillAnswersItsCalls(t *testing.T) {
	b := newBench(t, false, begun+heard+hang)
	for range 20 {
		b.say("an old thing")
	}
	got := b.wanting(t.Context(), "")
	r := b.ask()
	b.answer(r.ToolCalls[0].ID, "the text")
	b.ms = append(b.ms[:1:1], b.ms[len(b.ms)-2:]...)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if text := <-got; text != "the text" {
			t.Errorf("the call has %q", text)
		}
		cancel()
	}()
	if _, err := b.try(ctx); err == nil {
		t.Error("an answer of nobody")
	}
}

func TestWhatOneAfterTheOtherHasUsedIsAllCounted(t *testing.T) {
	b := newBench(t, true, begun+shell+finish, begun+finish)
	sum := b.ask().Usage
	b.say("go faster") // which begins another run
	add(&sum, b.ask().Usage)
	if sum != (llm.Usage{Input: 24, Output: 18}) {
		t.Errorf("two runs with 12 and 9 have used %+v", sum)
	}
	b.say("and once more")
	add(&sum, b.ask().Usage)
	if sum != (llm.Usage{Input: 36, Output: 27}) {
		t.Errorf("three runs with 12 and 9 have used %+v", sum)
	}
	if p, _ := b.cfg.placeOf(&b.ms[len(b.ms)-1]); p.Used != sum {
		t.Errorf("on record: %+v", p.Used)
	}
}

func TestWhatACrashHasUsedIsCounted(t *testing.T) {
	b := newBench(t, false, begun+heard+used+"kill -9 $$\n", begun+heard+finish+hang)
	if _, err := b.try(t.Context()); types.CodeOf(err) != types.ErrUnavailable {
		t.Fatal(err)
	}
	if u := b.ask().Usage; u != (llm.Usage{Input: 22, Output: 14}) {
		t.Errorf("%+v", u)
	}
}

func TestWhatIsSaidIsHeardInOrder(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+`for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do read L; ALL="$ALL$L"; echo '{"kind":"system","subtype":"heard"}'; done`+
		"\n"+`printf '%s\n' "{\"kind\":\"result\",\"success\":true,\"message\":\"$(echo "$ALL" | tr -d '"')\"}"`+"\n"+hang)
	b.ask()
	want := ""
	for i := range 20 {
		b.say(fmt.Sprintf("%d;", i))
		want += fmt.Sprintf("%d;", i)
	}
	if r := b.ask(); r.Content != want {
		t.Errorf("%s", r.Content)
	}
}

func TestThePauseDoesNotForgetThatATurnHasEnded(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+finish+"echo > printed\nsleep 30\n", begun+hears+finish+hang)
	b.cfg.hearing, b.cfg.Silence = 300*time.Millisecond, 20*time.Second
	b.ask()
	b.say("never heard")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := b.try(ctx); done <- err }()
	for b.t.Context().Err() == nil {
		if _, err := os.Stat(filepath.Join(b.dir, "printed")); err == nil {
			break
		}
	}
	cancel()
	<-done
	if r := b.ask(); r.Content != "all done" || len(b.starts) != 2 || !strings.Contains(b.starts[1].Prompt, "never heard") {
		t.Errorf("%+v, started with %+v", r, b.starts)
	}
}

func TestWhatNobodyHasHeardIsToldToTheNextRun(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+finish+"exec <&-; sleep 0.1\n", begun+hears+finish+hang)
	b.cfg.hearing = 300 * time.Millisecond
	b.ask()
	b.say("be quick")
	if r := b.ask(); r.Content != "all done" {
		t.Errorf("%+v", r)
	}
	if len(b.starts) != 2 || b.starts[1].Resume != "s-1" || strings.Count(b.starts[1].Prompt, "be quick") != 1 {
		t.Errorf("started with %+v", b.starts)
	}
}

func TestALineAfterTheResultIsNotATurn(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+finish+`echo '{"kind":"system","subtype":"status","message":"tidying"}'`+"\n"+hears+
		`echo '{"kind":"result","success":true,"message":"heard you"}'`+"\n"+hang)
	b.ask()
	b.say("be quick")
	if r := b.ask(); r.Content != "heard you" || len(b.starts) != 1 {
		t.Errorf("%+v, %d starts", r, len(b.starts))
	}
}

func TestWhatWasNotHeardBeforeACrashIsToldAfterIt(t *testing.T) {
	for _, mute := range []bool{false, true} {
		b := newBench(t, mute, begun+"read L || :; echo '{\"kind\":\"system\",\"subtype\":\"heard\"}'\n"+shell+strings.ReplaceAll(shell, "t1", "t2")+"kill -9 $$\n", begun+heard+finish+hang)
		b.ask()
		b.say("leave the tests alone")
		b.ask()                   // the second command, which it had begun before it could hear
		b.CloseSession(sessionID) // and here the daemon ends
		b.ask()
		if p := b.starts[1].Prompt; strings.Count(p, "leave the tests alone") != 1 {
			t.Errorf("mute %v: it went on with %q", mute, p)
		}
	}
}

func TestWhatWasSaidBeforeTheFirstAnswerIsToldAfterACrash(t *testing.T) {
	b := newBench(t, false, begun+heard+hang, begun+heard+finish+hang)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := b.try(ctx); done <- err }()
	for b.t.Context().Err() == nil {
		if st, err := b.cfg.states.Read(filepath.Join(b.dir, sessionID)); err == nil && st.ProviderSessionID != "" {
			break
		}
	}
	cancel()
	<-done
	b.CloseSession(sessionID)
	b.say("leave the tests alone")
	b.ask()
	if s := b.starts[1]; s.Resume != "s-1" || !strings.Contains(s.Prompt, "leave the tests alone") {
		t.Errorf("it went on with %+v", s)
	}
}

func TestACallOfARunThatIsOverIsNotRun(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+"while [ ! -e die ]; do sleep 0.05; done; kill -9 $$\n", begun+heard+finish+hang)
	b.ask()
	s := b.running()
	got := b.wanting(t.Context(), b.credential())
	for len(s.calls) == 0 && t.Context().Err() == nil { // it has arrived, and nobody asks
	}
	_ = os.WriteFile(filepath.Join(b.dir, "die"), nil, 0o600)
	<-s.child.end
	<-s.child.Done()
	r := b.ask()
	if len(r.ToolCalls) != 0 || r.Content != "all done" {
		t.Errorf("the next run has a call of the last one: %+v", r)
	}
	if text := <-got; !strings.Contains(text, "over") {
		t.Errorf("the call has %q", text)
	}
}

func TestARequestThatComesTooLateStartsNothing(t *testing.T) {
	b := newBench(t, false, begun+heard+hang)
	s, err := b.session(sessionID)
	if err != nil {
		t.Fatal(err)
	}
	b.CloseSession(sessionID)
	for range 50 {
		if _, err := s.perform(t.Context(), &llm.LLMRequest{Session: sessionID, WorkDir: b.dir, Messages: b.ms}, func(llm.StreamEvent) {}); err == nil {
			t.Fatal("a session that is over has answered")
		}
	}
	if len(b.starts) > 0 {
		t.Errorf("%d were started", len(b.starts))
	}
}

func TestWhoEndsByItselfAfterItsTurnIsStartedForTheNext(t *testing.T) {
	b := newBench(t, true, begun+finish+"exec >&- 2>&-; sleep 0.3; echo > saved\n", begun+finish)
	b.ask()
	b.say("one more thing") // while it is still ending
	if r := b.ask(); r.Content != "all done" || len(b.starts) != 2 || b.starts[1].Resume != "s-1" {
		t.Errorf("%+v, %+v", r, b.starts)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "saved")); err != nil {
		t.Errorf("it had no time to end: %v", err)
	}
}

func TestWhatNobodyReadsIsBounded(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+"L=$(head -c 1000000 /dev/zero | tr '\\0' x); for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do echo $L; done\n"+finish+hang)
	b.ask()
	c := b.running().child
	for n := int64(0); n < 15_000_000 && t.Context().Err() == nil; n = c.unread.Load() { // until it is full
	}
	if n := c.unread.Load(); n > maxUnread {
		t.Errorf("%d bytes wait", n)
	}
	if r := b.ask(); r.Content != "all done" {
		t.Errorf("%.100v", r)
	}
	if n := c.unread.Load(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

func TestLinksInThePrivateDirectoryLeadNowhere(t *testing.T) {
	b := newBench(t, false, begun+heard+finish+hang)
	outside := t.TempDir()
	precious := filepath.Join(outside, "precious")
	if err := os.WriteFile(precious, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(b.dir, sessionID)
	if err := os.MkdirAll(filepath.Join(private, "own"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own/config", credentialFile} {
		if err := os.Symlink(precious, filepath.Join(private, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.ask()
	if text, err := os.ReadFile(precious); err != nil || string(text) != "mine" {
		t.Errorf("written through a link: %q, %v", text, err)
	}
	for _, name := range []string{".", "own"} {
		if st, err := os.Lstat(filepath.Join(private, name)); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	b.CloseSession(sessionID)
	if err := os.RemoveAll(private); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, private); err != nil {
		t.Fatal(err)
	}
	if _, err := b.try(t.Context()); types.CodeOf(err) != types.ErrStorage {
		t.Errorf("a link in place of the directory: %v", err)
	}
}

func TestWithTheKernelsToolsAloneAToolOfItsOwnEndsIt(t *testing.T) {
	own := `echo '{"kind":"tool_use","toolUseId":"t1","toolName":"Bash","input":{}}'` + "\n"
	gave := `echo '{"kind":"tool_result","toolUseId":"t1","content":"x"}'` + "\n"
	for name, c := range map[string]struct {
		script string
		want   types.ErrCode
	}{
		"it says that it has one, and uses it": {`echo '{"kind":"init","sessionId":"s-1","tools":["Bash"]}'` + "\n" + heard + own + hang, types.ErrPermission},
		"one has run":                          {begun + heard + own + gave + finish + hang, types.ErrPermission},
		"it asked for one that it has not":     {begun + heard + own + strings.Replace(gave, `"content"`, `"isError":true,"content"`, 1) + finish + hang, ""},
	} {
		b := newBench(t, false, c.script)
		b.cfg.OwnTools = false
		_, err := b.try(t.Context())
		if got := types.CodeOf(err); (err == nil) != (c.want == "") || err != nil && got != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "Bash") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who may not do what its tools do has the kernel's alone.
func TestOwnToolsAreForWhoMayDoWhatTheyDo(t *testing.T) {
	for _, may := range []bool{true, false} {
		b := newBench(t, false, begun+heard+finish+hang)
		b.cfg.MayAct = func(context.Context) bool { return may }
		b.ask()
		if got := b.starts[0].NoOwnTools; got == may {
			t.Errorf("may it act: %t; are its own tools off: %t", may, got)
		}
	}
}

func TestNamesThatItGivesAreBounded(t *testing.T) {
	b := newBench(t, false, begun+heard+"X=$(head -c 100000 /dev/zero | tr '\\0' x)\n"+
		`echo '{"kind":"tool_use","toolUseId":"'$X'","toolName":"\u001b[31m'$X'","input":{}}'; echo '{"kind":"tool_result","toolUseId":"'$X'","content":"a"}'`+"\n"+hang)
	r := b.ask()
	if c := r.ToolCalls[0]; len(c.ID) > maxName || len(c.Name) > 2*maxName || strings.ContainsRune(c.Name, 27) || r.Done[0].ID != c.ID {
		t.Errorf("%+.300v", r)
	}
}

func TestWhatACrashHasLeftIsSwept(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+hang)
	b.ask()
	private := filepath.Join(b.dir, sessionID)
	if err := os.WriteFile(filepath.Join(private, ".kernel.json.0123.tmp~"), []byte("half a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(private); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(private, ".kernel*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(filepath.Join(private, credentialFile)); err == nil {
		t.Error("the credential is left")
	}
	if err := Sweep(filepath.Join(private, "nothing")); err != nil {
		t.Error(err)
	}
}

func TestACrashIsReportedAtOnceAlsoWhereAChildHoldsItsOutput(t *testing.T) {
	b := newBench(t, false, begun+heard+"sleep 300 & date +%s%N > died; kill -9 $$\n", begun+heard+finish+hang)
	b.cfg.Silence = 5 * time.Minute
	_, err := b.try(t.Context())
	now := time.Now()
	if types.CodeOf(err) != types.ErrUnavailable {
		t.Fatalf("a crash is %v", err)
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "died"))
	if err != nil {
		t.Fatal(err)
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if took := now.Sub(time.Unix(0, ns)); err != nil || took > 30*time.Second {
		t.Errorf("it was reported after %v, %v", took, err)
	}
}
