package daemon_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// seed writes n histories of one step each, and as many that were running when their daemon was
// killed.
func seed(t *testing.T, dir string, ended, running int) {
	t.Helper()
	j, err := store.Open(durable.OS, dir, step.Unsynced)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for n := range ended + running {
		id, pid := types.NewUUID(), types.PID(n+1)
		lease, err := j.Acquire(ctx, id, "test")
		if err != nil {
			t.Fatal(err)
		}
		w := step.NewWriter(j, id, lease)
		info := step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id, PID: pid, Intent: fmt.Sprint("history ", n), CreatedAt: time.Now(), UpdatedAt: time.Now(), Step: 1}, State: types.StateRunning}
		errs := []error{
			w.Marker(&step.Marker{Name: step.MarkerSpawn, PID: pid, Text: info.Intent}),
			w.Message(&rnixctx.Message{Role: rnixctx.RoleUser, Content: info.Intent}),
			w.Step(&step.StepRecord{StepNumber: 1, MessageCount: 1, Action: "text", Timestamp: time.Now()}),
		}
		if n < ended {
			info.State, info.Exit, info.DeadAt = types.StateDead, &types.ExitStatus{Reason: types.ReasonCompleted}, time.Now()
			errs = append(errs, w.Marker(&step.Marker{Name: step.MarkerExit, PID: pid, Exit: info.Exit}))
		}
		for _, err := range append(errs, w.Close(ctx), j.Index().Save(&info)) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// silent is the address of a provider that takes connections and never says a word. called reports
// whether there was one since it was asked last.
func silent(t *testing.T) (url string, called func() bool) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String(), func() bool {
		_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Millisecond))
		c, err := l.Accept()
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
}

func TestTenThousandHistoriesAndADeadProviderDelayNobody(t *testing.T) {
	const cut = 20
	stored := soak.Pick(t, "histories", 2_000, 10_000) // all ten thousand in a soak: most of the time goes into writing them
	url, called := silent(t)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.Stop()
	seed(t, s.Data, stored, cut)
	for round, name := range []string{"after a stop", "after a crash"} {
		if round > 0 { // the index is rebuilt
			s.Stop()
			for called() { // again, until it was killed
			}
			if err := os.Remove(filepath.Join(s.Data, step.IndexFile)); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		s.Start()
		l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
		if err != nil || len(l.Procs) != stored+cut+round {
			t.Fatalf("%s: %d of %d processes, %v", name, len(l.Procs), stored+cut+round, err)
		}
		project := ipc.ProjectRequest{Cwd: s.Work, Env: s.Env}
		if pr, err := ipc.Call(t.Context(), s.Client, ipc.Providers, ipc.ProvidersRequest{ProjectRequest: project}); err != nil || pr.Chosen != "anthropic" {
			t.Errorf("%s: %+v %v", name, pr, err)
		}
		if took, asked := time.Since(began), called(); took > time.Minute || asked {
			t.Errorf("%s: it took %v to connect and list; the provider was asked: %v", name, took, asked)
		}
		p := s.Spawn(ipc.SpawnRequest{Intent: "think", ProcSpec: types.ProcSpec{Model: "fake"}})
		if p.PID <= types.PID(stored+cut) {
			t.Errorf("%s: PID %d is used a second time", name, p.PID)
		}
		until(t, "the provider is asked", called)
		if d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()}); err != nil || d.State != "running" {
			t.Errorf("%s: %+v %v", name, d, err)
		}
		signal(t, s, p.PID, types.SIGKILL)
		s.Wait(p.PID)
	}
}
