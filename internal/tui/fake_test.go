package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

func TestMain(m *testing.M) {
	if code, asked := testenv.Daemon(); asked {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// begin is the moment at which the tests' clock stands.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeSource answers calls from a table, and writes down what it was asked.
type fakeSource struct {
	mu sync.Mutex
	// +checklocks:mu
	asked   []string                          // "method {request}"
	answers map[string]func(any) (any, error) // by method
	streams []*fakeStream                     // +checklocks:mu
	refuse  error                             // of Open
	events  []any                             // frames of a stream of events, which then ends; an ipc.Missed is a gap
}

func (f *fakeSource) Call(_ context.Context, method string, req, resp any) error {
	raw, _ := json.Marshal(req)
	f.mu.Lock()
	f.asked = append(f.asked, method+" "+string(raw))
	f.mu.Unlock()
	answer := f.answers[method]
	if answer == nil {
		return types.Errorf(types.ErrNotFound, method, "", "the test has no answer")
	}
	v, err := answer(req)
	if err != nil {
		return err
	}
	if raw, err = json.Marshal(v); err != nil {
		return err
	}
	return json.Unmarshal(raw, resp)
}

func (f *fakeSource) Open(_ context.Context, method string, req any) (Stream, error) {
	raw, _ := json.Marshal(req)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, method+" "+string(raw))
	if f.refuse != nil {
		return nil, f.refuse
	}
	s := &fakeStream{frames: make(chan any, 100)}
	if method == ipc.Events.Name {
		s.frames = make(chan any, len(f.events))
		for _, e := range f.events {
			s.frames <- e
		}
		close(s.frames)
	}
	f.streams = append(f.streams, s)
	return s, nil
}

// last returns what was asked last, of some method.
func (f *fakeSource) last(method string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.asked) - 1; i >= 0; i-- {
		if strings.HasPrefix(f.asked[i], method+" ") {
			return f.asked[i]
		}
	}
	return ""
}

// all returns what was asked, the first question first.
func (f *fakeSource) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// opened returns the streams that were opened.
func (f *fakeSource) opened() []*fakeStream {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.streams)
}

type fakeStream struct {
	frames chan any
	closed bool
}

func (s *fakeStream) Next(v any) (*ipc.Missed, error) {
	f, ok := <-s.frames
	if !ok {
		return nil, io.EOF
	}
	if m, gap := f.(ipc.Missed); gap {
		return &m, nil
	}
	raw, _ := json.Marshal(f)
	return nil, json.Unmarshal(raw, v)
}

func (s *fakeStream) Close() error { s.closed = true; return nil }

// bench is a program under test: messages are put into Update by hand, and the commands that come back are
// run by hand. The clock stands still.
type bench struct {
	*Model
	t     *testing.T
	src   *fakeSource
	now   time.Time
	cmds  []tea.Cmd
	waits []wait // what was asked of the clock
}

type wait struct {
	d   time.Duration
	msg tea.Msg
}

func newBench(t *testing.T, onTop bool, procs ...ipc.Proc) *bench {
	t.Helper()
	b := &bench{t: t, src: &fakeSource{answers: map[string]func(any) (any, error){}}, now: begin}
	b.src.answers["get_proc_detail"] = func(req any) (any, error) {
		for _, r := range b.rows.by {
			if r.UUID.String() == req.(ipc.TargetRequest).Target {
				return ipc.ProcDetail{Proc: r.Proc}, nil
			}
		}
		return nil, types.Errorf(types.ErrNotFound, "", "", "no such process")
	}
	b.Model = New(t.Context(), Options{Source: b.src, Env: func(name string) (string, bool) {
		v, ok := map[string]string{"LANG": "C.UTF-8", "TERM": "xterm"}[name]
		return v, ok
	}, Top: onTop})
	b.env.now = func() time.Time { return b.now }
	b.env.t.Color = false
	b.env.after = func(d time.Duration, msg tea.Msg) tea.Cmd { b.waits = append(b.waits, wait{d, msg}); return nil }
	b.send(tea.WindowSizeMsg{Width: 100, Height: 30})
	b.frame(true, procs...)
	return b
}

// send puts a message in, and runs what comes of it that does not wait for a clock.
func (b *bench) send(msg tea.Msg) {
	b.t.Helper()
	_, cmd := b.Update(msg)
	b.cmds = append(b.cmds, cmd)
}

// frame is a frame of the stream of processes.
func (b *bench) frame(whole bool, procs ...ipc.Proc) {
	b.t.Helper()
	t := &ipc.ProcTable{Seq: b.rows.seq + 1, At: b.now, Whole: whole, Procs: procs}
	for i := range procs {
		t.Totals.Running++
		t.Totals.Tokens += procs[i].TokensUsed
		t.Totals.CostUSD += procs[i].CostUSD
	}
	b.rows.fold(t, b.list.sel)
	b.send(struct{}{})
}

// press presses keys, as tea writes them: "a", "K", "ctrl+d", "enter".
func (b *bench) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.send(pressed(k))
	}
}

// run runs the commands that have come back, with all that comes of them. Ticks and reading of streams are left out.
func (b *bench) run() {
	b.t.Helper()
	for len(b.cmds) > 0 {
		cmd := b.cmds[0]
		b.cmds = b.cmds[1:]
		if cmd == nil {
			continue
		}
		switch msg := cmd().(type) {
		case nil, openedMsg: // a stream is read by hand: frame
		case tea.BatchMsg:
			b.cmds = append(b.cmds, msg...)
		default:
			b.send(msg)
		}
	}
}

// screen draws, and returns the lines without blanks at their ends.
func (b *bench) screenText() string {
	b.t.Helper()
	s, _ := b.draw()
	lines := strings.Split(ansi.Strip(s), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func (b *bench) sees(want string) {
	b.t.Helper()
	if s := b.screenText(); !strings.Contains(s, want) {
		b.t.Errorf("the screen lacks %q:\n%s", want, s)
	}
}

func (b *bench) seesNot(want string) {
	b.t.Helper()
	if s := b.screenText(); strings.Contains(s, want) {
		b.t.Errorf("the screen has %q:\n%s", want, s)
	}
}

// uuid returns the n-th UUID of the tests.
func uuid(n int) types.UUID {
	var u types.UUID
	copy(u[:], fmt.Sprintf("test-%011d", n))
	return u
}

// proc returns a running process.
func proc(n int, parent int, name string) ipc.Proc {
	p := ipc.Proc{ProcStatus: types.ProcStatus{PID: types.PID(n), UUID: uuid(n), Name: name, Intent: "Work on " + name, Provider: "offline", Model: "script", Step: n, MaxSteps: 20, TokensUsed: 1000 * n, CostUSD: 0.01 * float64(n), CreatedAt: begin}, State: stateRunning, ElapsedMs: int64(n) * 1000}
	if parent > 0 {
		p.PPID, p.ParentUUID = types.PID(parent), uuid(parent)
	}
	return p
}

// pressed is the message of a key.
func pressed(k string) tea.KeyPressMsg {
	names := map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "enter": tea.KeyEnter, "esc": tea.KeyEscape,
		"tab": tea.KeyTab, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "space": tea.KeySpace,
		"backspace": tea.KeyBackspace, "delete": tea.KeyDelete}
	var mod tea.KeyMod
	rest := k
	for {
		if r, ok := strings.CutPrefix(rest, "ctrl+"); ok {
			mod, rest = mod|tea.ModCtrl, r
		} else if r, ok := strings.CutPrefix(rest, "shift+"); ok {
			mod, rest = mod|tea.ModShift, r
		} else if r, ok := strings.CutPrefix(rest, "alt+"); ok {
			mod, rest = mod|tea.ModAlt, r
		} else {
			break
		}
	}
	if code, ok := names[rest]; ok {
		m := tea.KeyPressMsg{Code: code, Mod: mod}
		if code == tea.KeySpace && mod == 0 {
			m.Text = " "
		}
		return m
	}
	m := tea.KeyPressMsg{Code: []rune(rest)[0], Mod: mod}
	if mod == 0 {
		m.Text = rest
	}
	return m
}
