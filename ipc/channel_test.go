package ipc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/proc"
	"rnix/runtime/env"
	"rnix/types"
)

type whose struct {
	Owner  types.PID `json:"owner"`
	Inside bool      `json:"inside"`
	PID    int       `json:"pid"`
}

var who = Method[Empty, whose]{Name: "who", Doc: "who says for whom the caller works"}

// channelOn runs a server of channels until the test ends. It says of every caller that came over a socket that it is nobody's.
func channelOn(t testing.TB) *Channels { return roadOn(t, nil) }

// roadOn is channelOn for who uses a road; owner is as for NewChannels.
func roadOn(t testing.TB, owner func(pid int) (types.PID, bool)) *Channels {
	t.Helper()
	l := NewChannels(owner, nil)
	s := NewServer(ServerOptions{})
	s.Mount("/mounted", func(w http.ResponseWriter, _ *http.Request, p *Peer) {
		owner, _ := p.Settle(nil)
		_, _ = fmt.Fprintf(w, "mounted for %d", owner)
	})
	Handle(s, who, func(_ context.Context, p *Peer, _ Empty) (whose, error) {
		owner, inside := p.Settle(func(int) (types.PID, bool) { return 0, false })
		return whose{owner, inside, p.PID}, nil
	})
	Handle(s, hang, func(ctx context.Context, _ *Peer, _ Empty) (Empty, error) {
		<-ctx.Done()
		return Empty{}, ctx.Err()
	})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }() // ends with Shutdown below
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return l
}

// openChannel opens a channel of a process until the test ends, and returns its address and the child's end.
func openChannel(t testing.TB, l *Channels, owner types.PID) (address string, child *os.File, end func()) {
	t.Helper()
	child, end, err := l.Open(owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Close() // again
		end()
	})
	return channelPrefix + strconv.Itoa(int(child.Fd())), child, end
}

func askWho(t testing.TB, address string, want types.PID) {
	t.Helper()
	c, err := Connect(t.Context(), address)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	for range 2 { // the second on the connection of the first
		if got, err := Call(t.Context(), c, who, Empty{}); err != nil || got != (whose{want, true, 0}) {
			t.Errorf("%+v %v, want process %d", got, err, want)
		}
	}
}

func TestWhoCallsOverAChannelIsTheProcessOfTheChannel(t *testing.T) {
	l := channelOn(t)
	var all sync.WaitGroup
	for owner := range types.PID(3) {
		address, _, _ := openChannel(t, l, owner+5)
		for range maxPerChannel + 8 { // more at once than there is room for: they wait
			all.Go(func() { askWho(t, address, owner+5) })
		}
	}
	all.Wait()
}

// playChannel asks over a channel that it has inherited.
func playChannel(address string) int {
	c, err := Connect(context.Background(), address)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	got, err := Call(context.Background(), c, who, Empty{})
	fmt.Println(got.Owner, got.Inside, err)
	return 0
}

func TestAnotherProgramThatHasTheChannelActsForItsProcess(t *testing.T) {
	_, child, _ := openChannel(t, channelOn(t), 9)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"=channel=channel:3", "GORACE=atexit_sleep_ms=0")
	cmd.ExtraFiles = []*os.File{child}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "9 true <nil>\n" {
		t.Errorf("%s %v", out, err)
	}
}

// say sends a message over a channel as any program can.
func say(t *testing.T, child *os.File, text string, descriptors ...int) {
	t.Helper()
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	err := error(unix.EAGAIN)
	for err == unix.EAGAIN { // some wait already
		err = unix.Sendmsg(int(child.Fd()), []byte(text), rights, nil, unix.MSG_NOSIGNAL)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pair makes a pair of sockets, which are closed at the end of the test.
func pair(t *testing.T, kind int) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	return fds[0], fds[1]
}

// openDescriptors counts those of this program.
func openDescriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	return len(names)
}

func TestNothingComesOfMessagesThatAreNone(t *testing.T) {
	address, child, _ := openChannel(t, channelOn(t), 5)
	stream, _ := pair(t, unix.SOCK_STREAM)
	datagram, _ := pair(t, unix.SOCK_DGRAM)
	answers, asked := pair(t, unix.SOCK_SEQPACKET)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	lingering, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(lingering)
	if err := unix.SetsockoptLinger(lingering, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600}); err != nil {
		t.Fatal(err)
	}
	many := make([]int, maxRights)
	for i := range many {
		many[i] = asked
	}
	askWho(t, address, 5)
	before := openDescriptors(t)
	for _, m := range []struct {
		text        string
		descriptors []int
	}{
		{"", nil}, {"", []int{asked}}, {"", many}, {channelAsk, nil}, {channelAsk, many}, {channelAsk, []int{asked, asked}},
		{"c", []int{asked}}, {channelAsk + "\n", []int{asked}}, {strings.Repeat(channelAsk, 10_000), []int{asked}},
		{channelAsk, []int{stream}}, {channelAsk, []int{datagram}}, {channelAsk, []int{lingering}}, {channelAsk, []int{0}},
		{channelAsk, []int{int(child.Fd())}}, // the answer comes back to the daemon
		{channelGiven, []int{stream}}, {channelFull, nil},
	} {
		for range 10 {
			say(t, child, m.text, m.descriptors...)
		}
		askWho(t, address, 5) // behind that
	}
	if _, _, err := receive(answers); err != unix.EAGAIN {
		t.Error("it was answered:", err)
	}
	after := openDescriptors(t)
	for end := time.Now().Add(10 * time.Second); after > before && time.Now().Before(end); after = openDescriptors(t) { // connections of ours are about to end
		<-time.After(time.Millisecond)
	}
	if after > before {
		t.Errorf("%d descriptors are open, and were %d", after, before)
	}
}

func TestConnectionsOfAChannelAreBounded(t *testing.T) {
	l := channelOn(t)
	address, child, _ := openChannel(t, l, 5)
	other, _, _ := openChannel(t, l, 6)
	// One that never takes what it is answered.
	var held []int
	for range 3 * maxPerChannel {
		ours, theirs := pair(t, unix.SOCK_SEQPACKET)
		say(t, child, channelAsk, theirs)
		held = append(held, ours)
	}
	fd, _ := channelOf(address)
	if _, err := askChannel(t.Context(), fd); !errors.Is(err, errFull) {
		t.Error("there is room:", err)
	}
	askWho(t, other, 6)
	given := 0
	for _, ours := range held {
		word, got, err := receive(ours)
		if err != nil {
			t.Fatal(err)
		}
		if word == channelGiven {
			given++
		}
		dropAll(got)
	}
	if given != maxPerChannel {
		t.Errorf("%d connections, want %d", given, maxPerChannel)
	}
	askWho(t, address, 5) // there is room as soon as they have ended
}

func TestTheEndOfAChannelEndsWhatCameOverIt(t *testing.T) {
	l := channelOn(t)
	address, _, end := openChannel(t, l, 5)
	other, _, _ := openChannel(t, l, 6)
	c, err := Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	idle, err := Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	done := make(chan error, 1)
	go func() { _, err := Call(t.Context(), c, hang, Empty{}); done <- err }() // ends with the channel
	askWho(t, address, 5)
	end()
	end()
	if err := <-done; types.CodeOf(err) != types.ErrDisconnected && types.CodeOf(err) != types.ErrUnavailable {
		t.Error(err)
	}
	for _, again := range []func() error{
		func() error { _, err := Connect(t.Context(), address); return err },
		func() error { _, err := Call(t.Context(), idle, who, Empty{}); return err },
	} {
		if err := again(); types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), "the channel of this process has ended") {
			t.Error(err)
		}
	}
	askWho(t, other, 6)
}

// A call that has begun may ask for whom it acts when that process has ended.
func TestNobodyIsActedForOnceAChannelHasEnded(t *testing.T) {
	c := &channel{owner: 5}
	p := &Peer{known: c}
	find := func(int) (types.PID, bool) { t.Error("asked for a PID"); return 0, false }
	if owner, inside := p.Settle(find); owner != 5 || !inside {
		t.Error(owner, inside)
	}
	c.over = true
	if owner, inside := p.Settle(find); owner != 0 || !inside {
		t.Error(owner, inside)
	}
}

func TestAChannelEndsWhenNobodyHasTheOtherEnd(t *testing.T) {
	l := channelOn(t)
	for _, leave := range []func(*os.File) error{(*os.File).Close, func(f *os.File) error { return unix.Shutdown(int(f.Fd()), unix.SHUT_WR) }} {
		child, end, err := l.Open(5)
		if err != nil {
			t.Fatal(err)
		}
		l.mu.Lock()
		var c *channel
		for c = range l.open {
		}
		l.mu.Unlock()
		if err := leave(child); err != nil {
			t.Fatal(err)
		}
		for t.Context().Err() == nil && c.socket.SetReadDeadline(time.Time{}) == nil { // it has not been closed yet
		}
		end()
		_ = child.Close() // again
	}
}

func TestAStoppedDaemonHasNoChannels(t *testing.T) {
	l := NewChannels(nil, nil)
	address, _, _ := openChannel(t, l, 5)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() { // ended by cancel; nobody accepts
		c, err := Connect(ctx, address)
		if err == nil {
			_, err = Call(ctx, c, who, Empty{})
		}
		waiting <- err
	}()
	cancel()
	if err := <-waiting; types.CodeOf(err) != types.ErrCancelled {
		t.Error(err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, _, err := l.Open(6); types.CodeOf(err) != types.ErrUnavailable {
		t.Error(err)
	}
	if _, err := Connect(t.Context(), address); types.CodeOf(err) != types.ErrUnavailable {
		t.Error(err)
	}
	if _, err := Ensure(t.Context(), EnsureOptions{Socket: address}); types.CodeOf(err) != types.ErrUnavailable {
		t.Error("it started a daemon:", err)
	}
}

func TestTheVariableOfAChannelIsChecked(t *testing.T) {
	_, child, _ := openChannel(t, channelOn(t), 5)
	fd := strconv.Itoa(int(child.Fd()))
	stream, _ := pair(t, unix.SOCK_STREAM)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	closed, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(closed)
	for _, c := range []struct {
		value, address string
		code           types.ErrCode
		text           string
	}{
		{"", "", "", ""},
		{fd + ":/data", channelPrefix + fd, "", ""},
		{fd + ":/other", "", "", ""},
		{fd, "", types.ErrInvalid, env.ChannelVar},
		{fd + ":data", "", types.ErrInvalid, "invalid value"},
		{"x:/data", "", types.ErrInvalid, "invalid value"},
		{"-1:/data", "", types.ErrInvalid, "invalid value"},
		{"1:/data", "", types.ErrInvalid, "invalid value"},
		{strconv.Itoa(closed) + ":/data", "", types.ErrUnavailable, "it is closed); a program in between"},
		{strconv.Itoa(int(null.Fd())) + ":/data", "", types.ErrUnavailable, "it is something else); a program in between"},
		{strconv.Itoa(stream) + ":/data", "", types.ErrUnavailable, "it is a socket of another type); a program in between"},
	} {
		address, err := Channel(c.value, "/data/")
		if address != c.address || types.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%q: %q %v, want %q %s", c.value, address, err, c.address, c.code)
		}
	}
	if got := Nearest("/socket", ""); got != "/socket" && got != channelPrefix+strconv.Itoa(proc.ChannelFD) {
		t.Error(got)
	}
}
