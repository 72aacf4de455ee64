package tui

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// What ps lists, what top prints and what the screens fold is the same at the same position in the event log.
func TestPsAndTheScreensHaveTheSameNumbers(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(r.LastUser(), "hang") {
			return llmtest.Reply{Hang: true}
		}
		return llmtest.Reply{Text: "done", Usage: &llmtest.Usage{Input: 1000 * len(r.LastUser()), Output: 7, CacheRead: 3}}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	parent := s.Spawn(ipc.SpawnRequest{Intent: "hang", ProcSpec: types.ProcSpec{Name: "parent"}})
	for i := range 3 {
		p := s.Spawn(ipc.SpawnRequest{Intent: strings.Repeat("work ", i+1), ProcSpec: types.ProcSpec{Name: fmt.Sprint("worker", i), Model: "claude-sonnet-4-5"}, Parent: parent.PID.String()})
		s.Wait(p.PID)
	}
	paused := s.Spawn(ipc.SpawnRequest{Intent: "hang too"})
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: paused.PID.String(), Signal: types.SIGPAUSE}); err != nil {
		t.Fatal(err)
	}
	for t.Context().Err() == nil {
		before, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
		if err != nil {
			t.Fatal(err)
		}
		table, err := First(t.Context(), NewSource(s.Client), true)
		if err != nil {
			t.Fatal(err)
		}
		after, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
		if err != nil {
			t.Fatal(err)
		}
		if before.Seq != after.Seq || table.Seq != before.Seq || len(before.Procs) != 5 {
			continue // something has happened meanwhile
		}
		if diff := cmp.Diff(numbers(before.Procs), numbers(table.Procs)); diff != "" {
			t.Errorf("ps and the table of the screens at %d:\n%s", table.Seq, diff)
		}
		if before.Totals != table.Totals {
			t.Errorf("totals of ps %+v, of the screens %+v", before.Totals, table.Totals)
		}
		var out bytes.Buffer
		if err := Print(t.Context(), &out, NewSource(s.Client), &Theme{Bare: true}, true, 0, 1); err != nil {
			t.Fatal(err)
		}
		for _, p := range before.Procs {
			if !hasRow(out.String(), p.PID.String(), number(p.TokensUsed)) {
				t.Errorf("top has no row of PID %d with %s tokens:\n%s", p.PID, number(p.TokensUsed), out.String())
			}
		}
		return
	}
}

// numbers are what people compare, by PID.
func numbers(procs []ipc.Proc) map[types.PID]string {
	out := map[types.PID]string{}
	for _, p := range procs {
		out[p.PID] = fmt.Sprintln(p.UUID, p.PPID, p.State, p.Wait, p.Step, p.TokensUsed, p.CostUSD, p.Exit)
	}
	return out
}

// hasRow reports whether a line begins with a PID and has a field.
func hasRow(text, pid, field string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(line)
		if len(f) > 0 && f[0] == pid {
			for _, x := range f {
				if strings.TrimPrefix(x, "~") == field {
					return true
				}
			}
		}
	}
	return false
}
