package tui

import (
	"strings"
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// A paused agent looks and resumed as PID 7 in the same way whether or not the daemon was started anew since.
func TestPausedAgentGoesOnAlsoAfterARestart(t *testing.T) {
	for _, onDisk := range []bool{false, true} {
		p := ipc.Proc{ProcStatus: types.ProcStatus{PID: 1, UUID: uuid(1), PausedAt: begin.Add(-time.Minute), Intent: "sleeps"}, State: stateSuspended, Wait: "paused", WaitSince: begin.Add(-time.Minute), ElapsedMs: 5000}
		b := newBench(t, true, p)
		b.src.answers["resume"] = func(any) (any, error) {
			if onDisk {
				return ipc.ResumeResponse{Mode: "continue", SpawnResponse: ipc.SpawnResponse{PID: 7}}, nil
			}
			return ipc.ResumeResponse{Mode: "live", SpawnResponse: ipc.SpawnResponse{PID: 1}}, nil
		}
		b.now = begin.Add(time.Hour)
		b.sees("⏸ ")
		b.sees("paused")
		b.seesNot("1h00m") // its time stands still
		b.press("p")
		b.run()
		if !strings.Contains(b.src.last("resume"), `"tree":true`) { // with those below it
			t.Errorf("on disk %v: %q", onDisk, b.src.all())
		}
		b.sees("resumed as PID")
	}
}
