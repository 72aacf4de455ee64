package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// childPatience is far more than any of these programs takes.
const childPatience = 2 * time.Minute

// child runs the program as a process of its own, with its standard error as lines.
type child struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  bytes.Buffer
	err  *bufio.Reader
	said []string
}

func (f *fake) start(args ...string) *child {
	f.t.Helper()
	c := &child{t: f.t, cmd: exec.Command(os.Args[0], args...)}
	c.cmd.Env = append(append([]string{}, f.env...), roleEnv+"=rnix", "GORACE=atexit_sleep_ms=0")
	c.cmd.Dir = f.dir
	c.cmd.Stdout = &c.out
	r, w, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	c.cmd.Stderr = w
	c.err = bufio.NewReader(r)
	if err := c.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	w.Close()
	// A program that does not end fails its test, and does not hold it up.
	hung := time.AfterFunc(childPatience, func() { _ = c.cmd.Process.Kill() })
	f.t.Cleanup(func() {
		hung.Stop()
		_ = c.cmd.Process.Kill() // has ended, unless the test failed
		_ = c.cmd.Wait()
		r.Close()
	})
	return c
}

// until waits for a line that contains text.
func (c *child) until(text string) {
	c.t.Helper()
	for {
		line, err := c.err.ReadString('\n')
		c.said = append(c.said, line)
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			c.t.Fatalf("no %q in %q", text, c.said)
		}
	}
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// end waits for the program and returns its exit code.
func (c *child) end() int {
	rest, _ := io.ReadAll(c.err)
	c.said = append(c.said, string(rest))
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

// endless makes the fake one process that ends when it is sent a signal, if it obeys.
func (f *fake) endless(obeys bool) {
	f.theRun(nil, ipc.WaitResponse{})
	ended := make(chan struct{})
	f.events = func(ctx context.Context, _ ipc.EventsRequest, out *ipc.Stream) error {
		for i, e := range []event.Event{{Kind: event.LogLine, Name: "output", Text: "I look.", Answer: 1, Total: 7}, {Kind: event.StepStarted, Step: 1}} {
			e.Seq, e.PID, e.UUID = uint64(101+i), 3, id(3)
			_ = out.SendRaw(e.Seq, string(e.Kind), event.AppendJSON(nil, &e))
		}
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return nil
	}
	exit := types.ExitStatus{Code: types.ExitCancelled, Reason: "interrupted"}
	f.wait = func(ctx context.Context, _ ipc.WaitRequest) (ipc.WaitResponse, error) {
		select {
		case <-ended:
			return ipc.WaitResponse{PID: 3, UUID: id(3), Exit: exit, Steps: 1}, nil
		case <-ctx.Done():
			return ipc.WaitResponse{}, context.Cause(ctx)
		}
	}
	f.signal = func(bool, ipc.SignalRequest) (ipc.SignalResponse, error) {
		if obeys {
			close(ended)
		}
		return ipc.SignalResponse{PID: 3, UUID: id(3), Affected: 2}, nil
	}
}

func TestFirstInterruptStopsTheAgentAndItsChildren(t *testing.T) {
	f := newFake(t)
	f.endless(true)
	c := f.serve().start("run", "do it")
	c.until("step 1")
	c.signal(os.Interrupt)
	if code := c.end(); code != ExitInterrupted || f.calls() != "spawn do it; signal_tree "+id(3).String()+" SIGINT" {
		t.Errorf("code %d, calls %s, said %q", code, f.calls(), c.said)
	}
	if all := strings.Join(c.said, ""); !strings.Contains(all, "asking PID 3") || !strings.Contains(all, "PID 3 exited(4): interrupted | 1 step") {
		t.Errorf("said %s", all)
	}
}

func TestSecondInterruptLeavesAtOnce(t *testing.T) {
	f := newFake(t)
	f.endless(false)
	c := f.serve().start("run", "do it")
	c.until("step 1")
	c.signal(os.Interrupt)
	c.until("asking PID 3")
	c.signal(os.Interrupt)
	code := c.end()
	if all := strings.Join(c.said, ""); code != ExitInterrupted || !strings.Contains(all, "[agent]   I look.\n[kernel] leaving; PID 3 was asked to stop") || !strings.Contains(all, "rnix kill -KILL 3") {
		t.Errorf("code %d, said %q", code, c.said)
	}
}

func TestInterruptOfAnAgentThatWorksOnSaysSo(t *testing.T) {
	for _, row := range []struct {
		r    ipc.SignalResponse
		want string
	}{
		{ipc.SignalResponse{Blocked: true}, "PID 3 blocks the signal and works on; Ctrl+C again leaves it running; end it with: rnix kill -KILL 3"},
		{ipc.SignalResponse{Handled: true}, "PID 3 is told of the interrupt (on_interrupt) and works on; Ctrl+C again leaves it running; end it with: rnix kill -KILL 3"},
	} {
		f := newFake(t)
		f.endless(false)
		f.signal = func(bool, ipc.SignalRequest) (ipc.SignalResponse, error) { return row.r, nil }
		c := f.serve().start("run", "do it")
		c.until("step 1")
		c.signal(os.Interrupt)
		c.until(row.want)
		c.signal(os.Interrupt)
		if code := c.end(); code != ExitInterrupted {
			t.Errorf("code %d, said %q", code, c.said)
		}
	}
}

func TestInterruptDuringTheSpawnStopsThatAgent(t *testing.T) {
	f := newFake(t)
	f.endless(true)
	inner := f.spawn
	entered, release := make(chan struct{}), make(chan struct{})
	f.spawn = func(ctx context.Context, r ipc.SpawnRequest) (ipc.SpawnResponse, error) {
		close(entered)
		<-release
		return inner(ctx, r)
	}
	c := f.serve().start("run", "do it")
	<-entered
	c.signal(os.Interrupt)
	c.until("stopping the agent")
	close(release)
	if code := c.end(); code != ExitInterrupted || !strings.Contains(f.calls(), "signal_tree "+id(3).String()+" SIGINT") {
		t.Errorf("code %d, calls %s, said %q", code, f.calls(), c.said)
	}
}

func TestInterruptedSpawnIsTakenBackFromASlowDaemon(t *testing.T) {
	f := newFake(t)
	entered := make(chan struct{})
	left := make(chan time.Duration, 1)
	f.spawn = func(ctx context.Context, _ ipc.SpawnRequest) (ipc.SpawnResponse, error) {
		began := time.Now()
		close(entered)
		<-ctx.Done()
		left <- time.Since(began)
		return ipc.SpawnResponse{}, context.Cause(ctx)
	}
	c := f.serve().start("run", "--json", "do it")
	<-entered
	c.signal(os.Interrupt)
	if code := c.end(); code != ExitInterrupted || !strings.Contains(c.out.String(), `"code":"CANCELLED"`) {
		t.Errorf("code %d, %s", code, c.out.String())
	}
	if d := <-left; d > 30*time.Second {
		t.Errorf("taken back after %s", d)
	}
}

func TestTerminationIsPassedOnAndHangupIsNot(t *testing.T) {
	f := newFake(t)
	f.endless(false)
	c := f.serve().start("run", "do it")
	c.until("step 1")
	c.signal(syscall.SIGTERM)
	if code := c.end(); code != ExitTerminated || !strings.HasSuffix(f.calls(), "SIGTERM") {
		t.Errorf("code %d, calls %s", code, f.calls())
	}
	f = newFake(t)
	f.endless(false)
	c = f.serve().start("run", "do it")
	c.until("step 1")
	c.signal(syscall.SIGHUP)
	if code := c.end(); code != ExitHangup || f.calls() != "spawn do it" {
		t.Errorf("code %d, calls %s", code, f.calls())
	}
}
