package vendortest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestHomeIsWhereSandboxesLetNothingBeWritten(t *testing.T) { // D5
	for name, c := range map[string]struct {
		cache, temp string
		readOnly    string   // where no home can be made
		home        string   // empty = the test is skipped
		lack        []string // what is said then
	}{
		"the cache of the user":      {cache: "/home/u/.cache", temp: "/tmp", home: "/home/u/.cache/home"},
		"a cache beside TMPDIR":      {cache: "/home/u/.cache", temp: "/home/u/.cache-tmp", home: "/home/u/.cache/home"},
		"a cache in /tmp":            {cache: "/tmp/u/.cache", temp: "/dev/shm", home: "/var/tmp/home"},
		"a cache in TMPDIR":          {cache: "/home/u/tmp/.cache", temp: "/home/u/tmp", home: "/var/tmp/home"},
		"no cache":                   {temp: "/tmp", home: "/var/tmp/home"},
		"a cache that is read-only":  {cache: "/home/u/.cache", temp: "/tmp", readOnly: "/home/u/.cache", home: "/var/tmp/home"},
		"a cache in /tmp, no other":  {cache: "/tmp/u/.cache", temp: "/tmp", readOnly: "/var/tmp", lack: []string{"/tmp/u/.cache (in /tmp)", "/var/tmp (read-only)"}},
		"all in /tmp or TMPDIR":      {cache: "/tmp/u/.cache", temp: "/var/tmp", lack: []string{"/tmp/u/.cache (in /tmp)", "/var/tmp (in /var/tmp)"}},
		"no cache, TMPDIR elsewhere": {temp: "/var", lack: []string{"cannot use /var/tmp (in /var); set HOME or XDG_CACHE_HOME"}},
	} {
		home, lack := homeIn(c.cache, c.temp, func(base string) (string, error) {
			if base == c.readOnly {
				return "", errors.New("read-only")
			}
			return base + "/home", nil
		})
		if home != c.home || (lack == "") != (c.home != "") {
			t.Errorf("%s: %q, %q", name, home, lack)
		}
		for _, want := range c.lack {
			if !strings.HasPrefix(lack, "needs a directory outside of /tmp") || !strings.Contains(lack, want) {
				t.Errorf("%s: no %q in %q", name, want, lack)
			}
		}
	}
}

// skipped is a test that notes why it is skipped, and goes on.
type skipped struct {
	testing.TB
	why string
}

func (s *skipped) Skip(args ...any) { s.why = fmt.Sprint(args...) }

func TestWithoutAPlaceForAHomeATestIsSkippedAndSaysWhy(t *testing.T) { // D5
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "/tmp/no-home-of-rnix")
	t.Setenv("TMPDIR", "/var/tmp")
	s := &skipped{TB: t}
	if home := newHome(s); home != "" || !strings.Contains(s.why, "/tmp/no-home-of-rnix/.cache/rnix-test (in /tmp), /var/tmp (in /var/tmp)") {
		t.Errorf("%q: %s", home, s.why)
	}
	if _, err := os.Stat("/tmp/no-home-of-rnix"); err == nil {
		t.Error("it was made all the same")
	}
}
