package daemon_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// keeper knows what each history must still have.
type keeper struct {
	t *testing.T
	s *testenv.System

	mu sync.Mutex
	// +checklocks:mu
	steps map[types.UUID]int // that were seen in it
	// +checklocks:mu
	done map[string]int // what has succeeded
	// +checklocks:mu
	names map[types.UUID][]string // what each may be called: the last name that was acknowledged, and those after it that were not
	// +checklocks:mu
	naming map[types.UUID]bool // it gets a name at this moment
	// +checklocks:mu
	given int
}

// rename gives a history a name that no other one has, unless somebody does so just now.
func (k *keeper) rename(id types.UUID) {
	k.mu.Lock()
	if k.naming[id] {
		k.mu.Unlock()
		return
	}
	k.naming[id] = true
	k.given++
	name := fmt.Sprintf("name %d", k.given)
	k.mu.Unlock()
	_, err := ipc.Call(k.t.Context(), k.s.Client, ipc.Rename, ipc.RenameRequest{Target: id.String(), Name: name})
	given := k.took("rename", err)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.naming[id] = false
	if given {
		k.names[id] = nil
	}
	if given || len(k.names[id]) > 0 {
		k.names[id] = append(k.names[id], name)
	}
}

// pick returns one of the histories.
func (k *keeper) pick(r *rand.Rand) types.UUID {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := r.IntN(len(k.steps))
	for id := range k.steps {
		if n--; n < 0 {
			return id
		}
	}
	return types.UUID{}
}

// few reports whether there may be more histories: each check reads all.
func (k *keeper) few() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.steps) < 30
}

// saw notes how many steps a history has.
func (k *keeper) saw(id types.UUID, steps int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.steps[id] = max(k.steps[id], steps)
}

// age makes all that has ended a hundred days old. No daemon runs.
func (k *keeper) age() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.steps {
		// A daemon that was killed may have written the records of a history, and not yet what they come to.
		if _, err := os.Stat(filepath.Join(step.Dir(k.s.Data, id), step.InfoFile)); err == nil {
			rewrite(k.t, k.s, id, func(p *step.ProcInfo) {
				if !p.DeadAt.IsZero() {
					p.DeadAt = time.Now().AddDate(0, 0, -100)
				}
			})
		}
	}
}

// took judges what came of an operation: it was done, or refused because the history is elsewhere or in use.
func (k *keeper) took(what string, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch types.CodeOf(err) {
	case "":
		k.done[what]++
		return true
	case types.ErrConflict, types.ErrNotFound:
	case types.ErrDisconnected, types.ErrUnavailable: // the daemon was killed
	default:
		k.t.Errorf("%s: %v", what, err)
	}
	return false
}

// act does one thing of many to the histories.
func (k *keeper) act(r *rand.Rand) {
	ctx, c := k.t.Context(), k.s.Client
	id := k.pick(r)
	switch target := id.String(); r.IntN(8) {
	case 0:
		_, err := ipc.Call(ctx, c, ipc.GC, ipc.GCRequest{})
		k.took("gc", err)
	case 1:
		_, err := ipc.Call(ctx, c, ipc.Fsck, ipc.FsckRequest{Repair: true})
		k.took("fsck --repair", err)
	case 2:
		_, err := ipc.Call(ctx, c, ipc.Fsck, ipc.FsckRequest{})
		k.took("fsck", err)
	case 3, 4:
		_, err := ipc.Call(ctx, c, ipc.Unarchive, ipc.UnarchiveRequest{Target: target})
		k.took("unarchive", err)
	case 5:
		k.rename(id)
	default:
		req := ipc.ResumeRequest{Target: target, NewInput: "once more", Env: k.s.Env}
		what := "resume"
		if req.Fork = r.IntN(2) == 0 && k.few(); req.Fork {
			what, req.Cwd = "fork", k.s.Work
		}
		p, err := ipc.Call(ctx, c, ipc.Resume, req)
		if !k.took(what, err) {
			return
		}
		if w, err := ipc.Call(ctx, c, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()}); err == nil {
			k.saw(p.UUID, w.Steps)
		}
	}
}

// TestNoHistoryIsLostHoweverItsKeepingIsInterleaved collects, checks, repairs, puts back, renames, resumes and copies histories, all beside each other, and kills the
// daemon in between. Each history is there at the end, with at least the steps that were seen in it and the name that it got last,
// and none is empty.
func TestNoHistoryIsLostHoweverItsKeepingIsInterleaved(t *testing.T) {
	s := testenv.New(t)
	k := &keeper{t: t, s: s, steps: map[types.UUID]int{}, done: map[string]int{}, names: map[types.UUID][]string{}, naming: map[types.UUID]bool{}}
	for range 6 {
		p := s.Spawn(ipc.SpawnRequest{Intent: "old", ProcSpec: types.ProcSpec{Provider: "offline"}})
		k.saw(p.UUID, s.Wait(p.PID).Steps)
	}
	s.Stop()
	k.age()
	s.Start()
	s.Settle()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range soak.Number(t, "RNIX_INTERLEAVED_ROUNDS", "rounds of keeping histories, each with a kill", 3, 100) {
		var all sync.WaitGroup
		moment, over := 10+rand.New(rand.NewPCG(seed, uint64(round))).IntN(50), make(chan struct{}) // after how many acts it is killed
		begun := make(chan struct{})
		for who := range 6 {
			r := rand.New(rand.NewPCG(seed, uint64(round*6+who)))
			all.Go(func() { // ends with its calls; waited for below
				for {
					select {
					case <-over:
						return
					case begun <- struct{}{}:
						k.act(r)
					}
				}
			})
		}
		for range moment {
			<-begun
		}
		s.Kill()
		close(over)
		all.Wait()
		k.age()
		s.Start()
		s.Settle()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t.Logf("done: %v, %d histories", k.done, len(k.steps))
	for id, steps := range k.steps {
		if st, err := os.Stat(filepath.Join(s.Data, "steps", id.String(), step.StepsFile)); err != nil {
			if _, err := ipc.Call(t.Context(), s.Client, ipc.Unarchive, ipc.UnarchiveRequest{Target: id.String()}); err != nil {
				t.Errorf("%s cannot be put back: %v", id, err)
				continue
			}
		} else if st.Size() == 0 {
			t.Errorf("%s is empty", id)
		}
		l, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: id.String()})
		if err != nil || len(l.Steps) < steps {
			t.Errorf("%s has %d steps and had %d: %v", id, len(l.Steps), steps, err)
		}
		d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: id.String()})
		if may := k.names[id]; err != nil || len(may) > 0 && !slices.Contains(may, d.Name) {
			t.Errorf("%s is called %q, and was given %q: %v", id, d.Name, may, err)
		}
	}
	dirs, err := os.ReadDir(filepath.Join(s.Data, "steps"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		var id types.UUID
		if d.IsDir() && id.UnmarshalText([]byte(d.Name())) == nil {
			if st, err := os.Stat(filepath.Join(s.Data, "steps", d.Name(), step.StepsFile)); err != nil || st.Size() == 0 {
				files, _ := os.ReadDir(filepath.Join(s.Data, "steps", d.Name()))
				if _, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: id.String()}); types.CodeOf(err) == types.ErrNotFound && neverBegun(files) {
					continue // the kill has cut off a fork before its first record: it is nowhere to be seen
				}
				t.Errorf("%s is a ghost: %v, with %v", id, err, files)
			}
		}
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.Fsck, ipc.FsckRequest{})
	if err != nil || r.Errors != 0 {
		t.Errorf("%+v, %v", r.Findings, err)
	}
}

// neverBegun reports whether a directory has nothing but an empty record: st.Size() is 0 there, or there is none.
func neverBegun(files []os.DirEntry) bool {
	return len(files) == 0 || len(files) == 1 && files[0].Name() == step.StepsFile
}
