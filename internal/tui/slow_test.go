package tui

import (
	"bytes"
	"context"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/soak"
	"rnix/ipc"
	"rnix/types"
)

// flood is a Source whose table of processes changes as fast as somebody reads it.
type flood struct{ frames atomic.Int64 }

func (f *flood) Call(context.Context, string, any, any) error {
	return types.Errorf(types.ErrNotFound, "", "", "the test has no answer")
}

func (f *flood) Open(ctx context.Context, _ string, _ any) (Stream, error) {
	return &floodStream{f, ctx}, nil
}

type floodStream struct {
	f   *flood
	ctx context.Context
}

func (s *floodStream) Next(v any) (*ipc.Missed, error) {
	n := int(s.f.frames.Add(1))
	select {
	case <-s.ctx.Done():
		return nil, io.EOF
	case <-time.After(4 * time.Millisecond):
	}
	t, ok := v.(*ipc.ProcTable)
	if !ok {
		return nil, io.EOF
	}
	*t = ipc.ProcTable{Seq: uint64(n), At: time.Now(), Whole: n == 1}
	for i := 1; i <= 200; i++ {
		p := proc(i, 0, "agent"+strconv.Itoa(i))
		p.TokensUsed = n*1000 + i
		t.Procs = append(t.Procs, p)
	}
	return nil, nil
}

func (s *floodStream) Close() error { return nil }

// terminalPair opens a real terminal of 80x24: the side that shows, and the side of the program.
func terminalPair(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skip("needs /dev/ptmx: ", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	raw, err := screen.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := -1
	if cerr := raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			return
		}
		if err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	if tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	return screen, tty
}

// slowScreen reads what comes to a terminal at a rate, and keeps all of it.
type slowScreen struct {
	mu   sync.Mutex
	text bytes.Buffer // +checklocks:mu
}

func (s *slowScreen) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.text.String() }

func (s *slowScreen) len() int { s.mu.Lock(); defer s.mu.Unlock(); return s.text.Len() }

// systemKeeps returns how many bytes the system takes for a terminal that reads nothing.
func systemKeeps(t *testing.T) int {
	t.Helper()
	_, tty := terminalPair(t)
	raw, err := tty.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	if err := raw.Control(func(fd uintptr) {
		if err = unix.SetNonblock(int(fd), true); err != nil {
			return
		}
		for block := bytes.Repeat([]byte("x"), 256); ; {
			n, werr := unix.Write(int(fd), block)
			if werr != nil {
				return
			}
			kept += n
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// aPicture is more than a whole screen of 80x24 comes to in bytes, with its styles.
const aPicture = 8 << 10

// answers types m, with which the mouse is let go or taken, calls then, and returns how many bytes the terminal takes until it is told
// of that.
func (s *slowScreen) answers(t *testing.T, screen io.Writer, mouse string, then func()) int {
	t.Helper()
	at := s.len()
	if _, err := screen.Write([]byte("m")); err != nil {
		t.Fatal(err)
	}
	then()
	comes(t, "the answer to m", func() bool { return strings.Contains(s.String()[at:], mouse) })
	return strings.Index(s.String()[at:], mouse)
}

// read reads a tenth of rate each tenth of a second, until the terminal goes away. A rate is in bytes a second; 0 = as fast as it comes.
func (s *slowScreen) read(screen io.Reader, rate *atomic.Int64, stopped <-chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	buf := make([]byte, 4096)
	for {
		room := len(buf)
		if r := int(rate.Load()); r != 0 {
			select {
			case <-tick.C:
			case <-stopped:
				return
			}
			if r < 0 { // it does not read
				continue
			}
			room = max(r/10, 1)
		}
		n, err := screen.Read(buf[:room])
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func heapNow() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A terminal that takes 2 KB a second, and one that takes nothing for seconds, gets fewer pictures, and what is typed is answered
// as soon as it has taken what was on its way. What comes meanwhile is not kept.
func TestASlowTerminalGetsFewerPicturesAndKeepsItsKeys(t *testing.T) {
	soak.Turn(t)
	for _, onTop := range []bool{true, false} {
		name := "dashboard"
		if onTop {
			name = "top"
		}
		t.Run(name, func(t *testing.T) {
			screen, tty := terminalPair(t)
			before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			src, shown := &flood{}, &slowScreen{}
			var rate atomic.Int64
			rate.Store(2048)
			stopped := make(chan struct{})
			var reader sync.WaitGroup
			reader.Go(func() { shown.read(screen, &rate, stopped) })
			env := []string{"TERM=xterm-256color", "LANG=C.UTF-8"}
			ended := make(chan error, 1)
			go func() { // ends with Run; the test waits for what it sends
				ended <- Run(t.Context(), Options{Source: src, In: tty, Out: tty, Environ: env, Top: onTop, Env: func(n string) (string, bool) {
					v, ok := map[string]string{"LANG": "C.UTF-8", "TERM": "xterm-256color"}[n]
					return v, ok
				}})
			}()
			<-time.After(time.Second)
			// A key is answered behind what was on its way: what the system keeps, the picture that is being written, and the one with the answer.
			bound := systemKeeps(t) + 2*aPicture
			if n := shown.answers(t, screen, "\x1b[?1002l", func() {}); n > bound {
				t.Errorf("of a slow terminal a key is answered after %d bytes, more than %d", n, bound)
			} else {
				t.Logf("a slow terminal: a key is answered after %d bytes, at most %d", n, bound)
			}
			heap := heapNow()
			rate.Store(-1) // it does not read at all
			<-time.After(time.Second)
			comes(t, "a hundred frames", func() bool { return src.frames.Load() >= 100 })
			frames := src.frames.Load()
			if grown := int64(heapNow()) - int64(heap); grown > 16<<20 {
				t.Errorf("the heap has grown by %d bytes while the terminal stood still (%d frames)", grown, frames)
			}
			if n := shown.answers(t, screen, "\x1b[?1002h", func() { rate.Store(16 << 10) }); n > bound {
				t.Errorf("of a terminal that stood still a key is answered after %d bytes, more than %d", n, bound)
			} else {
				t.Logf("one that stood still: a key is answered after %d bytes", n)
			}
			if _, err := screen.Write([]byte("\x03")); err != nil { // ctrl+c
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("it ends with %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("ctrl+c is not answered")
			}
			comes(t, "the terminal's own screen", func() bool { return bytes.Contains([]byte(shown.String()), []byte("\x1b[?1049l")) })
			after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil || *after != *before {
				t.Errorf("the terminal is left as %+v, was %+v, %v", after, before, err)
			}
			if all := src.frames.Load(); len(shown.String()) > 256<<10 {
				t.Errorf("%d frames were taken in, and %d bytes came: none were passed over", all, len(shown.String()))
			}
			close(stopped)
			rate.Store(-1)
			_ = screen.Close()
			reader.Wait()
		})
	}
}

// comes waits until ok, at most half a minute.
func comes(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(30 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s does not come", what)
		}
	}
}

func TestATerminalThatGoesAwayEndsTheProgram(t *testing.T) {
	for _, reads := range []bool{true, false} {
		t.Run(strconv.FormatBool(reads), func(t *testing.T) {
			screen, tty := terminalPair(t)
			var rate atomic.Int64
			if !reads {
				rate.Store(-1)
			}
			stopped := make(chan struct{})
			var reader sync.WaitGroup
			reader.Go(func() { (&slowScreen{}).read(screen, &rate, stopped) })
			ended := make(chan struct{})
			go func() { // ends with Run; the test waits for it
				defer close(ended)
				_ = Run(t.Context(), Options{Source: &flood{}, In: tty, Out: tty, Environ: []string{"TERM=xterm"}, Top: true, Env: func(string) (string, bool) { return "", false }})
			}()
			<-time.After(time.Second)
			close(stopped)
			_ = screen.Close()
			reader.Wait()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Fatal("it goes on without a terminal")
			}
		})
	}
}
