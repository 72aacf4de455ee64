package permit

import (
	"encoding/json"
	"testing"
	"time"
)

func TestRulesOfPages(t *testing.T) {
	for _, c := range []struct {
		rules Rules
		url   string
		want  Decision
	}{
		{Rules{Ask: []string{"web_fetch"}}, "https://a.test/x", Ask},
		{Rules{Ask: []string{"/dev/web"}}, "https://a.test/x", Ask},
		{Rules{Ask: []string{"web_*"}}, "https://a.test/x", Ask},
		{Rules{Deny: []string{"web_fetch a.test"}}, "https://A.test./x", Deny},
		{Rules{Deny: []string{"web_fetch a.test"}}, "http://a.test:8080/", Deny}, // without a port it is about each
		{Rules{Deny: []string{"web_fetch a.test"}}, "https://b.test/?u=https://a.test/", Allow},
		{Rules{Deny: []string{"web_fetch *.a.test"}}, "https://x.a.test/", Deny},
		{Rules{Deny: []string{"web_fetch *.a.test"}}, "https://a.test/", Allow},
		{Rules{Deny: []string{"web_fetch 127.0.0.0/8"}}, "http://0x7f.1/", Deny},
		{Rules{Deny: []string{"/dev/web a.test"}}, "https://a.test/", Deny},
		{Rules{Deny: []string{"web_fetch a.test"}}, "https://me@b.test/", Deny}, // what is no URL can be about anything
		{Rules{Ask: []string{"web_fetch"}, Allow: []string{"web_fetch a.test"}}, "https://a.test/", Allow},
		{Rules{Ask: []string{"web_fetch"}, Allow: []string{"web_fetch a.test"}}, "https://a.test:8443/", Ask}, // what is allowed is at 80 and 443
		{Rules{Ask: []string{"web_fetch"}, Allow: []string{"web_fetch github"}}, "https://github.com/x", Allow},
		{Rules{Ask: []string{"web_fetch"}, Allow: []string{"web_fetch *"}}, "https://10.0.0.1/", Ask},
		{Rules{Deny: []string{"host a.test", "shell", "read_file *"}}, "https://a.test/", Allow}, // these are about other things
		{Rules{Deny: []string{"* docs/**"}}, "https://a.test/", Ask},                             // a pattern that is no host
	} {
		call := WebCall(c.url)
		if v := (Settings{Layers: []Rules{c.rules}}).Judge(&call); v.Decision != c.want {
			t.Errorf("%+v, %s: %+v, want %s", c.rules, c.url, v, c.want)
		}
	}
	// A device may take "URL" for "url": what it would fetch is not known.
	odd := Call{Tool: WebTool, Path: WebPath, Input: json.RawMessage(`{"url":"https://b.test/","URL":"https://a.test/"}`)}
	if v := (Settings{Layers: []Rules{{Deny: []string{"web_fetch a.test"}}}}).Judge(&odd); v.Decision != Ask {
		t.Errorf("with another URL in capital letters: %+v", v)
	}
	for _, text := range []string{"web_fetch https://a.test/", "web_fetch a.test/docs", "web_fetch a b"} {
		if r, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, r)
		}
	}
	if text := Doubt("web_fetch a.test") + Doubt("/dev/web"); text != "" {
		t.Errorf("a rule that is right is doubted: %s", text)
	}
}

func TestGrantsOfPages(t *testing.T) {
	call := WebCall("https://x.a.test/one")
	now := time.Now()
	for match, others := range map[string]map[string]bool{
		"":         {"https://x.a.test/one": true, "https://x.a.test/two": false},
		"x.a.test": {"https://x.a.test/two": true, "http://x.a.test/": true, "https://y.a.test/": false, "https://x.a.test:8443/": false},
		"*.a.test": {"https://y.a.test/": true, "https://a.test/": false},
	} {
		g, err := NewGrant(1, &call, ForProcess, match, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for url, want := range others {
			if other := WebCall(url); g.Covers(&other, now) != want {
				t.Errorf("%s covers %s: %v", g.String(), url, !want)
			}
		}
	}
	if _, err := NewGrant(1, &call, ForProcess, "b.test", time.Time{}); err == nil {
		t.Error("a pattern is granted that does not cover the call")
	}
}

func TestARuleWithTheOwnNameOfACLIsToolIsAboutThatAlone(t *testing.T) {
	for own, want := range map[string]Decision{"Read": Deny, "": Allow} {
		c := Call{Tool: "read_file", Own: own, Path: "/dev/fs", Input: []byte(`{"path":"x"}`), Dir: "/w"}
		if v := (Settings{Layers: []Rules{{Deny: []string{"Read"}}}}).Judge(&c); v.Decision != want {
			t.Errorf("%q: %v", own, v)
		}
	}
}

func TestSearchesAreGrantedAsAWhole(t *testing.T) {
	c := Call{Tool: SearchTool, Path: SearchPath, Input: []byte(`{"query":"x"}`)}
	if g, err := NewGrant(1, &c, ForProcess, "*", time.Time{}); err != nil || g.Match != "*" {
		t.Fatal(err)
	}
	if _, err := NewGrant(1, &c, ForProcess, "x*", time.Time{}); err == nil {
		t.Error("a pattern is granted that decides nothing")
	}
	if why := Doubt(SearchPath); why != "" {
		t.Error(why)
	}
}
