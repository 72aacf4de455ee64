package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// somePaths are enough for paths to contain each other in all ways.
var somePaths = []string{"/", "/a", "/a/b", "/a/b/c", "/a/bc", "/a/d", "/e", "/e/f", "/e/f/g"}

var someHosts = []string{"x.test", "x.test:80", "x.test:443", "*.x.test", "a.x.test", "a.x.test:80", "*.a.x.test:80", "*", "*:*", "x.test:*", "10.0.0.1:*", "10.0.0.0/8:5", "[::1]:80", "npm", "localhost:80"}

// reached are hosts that some of these are about.
var reached = []string{"x.test:80", "x.test:443", "x.test:81", "a.x.test:80", "b.x.test:1", "b.a.x.test:80", "y.test:80", "10.0.0.1:5", "[::1]:80", "[::1]:81", "10.0.0.1:80", "registry.npmjs.org:443", "127.0.0.1:80", "localhost:80", "169.254.169.254:80"}

func anyPolicy(t *rapid.T, name string) Policy {
	paths := func(field string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(somePaths), 0, 4, rapid.ID).Draw(t, name+field)
	}
	limit := func(field string) int64 { return rapid.Int64Range(0, 3).Draw(t, name+field) }
	p := Policy{
		Version: Version, Level: rapid.SampledFrom(levels).Draw(t, name+"level"), Net: rapid.SampledFrom(nets).Draw(t, name+"net"),
		Read: paths("read"), Write: paths("write"), Hide: paths("hide"), Protect: paths("protect"), Sockets: paths("sockets"),
		Limits: Limits{Processes: limit("processes"), Memory: limit("memory"), OpenFiles: limit("files"), FileSize: limit("size"), CPU: limit("cpu")},
	}
	if p.Net == NetHosts {
		p.Hosts = rapid.SliceOfNDistinct(rapid.SampledFrom(someHosts), 0, 4, rapid.ID).Draw(t, name+"hosts")
	}
	return p
}

// probes are paths at, above, below and beside those of the policies.
func probes() []string {
	var out []string
	for _, p := range somePaths {
		out = append(out, p, filepath.Join(p, "new"), filepath.Join(p, "new", "deep"))
	}
	return out
}

func TestMeetAllowsWhatBothAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyPolicy(t, "a "), anyPolicy(t, "b ")
		m := Meet(a, b)
		if err := m.Check(); err != nil {
			t.Fatalf("the meet is invalid: %v", err)
		}
		for _, path := range probes() {
			if got, want := m.Access(path), min(a.Access(path), b.Access(path)); got != want {
				t.Fatalf("%s: %v, want %v", path, got, want)
			}
		}
		for _, host := range reached {
			if got, want := m.Reaches(host), a.Reaches(host) && b.Reaches(host); got != want {
				t.Fatalf("%s is reached: %v, want %v", host, got, want)
			}
		}
		for _, path := range probes() {
			in := func(p Policy) bool {
				return slices.ContainsFunc(p.Sockets, func(s string) bool { return within(path, s) })
			}
			if got, want := in(m), in(a) && in(b); got != want {
				t.Fatalf("socket %s: %v, want %v", path, got, want)
			}
		}
		limits, ofA, ofB := m.Limits.named(), a.Limits.named(), b.Limits.named()
		for i, l := range limits {
			for _, of := range []namedLimit{ofA[i], ofB[i]} {
				if *of.value != 0 && (*l.value == 0 || *l.value > *of.value) {
					t.Fatalf("limit %s is %d, and one has %d", l.name, *l.value, *of.value)
				}
			}
		}
	})
}

func TestMeetIsASemilattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyPolicy(t, "a "), anyPolicy(t, "b "), anyPolicy(t, "c ")
		for _, law := range []struct {
			name        string
			left, right Policy
		}{
			{"commutative", Meet(a, b), Meet(b, a)},
			{"associative", Meet(Meet(a, b), c), Meet(a, Meet(b, c))},
			{"idempotent", Meet(Meet(a, b), b), Meet(a, b)},
			{"neutral", Meet(a, Everything()), a.Canonical()},
			{"canonical", a.Canonical().Canonical(), a.Canonical()},
		} {
			if diff := cmp.Diff(law.left, law.right); diff != "" {
				t.Fatalf("not %s:\n%s", law.name, diff)
			}
		}
	})
}

// TestNoDescendantHasMoreThanItsAncestors plays a tree of processes: each is spawned, resumed, forked or started by a workflow or a
// supervisor, with a policy that it asks for, and gets the meet with its parent's.
func TestNoDescendantHasMoreThanItsAncestors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type process struct {
			policy Policy
			parent int
		}
		tree := []process{{policy: Meet(Everything(), anyPolicy(t, "root ")), parent: -1}}
		for i := range rapid.IntRange(1, 12).Draw(t, "processes") {
			parent := rapid.IntRange(0, len(tree)-1).Draw(t, "parent")
			wish := anyPolicy(t, "wish ")
			if rapid.Bool().Draw(t, "resumed") && i > 0 { // with what its record says, which a program may have written
				wish = tree[len(tree)-1].policy
			}
			tree = append(tree, process{Meet(tree[parent].policy, wish), parent})
		}
		for i, p := range tree {
			for above := p.parent; above >= 0; above = tree[above].parent {
				if diff := cmp.Diff(Meet(p.policy, tree[above].policy), p.policy); diff != "" {
					t.Fatalf("process %d has more than its ancestor %d:\n%s", i, above, diff)
				}
			}
		}
	})
}

func TestNearestRuleDecides(t *testing.T) {
	p := Policy{
		Version: Version, Level: LevelAuto, Net: NetNone, Read: []string{"/", "/h/me/go"}, Write: []string{"/h/me/src"},
		Hide: []string{"/h", "/h/me/src/.env"}, Protect: []string{"/h/me/src/.git/hooks", "/h/me/.bashrc"},
	}
	for path, want := range map[string]Access{
		"/": AccessRead, "/usr/bin/env": AccessRead, "/h": AccessNone, "/h/me": AccessNone, "/h/me/.bashrc": AccessNone,
		"/h/me/go": AccessRead, "/h/me/go/pkg": AccessRead, "/h/me/gopher": AccessNone, "/h/me/src": AccessWrite,
		"/h/me/src/a.go": AccessWrite, "/h/me/src/.git/hooks": AccessRead, "/h/me/src/.git/hooks/pre-commit": AccessRead,
		"/h/me/src/.git/index": AccessWrite, "/h/me/src/.env": AccessNone, "/h/me/src/../.ssh": AccessNone,
	} {
		if got := p.Access(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

func TestBadPoliciesAreRefusedWithTheFieldAndWhatIsWanted(t *testing.T) {
	good := Standard(Place{Work: "/w"})
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Policy){
		"version: invalid version 7: want 1":                  func(p *Policy) { p.Version = 7 },
		`level: invalid level "weak": want off, auto,`:        func(p *Policy) { p.Level = "weak" },
		`net: invalid network "": want none, hosts or open`:   func(p *Policy) { p.Net = "" },
		"hosts: hosts are named, but net is none":             func(p *Policy) { p.Hosts = []string{"a"} },
		`read: invalid path "a/b"`:                            func(p *Policy) { p.Read = []string{"a/b"} },
		`write: invalid path "/a/../b"`:                       func(p *Policy) { p.Write = []string{"/a/../b"} },
		`hide: invalid path "/a/"`:                            func(p *Policy) { p.Hide = []string{"/a/"} },
		`protect: invalid path ""`:                            func(p *Policy) { p.Protect = []string{""} },
		`sockets: invalid path "/a\x00b"`:                     func(p *Policy) { p.Sockets = []string{"/a\x00b"} },
		`"a b" is no host: a name has letters, digits`:        func(p *Policy) { p.Net, p.Hosts = NetHosts, []string{"a b"} },
		`"a:99999" is no host: a port is a number`:            func(p *Policy) { p.Net, p.Hosts = NetHosts, []string{"a:99999"} },
		`"*.1.2.3.4" is no host: there are no names below`:    func(p *Policy) { p.Net, p.Hosts = NetHosts, []string{"*.1.2.3.4"} },
		"limits: invalid limit memory: -1; want a positive n": func(p *Policy) { p.Limits.Memory = -1 },
	} {
		p := good
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to contain %q", err, want)
		}
	}
}

func TestExplainNamesAllThatCounts(t *testing.T) {
	p := Policy{
		Version: Version, Level: LevelBwrap, Read: []string{"/usr"}, Write: []string{"/w"}, Hide: []string{"/w/key"}, Protect: []string{"/w/.git"},
		Net: NetHosts, Hosts: []string{"example.com:443"}, Sockets: []string{"/s"}, Limits: Limits{CPU: 9},
	}
	want := "level     bwrap\nread      /usr\nwrite     /w\nhidden    /w/key\nprotected /w/.git\nnetwork   example.com:443\nsockets   /s\nlimits    cpu 9\n"
	if got := p.Explain(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What is below a directory comes right behind it, as if "/" were the lowest byte that there is.
func TestPathsAreOrderedByTheirParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.StringOfN(rapid.SampledFrom([]rune("/ab!.0ü")), 0, 8, -1)
		a, b := path.Draw(t, "a"), path.Draw(t, "b")
		lowest := strings.NewReplacer("/", "\x00")
		if got, want := comparePaths(a, b), strings.Compare(lowest.Replace(a), lowest.Replace(b)); got != want {
			t.Fatalf("%q and %q: %d, want %d", a, b, got, want)
		}
	})
}
