package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/internal/sandbox"
	"rnix/internal/trust"
)

// Doctor says by what commands are confined where they would run, as they are configured, and why not.
func TestDoctorSaysHowCommandsAreConfined(t *testing.T) {
	work := t.TempDir()
	yes := sandbox.Proof{Proved: true, How: "tried"}
	no := func(reason, fix string) sandbox.Proof { return sandbox.Proof{Reason: reason, Fix: fix} }
	both := sandbox.Host{Bwrap: yes, Landlock: yes, Program: "/usr/bin/bwrap", ABI: 7}
	landlock := sandbox.Host{Bwrap: no("no bwrap", "install it"), Landlock: yes, ABI: 6}
	none := sandbox.Host{Bwrap: no("no bwrap", "install it"), Landlock: no("too old", "use a newer kernel"), ABI: 3}
	for name, c := range map[string]struct {
		host         sandbox.Host
		level        sandbox.Level
		optional     bool
		status       verdict
		by           string
		detail, mend string
		gap          string // one of those; empty = there are none
	}{
		"both":                     {both, "auto", false, fine, "bwrap", "by bubblewrap and by Landlock; Landlock has version 7", "rnix sandbox try", "processor time, disk space"},
		"Landlock, by wish":        {both, "landlock", false, fine, "landlock", "by bubblewrap and by Landlock", "rnix sandbox try", "command lines of other programs can be seen"},
		"Landlock only":            {landlock, "auto", false, fine, "landlock", "by Landlock; not by bubblewrap: no bwrap; Landlock has version 6", "install it", "there is no loopback"},
		"not what is asked":        {landlock, "bwrap", false, warned, "", "commands cannot be confined here as configured: ", "install it", ""},
		"nothing":                  {none, "auto", false, warned, "", "commands cannot be confined: not by bubblewrap: no bwrap; not by Landlock: too old; Landlock has version 3", "install it\nor: use a newer kernel", ""},
		"nothing, and it need not": {none, "auto", true, warned, "off", "commands cannot be confined: ", "install it", ""},
		"off":                      {both, "off", false, warned, "off", "the configuration switches it off, ", "sandbox: {level: auto}", ""},
	} {
		set := sandbox.Usual().With(sandbox.Settings{Level: c.level, Optional: c.optional})
		got, more := guard(c.host, set, sandbox.Place{Work: work})
		if got.Status != c.status || !strings.Contains(got.Detail, c.detail) || !strings.Contains(got.Mend, c.mend) {
			t.Errorf("%s: %+v", name, got)
		}
		if more.By != c.by || more.Level != string(c.level) || more.Net != "none" || more.Bwrap != c.host.Bwrap || more.Landlock != c.host.Landlock || more.ABI != c.host.ABI {
			t.Errorf("%s: %+v", name, more)
		}
		if all := strings.Join(more.Gaps, "\n"); !strings.Contains(all, c.gap) || c.gap == "" && all != "" {
			t.Errorf("%s: not enforced: %s", name, all)
		}
	}
}

// Doctor says of the project in which it is asked whether its files count, and what to do.
func TestDoctorSaysWhetherTheProjectIsTrusted(t *testing.T) {
	dir, config := t.TempDir(), t.TempDir()
	a := &app{host: Host{Dir: dir}, env: func(name string) (string, bool) { return filepath.Dir(dir), name == "HOME" }}
	book := trust.In(config)
	is := func(what string, status verdict, detail, mend string) {
		t.Helper()
		if c := checkTrust(a, config); c.Check != "trust" || c.Status != status || !strings.HasPrefix(c.Detail, detail) || !strings.Contains(c.Mend, mend) {
			t.Errorf("%s: %+v", what, c)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is("empty", fine, "no project is trusted; this one has no file that could start a program", "")
	write(`{}`)
	is("not trusted", absent, "no project is trusted; this one is not: 1 file of it can start programs", "rnix trust")
	files, err := trust.Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, "/gone/project"} {
		if err := book.Put(trust.Entry{Dir: at, Since: time.Unix(1, 0), Files: files}); err != nil {
			t.Fatal(err)
		}
	}
	is("trusted", fine, "1 project is trusted, and 1 not any more, since a file has changed; this one is", "")
	write(`{"mcpServers":{}}`)
	is("changed", warned, "0 projects are trusted, and 2 not any more, since a file has changed; this one has changed since (.mcp.json)", "rnix trust")
	if _, err := book.Forget("/gone/project"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(book.Dir)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if err := os.WriteFile(filepath.Join(book.Dir, entries[0].Name()), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	is("unreadable", warned, "no project is trusted; this one is not: 1 file of it can start programs", "rnix trust")
}
