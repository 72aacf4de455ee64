package clock

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestZoneOfTheSystemIsALinkACopyOrNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "zoneinfo", "Here", "There")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	// A zone without changes, as the files of zones have it: an hour east of Greenwich, called HRE.
	zone := "TZif" + "\x00" + string(make([]byte, 15)) +
		"\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x01" + "\x00\x00\x00\x04" +
		"\x00\x00\x0e\x10\x00\x00" + "HRE\x00"
	at := func(name string) string { return filepath.Join(dir, name) }
	for path, text := range map[string]string{file: zone, at("copy"): zone, at("broken"): "TZ"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(file, at("link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"link": "+01:00 Here/There (HRE)", "copy": "+01:00 HRE", "none": "+00:00 UTC", "broken": "+00:00 UTC, since " + at("broken") + " cannot be read",
	} {
		in, name := system(at(path))
		now := time.Now().In(in)
		if got := now.Format("-07:00 ") + named(now, name); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
