package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// maker is the model of agents that make files, several in a step. Whenever it is asked, it compares what the conversation says
// with what is there.
type maker struct {
	calls func(turn int) []llmtest.ToolCall // nil = it is done
	hang  atomic.Bool                       // it does not answer

	mu sync.Mutex
	// +checklocks:mu
	lies []lie
	// +checklocks:mu
	asked map[string]int // by the directory in which the agent works
	// +checklocks:mu
	told map[string]string // what a fork was told last, by the directory in which it works
}

// lie is something that a conversation says and that is not so.
type lie struct {
	dir  string // in which the agent works
	turn int    // in which it was said
	what string
}

var worksIn = regexp.MustCompile(`Your working directory is (.+)\. Relative paths start there`)

// isFork begins what a fork is told.
const isFork = "[This process is a fork of an earlier one"

func (m *maker) reply(r llmtest.Request) llmtest.Reply {
	if name := r.Messages[0].Text; strings.HasPrefix(name, "kid") {
		return llmtest.Reply{Text: name + " is done", Delay: 100 * time.Millisecond}
	}
	dir := ""
	if found := worksIn.FindStringSubmatch(r.System); found != nil {
		dir = found[1]
	}
	lies := compared(dir, r)
	m.mu.Lock()
	m.lies = append(m.lies, lies...)
	m.asked[dir]++
	if last := r.LastUser(); strings.Contains(last, isFork) {
		m.told[dir] = last
	}
	m.mu.Unlock()
	if m.hang.Load() {
		return llmtest.Reply{Hang: true}
	}
	calls := m.calls(turnOf(r))
	if calls == nil {
		return llmtest.Reply{Text: "all is made"}
	}
	for i := range calls {
		calls[i].ID = fmt.Sprintf("call_%d", ids.Add(1))
	}
	return llmtest.Reply{ToolCalls: calls}
}

// makes is a call that makes a file of its own in one of several ways, and says so.
func makes(way, turn, n int) llmtest.ToolCall {
	file, text := fmt.Sprintf("file-%d-%d", turn, n), fmt.Sprintf("<%d.%d>", turn, n)
	sh := func(command string) llmtest.ToolCall {
		return llmtest.ToolCall{Name: "shell", Input: fmt.Sprintf(`{"command":"%s"}`, command)}
	}
	switch way {
	case 0:
		return sh(fmt.Sprintf("echo '%s' > %s", text, file))
	case 1:
		return sh(fmt.Sprintf("sleep 0.05; echo '%s' > %s; sleep 0.05", text, file))
	case 2:
		return sh(fmt.Sprintf("echo '%s' >> log", text))
	}
	return llmtest.ToolCall{Name: "write_file", Input: fmt.Sprintf(`{"path":%q,"content":%q}`, file, text)}
}

// effectOf tells what a call is to leave behind: a file, and a text that is in it once.
func effectOf(c llmtest.ToolCall) (file, text string) {
	text = mentions.FindString(c.Input)
	if file = fileName.FindString(c.Input); file == "" && text != "" {
		file = "log"
	}
	return file, text
}

var (
	mentions = regexp.MustCompile(`<\d+\.\d+>`)
	fileName = regexp.MustCompile(`file-\d+-\d+`)
	kidName  = regexp.MustCompile(`kid-\d+-\d+`)
)

// compared returns what a request's conversation says of a directory and of the children that is not so, and that the agent is not told
// to be otherwise.
func compared(dir string, r llmtest.Request) (lies []lie) {
	turn, calls, fork := 0, map[string]llmtest.ToolCall{}, 0
	for i, m := range r.Messages {
		if strings.Contains(m.Text, isFork) {
			fork = i
		}
	}
	later := func(from int, word string) bool {
		for _, m := range r.Messages[from:] {
			if m.Role == "user" && strings.Contains(m.Text, word) {
				return true
			}
		}
		return false
	}
	for i, m := range r.Messages {
		if m.Role == "assistant" {
			turn++
		}
		for _, c := range m.Calls {
			calls[c.ID] = c
		}
		for _, res := range m.Results {
			c := calls[res.ID]
			if res.IsError || strings.Contains(res.Text, "outcome is unknown") {
				continue
			}
			if kid := kidName.FindString(c.Input); kid != "" && i < fork && !later(i, kid) {
				lies = append(lies, lie{dir, turn, kid + " was started by the origin, and the fork is not told that it is not its own"})
			}
			file, text := effectOf(c)
			if text == "" {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, file))
			if n := strings.Count(string(b), text); n != 1 && !later(i, file) {
				lies = append(lies, lie{dir, turn, fmt.Sprintf("%s has %s %d times (%v), and the model was told that it was put there once", file, text, n, err)})
			}
		}
	}
	return lies
}

// places are the directories in which an origin works.
var places = map[string]func(t *testing.T, s *testenv.System) ipc.SpawnRequest{
	"plain": func(_ *testing.T, s *testenv.System) ipc.SpawnRequest { return ipc.SpawnRequest{Cwd: s.Work} },
	"git": func(t *testing.T, s *testenv.System) ipc.SpawnRequest {
		return ipc.SpawnRequest{Cwd: newProject(t, s).dir}
	},
	"tree": func(t *testing.T, s *testenv.System) ipc.SpawnRequest {
		return ipc.SpawnRequest{Cwd: newProject(t, s).dir, Worktree: &ipc.WorktreeRequest{}}
	},
}

// forkOf forks a history, up to a step if from is not nil.
func forkOf(t *testing.T, s *testenv.System, id types.UUID, from *int) ipc.ResumeResponse {
	t.Helper()
	f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), Env: s.Env, Fork: true, FromStep: from})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A fork of an agent in the middle of a step has what the calls of that step have made, or is told that it has not.
func TestForkInTheMiddleOfAStepHasTheFilesOfItsConversation(t *testing.T) { // B1
	for name, place := range places {
		for how, fork := range map[string]func(t *testing.T, s *testenv.System, id types.UUID, middle func()) ipc.ResumeResponse{
			"running": func(t *testing.T, s *testenv.System, id types.UUID, _ func()) ipc.ResumeResponse {
				return forkOf(t, s, id, nil)
			},
			"paused": func(t *testing.T, s *testenv.System, id types.UUID, _ func()) ipc.ResumeResponse {
				if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: id.String(), Signal: types.SIGPAUSE}); err != nil {
					t.Fatal(err)
				}
				return forkOf(t, s, id, nil)
			},
			"after kill -9": func(t *testing.T, s *testenv.System, id types.UUID, _ func()) ipc.ResumeResponse {
				kill(t, s)
				s.Start()
				s.Settle()
				return forkOf(t, s, id, nil)
			},
			"fork of a fork": func(t *testing.T, s *testenv.System, id types.UUID, middle func()) ipc.ResumeResponse {
				again := filepath.Join(s.Dir, "stay")
				if err := os.WriteFile(again, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				f := forkOf(t, s, id, new(1))
				middle()
				return forkOf(t, s, f.UUID, nil)
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				var stay, up string // whoever takes the first stays in the middle of the step, and says so with the second
				m := &maker{asked: map[string]int{}, told: map[string]string{}, calls: func(turn int) []llmtest.ToolCall {
					switch {
					case turn == 1:
						return []llmtest.ToolCall{makes(3, 1, 1)}
					case turn == 2:
						return []llmtest.ToolCall{makes(3, 2, 1), makes(0, 2, 2), {Name: "shell", Input: fmt.Sprintf(`{"command":"rm %s && touch %s && sleep 600; true"}`, stay, up)}}
					}
					return nil
				}}
				_, url := llmtest.NewAPI(t, m.reply)
				s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
				stay, up = filepath.Join(s.Dir, "stay"), filepath.Join(s.Dir, "up")
				if err := os.WriteFile(stay, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				middle := func() {
					t.Helper()
					until(t, "it is in the middle of step 2", func() bool { _, err := os.Stat(up); return err == nil })
					if err := os.Remove(up); err != nil {
						t.Fatal(err)
					}
				}
				req := place(t, s)
				req.Intent, req.Model = "make files", "fake"
				p := s.Spawn(req)
				middle()
				f := fork(t, s, p.UUID, middle)
				if w := s.Wait(f.PID); w.Exit.Code != 0 || w.Suspended {
					t.Fatalf("the fork: %+v", w)
				}
				m.mu.Lock()
				defer m.mu.Unlock()
				var wrong []string
				for _, l := range m.lies {
					if l.dir != f.WorkDir || l.turn != 2 {
						t.Errorf("%+v", l)
					}
					wrong = append(wrong, l.what)
				}
				if m.asked[f.WorkDir] == 0 {
					t.Errorf("the fork, which works in %s, was never asked: %v", f.WorkDir, m.asked)
				}
				allRight(t, wrong)
				for _, want := range []string{"end of its step 1.", "in its step 2, which had not ended", "write_file {", "file-2-1", "file-2-2", "sleep 600", "is not in your files"} {
					if told := m.told[f.WorkDir]; !strings.Contains(told, want) {
						t.Errorf("the fork is not told %q: %q", want, told)
					}
				}
				_, _ = ipc.Call(t.Context(), s.Client, ipc.SignalTree, ipc.SignalRequest{Target: p.UUID.String(), Signal: types.SIGKILL})
			})
		}
	}
}

// A fork that has changed nothing yet is forked from a step that it has from its origin, which has done more meanwhile: the files
// are those of the step, and not those that the origin has by now.
func TestForkOfAForkThatHasDoneNothingHasTheFilesOfTheStep(t *testing.T) { // B17
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			m := &maker{asked: map[string]int{}, told: map[string]string{}, calls: func(turn int) []llmtest.ToolCall {
				if turn > 1 {
					return nil
				}
				return []llmtest.ToolCall{makes(2, 1, 1)}
			}}
			_, url := llmtest.NewAPI(t, m.reply)
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
			req := place(t, s)
			req.Intent, req.Model = "make files", "fake"
			p := s.Spawn(req)
			s.Wait(p.PID)
			m.hang.Store(true)
			first := forkOf(t, s, p.UUID, new(0))
			until(t, "the fork asks its model", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.asked[first.WorkDir] > 0 })
			m.hang.Store(false)
			second := forkOf(t, s, first.UUID, new(0))
			if w := s.Wait(second.PID); w.Exit.Code != 0 || w.Suspended {
				t.Fatalf("%+v", w)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			var wrong []string
			for _, l := range m.lies {
				if l.dir != second.WorkDir {
					t.Errorf("%+v", l)
				}
				wrong = append(wrong, l.what)
			}
			allRight(t, wrong)
		})
	}
}

// What a step has made is there in a fork from it, also if the last call of the step has changed nothing.
func TestForkFromAStepOfWhichTheLastCallHasFailedHasItsFiles(t *testing.T) { // B18
	m := &maker{asked: map[string]int{}, told: map[string]string{}, calls: func(turn int) []llmtest.ToolCall {
		switch turn {
		case 1:
			return []llmtest.ToolCall{makes(3, 1, 1)}
		case 2:
			return []llmtest.ToolCall{makes(2, 2, 1), {Name: "edit_file", Input: `{"path":"file-1-1","old":"absent","new":"present"}`}}
		}
		return nil
	}}
	_, url := llmtest.NewAPI(t, m.reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "make files", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(p.PID)
	f := forkOf(t, s, p.UUID, new(2))
	s.Wait(f.PID)
	m.mu.Lock()
	defer m.mu.Unlock()
	var wrong []string
	for _, l := range m.lies {
		wrong = append(wrong, l.what)
	}
	allRight(t, wrong)
}

// A fork in the middle of the first step of a run has what its origin was resumed with, and hears what was said to that once.
func TestForkInTheMiddleOfAStepHasWhatItsOriginWasResumedWith(t *testing.T) {
	var stay, up string
	m := &maker{asked: map[string]int{}, told: map[string]string{}, calls: func(turn int) []llmtest.ToolCall {
		switch turn {
		case 1:
			return []llmtest.ToolCall{makes(3, 1, 1)}
		case 2:
			return []llmtest.ToolCall{{Name: "shell", Input: fmt.Sprintf(`{"command":"rm %s && touch %s && sleep 600; true"}`, stay, up)}}
		}
		return nil
	}}
	heard := map[string]int{} // by directory
	var mu sync.Mutex
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if found := worksIn.FindStringSubmatch(r.System); found != nil {
			n := 0
			for _, msg := range r.Messages {
				n += strings.Count(msg.Text, "and more of it")
			}
			mu.Lock()
			heard[found[1]] = n
			mu.Unlock()
		}
		return m.reply(r)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	stay, up = filepath.Join(s.Dir, "stay"), filepath.Join(s.Dir, "up")
	if err := os.WriteFile(stay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := s.Spawn(ipc.SpawnRequest{Intent: "make files", ProcSpec: types.ProcSpec{Model: "fake", MaxSteps: new(1)}})
	s.Wait(p.PID)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, MaxSteps: new(9), NewInput: "and more of it"}); err != nil {
		t.Fatal(err)
	}
	until(t, "it is in the middle of step 2", func() bool { _, err := os.Stat(up); return err == nil })
	f := forkOf(t, s, p.UUID, nil)
	if w := s.Wait(f.PID); w.Exit.Code != 0 || f.Step != 1 || f.LeftOut != 1 {
		t.Errorf("%+v, %+v", w.Exit, f)
	}
	mu.Lock()
	defer mu.Unlock()
	if heard[f.WorkDir] != 1 {
		t.Errorf("the fork has heard %d times what its origin was told", heard[f.WorkDir])
	}
	_, _ = ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: p.UUID.String(), Signal: types.SIGKILL})
}
