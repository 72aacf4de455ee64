package sandbox

import (
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"rnix/internal/hosts"
	"rnix/types"
)

// someWork are directories to work in: outside, in the home, in what is protected there and in what is hidden.
var someWork = []string{"/a", "/a/b", "/a/.rnix/agents", "/a/.git/hooks", "/h/me", "/h/me/src", "/h/me/src/.claude/x", "/h/me/.ssh/keys", "/data/tree", "/e"}

func anySettings(t *rapid.T, name string) Settings {
	paths := func(field string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(append([]string{"/a/b/c", "/e", "/h/me/notes", "/a/.rnix"}, someWork...)), 0, 2, rapid.ID).Draw(t, name+field)
	}
	return Settings{
		Level: rapid.SampledFrom([]Level{"", LevelAuto, LevelLandlock, LevelBwrap}).Draw(t, name+"level"), Net: rapid.SampledFrom([]Net{"", NetNone, NetHosts, NetOpen}).Draw(t, name+"net"),
		Hosts: rapid.SampledFrom([][]hosts.Said{nil, {}, hosts.Say("x", rapid.SliceOfNDistinct(rapid.SampledFrom(someHosts), 1, 4, rapid.ID).Draw(t, name+"hosts")...)}).Draw(t, name+"said"),
		Paths: Paths{Read: paths("read"), Write: paths("write"), Hide: paths("hide")}, Optional: rapid.Bool().Draw(t, name+"optional"),
		Bounds: types.Bounds{Memory: rapid.SampledFrom([]types.Memory{0, -1, 1 << 30, 4 << 30}).Draw(t, name+"memory"), Processes: rapid.SampledFrom([]types.Tasks{0, -1, 64, 2048, 8192}).Draw(t, name+"processes")},
	}
}

func placeAt(t *rapid.T, name string) Place {
	work := rapid.SampledFrom(someWork).Draw(t, name+"work")
	p := Place{Work: work, Home: "/h/me", Private: []string{"/data"}}
	if rapid.Bool().Draw(t, name+"git") {
		top := rapid.SampledFrom([]string{work, filepath.Dir(work)}).Draw(t, name+"top")
		p.Git = Git{Top: top, Dir: filepath.Join(top, ".git"), Common: filepath.Join(top, ".git")}
	}
	return p
}

// TestWhatIsStartedInsideHasNoMore plays a line of processes: a person starts the first one, and the commands of each start the next one, in a
// directory and with settings that they choose, or its model does, which works where it works.
func TestWhatIsStartedInsideHasNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		place, made := placeAt(t, "first "), rapid.Bool().Draw(t, "made")
		s := Usual().With(anySettings(t, "first "))
		above, most := s.Policy(place, made).Canonical(), s.Bounds
		for i := range rapid.IntRange(1, 4).Draw(t, "generations") {
			if rapid.Bool().Draw(t, "by a command") {
				s = MeetSettings(s.Below(place, made), Usual().With(anySettings(t, "next ")))
				place, made = placeAt(t, "next "), false
			} else {
				agent := anySettings(t, "agent ")
				s = s.Tighten(agent.Level, agent.Net, agent.Bounds, agent.Hosts)
			}
			p := s.Policy(place, made).Canonical()
			for _, path := range append(probes(), someWork...) {
				for _, probe := range []string{path, filepath.Join(path, "new"), filepath.Join(path, ".rnix"), filepath.Join(path, ".git/hooks/x")} {
					if p.Access(probe) > above.Access(probe) {
						t.Fatalf("generation %d, at %s: %v of %s, and above %v\n%+v\n%s\nabove:\n%s", i, place.Work, p.Access(probe), probe, above.Access(probe), s, p.Explain(), above.Explain())
					}
				}
			}
			for _, host := range append(reached, someHosts...) {
				if p.Reaches(host) && !above.Reaches(host) {
					t.Fatalf("generation %d reaches %s, and above it is\n%s", i, host, above.Explain())
				}
			}
			if m := Meet(p, above); m.Level != p.Level || m.Net != p.Net {
				t.Fatalf("generation %d has %s and %s, above it there is %s and %s", i, p.Level, p.Net, above.Level, above.Net)
			}
			if s.Bounds.Held() != s.Bounds.Meet(most).Held() || p.Limits != Meet(p, above).Limits {
				t.Fatalf("generation %d may use %+v (%+v), above it there is %+v (%+v)", i, s.Bounds, p.Limits, most, above.Limits)
			}
			above, most = p, s.Bounds
		}
	})
}

func TestSettingsAreChecked(t *testing.T) {
	for want, s := range map[string]Settings{
		"": {}, "level": {Level: "loose"}, "net": {Net: "some"}, "hosts": {Net: NetHosts, Hosts: hosts.Say("", "a b")}, "write": {Paths: Paths{Write: []string{"x"}}}, "hide": {Within: []string{"/a/.."}},
	} {
		err := s.Check()
		if want == "" && err != nil || want != "" && types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if s := (Settings{Level: LevelOff, Net: NetNone}); s.Policy(Place{Work: "/a"}, false).Access("/etc/shadow") != AccessWrite {
		t.Error("what is off confines")
	}
}

func TestLandlockDoesNotTightenWhatBubblewrapMayConfine(t *testing.T) {
	for _, c := range []struct{ have, said, want Level }{
		{LevelAuto, LevelLandlock, LevelAuto}, {LevelLandlock, LevelAuto, LevelAuto}, {LevelBwrap, LevelLandlock, LevelBwrap},
		{LevelAuto, LevelBwrap, LevelBwrap}, {LevelOff, LevelLandlock, LevelLandlock}, {LevelLandlock, LevelOff, LevelLandlock},
	} {
		if got := (Settings{Level: c.have, Net: NetNone}).Tighten(c.said, "", types.Bounds{}, nil).Level; got != c.want {
			t.Errorf("%s, tightened by %s, is %s and not %s", c.have, c.said, got, c.want)
		}
	}
}

// What git runs is protected in a part of a project as well, whose repository lies above it: also for what its commands start elsewhere, with settings that would
// let it be written.
func TestTheRepositoryAboveAPartOfAProjectStaysProtectedBelow(t *testing.T) {
	hooks := Settings{Paths: Paths{Write: []string{"/a/.git/hooks"}}}
	place := Place{Work: "/a/b", Home: "/h/me", Git: Git{Top: "/a", Dir: "/a/.git", Common: "/a/.git"}}
	s := Usual().With(hooks)
	if a := s.Policy(place, false).Access("/a/.git/hooks/x"); a != AccessRead {
		t.Errorf("it has %v of its hooks", a)
	}
	s = MeetSettings(s.Below(place, false), Usual().With(hooks))
	if a := s.Policy(Place{Work: "/h/me/.ssh/keys", Home: "/h/me"}, false).Access("/a/.git/hooks/x"); a > AccessRead {
		t.Errorf("what it has started has %v of them", a)
	}
}
