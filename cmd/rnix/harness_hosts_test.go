package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
)

// A real command line works in a network of hosts: its model is reached by the proxy, the kernel at the road in its box, and nothing else. So do its model's commands.
func TestRealCommandLinesReachAllowedHostsAlone(t *testing.T) {
	for _, name := range soak.Pick(t, "agent CLIs", []string{"claude", "codex"}, []string{"claude", "codex", "opencode"}) {
		t.Run(name, func(t *testing.T) {
			cli := own[name]
			u := newUser(t, name, nil)
			boxed(t, u, "bwrap")
			where := elsewhere(t, u)
			u.Answer(func(r llmtest.Request) llmtest.Reply {
				if res, ok := r.LastResult(); ok {
					return llmtest.Reply{Text: "it came to this: " + res.Text}
				}
				return cli.run(r, u.exe+" ps | grep -c ' p: '; "+u.exe+" run -q --provider offline --name below --net open 'run curl -sS http://c.test'; curl -sS http://b.test; curl -sS --noproxy '*' http://"+where+" || echo none; echo over")
			})
			out := u.must(append([]string{"run", "--name", "p", "--allow-host", where}, append(cli.args, "try")...)...)
			if !strings.Contains(out, "sandbox: bwrap, network to hosts") {
				t.Errorf("how it is confined is not said: %s", out)
			}
			log := u.must("log", "p")
			for _, want := range []string{"it came to this", "not let commands reach b.test:80, which is not among the allowed hosts: ", "not let commands reach c.test:80, ", "none", "over"} {
				if !strings.Contains(log, want) {
					t.Errorf("%q is not there: %s", want, log)
				}
			}
			trace := u.must("strace", "p", "-a", "--json")
			if !strings.Contains(trace, `"kind":"refused","name":"network","path":"b.test:80","text":"the agent CLI `+name+`: the sandbox does not let commands reach b.test:80, `) {
				t.Errorf("no event of it: %s", trace)
			}
			if steps := u.must("ps", "-a"); !strings.Contains(steps, "below: ") {
				t.Errorf("its command has started nothing: %s", steps)
			}
		})
	}
}

// elsewhere serves what the user's vendor does at an address that programs do not take for their own loopback, and has the user use that.
func elsewhere(t *testing.T, u *user) (where string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("needs a machine with all of 127.0.0.0/8:", err)
	}
	to, err := url.Parse(u.URL)
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: httputil.NewSingleHostReverseProxy(to)}}
	srv.Start()
	t.Cleanup(srv.Close)
	for i, kv := range u.env {
		u.env[i] = strings.Replace(kv, to.Host, l.Addr().String(), 1)
	}
	return l.Addr().String()
}
