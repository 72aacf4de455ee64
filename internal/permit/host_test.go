package permit

import (
	"strings"
	"testing"
	"time"
)

func TestRulesOfHosts(t *testing.T) {
	for _, c := range []struct {
		rules Rules
		host  string
		want  Decision
	}{
		{Rules{Ask: []string{"host"}}, "a.test:443", Ask},
		{Rules{Ask: []string{"host *"}}, "a.test:22", Ask},
		{Rules{Ask: []string{"host *"}}, "10.0.0.1:80", Ask},
		{Rules{Ask: []string{"host *.a.test"}}, "x.a.test:8080", Ask}, // without a port it is about each
		{Rules{Ask: []string{"host *.a.test"}}, "a.test:443", Allow},
		{Rules{Ask: []string{"host a.test:443"}}, "a.test:80", Allow},
		{Rules{Deny: []string{"host a.test"}}, "a.test:8080", Deny},
		{Rules{Deny: []string{"host 10.0.0.0/8"}}, "10.1.1.1:22", Deny},
		{Rules{Ask: []string{"host"}, Allow: []string{"host a.test"}}, "a.test:443", Allow},
		{Rules{Ask: []string{"host"}, Allow: []string{"host a.test"}}, "a.test:8080", Ask}, // what is allowed is at 80 and 443
		{Rules{Ask: []string{"host"}, Allow: []string{"host npm"}}, "registry.npmjs.org:443", Allow},
		{Rules{Ask: []string{"host"}, Allow: []string{"host *"}}, "10.0.0.1:80", Ask},
		{Rules{Ask: []string{"host"}, Allow: []string{"host"}}, "10.0.0.1:80", Allow},
		{Rules{Ask: []string{"*", "/dev/shell", "shell", "/net"}, Deny: []string{"/net/host"}}, "a.test:443", Allow}, // no other rule is about hosts
		{Rules{Ask: []string{"host"}}, "not a host", Ask},
	} {
		call := HostCall(c.host)
		if v := (Settings{Layers: []Rules{c.rules}}).Judge(&call); v.Decision != c.want {
			t.Errorf("%+v, %s: %+v, want %s", c.rules, c.host, v, c.want)
		}
		shell := &Call{Tool: "shell", Path: ShellPath, Input: []byte(`{"command":"curl a.test","host":"a.test:443"}`)}
		if len(c.rules.Ask) < 2 {
			if v := (Settings{Layers: []Rules{c.rules}}).Judge(shell); v.Decision != Allow {
				t.Errorf("%+v is about a command: %+v", c.rules, v)
			}
		}
	}
	for _, text := range []string{"host a b", "host http://a.test", "host *a", "host a.test:x", "host bücher.test"} {
		if r, err := Parse(text); err == nil || !strings.Contains(err.Error(), "no host") {
			t.Errorf("%q is %v %v", text, r, err)
		}
	}
	if got := strings.Join(Hosts([]string{"host npm", "shell git *", "host", "host *.a.test:1", "hosts x"}), " "); got != "npm * *.a.test:1" {
		t.Errorf("%q", got)
	}
}

func TestGrantsOfHosts(t *testing.T) {
	call := HostCall("x.a.test:443")
	now := time.Now()
	for match, others := range map[string]map[string]bool{
		"":             {"x.a.test:443": true, "x.a.test:80": false, "y.a.test:443": false},
		"*.a.test":     {"x.a.test:80": true, "y.a.test:443": true, "y.a.test:22": false, "a.test:443": false},
		"x.a.test:443": {"x.a.test:443": true, "x.a.test:80": false},
	} {
		g, err := NewGrant(1, &call, ForProcess, match, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range others {
			other := HostCall(host)
			if g.Covers(&other, now) != want {
				t.Errorf("%s covers %s: %v", g.String(), host, !want)
			}
		}
	}
	odd := HostCall("x.a.test:8443")
	if g, err := NewGrant(1, &odd, ForProcess, "*.a.test", time.Time{}); err == nil {
		t.Errorf("%s was granted for another port", g.String())
	}
}
