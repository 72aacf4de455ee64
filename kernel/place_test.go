package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// repositories is a place where everything below /repo is in a repository, which is another one each time it is asked for.
type repositories struct {
	NoWorkspace
	mu    sync.Mutex
	asked int // +checklocks:mu
}

func (r *repositories) GitState(_ context.Context, p *Process) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if !strings.HasPrefix(p.WorkDir, "/repo") {
		return ""
	}
	return fmt.Sprintf("In %s, look %d, by hunter2hunter2.", filepath.Base(p.WorkDir), r.asked)
}

func (r *repositories) times() int { r.mu.Lock(); defer r.mu.Unlock(); return r.asked }

// carded is a model of a driver.
type carded struct {
	device
	driver string
}

func (c *carded) ModelCard() vfs.ModelCard { return vfs.ModelCard{Driver: c.driver} }

// newPlaced is a kernel with repositories, a tool of /dev/shell, and the models "teller" and "cli", which look once and note what they are told.
func newPlaced(t *testing.T) (s *sys, git *repositories, told func() []string) {
	t.Helper()
	git = &repositories{}
	var mu sync.Mutex
	var systems []string
	set := new(redact.Set)
	set.Add(redact.Secret{Name: "KEY", Value: "hunter2hunter2"})
	s = newSys(t, func(c *Config) {
		c.Workspace, c.Secrets = git, set
		err := c.Devices.RegisterTools("/dev/shell", func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
			return &device{do: func(context.Context, vfs.Caller, []byte) (string, error) { return "seen", nil }}, nil
		}, []vfs.Tool{{Name: "look", Schema: json.RawMessage(`{"type":"object"}`), Path: "/dev/shell", Effect: vfs.EffectNone}})
		if err != nil {
			t.Fatal(err)
		}
		for name, driver := range map[string]string{"teller": "vendor", "cli": "claude-agent"} {
			err := c.Devices.Register("/dev/llm/"+name, func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
				asked := 0
				d := &carded{driver: driver}
				d.do = func(_ context.Context, _ vfs.Caller, data []byte) (string, error) {
					var q struct {
						SystemPrompt string `json:"system_prompt"`
					}
					if err := json.Unmarshal(data, &q); err != nil {
						return "", err
					}
					mu.Lock()
					defer mu.Unlock()
					systems = append(systems, q.SystemPrompt)
					if asked++; asked == 1 {
						return reply{Calls: []string{"look {}"}, Tokens: 1}.json(), nil
					}
					return reply{Content: "done", Tokens: 1}.json(), nil
				}
				return d, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	return s, git, func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := systems
		systems = nil
		return out
	}
}

// life runs a process to its end and returns it.
func (s *sys) life(change ...func(*SpawnOpts)) *Info {
	s.t.Helper()
	change = append([]func(*SpawnOpts){func(o *SpawnOpts) { o.Provider, o.WorkDir = "teller", "/repo/a" }}, change...)
	i, err := s.WaitInfo(s.t.Context(), s.spawn(change...))
	if err != nil || i.Exit.Code != 0 {
		s.t.Fatalf("%+v %v", i, err)
	}
	return &i
}

// gitIn returns what the runs of a history were told of git, by its record.
func (s *sys) gitIn(id types.UUID) string {
	s.t.Helper()
	f := s.lastRun(id)
	_ = f.Rec.Close()
	if f.Was.Git == nil {
		return ""
	}
	return f.Was.Git.Text
}

func TestAnAgentIsToldOfItsRepositoryBehindAllElseOncePerRun(t *testing.T) {
	s, git, told := newPlaced(t)
	i := s.life()
	const want = ".\nYour working directory is /repo/a. Relative paths start there.\nIn a, look 1, by [secret KEY]."
	if all := told(); len(all) != 2 || all[0] != all[1] || !strings.HasSuffix(all[0], want) {
		t.Errorf("told %q", all)
	}
	if got := s.gitIn(i.UUID); got != "In a, look 1, by [secret KEY]." || git.times() != 1 {
		t.Errorf("recorded %q, asked %d times", got, git.times())
	}
	// Outside of a repository nothing is said, and where nothing can be done nothing is asked.
	i = s.life(func(o *SpawnOpts) { o.WorkDir = "/elsewhere" })
	if all := told(); !strings.HasSuffix(all[1], "Relative paths start there.") || s.gitIn(i.UUID) != "" {
		t.Errorf("told %q", all)
	}
	asked := git.times()
	s.life(func(o *SpawnOpts) { o.Provider = "cli" })
	s.life(func(o *SpawnOpts) { o.DeniedDevices = []string{"/dev/shell"} })
	for _, one := range told() {
		if !strings.HasSuffix(one, "Relative paths start there.") {
			t.Errorf("told %q", one)
		}
	}
	if git.times() != asked {
		t.Error("it is asked for an agent CLI, or for one that has no shell")
	}
}

// TestLaterRunsAreToldTheSameForAnHour says that a resume, and a fork that stays in its directory, begin with the same bytes while a provider can have kept them,
// and that a fork elsewhere has its own.
func TestLaterRunsAreToldTheSameForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10 * time.Hour) // of the day on which bubbles begin
		s, git, told := newPlaced(t)
		first := s.life()
		begun := told()[0]
		again := func(f *From, dir string) string {
			t.Helper()
			s.life(func(o *SpawnOpts) { o.UUID, o.From, o.WorkDir = first.UUID, f, dir })
			return told()[0]
		}
		resumed := func() *From {
			f := s.lastRun(first.UUID)
			f.Input = "go on"
			return f
		}
		time.Sleep(gitFresh - 10*time.Minute)
		if got := again(resumed(), "/repo/a"); got != begun || git.times() != 1 {
			t.Errorf("within the hour it is told %q, first %q; asked %d times", got, begun, git.times())
		}
		if got := again(resumed(), "/repo/b"); !strings.HasSuffix(got, "In b, look 2, by [secret KEY].") {
			t.Errorf("elsewhere it is told %q", got)
		}
		if got := again(resumed(), "/repo/a"); !strings.HasSuffix(got, "In a, look 3, by [secret KEY].") {
			t.Errorf("back again it is told %q", got)
		}
		time.Sleep(gitFresh)
		if got := again(resumed(), "/repo/a"); !strings.HasSuffix(got, "In a, look 4, by [secret KEY].") {
			t.Errorf("later it is told %q", got)
		}
	})
}

func TestWhatIsStillTold(t *testing.T) {
	now := time.Date(2026, 11, 30, 0, 10, 0, 0, time.Local)
	was := func(at time.Time) *step.GitTold { return &step.GitTold{Text: "x", Dir: "/a", At: at} }
	for _, c := range []struct {
		was  *step.GitTold
		dir  string
		want bool
	}{
		{was(now.Add(-5 * time.Minute)), "/a", true}, {was(now.Add(-5 * time.Minute)), "/b", false}, {was(now.Add(time.Minute)), "/a", false},
		{was(now.Add(-20 * time.Minute)), "/a", false}, // yesterday: another day is told, too
		{was(now.Add(-2 * time.Hour)), "/a", false}, {nil, "", false},
	} {
		if got := stillTold(c.was, c.dir, now); got != c.want {
			t.Errorf("%+v in %s: %t", c.was, c.dir, got)
		}
	}
}
