package kernel

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"rnix/types"
	"rnix/vfs"
)

// running spawns a process that waits for its end.
func (s *sys) running() (*Process, types.PID) {
	s.t.Helper()
	s.model = untilKilled
	pid := s.spawn()
	p, ok := s.Process(pid)
	if !ok {
		s.t.Fatal("it is gone")
	}
	return p, pid
}

// Whatever threads and coroutines do, or wait for, a reap ends and leaves none of them.
func TestReapClearsThreadsAndCoroutinesWhateverTheyBlockOn(t *testing.T) {
	thread := func(fn func(*Process, *Thread)) func(*Process) error {
		return func(p *Process) error {
			_, err := p.SpawnThread("t", func(t *Thread) { fn(p, t) })
			return err
		}
	}
	coroutine := func(resume bool, fn func(*Process, *Coroutine)) func(*Process) error {
		return func(p *Process) error {
			id, err := p.SpawnCoroutine("c", func(c *Coroutine) { fn(p, c) })
			if err != nil || !resume {
				return err
			}
			_, err = p.SpawnThread("resumes c", func(*Thread) {
				for {
					if _, err := p.ResumeCoroutine(id); err != nil {
						return
					}
				}
			})
			return err
		}
	}
	never := make(chan int)
	for name, start := range map[string]func(*Process) error{
		"a thread that waits for its context": thread(func(_ *Process, t *Thread) { <-t.Context().Done() }),
		"a thread that waits for a channel": thread(func(_ *Process, t *Thread) {
			select {
			case <-never:
			case <-t.Context().Done():
			}
		}),
		"a thread that panics":             thread(func(*Process, *Thread) { panic("oh") }),
		"a thread that ends its goroutine": thread(func(*Process, *Thread) { runtime.Goexit() }),
		"a thread that joins itself":       thread(func(_ *Process, t *Thread) { _, _ = t.Join() }),
		"threads that start threads": thread(func(p *Process, _ *Thread) {
			var spawn func(n int)
			spawn = func(n int) {
				for range 2 {
					if n > 0 {
						_, _ = p.SpawnThread("deeper", func(t *Thread) { spawn(n - 1); <-t.Context().Done(); spawn(1) })
					}
				}
			}
			spawn(4)
		}),
		"a coroutine that nobody resumes": coroutine(false, func(*Process, *Coroutine) { panic("it runs") }),
		"a coroutine in Yield": func(p *Process) error {
			id, err := p.SpawnCoroutine("c", func(c *Coroutine) {
				defer func() { panic("while it is unwound") }()
				for {
					c.Yield(1)
				}
			})
			if err == nil {
				_, err = p.ResumeCoroutine(id)
			}
			return err
		},
		"a coroutine that is resumed all the time": coroutine(true, func(_ *Process, c *Coroutine) {
			for i := 0; ; i++ {
				c.Yield(i)
				if i%10 == 9 {
					runtime.Gosched()
				}
			}
		}),
		"a coroutine that waits for a channel": coroutine(true, func(_ *Process, c *Coroutine) {
			select {
			case <-never:
			case <-c.Context().Done():
			}
		}),
		"a coroutine that resumes itself":     coroutine(true, func(p *Process, c *Coroutine) { _, _ = p.ResumeCoroutine(c.CoID) }),
		"a coroutine that panics":             coroutine(true, func(*Process, *Coroutine) { panic("oh") }),
		"a coroutine that ends its goroutine": coroutine(true, func(*Process, *Coroutine) { runtime.Goexit() }),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSys(t)
			p, pid := s.running()
			if err := start(p); err != nil {
				t.Fatal(err)
			}
			if err := s.Kill(pid, types.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if e, err := s.Wait(pid); err != nil || e.Code != types.ExitCancelled {
				t.Errorf("%v %v", e, err)
			}
			p.mu.Lock()
			if len(p.threads)+len(p.coroutines) != 0 {
				t.Errorf("%d threads and %d coroutines are left", len(p.threads), len(p.coroutines))
			}
			p.mu.Unlock()
			if _, err := p.SpawnCoroutine("late", func(*Coroutine) {}); types.CodeOf(err) != types.ErrCancelled {
				t.Errorf("late: %v", err)
			}
		})
	}
}

func TestAThreadBringsWhatItFinishedWith(t *testing.T) {
	s := newSys(t)
	p, _ := s.running()
	good, err := p.SpawnThread("Analyze security", func(t *Thread) { t.Finish("safe", nil) })
	if err != nil {
		t.Fatal(err)
	}
	bad, err := p.SpawnThread("break", func(*Thread) { panic("oh") })
	if err != nil {
		t.Fatal(err)
	}
	join := func(id types.TID) (string, error) {
		th, err := p.Thread(id)
		if err != nil {
			return "", err
		}
		return th.Join()
	}
	if r, err := join(good); r != "safe" || err != nil {
		t.Errorf("%q %v", r, err)
	}
	if _, err := join(good); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("joined twice: %v", err)
	}
	if _, err := join(bad); types.CodeOf(err) != types.ErrInternal || !strings.Contains(err.Error(), "oh") {
		t.Errorf("a panic: %v", err)
	}
}

func TestACoroutineYieldsItsValuesAndThenItIsGone(t *testing.T) {
	s := newSys(t)
	p, _ := s.running()
	items := []string{"a", "b"}
	id, err := p.SpawnCoroutine("Stream processor", func(co *Coroutine) {
		for _, item := range items {
			co.Yield(item + "!")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []any{"a!", "b!"} {
		if v, err := p.ResumeCoroutine(id); v != want || err != nil {
			t.Errorf("%v %v", v, err)
		}
	}
	for range 2 {
		if v, err := p.ResumeCoroutine(id); v != nil || types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("after its end: %v %v", v, err)
		}
	}
}

// independent makes a kernel whose tool can run side by side.
func independent(t *testing.T) *sys {
	return newSys(t, func(c *Config) {
		plain := c.Devices
		c.Devices = vfs.NewDeviceRegistry()
		for _, path := range plain.Paths() {
			tools := plain.Tools(path)
			for i := range tools {
				tools[i].Effect, tools[i].Independent = vfs.EffectNone, true
			}
			open := func(sub string, flags vfs.OpenFlag) (vfs.VFSFile, error) { return plain.Open(path+sub, flags) }
			if err := c.Devices.RegisterTools(path, open, tools); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Calls of one answer that run side by side are threads: they can be seen, and are gone when it is done.
func TestParallelToolCallsAreThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := independent(t)
		release := make(chan struct{})
		s.tool = func(ctx context.Context, _ vfs.Caller) (string, error) {
			select {
			case <-release:
				return "out", nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		asked := make(chan struct{})
		s.model = func(ctx context.Context, _ vfs.Caller, turn int) (reply, error) {
			if turn == 1 {
				var calls []string
				for i := range 11 {
					calls = append(calls, fmt.Sprintf(`tool {"n":%d}`, i))
				}
				return reply{Calls: calls}, nil
			}
			close(asked)
			return untilKilled(ctx, vfs.Caller{}, turn)
		}
		pid := s.spawn()
		synctest.Wait()
		threads, err := s.Proc().Threads(pid)
		if err != nil || len(threads) != 8 { // as many as run at once
			t.Fatalf("%v %v", threads, err)
		}
		for i, th := range threads {
			if want := (vfs.ProcThread{Kind: "thread", ID: uint64(i + 1), State: "running", Intent: "tool"}); th != want {
				t.Errorf("%+v, want %+v", th, want)
			}
		}
		close(release)
		<-asked
		if threads, err := s.Proc().Threads(pid); err != nil || len(threads) != 0 {
			t.Errorf("afterwards: %v %v", threads, err)
		}
		p, _ := s.Process(pid)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.lastTID != 11 {
			t.Errorf("%d threads for 11 calls", p.lastTID)
		}
	})
}

func TestAKilledProcessCancelsItsParallelCallsAndRecordsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := independent(t)
		s.tool = func(ctx context.Context, _ vfs.Caller) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) }
		s.model = func(context.Context, vfs.Caller, int) (reply, error) {
			return reply{Calls: []string{"tool {}", "tool {}"}}, nil
		}
		pid := s.spawn()
		synctest.Wait()
		p, _ := s.Process(pid)
		if err := s.Kill(pid, types.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Wait(pid); err != nil {
			t.Fatal(err)
		}
		if got := s.stores.of(p.UUID).kinds(); !strings.Contains(got, "intent intent result result message message step") {
			t.Errorf("recorded %s", got)
		}
	})
}
