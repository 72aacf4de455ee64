package daemon_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// forker forks an agent, and its forks, at moments of which it knows nothing.
type forker struct {
	t     *testing.T
	s     *testenv.System
	rng   *rand.Rand
	model *maker
	all   []types.UUID // the origin first
	dirs  []string     // in which the forks work
	did   []string
}

// randomCalls is what an agent does in a turn: the same whenever it is asked.
func randomCalls(seed uint64, turns int) func(turn int) []llmtest.ToolCall {
	return func(turn int) (calls []llmtest.ToolCall) {
		rng := rand.New(rand.NewPCG(seed, uint64(turn)))
		if turn > turns {
			return nil
		}
		for n := range 1 + rng.IntN(3) {
			if rng.IntN(5) == 0 {
				name := fmt.Sprintf("kid-%d-%d", turn, n)
				calls = append(calls, llmtest.ToolCall{Name: "spawn", Input: fmt.Sprintf(`{"intent":%q,"name":%q,"background":true}`, name, name)})
			} else {
				calls = append(calls, makes(rng.IntN(4), turn, n))
			}
		}
		return calls
	}
}

// fork forks one of those that there are, from a step that it has, or from where it is.
func (f *forker) fork() {
	f.t.Helper()
	id := f.all[f.rng.IntN(len(f.all))]
	at, said := (*int)(nil), ""
	if f.rng.IntN(2) == 0 {
		steps := procsOf(f.t, f.s)[id].Step // one that runs is in the middle of the last of them
		at = new(f.rng.IntN(max(steps, 1)))
		said = fmt.Sprintf(" from step %d", *at)
	}
	paused := f.rng.IntN(4) == 0
	if paused {
		f.signal(id, types.SIGPAUSE)
	}
	made := forkOf(f.t, f.s, id, at)
	if paused && f.rng.IntN(2) == 0 { // else it is resumed in the end
		f.signal(id, types.SIGRESUME)
	}
	f.did = append(f.did, fmt.Sprintf("%s is a fork of %s%s (paused: %t), has %d steps, works in %s", made.UUID, id, said, paused, made.Step, made.WorkDir))
	f.all = append(f.all, made.UUID)
	f.dirs = append(f.dirs, made.WorkDir)
}

// crash kills the daemon and starts it again.
func (f *forker) crash() {
	f.t.Helper()
	f.did = append(f.did, "the daemon is killed")
	kill(f.t, f.s)
	f.s.Start()
	f.s.Settle()
}

// signal sends a signal to a process that may have ended.
func (f *forker) signal(id types.UUID, sig types.Signal) {
	_, err := ipc.Call(f.t.Context(), f.s.Client, ipc.Signal, ipc.SignalRequest{Target: id.String(), Signal: sig})
	if code := types.CodeOf(err); err != nil && code != types.ErrNotFound {
		f.t.Errorf("%v to %s: %v", sig, id, err)
	}
}

// finish lets go on what is suspended, until all have ended well.
func (f *forker) finish() {
	f.t.Helper()
	until(f.t, "all have ended", func() bool {
		left := 0
		for id, p := range procsOf(f.t, f.s) {
			if p.State == "suspended" {
				_, _ = ipc.Call(f.t.Context(), f.s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), Env: f.s.Env}) // it may go on already
			}
			if p.State != "dead" {
				left++
			}
		}
		return left == 0
	})
	for id, p := range procsOf(f.t, f.s) {
		if p.Exit == nil || p.Exit.Code != types.ExitOK {
			f.t.Errorf("%s (%s) has ended with %v", id, p.Intent, p.Exit)
		}
	}
}

// Whenever a fork is made, of whatever: each file that its conversation says was made is in its directory as the conversation says, and it is
// told which children are not its own.
func TestForksAtAnyMomentHaveWhatTheirConversationSays(t *testing.T) {
	rounds := soak.Number(t, "RNIX_FORKS_ROUNDS", "origins", 2, 60)
	forks := soak.Number(t, "RNIX_FORKS_FORKS", "forks of each", 3, 20)
	seed := uint64(soak.Number(t, "RNIX_FORKS_SEED", "the seed", 1+int(rand.Int32()), 1+int(rand.Int32())))
	for n := range rounds {
		where := []string{"plain", "git", "tree"}[n%3]
		t.Run(fmt.Sprintf("%d, %s", n, where), func(t *testing.T) {
			f := &forker{t: t, rng: rand.New(rand.NewPCG(seed, uint64(n)))}
			f.model = &maker{asked: map[string]int{}, told: map[string]string{}, calls: randomCalls(f.rng.Uint64(), 6)}
			_, url := llmtest.NewAPI(t, f.model.reply)
			f.s = testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
			req := places[where](t, f.s)
			req.Intent, req.Model = "make files", "fake"
			p := f.s.Spawn(req)
			f.all = append(f.all, p.UUID)
			for i := range forks {
				<-time.After(time.Duration(f.rng.IntN(150)) * time.Millisecond)
				if i%6 == 3 {
					f.crash()
				}
				f.fork()
			}
			f.finish()
			f.model.mu.Lock()
			defer f.model.mu.Unlock()
			for _, l := range f.model.lies {
				t.Errorf("%+v", l)
			}
			for _, dir := range f.dirs {
				if f.model.asked[dir] == 0 {
					t.Errorf("the fork in %s was never asked: %v", dir, f.model.asked)
				}
			}
			if t.Failed() {
				t.Logf("RNIX_FORKS_SEED=%d, origin %d, %s:\n\t%s", seed, n, p.UUID, strings.Join(f.did, "\n\t"))
			}
		})
	}
}
