package ipc

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// lend has another process connect to a socket, which keeps the connection until leave is called; the connection stays ours.
func lend(t *testing.T, socket string) (conn *os.File, leave func()) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn = os.NewFile(uintptr(fd), "connection")
	t.Cleanup(func() { _ = conn.Close() })
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"=connect="+socket)
	cmd.ExtraFiles = []*os.File{conn}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "connected\n" {
		t.Fatalf("%q %v", line, err)
	}
	return conn, func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// playConnect connects the socket that it has inherited, and stays until its input ends.
func playConnect(socket string) int {
	if err := unix.Connect(3, &unix.SockaddrUnix{Name: socket}); err != nil {
		os.Stdout.WriteString(err.Error())
		return 1
	}
	os.Stdout.WriteString("connected\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it ends
	return 0
}

// A connection belongs to whom it belonged to when it was used first, also when he has ended and somebody else has his PID.
func TestWhomAConnectionBelongsToIsSettledOnce(t *testing.T) {
	type settled struct {
		owner  types.PID
		inside bool
	}
	owner := settled{7, true}
	var got []settled
	who := Method[Empty, Empty]{Name: "who"}
	c, _ := serveOn(t, ServerOptions{}, func(s *Server) {
		Handle(s, who, func(_ context.Context, p *Peer, _ Empty) (Empty, error) {
			o, inside := p.Settle(func(int) (types.PID, bool) { return owner.owner, owner.inside })
			got = append(got, settled{o, inside})
			return Empty{}, nil
		})
	})
	ask := func(conn *os.File) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, "http://x/"+Version+"/who", bytes.NewReader([]byte("{}")))
		if err != nil {
			t.Fatal(err)
		}
		if err := req.Write(conn); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, err)
		}
	}
	conn, leave := lend(t, c.socket)
	ask(conn)
	leave()
	owner = settled{0, false} // somebody of the person's has the PID now
	ask(conn)
	late, leave := lend(t, c.socket)
	leave()
	ask(late)
	for i, want := range []settled{{7, true}, {7, true}, {0, true}} {
		if i >= len(got) || got[i] != want {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
}
