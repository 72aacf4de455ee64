package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// liveEnv lets the examples run with the models that are set up, not with their scripts. Then their form is
// tested, and not what the models say.
const liveEnv = "RNIX_EXAMPLES_LIVE"

// TestExamples runs each example in a copy of its directory, as its README says. A script has the name of the
// directory, "_" for "-".
func TestExamples(t *testing.T) {
	live := os.Getenv(liveEnv) == "1"
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "example"),
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			name := strings.ReplaceAll(strings.TrimPrefix(filepath.Base(e.WorkDir), "script-"), "_", "-")
			from, to := filepath.Join("..", "..", "examples", name), filepath.Join(e.WorkDir, "example")
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				return err
			}
			run, err := os.MkdirTemp("", "rnix") // a short name: a socket lies in it
			if err != nil {
				return err
			}
			home := filepath.Join(e.WorkDir, "home")
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			e.Setenv("EXAMPLE", to)
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(to, "offline"))
			e.Setenv("ANTHROPIC_API_KEY", "")
			e.Setenv("OPENAI_API_KEY", "")
			e.Setenv("HOME", home)
			if live { // what says which models there are; not what is kept running
				config := filepath.Join(e.WorkDir, "config")
				if err := copyConfig(filepath.Join(config, "rnix")); err != nil {
					return err
				}
				e.Setenv("XDG_CONFIG_HOME", config)
				for _, name := range []string{"HOME", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"} {
					e.Setenv(name, os.Getenv(name))
				}
			}
			data := filepath.Join(home, "data")
			for k, v := range map[string]string{"XDG_RUNTIME_DIR": run, "RNIX_DATA_DIR": data, "TERM": "dumb", "GORACE": "atexit_sleep_ms=0",
				"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org",
				"GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org"} {
				e.Setenv(k, v)
			}
			b := new(book)
			if err := b.read(filepath.Join(to, "README.md")); err != nil {
				return err
			}
			e.Values[bookKey{}] = b
			e.Defer(func() {
				stopDaemon(t, e.Vars, data, run)
				if left := b.unread(); len(left) > 0 && !t.Failed() {
					t.Errorf("%s/README.md has commands that were not run: below %s", name, strings.Join(left, ", "))
				}
			})
			return nil
		},
		Condition: func(cond string) (bool, error) { return cond == "live" && live, nil },
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"code": code, "crash": crash, "recovered": recovered, "readme": readme},
	})
}

// copyConfig copies what the user has set up.
func copyConfig(to string) error {
	dir, err := os.UserConfigDir()
	if err == nil {
		err = os.MkdirAll(to, 0o700)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{"config.yaml", "providers.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, "rnix", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// book is the commands of a README: its blocks of sh, by the heading above them.
type book struct {
	headings []string
	blocks   map[string]string
	done     map[string]bool
}

type bookKey struct{}

func (b *book) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b.blocks, b.done = map[string]string{}, map[string]bool{}
	heading, inside := "", ""
	for line := range strings.Lines(string(text)) {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && inside == "":
			inside = "text"
			if strings.TrimSpace(fence) == "sh" {
				inside = "sh"
			}
		case isFence:
			inside = ""
		case inside == "sh":
			if b.blocks[heading] == "" {
				b.headings = append(b.headings, heading)
			}
			b.blocks[heading] += line
		case inside == "" && strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	return nil
}

func (b *book) unread() []string {
	return slices.DeleteFunc(slices.Clone(b.headings), func(h string) bool { return b.done[h] })
}

// readme runs the commands that stand in the README below a heading, as they stand there, in the current
// directory: readme 'Run it'. The first that fails ends them.
func readme(ts *testscript.TestScript, neg bool, args []string) {
	b := ts.Value(bookKey{}).(*book)
	if len(args) != 1 || b.blocks[args[0]] == "" {
		ts.Fatalf("usage: readme heading; those with commands are: %s", strings.Join(b.headings, ", "))
	}
	b.done[args[0]] = true
	if err := ts.Exec("sh", "-e", "-c", b.blocks[args[0]]); (err != nil) != neg {
		ts.Fatalf("the commands below %q: %v", args[0], err)
	}
}

// TestExampleCases runs the cases that were made of runs of the examples, with the agents as they are now.
func TestExampleCases(t *testing.T) {
	cases, err := filepath.Abs(filepath.Join("..", "..", "examples", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "cases"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("CASES", cases)
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
	})
}
