package ipc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rnix/runtime/env"
	"rnix/types"
)

const envOwner = "IPC_TEST_OWNER"

// byEnviron says of a process whose it is as its environment does; this program is nobody's.
func byEnviron(pid int) (types.PID, bool) {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ") // it has ended
	for _, kv := range bytes.Split(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(envOwner+"=")); ok {
			owner, err := strconv.Atoi(string(value))
			return types.PID(owner), err == nil
		}
	}
	return 0, false
}

// ours says that all are process 5's.
func ours(int) (types.PID, bool) { return 5, true }

// openRoad opens a road of a process until the test ends.
func openRoad(t testing.TB, l *Channels, owner types.PID) (address string, end func()) {
	t.Helper()
	at, end, err := l.Road(owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return roadPrefix + at, end
}

// another is a program that asks at an address whose it is, and is the process's with a PID.
func another(address string, owner types.PID) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"=channel="+address, envOwner+"="+strconv.Itoa(int(owner)), "GORACE=atexit_sleep_ms=0")
	return cmd
}

func refusedOver(t *testing.T, address string, code types.ErrCode, text string) {
	t.Helper()
	for range 20 { // it is told whether it has asked by then or not
		c, err := Connect(t.Context(), address)
		if err == nil {
			_, err = Call(t.Context(), c, who, Empty{})
			_ = c.Close()
		}
		if types.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
			t.Fatalf("%v, want %s, %q", err, code, text)
		}
	}
}

func TestWhoCallsOverARoadIsTheProcessOfTheProgram(t *testing.T) {
	l := roadOn(t, byEnviron)
	address, _ := openRoad(t, l, 5)
	if again, _ := openRoad(t, l, 6); again != address {
		t.Errorf("two roads, %s and %s", address, again)
	}
	var all sync.WaitGroup
	for _, owner := range []types.PID{5, 6, 5, 6} {
		all.Go(func() {
			want := strconv.Itoa(int(owner)) + " true <nil>\n"
			if out, err := another(address, owner).CombinedOutput(); err != nil || string(out) != want {
				t.Errorf("%s %v, want %s", out, err, want)
			}
		})
	}
	all.Wait()
	for owner, want := range map[types.PID]string{7: "process 7 has none that runs", 0: "has left its agent"} {
		if out, _ := another(address, owner).CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("%s, want %s", out, want)
		}
	}
	refusedOver(t, address, types.ErrPermission, "no other program may use it: the process that calls runs inside no agent")
}

// A socket that processes of two agents have is nobody's.
func TestASocketOfTwoAgentsIsRefused(t *testing.T) {
	l := roadOn(t, func(pid int) (types.PID, bool) {
		if pid == os.Getpid() { // it makes the socket
			return 5, true
		}
		return byEnviron(pid)
	})
	address, _ := openRoad(t, l, 5)
	at, _ := roadOf(address)
	for owner, want := range map[types.PID]string{5: `"ok":true`, 6: "processes of several agents"} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "socket")
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		holders := make([]*exec.Cmd, 0, 2)
		for _, o := range []types.PID{5, owner} {
			cmd := exec.Command("sh", "-c", "read x")
			cmd.Env, cmd.Stdin, cmd.ExtraFiles = append(os.Environ(), envOwner+"="+strconv.Itoa(int(o))), in, []*os.File{f}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			holders = append(holders, cmd)
		}
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(f, "POST /v1/who HTTP/1.1\r\nHost: rnix\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		answer, _ := io.ReadAll(f) // it may be cut off
		if !strings.Contains(string(answer), want) {
			t.Errorf("%d: %s, want %s", owner, answer, want)
		}
		_, _, _ = in.Close(), out.Close(), f.Close()
		for _, cmd := range holders {
			_ = cmd.Wait() // it has read the end
		}
	}
}

func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	asked := false
	l := roadOn(t, func(int) (types.PID, bool) { asked = true; return 5, true })
	address, _ := openRoad(t, l, 5)
	at, _ := roadOf(address)
	cmd := exec.Command("bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/$0 && cat <&3`, strconv.Itoa(int(at.Port())))
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); !strings.Contains(string(out), "another user calls") || asked {
		t.Errorf("%s %v", out, err)
	}
}

func TestConnectionsOfARoadAreBounded(t *testing.T) {
	l := roadOn(t, ours)
	address, _ := openRoad(t, l, 5)
	var clients []*Client
	for range maxPerRoad {
		c, err := Connect(t.Context(), address)
		if err == nil {
			_, err = Call(t.Context(), c, who, Empty{})
		}
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	refusedOver(t, address, types.ErrExhausted, "as many connections to the daemon as it may have")
	if err := clients[0].Close(); err != nil {
		t.Fatal(err)
	}
	for err := errors.New("not yet"); err != nil && t.Context().Err() == nil; { // the server sees the end a moment later
		var c *Client
		if c, err = Connect(t.Context(), address); err == nil {
			_, err = Call(t.Context(), c, who, Empty{})
			_ = c.Close()
		}
		if err != nil && types.CodeOf(err) != types.ErrExhausted {
			t.Fatal(err)
		}
	}
	for _, c := range clients {
		_ = c.Close()
	}
}

func TestTheEndOfARoadEndsWhatCameOverIt(t *testing.T) {
	l := roadOn(t, ours)
	address, end := openRoad(t, l, 5)
	_, second := openRoad(t, l, 5) // of another CLI of the process
	other, _ := openRoad(t, l, 6)
	c, err := Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := Call(t.Context(), c, who, Empty{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := Call(t.Context(), c, hang, Empty{}); done <- err }() // ends with the road
	end()
	end()
	askWho(t, address, 5)
	second()
	if err := <-done; types.CodeOf(err) != types.ErrDisconnected {
		t.Error(err)
	}
	refusedOver(t, other, types.ErrPermission, "process 5 has none that runs")
}

// Nothing listens when nobody has a road, and the next one is another.
func TestARoadIsThereOnlyWhileAProcessHasOne(t *testing.T) {
	l := roadOn(t, ours)
	address, end := openRoad(t, l, 5)
	askWho(t, address, 5)
	end()
	refusedOver(t, address, types.ErrUnavailable, "the daemon does not listen here any more")
	again, _ := openRoad(t, l, 5)
	askWho(t, again, 5)

	l.mu.Lock()
	r := l.road
	l.mu.Unlock()
	_ = r.listener.Close() // as if the system had ended it
	<-r.quit
	third, _ := openRoad(t, l, 5)
	askWho(t, third, 5)
}

func TestAStoppedDaemonHasNoRoad(t *testing.T) {
	l := NewChannels(ours, nil)
	address, _ := openRoad(t, l, 5)
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, roadPrefix)) // it is never accepted
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // the test ends
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := l.Road(5); types.CodeOf(err) != types.ErrUnavailable {
		t.Error(err)
	}
	refusedOver(t, address, types.ErrUnavailable, "the daemon does not listen here any more")
}

func TestNobodyIsActedForOnceARoadHasEnded(t *testing.T) {
	to := &traveller{owner: 5}
	p := &Peer{known: &roadConn{road: &road{}, of: to}}
	if owner, inside := p.Settle(nil); owner != 5 || !inside {
		t.Error(owner, inside)
	}
	to.over = true
	if owner, inside := p.Settle(nil); owner != 0 || !inside {
		t.Error(owner, inside)
	}
}

// A page that an agent's browser shows reaches the address, and nothing comes of what it asks.
func TestPagesDoNotCallOverARoad(t *testing.T) {
	l := roadOn(t, ours)
	address, _ := openRoad(t, l, 5)
	at, _ := roadOf(address)
	for _, c := range []struct {
		host, origin, path string
		status             int
		text               string
	}{
		{wireHost, "", "/v1/who", http.StatusOK, `"owner":5`},
		{at.String(), "", "/v1/who", http.StatusForbidden, "pages may not call"},
		{"localhost", "", "/v1/who", http.StatusForbidden, "pages may not call"},
		{wireHost, "http://" + at.String(), "/v1/who", http.StatusForbidden, "pages may not call"},
		{wireHost, "null", "/v1/", http.StatusForbidden, "pages may not call"},
		{"elsewhere.example", "http://elsewhere.example", "/mounted", http.StatusOK, "mounted for 5"}, // it says itself who may
		{wireHost, "", "/elsewhere", http.StatusNotFound, "this daemon speaks"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at.String()+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if r.Host = c.host; c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		r.Close = true
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(text), c.text) {
			t.Errorf("%+v: %d %s", c, resp.StatusCode, text)
		}
	}
}

// What is mounted for roads is not there over the socket.
func TestWhatIsMountedIsForRoads(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, func(s *Server) {
		s.Mount("/v1/mounted", func(http.ResponseWriter, *http.Request, *Peer) { t.Error("called") })
	})
	if _, err := Call(t.Context(), c, Method[Empty, Empty]{Name: "mounted"}, Empty{}); types.CodeOf(err) != types.ErrNotFound {
		t.Error(err)
	}
}

func TestTheVariableOfARoadIsChecked(t *testing.T) {
	closed, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(closed)
	lost := strconv.Itoa(closed) + ":/data"
	for _, c := range []struct {
		channel, road, address string
		code                   types.ErrCode
		text                   string
	}{
		{"", "", "", "", ""},
		{"", "127.0.0.1:8137:/data", "road:127.0.0.1:8137", "", ""},
		{lost, "127.0.0.1:8137:/data", "road:127.0.0.1:8137", "", ""},
		{lost, "[::1]:8137:/data", "road:[::1]:8137", "", ""},
		{lost, "127.0.0.1:8137:/other", "", types.ErrUnavailable, "it is closed"},
		{lost, "", "", types.ErrUnavailable, "it is closed"},
		{"", "127.0.0.1:8137:/other", "", "", ""},
		{"seven", "127.0.0.1:8137:/data", "", types.ErrInvalid, env.ChannelVar},
		{"", "127.0.0.1:8137", "", types.ErrInvalid, env.RoadVar},
		{"", "127.0.0.1:8137:data", "", types.ErrInvalid, env.RoadVar},
		{"", "127.0.0.1:0:/data", "", types.ErrInvalid, env.RoadVar},
		{"", "elsewhere.example:8137:/data", "", types.ErrInvalid, env.RoadVar},
		{lost, "192.0.2.1:8137:/data", "", types.ErrInvalid, env.RoadVar},
	} {
		address, err := Inherited(func(name string) string {
			return map[string]string{env.ChannelVar: c.channel, env.RoadVar: c.road}[name]
		}, "/data/")
		if address != c.address || types.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %q %v", c, address, err)
		}
	}
}

// Who listens where no daemon of ours does is told nothing.
func TestNothingIsSaidWhereNoDaemonCanBeListening(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "0.0.0.0:0") // as another user can, when the port is free
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the test ends
	heard := make(chan []byte, 1)
	go func() { // ends with the connection
		c, err := l.Accept()
		if err != nil {
			heard <- []byte(err.Error())
			return
		}
		text, _ := io.ReadAll(c) // it is hung up on
		_ = c.Close()
		heard <- text
	}()
	address := roadPrefix + "127.0.0.1:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if _, err := Connect(context.WithoutCancel(t.Context()), address); types.CodeOf(err) != types.ErrPermission {
		t.Error(err)
	}
	if text := <-heard; len(text) > 0 {
		t.Errorf("it heard %q", text)
	}
}

// Clients that know nothing of roads read why they are refused, whether they have a word or a megabyte to say; who says nothing is told, too.
func TestWhoeverIsRefusedReadsWhy(t *testing.T) {
	l := roadOn(t, byEnviron)
	address, _ := openRoad(t, l, 5)
	at, _ := roadOf(address)
	for _, size := range []int{0, 10, mostHeard / 2} {
		for range 20 {
			client := &http.Client{Transport: &http.Transport{}}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at.String()+"/v1/messages", strings.NewReader(strings.Repeat("x", size)))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			text, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			client.CloseIdleConnections()
			if err != nil || resp.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "no other program may use it") {
				t.Fatalf("%d bytes: %d %s %v", size, resp.StatusCode, text, err)
			}
		}
	}
	late, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := late.SetReadDeadline(time.Now().Add(refuseTime / 4)); err != nil {
		t.Fatal(err)
	}
	if n, err := late.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes before it has asked, %v", n, err)
	}
	if err := late.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(late, "GET / HTTP/1.1\r\n"); err != nil {
		t.Error(err)
	}
	if text, err := io.ReadAll(late); err != nil || !strings.Contains(string(text), "no other program may use it") {
		t.Errorf("%s %v", text, err)
	}
	silent, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if text, err := io.ReadAll(silent); err != nil || !strings.Contains(string(text), "no other program may use it") {
		t.Errorf("%s %v", text, err)
	}
}

// A program that connects all the time makes others wait and keeps nobody out.
func TestAFloodOverARoadKeepsNobodyOut(t *testing.T) {
	l := roadOn(t, byEnviron)
	address, _ := openRoad(t, l, 5)
	at, _ := roadOf(address)
	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	for range 8 {
		flood.Go(func() { // ends with ctx
			var kept []net.Conn
			for ctx.Err() == nil {
				if c, err := new(net.Dialer).DialContext(ctx, "tcp", at.String()); err == nil {
					kept = append(kept, c)
				}
				if len(kept) > 16 {
					_ = kept[0].Close() // by then it has been refused
					kept = kept[1:]
				}
			}
			for _, c := range kept {
				_ = c.Close()
			}
		})
	}
	for range 3 {
		if out, err := another(address, 5).CombinedOutput(); err != nil || string(out) != "5 true <nil>\n" {
			t.Errorf("%s %v", out, err)
		}
	}
	stop()
	flood.Wait()
}
