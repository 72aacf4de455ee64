package web

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rnix/ipc"
	"rnix/types"
)

// echoing is a daemon that answers ping, and takes note of what it was asked.
func echoing(t *testing.T) (d *dashboard, asked chan any) {
	t.Helper()
	asked = make(chan any, 16)
	socket, _ := fakeDaemon(t, func(s *ipc.Server) {
		ipc.Handle(s, ipc.Ping, func(context.Context, *ipc.Peer, ipc.Empty) (ipc.PingResponse, error) {
			asked <- ipc.Empty{}
			return ipc.PingResponse{PID: 7, Version: "</script>"}, nil
		})
		ipc.Handle(s, ipc.Resume, func(_ context.Context, _ *ipc.Peer, r ipc.ResumeRequest) (ipc.ResumeResponse, error) {
			asked <- r
			return ipc.ResumeResponse{}, nil
		})
		ipc.Handle(s, ipc.Spawn, func(_ context.Context, _ *ipc.Peer, r ipc.SpawnRequest) (ipc.SpawnResponse, error) {
			asked <- r
			return ipc.SpawnResponse{}, nil
		})
		ipc.Handle(s, ipc.Shutdown, func(context.Context, *ipc.Peer, ipc.Empty) (ipc.Empty, error) {
			asked <- "shutdown"
			return ipc.Empty{}, nil
		})
	})
	return serve(t, Options{Socket: socket, Env: []string{"KEY=of the person"}, Dir: "/home/me/project"}), asked
}

func TestLinkLetsOneBrowserInOnce(t *testing.T) {
	d, asked := echoing(t)
	link := d.Link()
	b := d.browser()
	if res, _ := b.do("HEAD", strings.TrimPrefix(link, "http://"+d.host), "", nil); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("HEAD gives %d", res.StatusCode)
	}
	if res, _ := b.do("GET", strings.TrimPrefix(link, "http://"+d.host), "", map[string]string{"Sec-Purpose": "prefetch;prerender"}); res.StatusCode != http.StatusForbidden {
		t.Errorf("a prefetch gives %d", res.StatusCode)
	}
	if got := b.enter(link); got != http.StatusSeeOther {
		t.Fatalf("the first one gets %d", got)
	}
	if res, body := b.do("POST", "/api/v1/ping", "{}", nil); res.StatusCode != 200 || !strings.Contains(body, `"version":"</script>"`) || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("ping gives %d %s: %s", res.StatusCode, res.Header.Get("Content-Type"), body)
	}
	<-asked
	second := d.browser()
	for _, l := range []string{link, d.Address() + "login?token=", d.Address() + "login", d.Address() + "login?token=" + strings.Repeat("A", 52)} {
		if got := second.enter(l); got != http.StatusForbidden {
			t.Errorf("%s gives %d", l, got)
		}
	}
	if res, body := second.do("GET", strings.TrimPrefix(link, "http://"+d.host), "", nil); !strings.Contains(body, "rnix web") || len(res.Cookies()) > 0 {
		t.Errorf("who comes too late is not told what to do, or gets a cookie: %v %s", res.Cookies(), body)
	}
	if len(asked) > 0 {
		t.Error("the daemon was asked by a stranger")
	}
}

func TestCookieIsForThisServerAlone(t *testing.T) {
	d, _ := echoing(t)
	b := d.browser()
	res := b.open("GET", strings.TrimPrefix(d.Link(), "http://"+d.host), "", nil)
	_ = res.Body.Close()
	if len(res.Cookies()) != 1 {
		t.Fatalf("cookies: %v", res.Cookies())
	}
	c := res.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Domain != "" || !strings.HasSuffix(c.Name, d.host[strings.LastIndex(d.host, ":")+1:]) {
		t.Errorf("cookie: %+v", c)
	}
	if res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("header: %v", res.Header)
	}
}

func TestBothSecretsAreNeeded(t *testing.T) {
	d, asked := echoing(t)
	one, other := d.inside(), d.inside()
	for name, header := range map[string]map[string]string{
		"no key":             {keyHeader: ""},
		"no cookie":          {"Cookie": "x=y", keyHeader: one.key},
		"another one's key":  {keyHeader: other.key},
		"the key as a field": {keyHeader: "", "Authorization": "Bearer " + one.key},
	} {
		b := one
		if name == "no cookie" {
			b = d.browser()
		}
		if res, body := b.do("POST", "/api/v1/ping", "{}", header); res.StatusCode != http.StatusUnauthorized || code(t, body) != "PERMISSION" {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	if res, _ := one.do("POST", "/logout", "", nil); res.StatusCode != http.StatusNoContent {
		t.Errorf("logout gives %d", res.StatusCode)
	}
	if res, _ := one.do("POST", "/api/v1/ping", "{}", nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the logout: %d", res.StatusCode)
	}
	if res, _ := other.do("POST", "/api/v1/ping", "{}", nil); res.StatusCode != 200 {
		t.Errorf("the other one: %d", res.StatusCode)
	}
	<-asked
	if len(asked) > 0 {
		t.Error("the daemon was asked")
	}
}

func TestOtherSitesAreRefused(t *testing.T) {
	d, asked := echoing(t)
	b := d.inside()
	port := d.host[strings.LastIndex(d.host, ":"):]
	for name, header := range map[string]map[string]string{
		"a foreign origin":           {"Origin": "https://evil.example"},
		"an origin of another port":  {"Origin": "http://127.0.0.1:1"},
		"another name of ours":       {"Origin": "http://localhost" + port},
		"no origin that is known":    {"Origin": "null"},
		"https":                      {"Origin": "https://" + d.host},
		"cross-site by Sec-Fetch":    {"Origin": "", "Sec-Fetch-Site": "cross-site"},
		"same-site by Sec-Fetch":     {"Origin": "", "Sec-Fetch-Site": "same-site"},
		"a rebound host":             {"Host": "evil.example" + port, "Origin": "http://evil.example" + port},
		"a rebound host, no origin":  {"Host": "evil.example" + port, "Origin": ""},
		"a host with another port":   {"Host": "127.0.0.1:1", "Origin": ""},
		"the name of IPv6":           {"Host": "[::1]" + port, "Origin": ""},
		"a host without a port":      {"Host": "127.0.0.1", "Origin": ""},
		"a host that ends like ours": {"Host": "evil.localhost" + port, "Origin": ""},
	} {
		if res, body := b.do("POST", "/api/v1/ping", "{}", header); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	for _, kind := range []string{"application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ""} {
		if res, _ := b.do("POST", "/api/v1/ping", `{}`, map[string]string{"Content-Type": kind}); res.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("%q gives %d", kind, res.StatusCode)
		}
	}
	// What another site may do is lead here.
	link := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	if res, _ := b.do("GET", "/", "", link); res.StatusCode != 200 {
		t.Errorf("a link gives %d", res.StatusCode)
	}
	for _, dest := range []string{"iframe", "frame", "object", "script", "image"} {
		link["Sec-Fetch-Dest"] = dest
		if res, _ := b.do("GET", "/", "", link); res.StatusCode != http.StatusForbidden {
			t.Errorf("as %s: %d", dest, res.StatusCode)
		}
	}
	if len(asked) > 0 {
		t.Error("the daemon was asked")
	}
}

func TestEveryAnswerBoundsTheBrowser(t *testing.T) {
	d, _ := echoing(t)
	b := d.inside()
	for _, path := range []string{"/", "/app.js", "/login?token=x", "/nothing", "/api/v1/ping"} {
		res, _ := b.do("GET", path, "", nil)
		for key, want := range map[string][]string{
			"Content-Security-Policy": {"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"},
			"X-Content-Type-Options":  {"nosniff"}, "X-Frame-Options": {"DENY"}, "Referrer-Policy": {"no-referrer"}, "Cache-Control": {"no-"},
		} {
			for _, w := range want {
				if !strings.Contains(res.Header.Get(key), w) {
					t.Errorf("%s: %s is %q, without %s", path, key, res.Header.Get(key), w)
				}
			}
		}
		if got := res.Header.Get("Content-Security-Policy"); strings.Contains(got, "unsafe") || res.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %q, %q", path, got, res.Header.Get("Access-Control-Allow-Origin"))
		}
	}
}

func TestOnlyWhatIsListedIsThere(t *testing.T) {
	d, asked := echoing(t)
	b := d.inside()
	for _, path := range []string{"/index.html", "/dist/app.js", "/sources.sha256", "/..%2f..%2fetc/passwd", "/app.js/", "/api/v1/", "/api/v2/ping", "/v1/ping", "/api/v1/ping/x", "/api/v1/%2e%2e/ping"} {
		if res, _ := b.do("POST", path, "{}", nil); res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusTemporaryRedirect {
			t.Errorf("%s gives %d", path, res.StatusCode)
		}
	}
	for _, m := range []string{"shutdown", "compose_up", "read_path", "write_path", "gc", "mcp_test", "Ping", "ping%00", "..%2fshutdown", "session_call"} {
		if res, body := b.do("POST", "/api/v1/"+m, "{}", nil); res.StatusCode != http.StatusNotFound || code(t, body) != "NOT_FOUND" {
			t.Errorf("%s gives %d: %s", m, res.StatusCode, body)
		}
	}
	for _, m := range []string{"GET", "PUT", "DELETE", "OPTIONS"} {
		if res, _ := b.do(m, "/api/v1/ping", "", nil); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s gives %d", m, res.StatusCode)
		}
	}
	if len(asked) > 0 {
		t.Error("the daemon was asked")
	}
}

func TestPageCannotSayTheEnvironment(t *testing.T) {
	d, asked := echoing(t)
	b := d.inside()
	if res, body := b.do("POST", "/api/v1/resume", `{"target":"1","from_step":0,"fork":true}`, nil); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	r := (<-asked).(ipc.ResumeRequest)
	if r.Target != "1" || !r.Fork || r.FromStep == nil || *r.FromStep != 0 || !slices.Equal(r.Env, []string{"KEY=of the person"}) {
		t.Errorf("the daemon got %+v", r)
	}
	for _, body := range []string{`{"target":"1","env":["A=b"]}`, `{"target":"1","ENV":["A=b"]}`, `{"target":"1","trust_project":true}`, `{"target":"1","Trust_Project":true}`, `{"target":"1","cwd":"/"}`} {
		if res, text := b.do("POST", "/api/v1/resume", body, nil); res.StatusCode != http.StatusForbidden || code(t, text) != "PERMISSION" {
			t.Errorf("%s: %d %s", body, res.StatusCode, text)
		}
	}
	for _, body := range []string{"", "[]", `{"target":`, "\x00"} {
		if res, _ := b.do("POST", "/api/v1/resume", body, nil); res.StatusCode == 200 && body != "" {
			t.Errorf("%q is accepted", body)
		}
	}
}

func TestPageStartsAgentsAsThePerson(t *testing.T) {
	d, asked := echoing(t)
	b := d.inside()
	for dir, want := range map[string]string{"": "/home/me/project", "sub/../other": "/home/me/project/other", "/tmp/x/": "/tmp/x"} {
		if res, body := b.do("POST", "/api/v1/spawn", `{"intent":"look","cwd":"`+dir+`"}`, nil); res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
		if r := (<-asked).(ipc.SpawnRequest); r.Intent != "look" || r.Cwd != want || !slices.Equal(r.Env, []string{"KEY=of the person"}) {
			t.Errorf("the daemon got %+v", r)
		}
	}
	for _, body := range []string{`{"intent":"x","env":["A=b"]}`, `{"intent":"x","Trust_Project":true}`, `{"intent":"x","parent":"1"}`, `{"intent":"x","session":"s"}`, `{"intent":"x","issue":"s"}`} {
		if res, text := b.do("POST", "/api/v1/spawn", body, nil); res.StatusCode != http.StatusForbidden || code(t, text) != "PERMISSION" {
			t.Errorf("%s: %d %s", body, res.StatusCode, text)
		}
	}
	if len(asked) > 0 {
		t.Error("the daemon was asked")
	}
}

func TestABrowserThatIsInLetsAnotherIn(t *testing.T) {
	d, _ := echoing(t)
	res, body := d.inside().do("POST", "/api/v1/link", "{}", nil)
	link := regexp.MustCompile(`http://[^"]+token=[A-Z2-7]+`).FindString(body)
	if res.StatusCode != 200 || link == "" {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	b := d.browser()
	if got := b.enter(link); got != http.StatusSeeOther {
		t.Errorf("the link gives %d", got)
	}
	if res, _ := b.do("POST", "/api/v1/ping", "{}", nil); res.StatusCode != 200 {
		t.Errorf("the other browser gets %d", res.StatusCode)
	}
	if got := d.browser().enter(link); got != http.StatusForbidden {
		t.Errorf("a used link gives %d", got)
	}
}

// Whatever a method does, another site, a form and who was not let in cannot call it.
func TestEveryMethodIsGuarded(t *testing.T) {
	d, asked := echoing(t)
	b := d.inside()
	refused := []struct {
		header map[string]string
		status int
	}{
		{map[string]string{keyHeader: ""}, http.StatusUnauthorized},
		{map[string]string{keyHeader: "AAAA"}, http.StatusUnauthorized},
		{map[string]string{"Origin": "http://evil.example"}, http.StatusForbidden},
		{map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		{map[string]string{"Host": "evil.example"}, http.StatusForbidden},
		{map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
	}
	names := slices.Concat(slices.Sorted(maps.Keys(methods)), local)
	for _, name := range names {
		for _, c := range refused {
			if res, body := b.do("POST", "/api/v1/"+name, `{"target":"1"}`, c.header); res.StatusCode != c.status {
				t.Errorf("%s with %v gives %d: %s", name, c.header, res.StatusCode, body)
			}
		}
	}
	if len(asked) > 0 {
		t.Error("the daemon was asked")
	}
}

func TestHugeBodyIsRefused(t *testing.T) {
	d, asked := echoing(t)
	b := d.inside()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+d.host+"/api/v1/ping", io.LimitReader(zeros{}, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(keyHeader, b.key)
	res, err := b.Do(req)
	if err == nil { // or the connection was closed while it was still sent
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge || code(t, string(body)) != "INVALID" {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	}
	if len(asked) > 0 {
		t.Error("the daemon was asked")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestStreamEndsUpstreamWhenThePageLeaves(t *testing.T) {
	begun, gone := make(chan uint64, 1), make(chan error, 1)
	socket, _ := fakeDaemon(t, func(s *ipc.Server) {
		ipc.HandleStream(s, ipc.Events, func(ctx context.Context, _ *ipc.Peer, r ipc.EventsRequest, out *ipc.Stream) error {
			begun <- r.From
			if err := out.SendRaw(41, "event", []byte(`{"text":"first"}`)); err != nil {
				return err
			}
			<-ctx.Done()
			gone <- context.Cause(ctx)
			return nil
		})
	})
	d := serve(t, Options{Socket: socket})
	b := d.inside()
	res := b.open("POST", "/api/v1/events", `{"follow":true}`, map[string]string{"Last-Event-ID": "40"})
	if got := <-begun; got != 41 {
		t.Errorf("the daemon is asked for what begins at %d", got)
	}
	buf := make([]byte, 200)
	n, err := res.Body.Read(buf) // at once, not at the end
	if err != nil || !strings.Contains(string(buf[:n]), "id: 41\n") || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || res.Header.Get("Rnix-Instance") == "" {
		t.Errorf("%q, %v, %v", buf[:n], res.Header, err)
	}
	_ = res.Body.Close()
	if err := <-gone; err == nil {
		t.Error("the stream went on")
	}
}

func TestThePageIsToldThatTheDaemonIsGone(t *testing.T) {
	socket, stop := fakeDaemon(t, func(s *ipc.Server) {
		ipc.HandleStream(s, ipc.Events, func(ctx context.Context, _ *ipc.Peer, _ ipc.EventsRequest, out *ipc.Stream) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
	})
	d := serve(t, Options{Socket: socket})
	b := d.inside()
	stop()
	res, body := b.do("POST", "/api/v1/events", `{}`, nil)
	if res.StatusCode != http.StatusServiceUnavailable || code(t, body) != "SERVICE_UNAVAILABLE" || !strings.Contains(body, "rnix daemon start") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	// It comes back, and so does the page, without anything being done here.
	again := startFake(t, socket, func(s *ipc.Server) {
		ipc.Handle(s, ipc.Ping, func(context.Context, *ipc.Peer, ipc.Empty) (ipc.PingResponse, error) {
			return ipc.PingResponse{PID: 8}, nil
		})
	})
	defer again()
	if res, body := b.do("POST", "/api/v1/ping", `{}`, nil); res.StatusCode != 200 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestAnAnswerThatBreaksOffIsNoWholeOne(t *testing.T) {
	ready := make(chan struct{})
	socket, stop := fakeDaemon(t, func(s *ipc.Server) {
		ipc.HandleStream(s, ipc.Events, func(ctx context.Context, _ *ipc.Peer, _ ipc.EventsRequest, out *ipc.Stream) error {
			if err := out.Start(); err != nil {
				return err
			}
			close(ready)
			<-ctx.Done()
			return types.Errorf(types.ErrUnavailable, "Events", "", "the daemon is stopping")
		})
	})
	d := serve(t, Options{Socket: socket})
	b := d.inside()
	res := b.open("POST", "/api/v1/events", `{"follow":true}`, nil)
	defer res.Body.Close()
	<-ready
	stop()
	text, err := io.ReadAll(res.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if err == nil && !strings.Contains(string(text), "event: error") {
		t.Errorf("it ends like a whole one: %q", text)
	}
}

// A daemon that was started in another kind of session listens elsewhere, and is found by the lock on its data directory, while it runs.
func TestADaemonThatListensElsewhereIsFound(t *testing.T) {
	socket, _ := fakeDaemon(t, func(s *ipc.Server) {
		ipc.Handle(s, ipc.Ping, func(context.Context, *ipc.Peer, ipc.Empty) (ipc.PingResponse, error) {
			return ipc.PingResponse{PID: 7}, nil
		})
	})
	data := t.TempDir()
	d := serve(t, Options{Socket: socket + "-before", DataDir: data})
	b := d.browser()
	b.enter(d.Link())
	ping := func(want int) {
		t.Helper()
		if res, body := b.do("POST", "/api/v1/ping", "{}", nil); res.StatusCode != want {
			t.Errorf("%d, want %d: %s", res.StatusCode, want, body)
		}
	}
	ping(http.StatusServiceUnavailable)
	lock, err := ipc.TakeLock(ipc.DataLock(data), socket)
	if err != nil {
		t.Fatal(err)
	}
	ping(http.StatusOK)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	ping(http.StatusServiceUnavailable)
}
