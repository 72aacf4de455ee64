package harness

import (
	"context"
	"strings"
	"testing"

	"rnix/internal/harness"
	"rnix/internal/permit"
	"rnix/types"
)

// judged gives a bench rules, by which a function decides.
func (b *bench) judged(judge Judge) {
	cli := b.cfg.CLI.(sheet)
	cli.asks = true
	b.cfg.CLI, b.cfg.Judge, b.cfg.Ruled = cli, judge, func(context.Context) bool { return true }
}

const asks = `echo '{"kind":"permit","requestId":"r1","toolUseId":"t1","toolName":"Bash","input":{"command":"ls"}}'` + "\n"

func TestACommandLineIsToldWhatBecomesOfItsCall(t *testing.T) {
	b := newBench(t, false, begun+heard+asks+`echo '{"kind":"permit","requestId":"r2","toolName":"mcp__rnix__shell"}'`+"\n"+
		`read -r A; read -r B; printf '{"kind":"assistant_text","text":"%s, %s"}\n' "$A" "$B"`+"\n"+shell+finish)
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
