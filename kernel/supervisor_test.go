package kernel

import (
	"strings"
	"testing"

	"rnix/agent"
	"rnix/types"
)

// bodied is a specification whose body is no Supervisor.
type bodied struct{ body Body }

func (b bodied) Supervisor() (string, *agent.Agent, SpawnOpts, error) {
	return "keep running", nil, SpawnOpts{Body: b.body}, nil
}

func TestASupervisorWhoseBodyIsNoneIsRefusedBeforeItIsSpawned(t *testing.T) {
	s := newSys(t)
	pid, err := s.SpawnSupervisor(bodied{idler{}})
	if pid != 0 || types.CodeOf(err) != types.ErrInternal || !strings.Contains(err.Error(), "idler") {
		t.Errorf("PID %d, %v", pid, err)
	}
	if n := len(s.List()); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}
