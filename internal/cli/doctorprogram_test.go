package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Doctor says ok of a program only when it has been run, and names none that nothing uses.
func TestDoctorRunsTheProgramsThatItCallsOK(t *testing.T) {
	for name, c := range map[string]struct{ script, status, want string }{
		"works":   {"echo git version 9.9", "ok", "git version 9.9"},
		"broken":  {"echo no libfoo >&2; exit 127", "broken", "exit status 127: no libfoo"},
		"missing": {"", "warning", "not in PATH"},
	} {
		bin := t.TempDir()
		if c.script != "" {
			if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		env := []string{"PATH=" + bin + ":/usr/bin:/bin"}
		path := bin
		got := checkRuns(t.Context(), checkProgram(path, warned, "git", "needed"), env, "version")
		if string(got.Status) != c.status || !strings.Contains(got.Detail, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	f := newFake(t).serve()
	if r := f.run("doctor", "--json"); !strings.Contains(r.out, `"check":"sandbox"`) || !strings.Contains(r.out, `"check":"git"`) {
		t.Errorf("%s", r.out)
	}
}
