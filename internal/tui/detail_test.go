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
