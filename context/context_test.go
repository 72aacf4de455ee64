package context

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rnix/types"
)

func TestPromptPrefixIsByteStableOverSteps(t *testing.T) {
	m := NewManager()
	cid, _ := m.CtxAlloc(0)
	var last []byte
	for i := range 500 {
		must(t, m.Append(cid, Message{Role: RoleUser, Content: strings.Repeat("ä<>", i)}))
		p, err := m.BuildPrompt(cid)
		must(t, err)
		now := bytes.Join(p.Encoded, nil)
		if !bytes.HasPrefix(now, last) {
			t.Fatalf("prompt %d does not begin with prompt %d", i, i-1)
		}
		last = now
	}
	var back []Message
	must(t, json.Unmarshal([]byte("["+string(last)+"]"), &back))
	if len(back) != 500 || back[499].Content != strings.Repeat("ä<>", 499) {
		t.Fatal("the encoded messages are not the messages")
	}
}

func TestSnapshotDoesNotSeeLaterAppends(t *testing.T) {
	m := NewManager()
	cid, _ := m.CtxAlloc(0)
	must(t, m.AppendMessage(cid, RoleUser, "one"))
	p, _ := m.BuildPrompt(cid)
	before := string(bytes.Join(p.Encoded, nil))
	must(t, m.AppendMessage(cid, RoleAssistant, "two"))
	if len(p.Messages) != 1 || string(bytes.Join(p.Encoded, nil)) != before {
		t.Fatal("an append changed an earlier snapshot")
	}
}

func TestFullContextRefusesAndKeepsWhatItHas(t *testing.T) {
	m := NewManager()
	cid, _ := m.CtxAlloc(2)
	must(t, m.AppendMessage(cid, RoleUser, "1"))
	err := m.Append(cid, Message{Role: RoleAssistant}, Message{Role: RoleUser})
	if types.CodeOf(err) != types.ErrExhausted {
		t.Fatalf("got %v", err)
	}
	if p, _ := m.BuildPrompt(cid); len(p.Messages) != 1 {
		t.Fatal("a refused append left something behind")
	}
}

func TestFreedContextIsGone(t *testing.T) {
	m := NewManager()
	cid, _ := m.CtxAlloc(0)
	must(t, m.CtxFree(cid))
	for _, err := range []error{m.CtxFree(cid), m.AppendMessage(cid, RoleUser, ""), m.SetSystemPrompt(cid, "")} {
		if types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("got %v", err)
		}
	}
}

func TestLowLevelWriteAppendsAndOverwrites(t *testing.T) {
	m := NewManager()
	cid, _ := m.CtxAlloc(0)
	must(t, m.CtxWrite(cid, 0, []byte(`{"role":"user","content":"a"}`)))
	must(t, m.CtxWrite(cid, 0, []byte(`{"role":"assistant","content":"b"}`)))
	must(t, m.CtxWrite(cid, 2, []byte(`{"role":"assistant","content":"c"}`)))
	got, err := m.CtxRead(cid, 1, 5)
	must(t, err)
	if want := `[{"role":"assistant","content":"c"}]`; string(got) != want {
		t.Fatalf("got %s", got)
	}
	for _, err := range []error{m.CtxWrite(cid, 3, []byte(`{}`)), m.CtxWrite(cid, 0, []byte(`{`)),
		m.CtxWrite(cid, 0, []byte(`{"role":"wizard","content":"x"}`)), m.CtxWrite(cid, 1, []byte(`{"content":"x"}`))} {
		if types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("got %v", err)
		}
	}
}

func TestLegalNamesTheFirstFault(t *testing.T) {
	call := func(ids ...string) Message {
		m := Message{Role: RoleAssistant}
		for _, id := range ids {
			m.ToolCalls = append(m.ToolCalls, ToolCall{ID: id})
		}
		return m
	}
	user, answer := Message{Role: RoleUser}, func(id string) Message { return Message{Role: RoleTool, ToolCallID: id} }
	for _, c := range []struct {
		ms   []Message
		want string
	}{
		{nil, ""},
		{[]Message{user, call("a", "b"), answer("b"), answer("a"), user}, ""},
		{[]Message{call("a")}, "begins with"},
		{[]Message{user, call("a")}, "not answered"},
		{[]Message{user, call("a"), user}, "before 1 calls"},
		{[]Message{user, answer("a")}, "not open"},
		{[]Message{user, call("a"), answer("a"), answer("a")}, "not open"},
		{[]Message{user, call("a", "a")}, "repeated"},
		{[]Message{user, call("")}, "empty"},
	} {
		err := Legal(c.ms)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.ms, err, c.want)
		}
	}
}

// conversation draws a legal conversation.
func conversation(t *rapid.T) []Message {
	text := rapid.StringN(0, 3000, -1)
	ms := []Message{{Role: RoleUser, Content: text.Draw(t, "intent")}}
	for i := range rapid.IntRange(0, 25).Draw(t, "turns") {
		if rapid.Bool().Draw(t, "user") {
			ms = append(ms, Message{Role: RoleUser, Content: text.Draw(t, "text")})
			continue
		}
		m := Message{Role: RoleAssistant, Content: text.Draw(t, "said")}
		n := rapid.IntRange(0, 3).Draw(t, "calls")
		for j := range n {
			m.ToolCalls = append(m.ToolCalls, ToolCall{ID: fmt.Sprintf("c%d-%d", i, j), Name: "x", Input: json.RawMessage(`{}`)})
		}
		ms = append(ms, m)
		for j := range n {
			ms = append(ms, Message{Role: RoleTool, ToolCallID: fmt.Sprintf("c%d-%d", i, j), Content: text.Draw(t, "answer")})
		}
	}
	return ms
}

func TestCompactionIsAlwaysLegalAndSmallerAndLeavesItsInputAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := conversation(t)
		before, _ := json.Marshal(ms)
		target := rapid.IntRange(50, 4000).Draw(t, "target")
		out, report := Compact(ms, target)
		if err := Legal(out); err != nil {
			t.Fatalf("illegal: %v", err)
		}
		if after, _ := json.Marshal(ms); !bytes.Equal(before, after) {
			t.Fatal("the input was changed")
		}
		if report.Before <= target && cmp.Diff(out, ms) != "" {
			t.Fatal("a conversation that fits was changed")
		}
		if report.Before > target && report.After > report.Before+noteTokens {
			t.Fatalf("it grew: %v", report)
		}
		if out[0].Role != RoleUser {
			t.Fatal("the intent is lost")
		}
	})
}

func TestHugeConversationFitsAfterCompaction(t *testing.T) {
	ms := []Message{{Role: RoleUser, Content: "do it"}}
	for i := range 200 {
		id := fmt.Sprint(i)
		ms = append(ms, Message{Role: RoleAssistant, ToolCalls: []ToolCall{{ID: id, Name: "read", Input: json.RawMessage(`{}`)}}},
			Message{Role: RoleTool, ToolCallID: id, Content: strings.Repeat("line of text\n", 4000)})
	}
	out, report := Compact(ms, 20000)
	if report.After > 20000 || Legal(out) != nil {
		t.Fatalf("%v %v", report, Legal(out))
	}
	again, second := Compact(append(out, out[len(out)-2:]...), 5000)
	if strings.Count(again[0].Content, "left out here") > 1 {
		t.Fatalf("notes pile up: %v %q", second, again[0].Content)
	}
}

func TestElideKeepsHeadAndTailOnCharacterEdges(t *testing.T) {
	got := Elide("ä"+strings.Repeat("x", 100)+"ö end", 20)
	if !strings.HasPrefix(got, "ä") || !strings.HasSuffix(got, "end") || !strings.Contains(got, "left out") || strings.ContainsRune(got, '\uFFFD') {
		t.Fatalf("got %q", got)
	}
}

func TestElideLeavesOutMoreThanItsNoteTakes(t *testing.T) {
	for _, over := range []int{1, 2, Slack} {
		if text := strings.Repeat("x", 400+over); Elide(text, 400) != text {
			t.Errorf("%d bytes too many: %q", over, Elide(text, 400))
		}
	}
	text := strings.Repeat("x", 401+Slack)
	if got := Elide(text, 400); len(got) >= len(text) || !strings.Contains(got, "[... 42 bytes left out ...]") {
		t.Errorf("%d bytes of %d: %q", len(got), len(text), got)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAppendOfABadMessageChangesNothing(t *testing.T) {
	m := NewManager()
	cid, err := m.CtxAlloc(0)
	must(t, err)
	must(t, m.AppendMessage(cid, RoleUser, "do it"))
	before, err := m.BuildPrompt(cid)
	must(t, err)
	good := Message{Role: RoleAssistant, Content: strings.Repeat("long", 1000)}
	bad := Message{Role: RoleAssistant, ToolCalls: []ToolCall{{ID: "a", Name: "x", Input: json.RawMessage(`{"broken`)}}}
	if err := m.Append(cid, good, bad); types.CodeOf(err) != types.ErrInvalid {
		t.Fatalf("got %v", err)
	}
	after, err := m.BuildPrompt(cid)
	must(t, err)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Fatal(diff)
	}
	must(t, m.Append(cid, good))
	again, err := m.BuildPrompt(cid)
	must(t, err)
	var ms []Message
	must(t, json.Unmarshal([]byte("["+string(bytes.Join(again.Encoded, nil))+"]"), &ms))
	if diff := cmp.Diff(again.Messages, ms); diff != "" {
		t.Fatal(diff)
	}
}

func TestReplacingOneMessageLosesNoAppendBesideIt(t *testing.T) {
	m := NewManager()
	cid, err := m.CtxAlloc(0)
	must(t, err)
	must(t, m.AppendMessage(cid, RoleUser, "do it"))
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := m.AppendMessage(cid, RoleUser, "more"); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := m.CtxWrite(cid, 1, []byte(`{"role":"user","content":"do that"}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	p, err := m.BuildPrompt(cid)
	must(t, err)
	if len(p.Messages) != 51 || p.Messages[0].Content != "do that" {
		t.Fatalf("%d messages, first %q", len(p.Messages), p.Messages[0].Content)
	}
}

func TestOnlyWhatMakesAConversationShorterCountsAsACompaction(t *testing.T) {
	m := NewManager()
	cid, err := m.CtxAlloc(0)
	must(t, err)
	must(t, m.AppendMessage(cid, RoleUser, "do it"))
	must(t, m.CtxWrite(cid, 1, []byte(`{"role":"user","content":"do that"}`)))
	said := func() string {
		t.Helper()
		s, err := m.GetContextSummary(cid)
		must(t, err)
		return s
	}
	if s := said(); !strings.HasSuffix(s, ", 0 compactions") {
		t.Error(s)
	}
	must(t, m.Replace(cid, []Message{{Role: RoleUser, Content: "in short"}}))
	if s := said(); !strings.HasSuffix(s, ", 1 compactions") {
		t.Error(s)
	}
}
