package harness

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm"
	"rnix/internal/harness"
	"rnix/internal/permit"
	"rnix/types"
)

// judged gives a bench rules, by which a function decides.
func (b *bench) judged(judge Judge) {
	b.cfg.Judge, b.cfg.Ruled = judge, func(context.Context) bool { return true }
}

// fifo makes a pipe that the command line may write to, so that a test waits for it.
func (b *bench) fifo(name string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

const asks = `echo '{"kind":"permit","requestId":"r1","toolUseId":"t1","toolName":"Bash","input":{"command":"ls"}}'` + "\n"

func TestACommandLineIsToldWhatBecomesOfItsCall(t *testing.T) {
	b := newBench(t, false, begun+heard+asks+`echo '{"kind":"permit","requestId":"r2","toolName":"mcp__rnix__shell"}'`+"\n"+
		`read -r A; read -r B; printf '{"kind":"assistant_text","text":"%s, %s"}\n' "$A" "$B"`+"\n"+strings.Replace(shell, `"content":"a b"`, `"content":"refused","isError":true`, 1)+finish)
	kernels := make(chan struct{})
	b.judged(func(_ context.Context, session, id, tool string, c permit.Call) harness.Verdict {
		<-kernels
		if session != sessionID || id != "t1" || tool != "Bash" || c.Tool != "shell" || c.Command() != "ls" {
			t.Errorf("%s %s %s %+v", session, id, tool, c)
		}
		return harness.Verdict{Decision: permit.Deny, Why: "no"}
	})
	close(kernels)
	r := b.ask()
	if !strings.Contains(r.Content, "judged r1 deny no") || !strings.Contains(r.Content, "judged r2 ask") || len(r.Done) != 1 {
		t.Errorf("%+v", r)
	}
}

// A call of the kernel may take days: a child is waited for, or a person. What the command line does beside it, as its subagents do, waits for none of that.
func TestAQuestionIsAnsweredWhileTheKernelRunsACall(t *testing.T) {
	many := `i=0; while [ $i -lt 1000 ]; do echo '{"kind":"system","subtype":"chatter"}'; i=$((i+1)); done` + "\n"
	b := newBench(t, false, begun+heard+`while [ ! -e go ]; do sleep 0.05; done`+"\n"+many+asks+"read -r A; echo \"$A\" >told\n"+strings.Replace(shell, `"content":"a b"`, `"content":"refused","isError":true`, 1)+finish+hang)
	told := b.fifo("told")
	asked := make(chan struct{})
	b.judged(func(context.Context, string, string, string, permit.Call) harness.Verdict {
		close(asked)
		return harness.Verdict{Decision: permit.Deny, Why: "no"}
	})
	got := b.wanting(t.Context(), "")
	wants := b.ask()
	if len(wants.ToolCalls) != 1 {
		t.Fatalf("%+v", wants)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-asked
	if text, err := os.ReadFile(told); err != nil || strings.TrimSpace(string(text)) != "judged r1 deny no" {
		t.Errorf("it is told %q, %v", text, err)
	}
	b.answer(wants.ToolCalls[0].ID, "the text")
	if r := b.ask(); len(r.Done) != 1 || r.Done[0].Output != "refused" {
		t.Errorf("%+v", r)
	}
	if text := <-got; text != "the text" {
		t.Errorf("the call has %q", text)
	}
}

// However much is asked at once, all of it is answered, and only so much is held. What is not held has room in a pipe, as the command line waits for its
// answers when it has asked all.
func TestQuestionsAreBounded(t *testing.T) {
	const all = 600
	ask := `i=0; while [ $i -lt 600 ]; do echo '{"kind":"permit","requestId":"same","toolUseId":"t'$i'","toolName":"Bash","input":{"command":"ls"}}'; i=$((i+1)); done; echo >printed` + "\n"
	b := newBench(t, false, begun+heard+ask+`i=0; while [ $i -lt 600 ]; do read -r A; i=$((i+1)); done`+"\n"+finish+hang)
	var open, most, asked atomic.Int64
	goOn := make(chan struct{})
	b.judged(func(context.Context, string, string, string, permit.Call) harness.Verdict {
		if now := open.Add(1); now > most.Load() {
			most.Store(now)
		}
		asked.Add(1)
		<-goOn
		open.Add(-1)
		return harness.Verdict{Decision: permit.Allow}
	})
	printed := b.fifo("printed")
	go func() { // ends when all was printed, and as much was asked as can be at once
		defer close(goOn)
		if _, err := os.ReadFile(printed); err != nil {
			t.Error(err)
		}
		for asked.Load() < maxAsked && t.Context().Err() == nil {
			runtime.Gosched()
		}
		for range 1000 { // moments in which no more may come
			runtime.Gosched()
		}
	}()
	if r := b.ask(); r.Content != "all done" || asked.Load() != all || most.Load() > maxAsked {
		t.Errorf("%+v, %d asked, %d at once", r, asked.Load(), most.Load())
	}
	j := b.running().judging
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.open) > 0 || j.held != 0 {
		t.Errorf("%d questions are open, and %d bytes held", len(j.open), j.held)
	}
}

func TestWhoDoesNotAskIsEnded(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+finish)
	b.judged(func(context.Context, string, string, string, permit.Call) harness.Verdict {
		t.Error("it has asked")
		return harness.Verdict{}
	})
	if _, err := b.try(t.Context()); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "without asking") {
		t.Error(err)
	}
}

func TestAQuestionEndsWithItsCommandLine(t *testing.T) {
	for name, script := range map[string]string{"withdrawn": `echo '{"kind":"permit","requestId":"r1","withdrawn":true}'` + "\n" + hang, "closed": hang} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, false, begun+heard+asks+script)
			asked, over := make(chan struct{}), make(chan struct{})
			b.judged(func(ctx context.Context, _, _, _ string, _ permit.Call) harness.Verdict {
				close(asked)
				<-ctx.Done()
				close(over)
				return harness.Verdict{Decision: permit.Deny}
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { // ends with ctx
				defer close(done)
				_, _ = b.try(ctx)
			}()
			<-asked
			if name == "closed" {
				b.CloseSession(sessionID)
			}
			<-over
			cancel()
			<-done
		})
	}
}

const question = `{"kind":"permit","requestId":"r1","toolUseId":"t1","toolName":"Bash","input":{"command":"ls"}}`

// byHook gives a bench a command line that asks by a program. wait returns when it reads the next of its files go1 and go2.
func byHook(t *testing.T, script string) (b *bench, wait func()) {
	b = newBench(t, false, `[ "$2" = `+JudgeWord+` ] || exit 3`+"\n"+begun+heard+script)
	cli := b.cfg.CLI.(sheet)
	cli.hook, cli.begins = true, true
	b.cfg.CLI = cli
	pipes := []string{filepath.Join(b.dir, "go1"), filepath.Join(b.dir, "go2")}
	for _, path := range pipes {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b, func() {
		if err := os.WriteFile(pipes[0], []byte("go\n"), 0o600); err != nil { // waits for its reader
			t.Error(err)
		}
		pipes = pipes[1:]
	}
}

// Lines of scripts at which one waits.
const (
	wait1 = "read GO <go1\n"
	wait2 = "read GO <go2\n"
)

func TestAHookAsksAboutACall(t *testing.T) {
	b, wait := byHook(t, wait1+wait2+shell+finish)
	b.judged(func(_ context.Context, session, id, tool string, c permit.Call) harness.Verdict {
		if session != sessionID || id != "t1" || tool != "Bash" || c.Command() != "ls" {
			t.Errorf("%s %s %s %+v", session, id, tool, c)
		}
		return harness.Verdict{Decision: permit.Allow, Input: json.RawMessage(`{"command":"pwd"}`)}
	})
	done := make(chan *llm.LLMResponse)
	go func() { done <- b.ask() }() // received below
	wait()
	for question, want := range map[string]string{question: `judged r1 allow {"command":"pwd"}`, `{"kind":"permit","requestId":"r2","toolName":"mcp__rnix__shell"}`: "judged r2 ask"} {
		if answer, err := b.bridge.Judge(t.Context(), b.credential(), []byte(question)); err != nil || strings.TrimSpace(string(answer)) != want {
			t.Errorf("%s %v", answer, err)
		}
	}
	for credential, want := range map[string]types.ErrCode{b.credential(): types.ErrInvalid, "another": types.ErrPermission} {
		if _, err := b.bridge.Judge(t.Context(), credential, []byte("junk")); types.CodeOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	wait()
	if r := <-done; len(r.Done) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestWhoBeginsWithoutItsHookIsEnded(t *testing.T) {
	for name, decision := range map[string]permit.Decision{"not asked": "", "refused": permit.Deny} {
		t.Run(name, func(t *testing.T) {
			b, wait := byHook(t, wait1+wait2+shell+finish)
			b.judged(func(context.Context, string, string, string, permit.Call) harness.Verdict {
				return harness.Verdict{Decision: decision, Why: "no"}
			})
			done := make(chan error)
			go func() { // received below
				_, err := b.try(t.Context())
				done <- err
			}()
			wait()
			if decision != "" {
				if answer, err := b.bridge.Judge(t.Context(), b.credential(), []byte(question)); err != nil || !strings.Contains(string(answer), "deny") {
					t.Errorf("%s %v", answer, err)
				}
			}
			wait()
			if err := <-done; types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "without asking") {
				t.Error(err)
			}
		})
	}
}

func TestWhatAHookAsksEndsWithItsRun(t *testing.T) {
	b, wait := byHook(t, wait1+hang)
	asked := make(chan struct{})
	b.judged(func(ctx context.Context, _, _, _ string, _ permit.Call) harness.Verdict {
		asked <- struct{}{}
		<-ctx.Done()
		return harness.Verdict{Decision: permit.Allow}
	})
	done := make(chan struct{})
	go func() { // ends with the session
		defer close(done)
		_, _ = b.try(t.Context())
	}()
	wait()
	credential := b.credential()
	ctx, hangUp := context.WithCancel(t.Context())
	errs := make(chan error)
	ask := func(ctx context.Context) {
		_, err := b.bridge.Judge(ctx, credential, []byte(question))
		errs <- err
	}
	go ask(ctx) // received below, as the other one
	<-asked
	hangUp()
	if err := <-errs; types.CodeOf(err) != types.ErrCancelled {
		t.Error(err)
	}
	go ask(t.Context())
	<-asked
	b.CloseSession(sessionID)
	if err := <-errs; types.CodeOf(err) != types.ErrCancelled {
		t.Error(err)
	}
	<-done
	if _, err := b.bridge.Judge(t.Context(), credential, []byte(question)); types.CodeOf(err) != types.ErrPermission {
		t.Error(err)
	}
}

// A turn that has ended while subagents work on is not the last one, and what they ask is waited for.
func TestATurnEndsWithTheSubagentsBesideIt(t *testing.T) {
	beside := func(who string) string {
		return `echo '{"kind":"system","subtype":"beside","message":"` + who + `"}'` + "\n"
	}
	const early, turn = `echo '{"kind":"result","success":true,"message":"too early","usage":{"inputTokens":12,"outputTokens":9,"total":true}}'` + "\n", `echo '{"kind":"system","subtype":"turn"}'` + "\n"
	for name, last := range map[string]string{"with another turn": turn + finish, "without one": finish} {
		b := newBench(t, false, begun+heard+beside("a look round")+early+asks+"read -r A\n"+shell+beside("")+last)
		asked := false
		b.judged(func(context.Context, string, string, string, permit.Call) harness.Verdict {
			asked = true
			return harness.Verdict{Decision: permit.Allow}
		})
		if r := b.ask(); len(r.Done) != 1 || !asked {
			t.Errorf("%s: %+v", name, r)
		}
		if r := b.ask(); r.Content != "all done" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	b := newBench(t, false, begun+heard+beside("a look round")+early+hang)
	b.cfg.Silence = time.Second
	if r := b.ask(); r.Content != "too early" {
		t.Errorf("one whose subagents say nothing: %+v", r)
	}
	b = newBench(t, false, begun+heard+beside("a look round")+early+beside("")+hang)
	b.cfg.hearing = time.Millisecond
	if r := b.ask(); r.Content != "too early" {
		t.Errorf("one that is told in vain: %+v", r)
	}
}
