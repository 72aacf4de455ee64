package hosts

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rnix/types"
)

func TestTargetsHaveOneForm(t *testing.T) {
	for text, want := range map[string]string{
		"Example.COM:443": "example.com:443", "example.com.:443": "example.com:443", "example.com": "example.com:80", "a_b.test:1": "a_b.test:1",
		"127.0.0.1:80": "127.0.0.1:80", "2130706433:80": "127.0.0.1:80", "0177.0.0.1:80": "127.0.0.1:80", "0x7f.1:80": "127.0.0.1:80", "127.1:80": "127.0.0.1:80",
		"0xA9FEA9FE:80": "169.254.169.254:80", "127.0.0.1.:80": "127.0.0.1:80", "0:80": "0.0.0.0:80",
		"[::1]:80": "[::1]:80", "::1": "[::1]:80", "[::FFFF:127.0.0.1]:80": "127.0.0.1:80", "[0:0::1]:8080": "[::1]:8080", "[::1]": "[::1]:80",
	} {
		got, err := ParseTarget(text, 80)
		if err != nil || got.String() != want {
			t.Errorf("%s: %s %v, want %s", text, got, err, want)
		}
		if again, err := ParseTarget(got.String(), 0); err != nil || again != got {
			t.Errorf("%s: %s %v when it is read again", text, again, err)
		}
	}
	for _, text := range []string{
		"", ":80", "a:", "a:0", "a:65536", "a:+1", "a:080", "user@a.test:80", "a.test/x", "a..test:1", ".a:1", "a b:1", "a\x00:1", "bücher.test:1", "ａ.test:1", "[::1", "[::1]x", "[a]:1", "[127.0.0.1]:1",
		"[fe80::1%eth0]:1", "fe80::1%eth0", "256.0.0.1:1", "1.2.3.4.5:1", "08.0.0.1:1", "0x1ffffffff:1", "a.1:1", "a.0x1:1", "*:1", "*.a:1", "-:", strings.Repeat("a", 64) + ":1", strings.Repeat("a.", 127) + "aa:1", "a:1:2",
	} {
		if got, err := ParseTarget(text, 80); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q is %s %v", text, got, err)
		}
	}
	if _, err := ParseTarget("a.test", 0); err == nil {
		t.Error("no port is needed")
	}
}

func TestRulesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]string{
		"Example.com": "example.com", "example.com.:8080": "example.com:8080", "*.Example.com:*": "*.example.com:*", "*": "*", "*:443": "*:443", "2130706433:80": "127.0.0.1:80",
		"[::1]:80": "[::1]:80", "::1": "::1", "10.0.0.0/8": "10.0.0.0/8", "10.0.0.0/8:22": "10.0.0.0/8:22", "[fd00::/8]:443": "[fd00::/8]:443", "fd00::/8": "fd00::/8", "localhost:1": "localhost:1", "localhost:*": "localhost:*",
	} {
		r, err := Parse(text)
		if err != nil || r.String() != want {
			t.Errorf("%s: %s %v, want %s", text, r, err, want)
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%s: %s %v when it is read again", text, again, err)
		}
	}
	for text, want := range map[string]string{
		"": "stand 1 to 63", "a b": "letters", "http://a.test": "a URL", "a.test/x": "a net", "10.0.0.1/8": "zeros", "10.0.0.0/33": "zeros", "10.0.0.0/08": "a net", "localhost": "at which port", "*.1.2.3.4": "below an address",
		"a.*": "all names below", "*a.test": "all names below", "a:*:*": "all names below", "user@a.test": "letters", "bücher.test": "xn--", "a.test:https": "port",
	} {
		if r, err := Parse(text); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "npm") {
			t.Errorf("%q is %s %v, want %q", text, r, err, want)
		}
	}
}

func TestRulesMatch(t *testing.T) {
	for rule, c := range map[string]struct{ yes, no string }{
		"example.com":        {"example.com:80 example.com:443 EXAMPLE.com.:443", "example.com:8080 a.example.com:443 example.com.evil.test:443 xexample.com:443"},
		"example.com:8080":   {"example.com:8080", "example.com:443"},
		"*.example.com":      {"a.example.com:443 a.b.example.com:80", "example.com:443 aexample.com:443 a.example.com:22"},
		"*":                  {"a:443 a.test:80", "a.test:22 127.0.0.1:80 8.8.8.8:443 [2000::1]:443"},
		"*:*":                {"a:1", "8.8.8.8:1"},
		"10.0.0.0/8":         {"10.1.2.3:80 0x0a000001:443", "10.1.2.3:22 11.0.0.1:80 a.test:80"},
		"127.0.0.1:*":        {"127.0.0.1:9 2130706433:9 [::ffff:127.0.0.1]:9", "127.0.0.2:9 localhost:9 [::1]:9"},
		"[::1]:80":           {"[::1]:80", "127.0.0.1:80 [::2]:80"},
		"registry.npmjs.org": {"registry.npmjs.org:443", "registry.npmjs.org:8443"},
	} {
		r, err := Parse(rule)
		if err != nil {
			t.Fatal(err)
		}
		for i, list := range []string{c.no, c.yes} {
			for target := range strings.FieldsSeq(list) {
				if to, err := ParseTarget(target, 0); err != nil || r.Matches(to) != (i == 1) {
					t.Errorf("%s matches %s: %v %v", rule, target, r.Matches(to), err)
				}
			}
		}
	}
}

func TestPrivateAddressesAreNamed(t *testing.T) {
	rules, err := ParseAll([]string{"*", "npm", "db.test:*", "10.0.0.0/8", "192.168.0.1:5432", "localhost:8080", "[::1]:9"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"db.test:80 10.9.9.9": true, "db.test:81 10.9.9.9": false, "a.test:80 127.0.0.1": false, "a.test:5432 192.168.0.1": true, "a.test:5432 192.168.0.2": false, "localhost:8080 127.0.0.1": true, "localhost:8080 ::1": true,
		"localhost:8081 127.0.0.1": false, "localhost:8080 10.0.0.1": false, "a.test:8080 127.0.0.1": false, "a.localhost:8080 127.0.0.1": false, "a.test:9 ::1": true, "a.test:80 ::ffff:10.0.0.1": true, "a.test:80 169.254.169.254": false,
	} {
		host, ip, _ := strings.Cut(text, " ")
		to, err := ParseTarget(host, 0)
		if got := rules.Names(to, netip.MustParseAddr(ip)); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
}

var some = []string{"x.test", "x.test:80", "x.test:*", "x.test:8080", "*.x.test", "a.x.test", "*.a.x.test:80", "*", "*:*", "*:8080", "10.0.0.0/8", "10.0.0.0/16:5", "10.0.0.1:*", "[::1]:80", "::/0", "localhost:80", "npm", "github"}

func anySaid(t *rapid.T, name string) []Said {
	return Say(name, rapid.SliceOfNDistinct(rapid.SampledFrom(some), 0, 5, rapid.ID).Draw(t, name)...)
}

func TestMeetReachesWhatBothReach(t *testing.T) {
	var targets []Target
	for _, text := range []string{"x.test:80", "x.test:443", "x.test:8080", "a.x.test:80", "b.a.x.test:80", "b.a.x.test:8080", "y:443", "y:8080", "y:1", "10.0.0.1:80", "10.0.0.1:5", "10.0.1.1:5", "10.1.1.1:443", "[::1]:80", "[2000::1]:80", "localhost:80", "registry.npmjs.org:443", "registry.npmjs.org:80", "api.github.com:443"} {
		to, err := ParseTarget(text, 0)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, to)
	}
	reaches := func(rs Rules, to Target) bool { _, ok := rs.Match(to); return ok }
	rapid.Check(t, func(t *rapid.T) {
		a, b := anySaid(t, "a"), anySaid(t, "b")
		said := MeetSaid(a, b)
		ra, rb, both := RulesOf(a), RulesOf(b), RulesOf(said)
		if err := Check(said); err != nil {
			t.Fatal(err)
		}
		for _, to := range targets {
			want := reaches(ra, to) && reaches(rb, to)
			if reaches(both, to) != want || reaches(Meet(ra, rb), to) != want {
				t.Fatalf("%s: %v and %v, want %v; %v", to, reaches(both, to), reaches(Meet(ra, rb), to), want, said)
			}
		}
		for _, s := range said {
			if s.From != "a" && s.From != "b" {
				t.Fatalf("%+v comes from nowhere", s)
			}
		}
		if again := MeetSaid(said, said); !slices.Equal(RulesOf(again), both) {
			t.Fatalf("%v is not %v", again, said)
		}
	})
}

func TestPresetsAreHosts(t *testing.T) {
	for _, p := range Presets() {
		rules, err := ParseAll([]string{p.Name})
		if err != nil || len(rules) == 0 || len(rules) != len(p.Hosts) || p.Doc == "" {
			t.Errorf("%s: %v %v", p.Name, rules, err)
		}
	}
	if rules, err := ParseAll([]string{"npm", "npm:443"}); err != nil || !slices.Contains(rules.Strings(), "npm:443") {
		t.Errorf("%v %v", rules, err)
	}
}

func TestWaysOutAreNamed(t *testing.T) {
	for host, want := range map[string]string{"github": "github", "api.github.com:443": "github", "*": "github", "npm": "", "github.com:80": "", "a.test": ""} {
		if got := strings.Join(WaysOut([]string{"pypi", host}), " "); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

func FuzzTarget(f *testing.F) {
	for _, text := range some {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to, err := ParseTarget(text, 80)
		if err != nil {
			return
		}
		if again, err := ParseTarget(to.String(), 0); err != nil || again != to || strings.ToLower(to.Name) != to.Name || to.Addr.Is4In6() {
			t.Fatalf("%q is %s, and that is %s %v", text, to, again, err)
		}
	})
}

// Every name is not this machine, whoever asks for it.
func TestAllNamesDoNotGiveThisMachine(t *testing.T) {
	for _, text := range []string{"*", "*:*"} {
		all, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"localhost:6379", "localhost:80", "localhost:*"} {
			here, err := Parse(other)
			if err != nil {
				t.Fatal(err)
			}
			if _, some := all.meet(here); some || all.Covers(here) {
				t.Errorf("%s gives %s", text, other)
			}
			if _, some := here.meet(all); some {
				t.Errorf("%s is left of %s", other, text)
			}
		}
	}
}
