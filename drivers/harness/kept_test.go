package harness

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"pgregory.net/rapid"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/internal/harness"
)

func TestAFragmentStandsInTheTextAndInItsJSON(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "done": "done", "a \"b\" and c\nis longer here\n": "is longer here",
		"short\n[... 700 bytes left out ...]\nend of it": "end of it",
		"the key is [secret API_KEY], I say":             "the key is",
		"- [ ] open\nit is all":                          "it is all",
	} {
		if got := fragment(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		f := fragment(text)
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, f) || len(f) > maxPiece || !utf8.ValidString(f) {
			t.Errorf("%q: %q", text, f)
		}
		if !strings.ContainsAny(f, "<>&") && !strings.Contains(string(b), f) { // which only Go escapes
			t.Errorf("%s has not %q", b, f)
		}
	})
}

func TestWhatARecordLacksIsFoundWhereverItLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := strings.Repeat("x", rapid.IntRange(0, 600<<10).Draw(t, "before"))
		piece := strings.Repeat("y", rapid.IntRange(1, maxPiece).Draw(t, "piece"))
		left, err := without(iotest.DataErrReader(strings.NewReader(before+piece+"x")), []string{"not there", piece})
		if err != nil || len(left) != 1 || left[0] != "not there" {
			t.Errorf("%v %v", left, err)
		}
	})
}

func TestTheEvidenceOfASessionIsWhatItHasAnswered(t *testing.T) {
	c := &Config{CLI: sheet{}}
	answer := func(session, text, call string) rnixctx.Message {
		b, err := json.Marshal(place{Session: session, UUID: "u"})
		if err != nil {
			t.Fatal(err)
		}
		m := rnixctx.Message{Role: rnixctx.RoleAssistant, Content: text, Reasoning: []rnixctx.Block{{Provider: c.blockName(), Data: b}}}
		if call != "" {
			m.ToolCalls = []rnixctx.ToolCall{{ID: call}}
		}
		return m
	}
	ms := []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "the task"}, answer("old", "by the old one", ""), {Role: rnixctx.RoleUser, Content: "more"},
		answer("new", "I look", "toolu_1"), {Role: rnixctx.RoleTool, ToolCallID: "toolu_1"}, answer("new", "", kernelCall+"1")}
	for _, x := range []struct {
		session string
		ids     bool
		want    string
	}{{"new", true, "I look toolu_1"}, {"new", false, "I look"}, {"old", true, "by the old one"}, {"begun", true, "the task"}} {
		if got := strings.Join(c.evidence(ms, x.session, x.ids), " "); got != x.want {
			t.Errorf("%s: %q, want %q", x.session, got, x.want)
		}
	}
}

// keeper is a CLI whose records are files.
type keeper struct {
	sheet
	files []string
}

func (k keeper) Kept(string, func(string) string) harness.Kept { return harness.Kept{Files: k.files} }

// What an agent has put in the place of a CLI's record, such as a pipe, hangs nothing and is no record.
func TestAPipeInThePlaceOfARecordHangsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "a.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &session{cfg: &Config{CLI: keeper{files: []string{filepath.Join(dir, "*.jsonl")}}}}
	req := &llm.LLMRequest{Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "the task"}}}
	if lacks(t.Context(), s, req, "id") {
		t.Error("a pipe is taken for a record")
	}
	if err := os.WriteFile(filepath.Join(dir, "b.jsonl"), []byte("another task"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !lacks(t.Context(), s, req, "id") {
		t.Error("the record beside it was not read")
	}
}

// In a home of its own a CLI in the sandbox can make links of its records. They tell nothing of what lies elsewhere.
func TestARecordInAHomeOfItsOwnLeadsNowhere(t *testing.T) {
	dir := t.TempDir()
	home, secret := filepath.Join(dir, "home"), filepath.Join(dir, "secret")
	records := filepath.Join(home, ".cli", "projects")
	for _, d := range []string{records, filepath.Join(home, "real"), filepath.Join(dir, "outside")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{secret, filepath.Join(dir, "outside", "a.jsonl")} {
		if err := os.WriteFile(path, []byte("the task is not in it"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &session{cfg: &Config{CLI: keeper{files: []string{filepath.Join(home, ".cli", "projects", "*", "*.jsonl"), filepath.Join(home, ".cli", "projects", "*.jsonl")}}}, confined: Confined{Home: home}}
	req := &llm.LLMRequest{Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "another"}}}
	if err := errors.Join(os.Symlink(secret, filepath.Join(records, "a.jsonl")), os.Symlink(filepath.Join(dir, "outside"), filepath.Join(records, "dir")),
		syscall.Mkfifo(filepath.Join(records, "b.jsonl"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if lacks(t.Context(), s, req, "id") {
		t.Error("what lies elsewhere is taken for a record")
	}
	if err := os.WriteFile(filepath.Join(home, "real", "c.jsonl"), []byte("the task"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../real/c.jsonl", filepath.Join(records, "c.jsonl")); err != nil {
		t.Fatal(err)
	}
	if !lacks(t.Context(), s, req, "id") {
		t.Error("a record in the home was not read")
	}
}

// Nor does a file that seems to be endless.
func TestAnEndlessRecordIsNotReadToItsEnd(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.jsonl", "b.jsonl", "c.jsonl"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 1<<42); err != nil {
			t.Skip("needs sparse files: ", err)
		}
	}
	s := &session{cfg: &Config{CLI: keeper{files: []string{filepath.Join(dir, "*.jsonl")}}}}
	if !lacks(t.Context(), s, &llm.LLMRequest{Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "the task"}}}, "id") {
		t.Error("a record that has nothing in it is one")
	}
}
