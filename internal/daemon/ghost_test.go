package daemon_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// TestRepairBesideACollectionMakesNoGhosts archives histories while all of them are repaired, again and again, and puts them back.
func TestRepairBesideACollectionMakesNoGhosts(t *testing.T) { // R2
	s := testenv.New(t)
	var ids []types.UUID
	for range soak.Number(t, "RNIX_GHOST_HISTORIES", "histories", 20, 600) {
		p := s.Spawn(ipc.SpawnRequest{Intent: "old", ProcSpec: types.ProcSpec{Provider: "offline"}})
		s.Wait(p.PID)
		ids = append(ids, p.UUID)
	}
	age(t, s, ids...)
	for _, id := range ids { // something for each that is mended
		write(t, filepath.Join(s.Data, "steps", id.String(), step.EventsFile), "not a line\n")
	}
	ghost := types.NewUUID() // as an earlier version has left it
	write(t, filepath.Join(s.Data, "steps", ghost.String(), step.StepsFile), "")
	var all sync.WaitGroup
	all.Go(func() { // ends with its calls; waited for below
		for range 3 {
			if _, err := ipc.Call(t.Context(), s.Client, ipc.Fsck, ipc.FsckRequest{Repair: true}); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() { // the same
		for range 3 {
			if _, err := ipc.Call(t.Context(), s.Client, ipc.GC, ipc.GCRequest{}); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	collect(t, s, ipc.GCRequest{})
	for _, id := range append(ids, ghost) {
		if st, err := os.Stat(filepath.Join(s.Data, "steps", id.String(), step.StepsFile)); err == nil && st.Size() == 0 {
			t.Errorf("%s is an empty ghost", id)
		}
	}
	for _, id := range ids {
		if _, err := os.Stat(filepath.Join(s.Data, "steps", id.String())); err == nil {
			continue // it was being repaired, and is archived later
		}
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Unarchive, ipc.UnarchiveRequest{Target: id.String()}); err != nil {
			t.Errorf("%s cannot be put back: %v", id, err)
		}
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.Fsck, ipc.FsckRequest{})
	if err != nil || r.Histories != len(ids) || r.Errors != 0 {
		t.Errorf("%d histories of %d, %+v, %v", r.Histories, len(ids), r.Findings, err)
	}
}
