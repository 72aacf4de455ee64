package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// snapshotsOf counts the snapshots that the records of a history name: before calls, and at the end of steps.
func snapshotsOf(t *testing.T, s *testenv.System, id types.UUID) (before, after int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(step.Dir(s.Data, id), step.StepsFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var r step.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case r.Intent != nil && r.Intent.Before != nil:
			before++
		case r.Step != nil && r.Step.Files != nil:
			after++
		}
	}
	return before, after
}

// Agents take snapshots, several within a step, while others that worked in the same directories are deleted and what they kept is
// swept: nothing that a record of a living one names is lost.
func TestCollectionBesideAgentsLosesNoSnapshotOfALivingOne(t *testing.T) { // R11
	soak.Turn(t)
	const steps = 8
	var waiting atomic.Int32 // agents that have done their steps and live
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		name, n := r.Messages[0].Text, 0
		for _, m := range r.Messages {
			if m.Role == "assistant" {
				n++
			}
		}
		if !strings.HasPrefix(name, "work") && n == 1 {
			return llmtest.Reply{Text: "done"}
		}
		if n == steps {
			waiting.Add(1)
			return llmtest.Reply{Hang: true}
		}
		out := llmtest.Reply{Delay: 50 * time.Millisecond}
		for i, in := range []string{fmt.Sprintf(`{"path":"%s","content":"%d END"}`, name, n), fmt.Sprintf(`{"command":"echo %d > %s.more"}`, n, name), fmt.Sprintf(`{"path":"%s","old":"END","new":"more"}`, name)} {
			out.ToolCalls = append(out.ToolCalls, tool([]string{"write_file", "shell", "edit_file"}[i], in).ToolCalls...)
		}
		return out
	})
	s := testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_CONCURRENCY=16", "RNIX_GC_MODE=delete", "RNIX_GC_MAX_ENTRIES=1")
	repo := filepath.Join(s.Work, "repo")
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dirs := []string{s.Work + "/plain", repo}
	s.Write("plain/text", "text")
	short := func(n int) {
		p := s.Spawn(ipc.SpawnRequest{Intent: fmt.Sprint("short-", n), ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: dirs[n%2]})
		s.Wait(p.PID)
	}
	for n := range 8 {
		short(n)
	}
	var living []ipc.SpawnResponse
	for n := range 4 {
		living = append(living, s.Spawn(ipc.SpawnRequest{Intent: fmt.Sprint("work-", n), ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: dirs[n%2]}))
	}
	gone, freed := 0, int64(0)
	for n, late := 8, time.After(2*time.Minute); ; n++ {
		r := collect(t, s, ipc.GCRequest{})
		gone, freed = gone+len(r.Deleted), freed+r.Snapshots
		if int(waiting.Load()) >= len(living) && gone > 4 {
			break
		}
		select {
		case <-late:
			t.Fatalf("%d were deleted, %+v", gone, procsOf(t, s))
		default:
		}
		if n < 40 {
			short(n)
		}
	}
	sound(t, s)
	for _, p := range living {
		if before, after := snapshotsOf(t, s, p.UUID); before < steps-1 || after < steps-1 {
			t.Errorf("PID %d has %d snapshots before calls and %d after steps: this test is about nothing", p.PID, before, after)
		}
	}
	if t.Logf("%d were deleted, %d bytes of snapshots freed", gone, freed); freed == 0 {
		t.Error("nothing was swept")
	}
}
