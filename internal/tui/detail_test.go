package tui

import (
	"strings"
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

func TestDetailSaysWhatSignalsDo(t *testing.T) {
	d := &ipc.ProcDetail{Proc: ipc.Proc{ProcStatus: types.ProcStatus{PID: 3}}}
	if text := detailText(&Theme{}, d, time.Now(), time.Now()); strings.Contains(text, "SIGNALS") {
		t.Errorf("of a process that says nothing:\n%s", text)
	}
	d.BlockedSignals, d.PendingSignals, d.OnInterrupt = []types.Signal{types.SIGTERM, types.SIGINT}, []types.Signal{types.SIGTERM}, "sum up\x1b[2J"
	want := "SIGNALS\n  blocks SIGTERM, SIGINT\n  waiting: SIGTERM\n  is told at SIGINT: sum up"
	if text := detailText(&Theme{}, d, time.Now(), time.Now()); !strings.Contains(text, want) || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}

func TestDetailSaysWhichMCPServersAreAwayAndWhatBringsThemBack(t *testing.T) {
	d := &ipc.ProcDetail{Proc: ipc.Proc{ProcStatus: types.ProcStatus{PID: 3}, MCPDown: []string{"tracker: no such file\x1b[2J\nx"}}}
	want := "MCP SERVERS THAT ARE AWAY\n  tracker: no such file x\n  start it again: rnix mcp reload --process 3 tracker\n"
	if text := detailText(&Theme{}, d, time.Now(), time.Now()); !strings.Contains(text, want) || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	d.Exit = &types.ExitStatus{}
	if text := detailText(&Theme{}, d, time.Now(), time.Now()); strings.Contains(text, "AWAY") { // a resume tries again
		t.Errorf("%q", text)
	}
}

func TestWhoLivesOnAfterASignalIsNamed(t *testing.T) {
	for want, r := range map[string]ipc.SignalResponse{
		"was told to end; it blocks SIGTERM and works on":         {Affected: 1, Blocked: true},
		"was told to end; it is told on_interrupt and works on":   {Affected: 1, Handled: true},
		"was told to end, with 1 below it; it blocks SIGTERM and": {Affected: 2, Blocked: true},
	} {
		b := benchIn(t, inList)
		b.src.answers["signal"] = func(any) (any, error) { return r, nil }
		done := sendSignal(b.Model, &row{Proc: ipc.Proc{ProcStatus: types.ProcStatus{PID: 3}}}, types.SIGTERM, false, "was told to end")().(doneMsg)
		if !strings.Contains(done.what, want) || done.err != nil {
			t.Errorf("%q, %v, want %q", done.what, done.err, want)
		}
	}
}
