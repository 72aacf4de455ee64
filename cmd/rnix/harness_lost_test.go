package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
	"rnix/internal/soak"
)

// keeps are the files in which each real CLI keeps its sessions, below the user's home, and how it is run.
var keeps = map[string]struct {
	files []string
	args  []string
}{
	"claude":   {[]string{".claude/projects/*/*.jsonl"}, []string{"--harness", "claude"}},
	"codex":    {[]string{".codex/sessions/*/*/*/*.jsonl"}, []string{"--harness", "codex", "--model", "gpt-5-codex"}},
	"opencode": {[]string{".local/share/opencode/opencode.db*"}, []string{"--harness", "opencode"}},
}

// harms are what can happen to the files of a session: first are those after the first turn of the process, later those
// when the daemon has stopped.
var harms = map[string]func(t *testing.T, first map[string][]byte, later []string){
	"deleted": func(t *testing.T, first map[string][]byte, later []string) {
		for _, f := range later {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	},
	"half-written": func(t *testing.T, first map[string][]byte, later []string) {
		for f, b := range first {
			replace(t, f, b[:len(b)/2])
		}
	},
	"of an older backup": func(t *testing.T, first map[string][]byte, later []string) {
		for _, f := range later { // a file that is no part of the backup
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
		for f, b := range first {
			replace(t, f, b)
		}
	},
	"another's": func(t *testing.T, first map[string][]byte, later []string) {
		var other []byte
		for _, f := range later {
			if b, err := os.ReadFile(f); err == nil && first[f] == nil {
				other = b
			}
		}
		for f := range first {
			if other != nil { // else the database is another's already
				replace(t, f, other)
			}
		}
	},
}

func replace(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// kept returns the files of sessions.
func (u *user) kept(patterns []string) (files []string) {
	u.t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(u.Home, p))
		if err != nil {
			u.t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

func TestRealCommandLinesWithoutTheirSessionAreToldTheConversation(t *testing.T) { // R14
	all := soak.Pick(t, "sessions that are lost: of each command line, in each way", false, true)
	for name, k := range keeps {
		for what, harm := range harms {
			if !all && (name == "opencode" || what != "deleted" && what != "half-written") || name == "opencode" && what == "of an older backup" {
				continue // opencode starts slowly, and is told the conversation as the others are
			}
			t.Run(name+" "+what, func(t *testing.T) {
				u := newUser(t, name, func(r llmtest.Request) llmtest.Reply {
					switch said := texts(r); {
					case strings.Contains(said, "third question"):
						return llmtest.Reply{Text: "the third answer"}
					case strings.Contains(said, "second question"):
						return llmtest.Reply{Text: "the second answer: a pear"}
					case strings.Contains(said, "what is an ananas"):
						return llmtest.Reply{Text: "another answer"}
					}
					return llmtest.Reply{Text: "the first answer: a plum"}
				})
				if name == "opencode" {
					u.opencodeConfig()
				}
				run := func(as, task string) { u.must(append(append([]string{"run", "--name", as}, k.args...), task)...) }
				run("p", "the first question")
				first := map[string][]byte{}
				for _, f := range u.kept(k.files) {
					b, err := os.ReadFile(f)
					if err != nil {
						t.Fatal(err)
					}
					first[f] = b
				}
				told := []string{"the first question", "a plum", "the third question"}
				switch what {
				case "of an older backup":
					u.must("resume", "--follow", "--new-input", "the second question", "p")
					told = append(told, "the second question", "a pear")
				case "another's":
					if name == "opencode" { // one database has all sessions
						harms["deleted"](t, nil, u.kept(k.files))
					}
					run("other", "what is an ananas")
				}
				u.must("daemon", "stop")
				harm(t, first, u.kept(k.files))
				out, code := u.rnix("resume", "--follow", "--new-input", "the third question", "p")
				log := u.must("log", "p")
				if code != 0 || !strings.Contains(out, "the third answer") {
					t.Fatalf("exit code %d\n%s\n%s", code, out, log)
				}
				asked := u.Requests()
				last := asked[len(asked)-1]
				for _, text := range told {
					if !vendortest.Heard(last, text) {
						t.Errorf("the model was not told %q", text)
					}
				}
				if vendortest.Heard(last, "ananas") {
					t.Error("the model was told of another's task")
				}
				for what, text := range map[string]string{"resume": out, "log": log} {
					if !strings.Contains(text, "cannot resume the "+name+" session ") {
						t.Errorf("%s does not say that the session cannot be resumed:\n%s", what, text)
					}
				}
			})
		}
	}
}
