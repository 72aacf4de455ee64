package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// With too little room on the disk nothing starts, and what goes on by itself after a kill waits, with nothing asked and nothing lost,
// until there is room.
func TestAgentsWaitForRoomOnTheDisk(t *testing.T) {
	var asks atomic.Int32
	free := make(chan struct{})
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); told {
			return llmtest.Reply{Text: "done"}
		}
		if asks.Add(1) == 1 {
			<-free
		}
		return tool("shell", `{"command":"echo x >>effects"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	until(t, "it is asked", func() bool { return asks.Load() == 1 })
	kill(t, s)
	close(free)
	configure(t, s, "config.yaml", "disk: {min_free: 1024TiB}\n")
	s.Start()
	s.Settle()
	defer func() {
		if t.Failed() {
			t.Logf("asked %d times: %+v", asks.Load(), procsOf(t, s)[p.UUID])
		}
	}()
	until(t, "it waits for room", func() bool { return strings.Contains(procsOf(t, s)[p.UUID].Wait, "room on the disk") })
	_, err := s.TrySpawn(ipc.SpawnRequest{Intent: "more", ProcSpec: types.ProcSpec{Model: "fake"}})
	if types.CodeOf(err) != types.ErrExhausted || !strings.Contains(err.Error(), "disk.min_free") || !strings.Contains(err.Error(), "rnix du") {
		t.Errorf("a new one: %v", err)
	}
	st, err := ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{})
	if err != nil || !strings.Contains(st.Room, s.Data) {
		t.Errorf("%+v %v", st.Room, err)
	}
	if n := asks.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	configure(t, s, "config.yaml", "disk: {min_free: 0}\n")
	until(t, "it has ended", func() bool { return procsOf(t, s)[p.UUID].State == "dead" })
	q := procsOf(t, s)[p.UUID]
	if r := s.Wait(q.PID); r.Exit.Code != 0 || r.Result != "done" {
		t.Errorf("%+v", r)
	}
	if b, err := os.ReadFile(filepath.Join(s.Work, "effects")); err != nil || string(b) != "x\n" {
		t.Errorf("%q %v", b, err)
	}
	sound(t, s)
}
