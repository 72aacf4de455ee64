package statehome

import (
	"strings"
	"testing"

	"rnix/types"
)

func TestAHomeIsMadeOfItsBrand(t *testing.T) {
	for _, tt := range []struct {
		brand, base, system     string
		env                     Lookup
		state, log, errlog, top string
	}{
		{"", "", "linux", env("HOME", "/h"), "/h/.rnix/a", "/h/.local/state/rnix/log/daemon.log", "/h/.local/state/rnix/log/daemon-error.log", "/h"},
		{"x", "", "linux", env("HOME", "/h"), "/h/.x/a", "/h/.local/state/x/log/daemon.log", "/h/.local/state/x/log/daemon-error.log", "/h"},
		{"x", "", "linux", env("HOME", "/h", "XDG_STATE_HOME", "/s"), "/h/.x/a", "/s/x/log/daemon.log", "/s/x/log/daemon-error.log", "/h"},
		{"x", "", "linux", env("HOME", "/h", "XDG_STATE_HOME", "s"), "/h/.x/a", "/h/.local/state/x/log/daemon.log", "/h/.local/state/x/log/daemon-error.log", "/h"},
		{"x", "/b/", "linux", env("XDG_STATE_HOME", "/s"), "/b/.x/a", "/b/.local/state/x/log/daemon.log", "/b/.local/state/x/log/daemon-error.log", "/b"},
		{"x", "", "darwin", env("HOME", "/h", "XDG_STATE_HOME", "/s"), "/h/.x/a", "/h/Library/Logs/x/daemon.log", "/h/Library/Logs/x/daemon-error.log", "/h"},
	} {
		h, err := newHome(tt.brand, tt.base, tt.env, tt.system)
		if err != nil {
			t.Fatal(err)
		}
		state, err := h.StateDir("a")
		if err != nil || state != tt.state || h.LogPath() != tt.log || h.ErrorLogPath() != tt.errlog || h.BaseHome() != tt.top || !strings.HasPrefix(tt.log, h.LogDir()+"/") {
			t.Errorf("%+v: %s, %s, %s, %v", tt, state, h.LogPath(), h.ErrorLogPath(), err)
		}
		if want := tt.brand; want != "" && h.Brand() != want || want == "" && h.Brand() != DefaultBrand {
			t.Errorf("brand %q", h.Brand())
		}
	}
}

func TestNoStateDirLeadsOutOfTheHome(t *testing.T) {
	h, err := NewHome("x", "/b", env())
	if err != nil {
		t.Fatal(err)
	}
	for suffix, want := range map[string]string{"": "/b/.x", "a/b": "/b/.x/a/b", "a/../b": "/b/.x/b", "a//b/": "/b/.x/a/b"} {
		if got, err := h.StateDir(suffix); err != nil || got != want {
			t.Errorf("%q: %s, %v", suffix, got, err)
		}
	}
	for _, suffix := range []string{"..", "../y", "a/../../y", "/etc", "a/../.."} {
		if got, err := h.StateDir(suffix); types.CodeOf(err) != types.ErrInvalid || got != "" {
			t.Errorf("%q: %s, %v", suffix, got, err)
		}
	}
}

func TestWhatIsNoBrandAndNoBaseIsRefused(t *testing.T) {
	for _, brand := range []string{".", "..", "a/b", "/", "../x"} {
		if h, err := NewHome(brand, "/b", env()); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %+v, %v", brand, h, err)
		}
	}
	if _, err := NewHome("x", "rel", env()); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("base: %v", err)
	}
	if _, err := NewHome("x", "", env()); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "HOME is not set") {
		t.Errorf("no home: %v", err)
	}
}
