package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"rnix/internal/soak"
	"rnix/internal/testenv"
)

// stormSeconds is how long the storm blows: RNIX_STORM_SECONDS=60 go test -v -run DashboardInAStorm ./cmd/rnix
func stormSeconds(t *testing.T) int {
	t.Helper()
	return soak.Number(t, "RNIX_STORM_SECONDS", "seconds of storm", 4, 70)
}

// used is what a program has taken of the machine.
type used struct {
	cpu time.Duration
	rss int // bytes
}

// usedBy reads what the system knows of a process.
func usedBy(t *testing.T, pid string) used {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	number := func(i int) int { // of the fields behind the name, the state being 0
		n, err := strconv.Atoi(f[i])
		if err != nil {
			t.Fatalf("%s: %v", stat, err)
		}
		return n
	}
	return used{time.Duration(number(11)+number(12)) * time.Second / 100, number(21) * os.Getpagesize()}
}

// program returns the PID of what runs in the shell of the terminal.
func (s *screen) program() string {
	s.t.Helper()
	pid := strings.TrimSpace(s.tmux("display-message", "-p", "#{pane_pid}")) // a shell, and it may have started the one that is typed into
	for {
		kids, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
		if errors.Is(err, fs.ErrNotExist) {
			s.t.Skip("needs /proc/PID/task/TID/children")
		}
		list := strings.Fields(string(kids))
		if err != nil || len(list) > 1 {
			s.t.Fatalf("%s has the children %q, %v", pid, kids, err)
		}
		if len(list) == 0 {
			return pid
		}
		pid = list[0]
	}
}

// answered presses a key and returns how long it takes until the screen says want.
func (s *screen) answered(key, want string) time.Duration {
	s.t.Helper()
	begin := time.Now()
	s.keys(key)
	s.sees(want)
	return time.Since(begin)
}

var (
	logHas    = regexp.MustCompile(`the last [\d,]+ of ([\d,]+) lines`)
	logMissed = regexp.MustCompile(`([\d,]+) missed`)
)

// accounted returns how many lines the log on the screen says it was sent, and how many events it says it has missed.
func accounted(text string) (lines, missed int) {
	number := func(m []string) int {
		if m == nil {
			return 0
		}
		n, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", "")) // digits, by the pattern
		return n
	}
	return number(logHas.FindStringSubmatch(text)), number(logMissed.FindStringSubmatch(text))
}

// A real daemon, fifty other readers of its events, and a dashboard whose log pane shows all of them: it says what it missed, its
// keys are answered, and what it takes of the machine does not grow.
func TestTheDashboardInAStorm(t *testing.T) {
	soak.Turn(t)
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux")
	}
	span := time.Duration(stormSeconds(t)) * time.Second
	storm := testenv.NewStormTree(t, 200)
	s := &screen{t: t, sock: filepath.Join(storm.Dir, "tmux"), dir: storm.Work,
		env: append(storm.Env, "TMUX_TMPDIR="+storm.Dir, "TERM=xterm-256color", "SHELL=/bin/sh", "PS1=$ ", "GORACE=atexit_sleep_ms=0")}
	t.Cleanup(func() { _ = s.tmuxErr("kill-server") })
	crowd := storm.Watch(t.Context(), 50)
	s.open("120", "36", "rnix dashboard p0")
	s.sees("name       p0", "200 running")
	pid := s.program()
	s.keys("3", "Enter", "T") // the log, of all below it
	s.sees("all below it", "follows")

	type end struct {
		*testenv.Blew
		err error
	}
	over := make(chan end, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // the test waits for it below
		b, err := storm.Blow(ctx, 5000, span)
		over <- end{b, err}
	}()
	begin := time.Now()
	s.sees("what the model says")
	before := usedBy(t, pid)
	slowest, asked := time.Duration(0), 0
	var rss []int
	for time.Since(begin) < span*3/4 { // the log stays in sight; what is hidden changes nothing of what is read
		slowest = max(slowest, s.answered("e", "without steps"), s.answered("f", "does not follow"), s.answered("f", "follows"))
		s.keys("e")
		s.seesNot("without steps")
		asked += 4
		rss = append(rss, usedBy(t, pid).rss)
		<-time.After(span / 40)
	}
	after := usedBy(t, pid)
	took := time.Since(begin)
	for _, tab := range []string{"1 Detail", "2 Steps", "4 Talk", "5 Files", "6 Context", "7 Graph", "8 Cost", "9 Mail", "0 Forks", "- Trace", "3 Log"} {
		key, _, _ := strings.Cut(tab, " ")
		slowest = max(slowest, s.answered(key, tab))
		asked++
		<-time.After(span / 60)
	}
	rss = append(rss, usedBy(t, pid).rss)
	s.sees("follows")
	b := <-over
	if b.err != nil {
		t.Fatal(b.err)
	}
	var lines, missed int
	s.until(func(text string) bool {
		lines, missed = accounted(text)
		return lines+missed >= b.Events
	}, "the log accounts for fewer than all events")
	if lines+missed > int(b.Last)+b.Events/100 { // each gap is a line, too
		t.Errorf("the log says that it was sent %d lines and has missed %d events, of %d", lines, missed, b.Last)
	}
	shown := s.text()
	s.answered("?", "In the pane Log")
	s.answered("q", "follows")
	s.leave("q")
	if err := crowd.Over(); err != nil {
		t.Error(err)
	}
	if want := int64(b.Last) * 50; crowd.Read.Load()+crowd.Missed.Load() != want {
		t.Errorf("%d events were read by the crowd and %d told as missed, of %d", crowd.Read.Load(), crowd.Missed.Load(), want)
	}
	mib := func(n int) float64 { return float64(n) / (1 << 20) }
	early, late := rss[len(rss)/4], rss[len(rss)-1]
	t.Logf("%d events in %v (%.0f/s); the dashboard takes %.2f cores, %.1f MiB after a quarter and %.1f MiB at the end; %d keys, the slowest answered after %v; of the log %d lines and %d missed; an agent waits p50 %v p99 %v max %v\n%s",
		b.Events, b.Took.Round(time.Millisecond), float64(b.Events)/b.Took.Seconds(), (after.cpu-before.cpu).Seconds()/took.Seconds(), mib(early), mib(late), asked, slowest.Round(time.Millisecond),
		lines, missed, b.P50, b.P99, b.Max, shown)
	if b.P50 > time.Millisecond { // what most events cost does not depend on who else has the processor; a reader that blocks would
		t.Errorf("an agent waits %v for its event, half of the time", b.P50)
	}
	if span >= 30*time.Second && late > early+24<<20 {
		t.Errorf("the dashboard has grown from %.1f to %.1f MiB", mib(early), mib(late))
	}
}
