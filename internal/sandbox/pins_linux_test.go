//go:build amd64 || arm64

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rnix/types"
)

// replaceByLink puts a link to a directory in the place of another one.
func replaceByLink(t *testing.T, dir, to string) {
	t.Helper()
	if err := os.Rename(dir, dir+".was"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, dir); err != nil {
		t.Fatal(err)
	}
}

// Another program, whose commands write above, replaces what a command is given while that is being started.
func TestWhatIsMountedIsWhatWasLookedAt(t *testing.T) {
	h := probed(t, RungBwrap)
	if !h.Pins {
		t.Skip("needs a bwrap with --bind-fd")
	}
	for name, c := range map[string]struct {
		dir           string // below the shared directory
		early, starts bool
	}{
		"never":                        {starts: true},
		"before it is opened":          {dir: "extra", early: true},
		"above, before it is opened":   {early: true, dir: "."},
		"when it is opened":            {dir: "extra"},
		"the work directory, too late": {dir: "work"},
	} {
		t.Run(name, func(t *testing.T) {
			top := directory(t)
			shared, secrets := filepath.Join(top, "shared"), filepath.Join(top, "secrets")
			for _, dir := range []string{"work", "temp", "extra"} {
				write(t, filepath.Join(shared, dir, "file"), "own")
				write(t, filepath.Join(secrets, dir, "file"), "a secret")
			}
			write(t, filepath.Join(secrets, "file"), "a secret")
			p := Place{Work: filepath.Join(shared, "work"), Temp: filepath.Join(shared, "temp"), Private: []string{secrets}}
			policy := Standard(p)
			policy.Write = append(policy.Write, filepath.Join(shared, "extra"))
			plan, err := MakePlan(policy, h, Disk{})
			if err != nil {
				t.Fatal(err)
			}
			if c.dir == "." {
				replaceByLink(t, shared, secrets)
			} else if c.early {
				replaceByLink(t, filepath.Join(shared, c.dir), secrets)
			}
			b, err := plan.Open(Command{Path: "/bin/sh", Args: []string{"-c", "cat file ../extra/file; echo x >../extra/file; echo x >file"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: p.Work})
			if c.early {
				if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "it has become something else") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.dir != "" {
				replaceByLink(t, filepath.Join(shared, c.dir), secrets)
			}
			out, err := start(t.Context(), b, nil)
			if _, e := b.Close(); e != nil {
				t.Error(e)
			}
			if c.starts && (err != nil || out.stdout != "ownown") {
				t.Errorf("%+v %v", out, err)
			}
			if strings.Contains(out.stdout+out.stderr, "a secret") {
				t.Errorf("it has read a secret: %+v", out)
			}
			for _, file := range []string{"file", "work/file", "extra/file"} {
				if text, err := os.ReadFile(filepath.Join(secrets, file)); err != nil || string(text) != "a secret" {
					t.Errorf("%s is changed: %q %v", file, text, err)
				}
			}
		})
	}
}

// An editor puts another file in the place of one that is protected: the start fails and says which.
func TestAFileThatIsReplacedMeanwhileIsNamed(t *testing.T) {
	h := probed(t, RungBwrap)
	if !h.Pins {
		t.Skip("needs a bwrap with --bind-fd")
	}
	p := place(t)
	file := filepath.Join(p.Work, ".mcp.json")
	write(t, file, "{}")
	plan, err := MakePlan(Standard(p), h, Disk{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := plan.Open(Command{Path: "/bin/true", Dir: p.Work})
	if err != nil {
		t.Fatal(err)
	}
	write(t, file+".new", "{}")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	_, err = start(t.Context(), b, nil)
	if !NotStarted(err) || !strings.Contains(err.Error(), "was replaced meanwhile; try again") || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
	if _, err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestMountsOfABoxAreBounded(t *testing.T) {
	files := machine()
	policy := Standard(Place{Work: "/h/me/src"})
	for i := range mostPins {
		dir := "/data/" + strconv.Itoa(i)
		files[dir] = ""
		policy.Write = append(policy.Write, dir)
	}
	host := Host{Bwrap: Proof{Proved: true}, Pins: true}
	if _, err := MakePlan(policy, host, files); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "128 are possible") {
		t.Error(err)
	}
	host.Pins = false
	if plan, err := MakePlan(policy, host, files); err != nil || !strings.Contains(strings.Join(plan.Gaps, "\n"), "is followed") {
		t.Errorf("%v %q", err, plan.Gaps)
	}
}
