package kernel

import (
	"strings"
	"testing"
	"testing/synctest"

	"rnix/types"
)

func TestWhoLosesOwnershipEndsAtOnceAndSaysSo(t *testing.T) {
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSys(t)
			s.model = untilKilled
			pid := s.spawn()
			synctest.Wait()
			if paused {
				_ = s.Signal(pid, types.SIGPAUSE)
				synctest.Wait()
			}
			if err := s.Revoke(pid, "another host has it"); err != nil {
				t.Fatal(err)
			}
			e, _ := s.Wait(pid)
			if e.Code != types.ExitLostOwnership || !strings.Contains(e.Reason, "another host has it") {
				t.Errorf("paused %v: %+v", paused, e)
			}
			if err := s.Revoke(pid, "again"); types.CodeOf(err) != types.ErrNotFound {
				t.Errorf("who has ended: %v", err)
			}
		})
	}
}
