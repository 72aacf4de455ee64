package daemon_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

var watchSeed = flag.Uint64("watch.seed", 0, "seed of the random scenario that is watched; 0 = another each time")

// mirror folds the frames of watch_procs as every client does.
type mirror struct {
	t    *testing.T
	done chan struct{}

	mu   sync.Mutex
	now  sync.Cond
	rows map[types.UUID]ipc.Proc // +checklocks:mu
	// +checklocks:mu
	last   ipc.ProcTable // without its rows
	frames int           // +checklocks:mu
	missed int           // +checklocks:mu
	// +checklocks:mu
	at  map[string]string // what was there at a seq and a time
	err error             // +checklocks:mu
}

// watch opens a mirror, which ends with ctx.
func watch(ctx context.Context, t *testing.T, c *ipc.Client, req ipc.WatchRequest) *mirror {
	t.Helper()
	feed, err := ipc.Open(ctx, c, ipc.WatchProcs, req)
	if err != nil {
		t.Fatal(err)
	}
	m := &mirror{t: t, done: make(chan struct{}), rows: map[types.UUID]ipc.Proc{}, at: map[string]string{}}
	m.now.L = &m.mu
	go func() { // ends with the stream
		defer close(m.done)
		defer feed.Close()
		for f, err := range feed.All() {
			m.fold(f, err)
		}
	}()
	return m
}

func (m *mirror) fold(f ipc.Frame[ipc.ProcTable], err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.now.Broadcast()
	switch p := &f.Data; {
	case err != nil:
		m.err = err
	case f.Missed != nil:
		m.missed++
	default:
		if m.frames++; m.frames == 1 && !p.Whole {
			m.t.Error("the first frame is not whole")
		}
		if p.Seq < m.last.Seq || p.Seq != f.Seq && f.Seq != 0 {
			m.t.Errorf("a frame of %d, sent as %d, comes after one of %d", p.Seq, f.Seq, m.last.Seq)
		}
		if p.Whole {
			clear(m.rows)
		}
		for _, row := range p.Procs {
			m.rows[row.UUID] = row
		}
		for _, id := range p.Gone {
			delete(m.rows, id)
		}
		m.last = *p
		m.last.Procs, m.last.Gone = nil, nil
		m.at[fmt.Sprint(p.Seq, p.At.UnixNano())] = same(m.rows, p.Hidden, p.Totals)
	}
}

// told returns what was there at each seq and time, and how often frames were missed.
func (m *mirror) told() (at map[string]string, missed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at, m.missed
}

// wait waits until what is mirrored is as wanted. Nothing is folded while ok is called.
func (m *mirror) wait(what string, ok func(rows map[types.UUID]ipc.Proc, last *ipc.ProcTable) bool) {
	m.t.Helper()
	timeout := time.AfterFunc(time.Minute, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.err == nil {
			m.err = fmt.Errorf("it has not come to this within a minute: %s; %+v", what, m.last)
		}
		m.now.Broadcast()
	})
	defer timeout.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	for !ok(m.rows, &m.last) {
		if m.err != nil {
			m.t.Fatal(m.err)
		}
		m.now.Wait()
	}
}

// same is a table as a text in which only what goes by itself is missing: how long somebody lives who runs, and what
// programs take of memory.
func same(rows map[types.UUID]ipc.Proc, hidden int, sum ipc.Totals) string {
	var lines []string
	for _, p := range rows {
		if p.State == "running" || p.State == "created" {
			p.ElapsedMs = 0
		}
		p.Children = slices.Clone(p.Children)
		for i := range p.Children {
			p.Children[i].RSSBytes = 0
		}
		text, _ := json.Marshal(&p)
		lines = append(lines, string(text))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%s\n%d hidden %+v", strings.Join(lines, "\n"), hidden, sum)
}

// differ names the first difference of two such texts.
func differ(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + "\n" + y[i]
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// Whoever looks sees the same: two watchers at each place where both were told, and watchers and ps whenever nothing happens.
func TestAllWhoLookSeeTheSame(t *testing.T) {
	soak.Turn(t)
	seed := *watchSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-watch.seed=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	_, url := llmtest.NewAPI(t, scenario)
	s := testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	ctx, cancel := context.WithCancel(t.Context())
	requests := []ipc.WatchRequest{{}, {EveryMs: 33}, {EveryMs: 700}, {All: true}, {All: true, EveryMs: 50}, {All: true, Limit: 3}, {All: true, Limit: 3, EveryMs: 40}}
	var mirrors []*mirror
	for _, req := range requests {
		mirrors = append(mirrors, watch(ctx, t, s.Client, req))
	}
	x := &walk{t: t, s: s, rng: rng}
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for range rounds {
		for range 5 {
			x.do()
		}
		quiet(t, s, requests, mirrors)
	}
	cancel()
	pairs := comparePaces(t, requests, mirrors)
	if t.Logf("%d frames were compared", pairs); pairs < rounds {
		t.Error("that is no comparison")
	}
}

// comparePaces compares what watchers that have ended were told of the same moment, and returns how many moments there were.
func comparePaces(t *testing.T, requests []ipc.WatchRequest, mirrors []*mirror) (pairs int) {
	t.Helper()
	for i, m := range mirrors {
		<-m.done
		mine, missed := m.told()
		for j, o := range mirrors[:i] {
			if requests[i].All != requests[j].All || requests[i].Limit != requests[j].Limit {
				continue
			}
			its, _ := o.told()
			for at, text := range mine {
				if other, both := its[at]; both {
					if pairs++; other != text {
						t.Errorf("at %s %+v and %+v were told otherwise:\n%s", at, requests[i], requests[j], differ(text, other))
					}
				}
			}
		}
		if missed > 0 {
			t.Logf("%+v was passed over %d times", requests[i], missed)
		}
	}
	return pairs
}

// quiet waits until nothing happens and compares what is seen then.
func quiet(t *testing.T, s *testenv.System, requests []ipc.WatchRequest, mirrors []*mirror) {
	t.Helper()
	for i, m := range mirrors {
		m.wait("what ps says", func(mirrored map[types.UUID]ipc.Proc, last *ipc.ProcTable) bool {
			l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: requests[i].All, Limit: requests[i].Limit})
			if err != nil {
				t.Error(err)
				return true
			}
			rows := map[types.UUID]ipc.Proc{}
			for _, p := range l.Procs {
				rows[p.UUID] = p
			}
			if l.Seq != last.Seq { // the next frame is at most a second away
				return false
			}
			told, asked := same(mirrored, last.Hidden, last.Totals), same(rows, l.Hidden, l.Totals)
			if told != asked {
				t.Logf("not yet: %s", differ(told, asked))
			}
			return told == asked
		})
	}
}

// scenario is a model that does what the intent says.
func scenario(r llmtest.Request) llmtest.Reply {
	_, told := r.LastResult()
	spend := &llmtest.Usage{Input: 1000, Output: 10}
	switch who := r.Messages[0].Text; {
	case strings.HasPrefix(who, "hang") && told:
		return llmtest.Reply{Hang: true}
	case strings.HasPrefix(who, "family") && !told:
		reply := tool("spawn", `{"intent":"work"}`)
		reply.ToolCalls = append(reply.ToolCalls, tool("spawn", `{"intent":"hang"}`).ToolCalls...)
		reply.Usage = spend
		return reply
	case told:
		return llmtest.Reply{Text: "done", Usage: spend}
	}
	reply := tool("shell", `{"command":"echo x >>f"}`)
	reply.Usage = spend
	return reply
}

// walk does things at random.
type walk struct {
	t     *testing.T
	s     *testenv.System
	rng   *rand.Rand
	procs []types.UUID
}

// do does one thing. What is refused, because the process has ended, is nothing.
func (x *walk) do() {
	s := x.s
	if len(x.procs) == 0 || x.rng.IntN(3) == 0 {
		budget := 100_000
		intent := []string{"work", "hang", "family"}[x.rng.IntN(3)]
		x.procs = append(x.procs, s.Spawn(ipc.SpawnRequest{Intent: intent, ProcSpec: types.ProcSpec{Model: "fake", ContextBudget: &budget, Name: fmt.Sprint("p", len(x.procs))}}).UUID)
		return
	}
	target := x.procs[x.rng.IntN(len(x.procs))].String()
	send := func(sig types.Signal) {
		_, _ = ipc.Call(x.t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: target, Signal: sig})
	}
	tree := func(sig types.Signal) {
		_, _ = ipc.Call(x.t.Context(), s.Client, ipc.SignalTree, ipc.SignalRequest{Target: target, Signal: sig})
	}
	switch x.rng.IntN(10) {
	case 0, 1:
		send(types.SIGPAUSE)
	case 2, 3:
		send(types.SIGRESUME)
	case 4:
		tree(types.SIGPAUSE)
	case 5:
		tree(types.SIGRESUME)
	case 6:
		tree(types.SIGKILL)
	case 7:
		_, _ = ipc.Call(x.t.Context(), s.Client, ipc.AddBudget, ipc.AddBudgetRequest{Target: target, Tokens: 1000})
	case 8:
		from := 1
		if r, err := ipc.Call(x.t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: target, Fork: true, FromStep: &from, Env: s.Env}); err == nil {
			x.procs = append(x.procs, r.UUID)
		}
	case 9:
		_, _ = ipc.Call(x.t.Context(), s.Client, ipc.JoinGroup, ipc.GroupRequest{Target: target, Group: "herd"})
	}
}

// A process that runs is no reason for a frame, however long it does: nothing happens, and nothing comes.
func TestWhoWatchesWhatStandsStillIsLeftAlone(t *testing.T) {
	_, url := llmtest.NewAPI(t, hangs)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake"}})
	ctx, cancel := context.WithCancel(t.Context())
	m := watch(ctx, t, s.Client, ipc.WatchRequest{EveryMs: 33})
	m.wait("the model is asked", func(rows map[types.UUID]ipc.Proc, _ *ipc.ProcTable) bool {
		d := rows[p.UUID].Doing
		return d != nil && d.Tool == "" && d.Step == 1 && d.Calls == 1
	})
	count := func() int { m.mu.Lock(); defer m.mu.Unlock(); return m.frames }
	began := count()
	for frames, end := -1, time.Now().Add(time.Minute); count() != frames; { // until three seconds bring none: it is told how far the log has come
		if time.Now().After(end) {
			t.Fatalf("%d frames came while nothing happened", count()-began)
		}
		frames = count()
		<-time.After(3 * time.Second)
	}
	signal(t, s, p.PID, types.SIGPAUSE)
	m.wait("it is paused", func(rows map[types.UUID]ipc.Proc, _ *ipc.ProcTable) bool {
		r := rows[p.UUID]
		return r.State == "suspended" && r.Wait == "paused" && !r.PausedAt.IsZero()
	})
	signal(t, s, p.PID, types.SIGKILL)
	m.wait("it is gone", func(rows map[types.UUID]ipc.Proc, last *ipc.ProcTable) bool {
		_, there := rows[p.UUID]
		return !there && last.Totals.Running == 0
	})
	cancel()
	<-m.done
}

// What a command of an agent takes of memory is seen, with the tool that has started it; with its descendants, soon.
func TestToolInHandAndItsProgramsAreSeen(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); told {
			return llmtest.Reply{Text: "done"}
		}
		return tool("shell", `{"command":"sh -c 'sleep 60; true'; true"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	ctx, cancel := context.WithCancel(t.Context())
	m := watch(ctx, t, s.Client, ipc.WatchRequest{})
	p := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake"}})
	m.wait("it runs", func(rows map[types.UUID]ipc.Proc, _ *ipc.ProcTable) bool {
		r := rows[p.UUID]
		return r.Doing != nil && r.Doing.Tool == "shell" && r.Doing.Path == "/dev/shell" && r.Doing.Calls == 1 && !r.Doing.Since.IsZero() &&
			strings.HasPrefix(r.Wait, "shell sh -c") && !strings.Contains(r.Wait, " for ") && r.WaitSince.Equal(r.Doing.Since)
	})
	m.wait("its program", func(rows map[types.UUID]ipc.Proc, _ *ipc.ProcTable) bool {
		r := rows[p.UUID]
		return len(r.Children) == 1 && r.Children[0].RSSBytes > 1<<20
	})
	signal(t, s, p.PID, types.SIGKILL)
	cancel()
	<-m.done
}

// A command of an agent may watch as it may list.
func TestAgentMayWatch(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	s, _ := insider(t, hangs)
	sock, _ := filepath.Glob(filepath.Join(s.Dir, "rnix", "*.sock"))
	s.Write("ask.sh", fmt.Sprintf("curl -sN -m 2 --unix-socket %s -d '{}' http://x/v1/watch_procs\ntrue\n", sock[0]))
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	if !strings.Contains(w.Result, `"whole":true`) || !strings.Contains(w.Result, "event: procs") {
		t.Errorf("%+v", w)
	}
}

func TestWatchRefusesWhatItCannotDo(t *testing.T) {
	s := testenv.New(t)
	for _, req := range []ipc.WatchRequest{{EveryMs: 32}, {EveryMs: 60001}, {EveryMs: -1}, {Limit: -1}} {
		if _, err := ipc.Open(t.Context(), s.Client, ipc.WatchProcs, req); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", req, err)
		}
	}
}
