package daemon_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// A pipe in the place of any file of the data directory keeps nobody for ever: neither the daemon, which may refuse to start, nor who asks it.
func TestAPipeInThePlaceOfAFileHangsNobody(t *testing.T) { // R12
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "done"} })
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(p.PID)
	s.Stop()
	var files []string
	err := filepath.WalkDir(s.Data, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Base(path) != "daemon.log" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		name, _ := filepath.Rel(s.Data, path)
		t.Run(name, func(t *testing.T) {
			err := os.Rename(path, path+".kept")
			if err = errors.Join(err, unix.Mkfifo(path, 0o600)); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := errors.Join(os.RemoveAll(path), os.Rename(path+".kept", path)); err != nil {
					t.Fatal(err)
				}
			}()
			if err := s.TryStart(); err != nil {
				if types.CodeOf(err) == types.ErrTimeout {
					t.Fatal(err)
				}
				t.Log("it does not start: ", err)
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			ask := func(what string, err error) {
				if types.CodeOf(err) == types.ErrTimeout || ctx.Err() != nil {
					t.Errorf("%s hangs: %v", what, err)
				}
			}
			target := ipc.TargetRequest{Target: p.UUID.String()}
			_, err = ipc.Call(ctx, s.Client, ipc.Fsck, ipc.FsckRequest{})
			ask("fsck", err)
			_, err = ipc.Call(ctx, s.Client, ipc.Fsck, ipc.FsckRequest{Repair: true})
			ask("a repair", err)
			_, err = ipc.Call(ctx, s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
			ask("ps", err)
			_, err = ipc.Call(ctx, s.Client, ipc.ListSteps, ipc.StepsRequest{Target: target.Target})
			ask("steps", err)
			_, err = ipc.Call(ctx, s.Client, ipc.GetProcDetail, target)
			ask("status", err)
			_, err = ipc.Call(ctx, s.Client, ipc.Resume, ipc.ResumeRequest{Target: target.Target, NewInput: "more", Env: s.Env})
			ask("resume", err)
			s.Stop()
		})
	}
}
