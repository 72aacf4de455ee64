package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rnix/internal/event"
	"rnix/ipc"
)

// openTerminal makes a terminal of 60 columns and returns both of its ends.
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("needs /dev/ptmx: ", err)
	}
	t.Cleanup(func() { screen.Close() })
	fd := int(screen.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Skip("needs pseudo terminals: ", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Skip("needs pseudo terminals: ", err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("needs pseudo terminals: ", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 60}); err != nil {
		t.Fatal(err)
	}
	return screen, terminal
}

// onTerminal runs the program with standard error, and standard input, on a terminal and returns what
// the terminal got. seen is called with what it has got so far, and returns what is typed then.
func (f *fake) onTerminal(seen func(string) string, env []string, args ...string) (code int, out, err string) {
	f.t.Helper()
	screen, terminal := openTerminal(f.t)
	c := exec.Command(os.Args[0], args...)
	c.Env = append(append(append([]string{}, f.env...), roleEnv+"=rnix", "GORACE=atexit_sleep_ms=0"), env...)
	c.Dir = f.dir
	var stdout bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = terminal, &stdout, terminal
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	terminal.Close()
	var all bytes.Buffer
	buf := make([]byte, 4096)
	for {
		n, err := screen.Read(buf)
		all.Write(buf[:n])
		if typed := seen(all.String()); typed != "" {
			if _, err := screen.WriteString(typed); err != nil {
				f.t.Error(err)
			}
		}
		if err != nil { // EIO when the last one has closed it
			break
		}
	}
	_ = c.Wait() // the code says it
	return c.ProcessState.ExitCode(), stdout.String(), all.String()
}

func TestTerminalHasOneLiveLineThatGoesAway(t *testing.T) {
	f := newFake(t)
	f.theRun(nil, ipc.WaitResponse{})
	seen := make(chan struct{})
	f.events = func(ctx context.Context, _ ipc.EventsRequest, out *ipc.Stream) error {
		for i, e := range []ipc.Event{
			{Kind: event.StepStarted, Step: 2, Total: 9}, {Kind: event.Syscall, Name: "Open", Path: "/dev/shell\x1b[2J"},
		} {
			e.Seq, e.PID, e.UUID = uint64(101+i), 3, id(3)
			_ = out.SendRaw(e.Seq, string(e.Kind), event.AppendJSON(nil, (*event.Event)(&e)))
		}
		<-seen
		return nil
	}
	f.wait = func(context.Context, ipc.WaitRequest) (ipc.WaitResponse, error) {
		<-seen
		return anEnd(), nil
	}
	f.serve()
	shown := false
	code, out, text := f.onTerminal(func(s string) string {
		if !shown && strings.Contains(s, "uses /dev/shell") {
			shown = true
			close(seen)
		}
		return ""
	}, nil, "run", "do it")
	if !shown {
		close(seen)
		t.Fatalf("no live line in %q", text)
	}
	last := text[strings.LastIndex(text, "\r\x1b[K")+len("\r\x1b[K"):]
	if code != 0 || out != "The result.\n" || !strings.Contains(last, "exited(0)") || strings.Contains(text, "\x1b[2J") || !strings.Contains(text, "step 2/9") {
		t.Errorf("code %d, out %q, terminal %q", code, out, text)
	}
	for line := range strings.SplitSeq(text, "\r\x1b[K") {
		if strings.Contains(line, "uses ") && !strings.Contains(line, "\n") && cells(plainText(line)) > 60 {
			t.Errorf("the live line is too long: %q", line)
		}
	}
}

// silent types nothing.
func silent(string) string { return "" }

// plainText takes the colours away.
func plainText(s string) string {
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return s
		}
		j := strings.IndexByte(s[i:], 'm')
		if j < 0 {
			return s[:i]
		}
		s = s[:i] + s[i+j+1:]
	}
}

func TestNoColorHoldsOnATerminal(t *testing.T) {
	f := newFake(t)
	f.theRun(aRun(), anEnd())
	f.serve()
	code, _, text := f.onTerminal(silent, []string{"NO_COLOR=1"}, "run", "do it")
	if code != 0 || strings.Contains(strings.ReplaceAll(text, "\r\x1b[K", ""), "\x1b[") {
		t.Errorf("code %d, %q", code, text)
	}
}

func TestRunWithoutIntentOnATerminalAsksNothing(t *testing.T) {
	f := newFake(t).serve()
	code, _, text := f.onTerminal(silent, nil, "run")
	if code != ExitUsage || !strings.Contains(text, "there is no intent") {
		t.Errorf("code %d, %q", code, text)
	}
}

func TestTheEndOfALongTextIsShown(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{{"abc", 3, "abc"}, {"abcdef", 3, "…ef"}, {"日本語", 5, "…本語"}, {"日本語", 4, "…語"}, {"", 3, ""}, {"abc", 0, "abc"}, {"abc", 1, "…"}} {
		if got := lastCells(c.text, c.limit); got != c.want {
			t.Errorf("%q in %d cells: %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}
