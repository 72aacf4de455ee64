package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/hosts"
	"rnix/internal/sandbox"
)

const public = "93.184.216.34"

func TestTunnelCarriesBothDirectionsAndEndsEachAlone(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}}}
	w.listen(public+":443", echo(t))
	c := w.client(t, "a.test")
	conn, r := c.connect("A.test.:443")
	for range 3 {
		fmt.Fprintln(conn, "hello")
		if line, err := r.ReadString('\n'); line != "hello\n" || err != nil {
			t.Fatalf("%q %v", line, err)
		}
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); string(rest) != "over after 18\n" || err != nil {
		t.Errorf("%q %v", rest, err)
	}
	if got := c.Counts.Totals(); len(got) != 1 || got[0] != (Total{Host: "a.test:443", Requests: 1, Sent: 18, Received: 32}) {
		t.Errorf("%+v", got)
	}
	if looked, dialed := w.seen(); looked != "a.test" || dialed != public+":443" {
		t.Errorf("looked up %s, dialed %s", looked, dialed)
	}
}

func TestWhatAClientSendsBeforeTheAnswerIsNotLost(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}}}
	w.listen(public+":443", echo(t))
	c := w.client(t, "a.test")
	conn, r := c.dial()
	fmt.Fprint(conn, "CONNECT a.test:443 HTTP/1.0\r\n\r\nearly\n")
	if resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	if line, err := r.ReadString('\n'); line != "early\n" {
		t.Errorf("%q %v", line, err)
	}
}

func TestRequestIsPassedOnAsOneToTheHost(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}}}
	w.serve(t, public+":80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var names []string
		for name := range r.Header {
			names = append(names, name)
		}
		slices.Sort(names)
		rw.Header().Set("Keep-Alive", "x")
		rw.Header().Set("Proxy-Authenticate", "x")
		fmt.Fprintf(rw, "%s %s %s %q %s %v", r.Method, r.Host, r.RequestURI, body, names, r.TransferEncoding)
	}))
	c := w.client(t, "a.test")
	for text, want := range map[string]string{
		"GET http://a.test/x?y=1 HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-End: 1\r\nTE: trailers\r\nKeep-Alive: 3\r\n\r\n": `GET a.test /x?y=1 "" [Te X-End] []`,
		"GET http://A.TEST.:80/ HTTP/1.0\r\n\r\n":                                                                 `GET a.test / "" [] []`,
		"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc":                            `POST a.test / "abc" [Content-Length] []`,
		"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n": `POST a.test / "abc" [] [chunked]`,
	} {
		if status, body := c.ask(text); status != 200 || body != want {
			t.Errorf("%q: %d %s, want %s", text, status, body, want)
		}
	}
	if got := c.refusals(); len(got) > 0 {
		t.Errorf("refused: %q", got)
	}
}

// What two programs could take for different requests is one request, or none.
func TestRequestsAreNotSmuggled(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}}}
	w.serve(t, public+":80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s %d", r.RequestURI, len(body))
	}))
	c := w.client(t, "a.test")
	conn, r := c.dial()
	// A server that heeds the length takes the second request for a body; one that heeds the chunks does not. Here it is chunks, and what follows is a request to b.test.
	fmt.Fprint(conn, "POST http://a.test/1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://b.test/2 HTTP/1.1\r\nHost: b.test\r\n\r\n")
	if status, body := c.answer(r); status == 200 && body != "/1 0" {
		t.Errorf("the first: %d %s", status, body)
	}
	if status, body := c.answer(r); status == 200 {
		t.Errorf("the second: %d %s", status, body)
	}
	for text, want := range map[string]int{
		"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd":    400,
		"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n":        501,
		"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n":          400,
		"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: a\rb\r\n\r\n":                                        400,
		"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n":                                   400,
		"GET http://a.test/\x00 HTTP/1.1\r\nHost: a.test\r\n\r\n":                                               400,
		"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: " + strings.Repeat("a", maxHeader+8192) + "\r\n\r\n": 431,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                                                      400,
	} {
		if status, body := c.ask(text); status != want {
			t.Errorf("%.80q: %d %.80s, want %d", text, status, body, want)
		}
	}
	if looked, _ := w.seen(); strings.Contains(looked, "b.test") {
		t.Error("another host was looked up")
	}
}

func TestHostsThatAreNotAllowedAreRefusedAndTold(t *testing.T) {
	w := &world{names: map[string][]string{"b.test": {public}}}
	c := w.client(t, "a.test", "*.c.test:8080")
	for _, text := range []string{
		"CONNECT b.test:443 HTTP/1.1\r\nHost: b.test\r\n\r\n", "GET http://b.test:443/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "CONNECT b.test.:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", "CONNECT B.TEST:443 HTTP/1.0\r\n\r\n",
	} {
		status, body := c.ask(text)
		if want := "the sandbox does not let commands reach b.test:443, which is not among the allowed hosts: *.c.test:8080, a.test; trying again does not help, a person can allow it with --allow-host b.test, or under sandbox.hosts in config.yaml\n"; status != 403 || body != want {
			t.Errorf("%q: %d %s", text, status, body)
		}
	}
	if status, _ := c.ask("CONNECT a.test:22 HTTP/1.1\r\nHost: a.test\r\n\r\n"); status != 403 {
		t.Error("another port:", status)
	}
	if got := c.refusals(); !slices.Equal(got, []string{"b.test:443", "a.test:22"}) {
		t.Errorf("%q", got)
	}
	if looked, dialed := w.seen(); looked+dialed != "" {
		t.Errorf("looked up %s, dialed %s", looked, dialed)
	}
	if got := c.Counts.Totals(); len(got) != 2 || got[1] != (Total{Host: "b.test:443", Refused: 4}) {
		t.Errorf("%+v", got)
	}
}

// Names of private addresses, and all ways to write these.
func TestPrivateAddressesAreRefused(t *testing.T) {
	w := &world{names: map[string][]string{}}
	addresses := strings.Fields("127.0.0.1 127.9.9.9 ::1 0.0.0.0 10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 169.254.169.254 169.254.170.2 224.0.0.1 240.0.0.1 255.255.255.255 198.18.0.1 192.0.2.1 " +
		"fe80::1 fd00:ec2::254 fc00::1 ff02::1 :: ::ffff:127.0.0.1 ::ffff:169.254.169.254 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2001::1 2001:db8::1 fec0::1 ::127.0.0.1 8.8.4.4 ::ffff:8.8.4.4")
	for i, a := range addresses {
		w.names[fmt.Sprintf("n%d.test", i)] = []string{a}
	}
	c := w.client(t, "*", "*:*", "0.0.0.0/0:1", "[::/0]:1")
	for i, a := range addresses {
		if status, body := c.ask(fmt.Sprintf("CONNECT n%d.test:443 HTTP/1.1\r\nHost: a\r\n\r\n", i)); status != 403 || !strings.Contains(body, "leads to") || !strings.Contains(body, "--allow-host ") {
			t.Errorf("%s: %d %s", a, status, body)
		}
		if strings.Contains(a, ":") {
			a = "[" + a + "]"
		}
		if status, body := c.ask(fmt.Sprintf("GET http://%s:80/ HTTP/1.1\r\nHost: a\r\n\r\n", a)); status != 403 {
			t.Errorf("%s: %d %s", a, status, body)
		}
	}
	for _, host := range strings.Fields("2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 127.1 0 0x7f000001 localhost LOCALHOST. x.localhost [::ffff:7f00:1]") {
		if status, body := c.ask(fmt.Sprintf("CONNECT %s:80 HTTP/1.1\r\nHost: a\r\n\r\n", host)); status != 403 && status != 502 {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
	if _, dialed := w.seen(); dialed != "" {
		t.Errorf("dialed %s", dialed)
	}
}

func TestPrivateAddressThatARuleNamesIsReached(t *testing.T) {
	w := &world{names: map[string][]string{"db.test": {"10.0.0.7"}, "localhost": {"127.0.0.1 ::1"}, "mixed.test": {"10.0.0.7 10.9.9.9 " + public}}}
	at := echo(t)
	for _, a := range []string{"10.0.0.7:5432", "127.0.0.1:8080", public + ":80"} {
		w.listen(a, at)
	}
	c := w.client(t, "db.test:*", "10.0.0.7:5432", "localhost:8080", "mixed.test")
	for host, want := range map[string]int{"db.test:5432": 200, "10.0.0.7:5432": 200, "db.test:5433": 403, "localhost:8080": 200, "127.0.0.1:8080": 403, "mixed.test:80": 200} {
		conn, r := c.dial()
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: a\r\n\r\n", host)
		resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s: %+v %v, want %d", host, resp, err, want)
		}
		_ = conn.Close()
	}
	if _, dialed := w.seen(); strings.Contains(dialed, "10.9.9.9") || strings.Contains(dialed, "[::1]:8081") {
		t.Errorf("dialed %s", dialed)
	}
}

// A name that leads elsewhere when it is looked up once more is looked up once for each connection, and what was checked is connected to.
func TestNameThatIsRebound(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public, "127.0.0.1", "169.254.169.254", public}}}
	w.listen(public+":443", echo(t))
	w.listen("127.0.0.1:443", echo(t))
	c := w.client(t, "a.test")
	for _, want := range []int{200, 403, 403, 200} {
		conn, r := c.dial()
		fmt.Fprint(conn, "CONNECT a.test:443 HTTP/1.1\r\nHost: a\r\n\r\n")
		if resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != want {
			t.Errorf("%+v %v, want %d", resp, err, want)
		}
		_ = conn.Close()
	}
	if _, dialed := w.seen(); dialed != public+":443 "+public+":443" {
		t.Errorf("dialed %s", dialed)
	}
}

func TestRequestsThatAreNoneOfAProxyAreRefused(t *testing.T) {
	w := &world{}
	c := w.client(t, "*", "*:*")
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n":                      "it names no host",
		"GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n":        "for https it must use CONNECT",
		"GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n":          "for ftp it must",
		"GET http://me:pw@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n":   "stand before the host",
		"GET http://a.test:0/ HTTP/1.1\r\nHost: a.test\r\n\r\n":       "a port is a number",
		"GET http://a..test/ HTTP/1.1\r\nHost: a.test\r\n\r\n":        "no host and port",
		"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n":                  "it names no host",
		"CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n":             "it has no port",
		"CONNECT me@a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n":      "letters, digits",
		"CONNECT a.test:443/x HTTP/1.1\r\nHost: a.test\r\n\r\n":       "a port is a number",
		"CONNECT [fe80::1%25lo]:443 HTTP/1.1\r\nHost: a.test\r\n\r\n": "IPv6",
		"CONNECT /x HTTP/1.1\r\nHost: a.test\r\n\r\n":                 "it has no port",
	} {
		if status, body := c.ask(text); status != 400 || !strings.Contains(body, want) && !strings.HasPrefix(body, "400 Bad Request") {
			t.Errorf("%q: %d %s, want %s", text, status, body, want)
		}
	}
	if looked, _ := w.seen(); looked != "" {
		t.Errorf("looked up %s", looked)
	}
	if got := c.refusals(); len(got) != 1 { // each reason once
		t.Errorf("%q", got)
	}
	if status, body := c.ask("CONNECT none.test:443 HTTP/1.1\r\nHost: a\r\n\r\n"); status != 502 || !strings.Contains(body, "none.test:443, and could not connect to it: no such host") {
		t.Errorf("%d %s", status, body)
	}
}

func TestStreamsArriveAsTheyAreSent(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}}}
	next := make(chan struct{})
	w.serve(t, public+":80", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(rw, "data: %d\n\n", i)
			rw.(http.Flusher).Flush()
			<-next
		}
	}))
	c := w.client(t, "a.test")
	conn, r := c.dial()
	fmt.Fprint(conn, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := bufio.NewReader(resp.Body)
	for i := range 3 {
		if line, err := body.ReadString('\n'); line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("%q %v", line, err)
		}
		_, _ = body.ReadString('\n')
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}

func TestUpgradedConnectionsAreCarried(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}}}
	w.serve(t, public+":80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		conn, buf, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		line, _ := buf.ReadString('\n')
		fmt.Fprintf(conn, "you said %s", line)
	}))
	c := w.client(t, "a.test")
	conn, r := c.dial()
	fmt.Fprint(conn, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	fmt.Fprintln(conn, "x")
	if line, err := r.ReadString('\n'); line != "you said x\n" {
		t.Errorf("%q %v", line, err)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}}}
	w.listen(public+":443", echo(t))
	c := w.client(t, "a.test")
	var first net.Conn
	for i := range maxConns {
		conn, _ := c.connect("a.test:443")
		if i == 0 {
			first = conn
		}
	}
	if status, body := c.ask(""); status != 503 || !strings.Contains(body, "128 connections") {
		t.Errorf("%d %s", status, body)
	}
	_ = first.Close()
	for status := 503; status != 403; {
		status, _ = c.ask("CONNECT b.test:443 HTTP/1.1\r\nHost: a\r\n\r\n")
		if t.Context().Err() != nil {
			t.Fatal("no place is given back")
		}
	}
	c.stop()
}

// All clients together have as many connections as there are places, whoever has them, and each place is given back.
func TestConnectionsOfAllClientsAreBounded(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}}}
	w.listen(public+":443", echo(t))
	proxy := w.proxy()
	c := w.clientOf(t, proxy, "a.test")
	proxy.open.Add(room() - 2) // those of others
	first, _ := c.connect("a.test:443")
	_, _ = c.connect("a.test:443")
	if status, body := c.ask(""); status != 503 || !strings.Contains(body, "of all commands together") {
		t.Errorf("%d %s", status, body)
	}
	_ = first.Close()
	for status := 503; status != 403; {
		status, _ = c.ask("CONNECT b.test:443 HTTP/1.1\r\nHost: a\r\n\r\n")
		if t.Context().Err() != nil {
			t.Fatal("no place is given back")
		}
	}
	c.stop()
	if n := proxy.open.Load(); n != room()-2 {
		t.Errorf("%d places are taken", n-room()+2)
	}
}

func TestEndOfAClientEndsWhatItHas(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}, "b.test": {public}}}
	hangs := make(chan struct{})
	w.listen(public+":443", echo(t))
	w.serve(t, public+":80", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(hangs)
		<-r.Context().Done()
	}))
	c := w.client(t, "a.test")
	asked := make(chan struct{})
	c.Judge = func(ctx context.Context, to hosts.Target, named bool) Verdict {
		if named {
			return Verdict{Allow: true}
		}
		close(asked)
		<-ctx.Done()
		return Verdict{Over: context.Cause(ctx)}
	}
	_, tunnel := c.connect("a.test:443")
	request, _ := c.dial()
	fmt.Fprint(request, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
	<-hangs
	held, _ := c.dial()
	fmt.Fprint(held, "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test\r\n\r\n")
	<-asked
	idle, _ := c.dial()
	c.stop() // returns
	for name, r := range map[string]io.Reader{"a tunnel": tunnel, "a request": request, "one that is asked about": held, "an idle one": idle} {
		if rest, err := io.ReadAll(r); len(rest) > 0 {
			t.Errorf("%s got %q %v", name, rest, err)
		}
	}
	if _, err := net.Dial("tcp", c.addr); err == nil {
		t.Error("it is served after its end")
	}
}

func TestWhoHangsUpIsNotWaitedFor(t *testing.T) {
	w := &world{}
	c := w.client(t)
	asked, over := make(chan struct{}), make(chan error, 1)
	c.Judge = func(ctx context.Context, to hosts.Target, _ bool) Verdict {
		close(asked)
		<-ctx.Done()
		over <- ctx.Err()
		return Verdict{Over: ctx.Err()}
	}
	conn, _ := c.dial()
	fmt.Fprint(conn, "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test\r\n\r\n")
	<-asked
	_ = conn.Close()
	if err := <-over; err == nil {
		t.Error("it is waited for")
	}
	c.stop()
	if got := c.refusals(); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func TestJudgeDecides(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}, "b.test": {public}, "in.test": {"10.0.0.1"}}}
	w.listen(public+":443", echo(t))
	c := w.client(t, "a.test")
	c.Judge = func(_ context.Context, to hosts.Target, named bool) Verdict {
		return Verdict{Allow: to.Name == "b.test" || to.Name == "in.test", Why: fmt.Sprintf("it is %v that rules name %s", named, to)}
	}
	c.connect("b.test:443")
	if status, body := c.ask("CONNECT a.test:443 HTTP/1.1\r\nHost: a\r\n\r\n"); status != 403 || !strings.HasPrefix(body, "it is true that rules name a.test:443; trying") {
		t.Errorf("%d %s", status, body)
	}
	// a person says which name, and not where it leads
	for _, host := range []string{"in.test:443", "127.0.0.1:443"} {
		if status, body := c.ask("CONNECT " + host + " HTTP/1.1\r\nHost: a\r\n\r\n"); status != 403 || strings.Contains(body, "it is false") {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
}

func TestCountsAreBounded(t *testing.T) {
	var c Counts
	for i := range 3 * mostHosts {
		c.request(fmt.Sprintf("h%d.test:443", i))
	}
	total := int64(0)
	got := c.Totals()
	for _, n := range got {
		total += n.Requests
	}
	if len(got) != mostHosts+1 || total != 3*mostHosts {
		t.Errorf("%d hosts, %d requests", len(got), total)
	}
}

// pipes is a listener of connections in memory, whose time is that of the test.
type pipes struct {
	conns chan net.Conn
	quit  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.quit:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.quit) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// inMemory serves a client in memory and has use talk to it.
func inMemory(t *testing.T, dial func(context.Context, string, string) (net.Conn, error), use func(connect func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{names: map[string][]string{"a.test": {public}}}
		p := w.proxy()
		p.Dial = dial
		rules, err := hosts.ParseAll([]string{"a.test"})
		if err != nil {
			t.Fatal(err)
		}
		l := &pipes{conns: make(chan net.Conn), quit: make(chan struct{})}
		ended := make(chan struct{})
		go func() { // ends with the listener
			defer close(ended)
			p.Serve(l, &Client{Rules: rules, Refused: func(sandbox.Refusal) {}})
		}()
		use(func() net.Conn {
			ours, theirs := net.Pipe()
			l.conns <- theirs
			return ours
		})
		_ = l.Close()
		<-ended
	})
}

func TestSlowHeadersAndIdleConnectionsEnd(t *testing.T) {
	var host net.Conn
	inMemory(t, func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		host = theirs
		return ours, nil
	}, func(connect func() net.Conn) {
		slow := connect()
		began := time.Now()
		go func() { // ends when the proxy hangs up
			for _, err := io.WriteString(slow, "GET http://a.test/ HTTP/1.1\r\n"); err == nil; _, err = io.WriteString(slow, "X: y\r\n") {
				time.Sleep(time.Second)
			}
		}()
		_, _ = io.ReadAll(slow)
		if took := time.Since(began); took > headerTime+time.Second {
			t.Errorf("a slow header was read for %v", took)
		}
		tunnel := connect()
		fmt.Fprint(tunnel, "CONNECT a.test:443 HTTP/1.1\r\nHost: a\r\n\r\n")
		r := bufio.NewReader(tunnel)
		if resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		time.Sleep(idleTime / 2)
		go fmt.Fprint(host, "x")
		if b, err := r.ReadByte(); b != 'x' || err != nil {
			t.Fatal(b, err)
		}
		began = time.Now()
		_, _ = io.ReadAll(r)
		if took := time.Since(began); took != idleTime {
			t.Errorf("an idle tunnel was open for %v", took)
		}
	})
}

func BenchmarkRequest(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })}
	go srv.Serve(l) // ends with Close
	defer srv.Close()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	rules, err := hosts.ParseAll([]string{l.Addr().String()})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with the listener
		defer close(ended)
		new(Proxy).Serve(inner, &Client{Rules: rules, Counts: &Counts{}})
	}()
	for _, way := range []string{"direct", "proxy"} {
		b.Run(way, func(b *testing.B) {
			conn, err := net.Dial("tcp", map[string]string{"direct": l.Addr().String(), "proxy": inner.Addr().String()}[way])
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			r := bufio.NewReader(conn)
			for b.Loop() {
				fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n", l.Addr(), l.Addr())
				resp, err := http.ReadResponse(r, nil)
				if err != nil || resp.StatusCode != 200 {
					b.Fatal(resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	b.Run("connect", func(b *testing.B) {
		for b.Loop() {
			conn, err := net.Dial("tcp", inner.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: a\r\n\r\n", l.Addr())
			if resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != 200 {
				b.Fatal(resp, err)
			}
			_ = conn.Close()
		}
	})
	_ = inner.Close()
	<-ended
}
