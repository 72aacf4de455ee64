package context

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func picture(n int) Attachment {
	return Attachment{Name: fmt.Sprintf("%d.png", n), Media: "image/png", SHA256: fmt.Sprint(n), Bytes: 12_345, Width: 2000, Height: 1500}
}

func TestLabelsSayWhatPeopleWantToKnow(t *testing.T) {
	for want, a := range map[string]Attachment{
		"[image 1.png 2000×1500, 12 kB]": picture(1),
		"[PDF a.pdf, 1 page, 812 bytes]": {Name: "a.pdf", Media: "application/pdf", Bytes: 812, Pages: 1},
		"[PDF a.pdf, 30 pages, 3.9 MB]":  {Name: "a.pdf", Media: "application/pdf", Bytes: 3_932_160, Pages: 30},
		"[PDF a.pdf, 1 byte]":            {Name: "a.pdf", Media: "application/pdf", Bytes: 1},
	} {
		if got := a.Label(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAttachmentsCountAsTokens(t *testing.T) {
	plain := Message{Role: RoleUser, Content: "look"}
	for want, a := range map[int]Attachment{
		2000 * 1500 / 750: picture(1),
		300:               {Media: "image/png", Width: 10, Height: 10},
		4800:              {Media: "image/png", Width: 8000, Height: 8000},
		6000:              {Media: "application/pdf", Pages: 2, Bytes: 1},
		9000:              {Media: "application/pdf", Bytes: 120_000},
	} {
		m := plain
		m.Attachments = []Attachment{a}
		if got := m.tokens() - plain.tokens(); got != want {
			t.Errorf("%d tokens, want %d", got, want)
		}
		p, err := NewPrompt("", []Message{m, plain})
		if most := 0; err != nil || p.Tokens != m.tokens()+plain.tokens() || Most("m", p.Images, p.Pages) < want+most {
			t.Errorf("%v, %+v", err, p)
		}
	}
	if Most("gpt-4o-mini-2024", 2, 1) != 153_000 || Most("m", 2, 1) != 17_400 {
		t.Error(Most("gpt-4o-mini-2024", 2, 1), Most("m", 2, 1))
	}
}

// TestCompactionLeavesALineForEachImageThatGoes: none goes without a word, and none stays that does not fit.
func TestCompactionLeavesALineForEachImageThatGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := []Message{{Role: RoleUser, Content: "do it\n\n" + Labels([]Attachment{picture(0)}), Attachments: []Attachment{picture(0)}}}
		n := rapid.IntRange(1, 12).Draw(t, "turns")
		for i := 1; i <= n; i++ {
			id := fmt.Sprint("c", i)
			a := picture(i)
			ms = append(ms, Message{Role: RoleAssistant, ToolCalls: []ToolCall{{ID: id, Name: "read_file", Input: []byte(`{}`)}}}, Message{Role: RoleTool, ToolCallID: id, Content: a.Label(), Attachments: []Attachment{a}})
		}
		before := total(ms)
		target := rapid.IntRange(400, before+400).Draw(t, "target")
		out, report := Compact(ms, target)
		if report.After != total(out) || report.Before != before || total(ms) != before {
			t.Fatalf("%+v", report)
		}
		if report.After > max(target, 600+60*(n+1)) {
			t.Fatalf("%d tokens for a target of %d: %v", report.After, target, report)
		}
		for _, m := range out {
			if len(m.Attachments) == 0 && strings.Contains(m.Content, ".png") && !strings.Contains(m.Content, ".png is not shown: left out to fit the context window") {
				t.Fatalf("an image went without a word: %q", m.Content)
			}
		}
		if before <= target && cmp.Diff(ms, out) != "" {
			t.Fatal("what fits was changed")
		}
	})
}

// A picture that was read is no file whose text could be put back.
func TestASummaryPutsNoPictureBackAsText(t *testing.T) {
	a := picture(1)
	files := filesIn([]Message{{Role: RoleAssistant, ToolCalls: []ToolCall{{ID: "1", Name: "read_file", Input: []byte(`{"path":"1.png"}`)}}}, {Role: RoleTool, ToolCallID: "1", Content: a.Label(), Attachments: []Attachment{a}}})
	if len(files) != 1 || files[0].text != "" {
		t.Errorf("%+v", files)
	}
}
