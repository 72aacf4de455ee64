package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rnix/agent"
	"rnix/types"
)

func TestServerThatCannotBeMountedIsExplainedAndGone(t *testing.T) {
	for mode, want := range map[string]struct {
		code types.ErrCode
		text []string
	}{
		"exits":       {types.ErrDisconnected, []string{"server srv: connect: ", "status 3", "no config file", "token is ***"}},
		"silent":      {types.ErrTimeout, []string{"mount_timeout"}},
		"deaf-silent": {types.ErrTimeout, []string{"mount_timeout"}},
		"banner":      {types.ErrDisconnected, []string{"not part of the protocol", "Welcome to the server!", "standard error"}},
		"garbage":     {types.ErrDisconnected, []string{"list tools", "malformed message"}},
		"closes":      {types.ErrDisconnected, []string{"list tools", "closed the connection"}},
	} {
		t.Run(mode, func(t *testing.T) {
			b := newBench(t)
			cfg := self(t, mode)
			cfg.Env["SOME_TOKEN"] = "s3cr3t-value"
			if want.code == types.ErrTimeout {
				cfg.MountTimeout = agent.Duration(400 * time.Millisecond)
			}
			start := time.Now()
			err := b.Mount(at, cfg)
			if types.CodeOf(err) != want.code {
				t.Errorf("code of %v", err)
			}
			for _, text := range want.text {
				if !strings.Contains(fmt.Sprint(err), text) {
					t.Errorf("%q is missing in: %v", text, err)
				}
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			if left := b.mgr.All(); len(left) > 0 {
				t.Errorf("left: %+v", left)
			}
		})
	}
}

func TestProgramThatCannotBeStartedIsNamed(t *testing.T) {
	b := newBench(t)
	cfg := self(t, "good")
	cfg.Command = "no-such-program-anywhere"
	if err := b.Mount(at, cfg); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "no-such-program-anywhere") {
		t.Errorf("%v", err)
	}
	cfg = self(t, "good")
	cfg.SpawnTimeout = 1
	err := b.Mount(at, cfg)
	for ; err == nil; err = b.Mount(at, cfg) { // this machine was as quick as the clock
		if err := b.Unmount(at); err != nil {
			t.Fatal(err)
		}
	}
	if types.CodeOf(err) != types.ErrTimeout || !strings.Contains(err.Error(), "spawn_timeout") {
		t.Errorf("%v", err)
	}
	cfg = self(t, "good")
	cfg.Type = "sse"
	if err := b.Mount(at, cfg); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("%v", err)
	}
	cfg.Type, cfg.Command = "stdio", ""
	if err := b.Mount(at, cfg); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("%v", err)
	}
	b.mgr.Close() // waits for the start that was given up, and ends what it has started
}

func TestNoisyServerIsHeardOnlyAtTheEnd(t *testing.T) {
	b := newBench(t)
	b.mustMount(t, self(t, "noisy"))
	b.mustCall(t, "go", "")
}

func TestListsEndAtTheLimits(t *testing.T) {
	for mode, c := range map[string]struct {
		tools int
		says  string
	}{"endless": {defaultLimits.pages, "what follows its first 50 pages"}, "circle": {1, "what follows, since the server names the same next page again"},
		"many": {defaultLimits.tools, "what follows its first 512 entries"}, "large": {3, "what follows its first 3 entries, since a list may have 4096 KiB"}} {
		want := c.tools
		b := newBench(t)
		b.mustMount(t, self(t, mode))
		if l := b.List(); len(l) != 1 || l[0].Tools != want || !l[0].Truncated {
			t.Errorf("%s: %+v, want %d tools", mode, l, want)
		}
		if got, err := b.read("/tools"); err != nil || !strings.HasSuffix(got, "[the server has more than is listed; left out: "+c.says+"]") {
			t.Errorf("%s: the list ends in %q, %v", mode, got[max(0, len(got)-50):], err)
		}
	}
}

func TestFloodOfNotificationsDoesNotHoldUpAnAnswer(t *testing.T) {
	b := newBench(t)
	tr, err := b.factory.transport(self(t, "flood"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.Close() }()
	if err := tr.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Call(t.Context(), "tools/call", []byte(`{"name":"go"}`)); err != nil {
		t.Fatal(err)
	}
	own := tr.(*transport)
	own.mu.Lock()
	defer own.mu.Unlock()
	if n := own.session.conn.dropped.Load(); n < 20_000 {
		t.Errorf("only %d were dropped", n)
	}
}

func TestServersRequestsAreRefused(t *testing.T) {
	b := newBench(t)
	b.mustMount(t, self(t, "pings"))
	b.mustCall(t, "go", "")
}

func TestTooLongAnswerFailsItsCallAndNotTheServer(t *testing.T) {
	b := newBench(t)
	b.mustMount(t, self(t, "wide"))
	pid := b.mustCall(t, "go", "")
	if _, err := b.call(context.Background(), "wide", ""); types.CodeOf(err) != types.ErrExhausted || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v", err)
	}
	if again := b.mustCall(t, "go", ""); again != pid {
		t.Errorf("the server was started again: %s, %s", pid, again)
	}
}

func TestUnmountKillsADeafServerAndItsGrandchild(t *testing.T) {
	b := newBench(t)
	b.mustMount(t, self(t, "deaf"))
	var pid, grandchild int
	if _, err := fmt.Sscanf(b.mustCall(t, "go", ""), "pid %d grandchild %d", &pid, &grandchild); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := b.Unmount(at); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, p := range []int{pid, grandchild} {
		if state := stateOf(p); state != "" && state != "Z" {
			t.Errorf("process %d is still there (%s)", p, state)
		}
	}
}

// stateOf returns the state of a process, "" if there is none. An orphan that nobody has waited for yet
// is a zombie, not a leak.
func stateOf(pid int) string {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return ""
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0]
}

func TestCloseDuringACallEndsIt(t *testing.T) {
	b := newBench(t)
	b.mustMount(t, self(t, "good"))
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		_, _ = b.call(context.Background(), "await-hang", "")
		_ = b.UnmountAll()
	})
	if _, err := b.call(context.Background(), "hang", ""); types.CodeOf(err) != types.ErrDisconnected || !strings.Contains(err.Error(), "unmounted") {
		t.Errorf("%v", err)
	}
}

func TestAnAnswerIsNotLostIfItsServerGoesInTheSameInstant(t *testing.T) {
	b := newBench(t)
	for i := range 25 {
		tr, err := b.factory.transport(self(t, "lastwords"))
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := tr.Call(t.Context(), "tools/call", []byte(`{"name":"go"}`))
		if err != nil || !strings.Contains(string(got), "pid ") {
			t.Errorf("call %d: %s, %v", i, got, err)
		}
		_ = tr.Close() // the server has gone before
	}
}

func FuzzLinesAreReadWholeOrRefused(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), 2)
	f.Add([]byte(strings.Repeat("x", 100)+"\ny\n"), 50)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = max(1, min(limit, 1000))
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		for _, want := range bytes.SplitAfter(data, []byte("\n")) {
			if len(want) == 0 {
				continue
			}
			got, err := readLine(r, limit, 1<<20)
			if len(want) > limit {
				if !errors.Is(err, errTooLong) {
					t.Fatalf("line of %d bytes, limit %d: %v", len(want), limit, err)
				}
			} else if err != nil || !bytes.Equal(got, bytes.TrimSpace(want)) {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
		}
		if _, err := readLine(r, limit, 1<<20); !errors.Is(err, io.EOF) {
			t.Fatalf("at the end: %v", err)
		}
	})
}

// What never ends is given up.
func TestALineWithoutEndIsGivenUp(t *testing.T) {
	r := bufio.NewReaderSize(endless{}, 16)
	if _, err := readLine(r, 100, 10_000); !errors.Is(err, errEndless) || errors.Is(err, errTooLong) {
		t.Errorf("%v", err)
	}
}

// endless is a line without end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}
