package kernel

import (
	"strings"
	"testing"

	"rnix/types"
)

func TestMemoryOfTheDeadIsBounded(t *testing.T) {
	s := newSys(t)
	s.table.most = 1 << 20 // in which nothing runs yet
	result := strings.Repeat("x", 64<<10)
	s.model = finish(result)
	var pids []types.PID
	for range s.table.most/len(result) + 3 {
		pid := s.spawn()
		pids = append(pids, pid)
		if i, err := s.WaitInfo(t.Context(), pid); err != nil || len(i.Result) != len(result) {
			t.Fatalf("%d bytes, %v", len(i.Result), err)
		}
	}
	if _, err := s.Wait(pids[0]); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("the first is still there: %v", err)
	}
	if e, err := s.Wait(pids[len(pids)-1]); err != nil || e.Code != types.ExitOK {
		t.Errorf("the last is forgotten: %v %v", e, err)
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.table.weight > s.table.most {
		t.Errorf("%d bytes are kept", s.table.weight)
	}
}
