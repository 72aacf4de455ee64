package step

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/types"
)

// talk writes a conversation into a journal: an intent, and steps of an answer with a call and its result of size bytes.
func talk(t testing.TB, steps, size int) (*Local, types.UUID, *Writer, []rnixctx.Message) {
	t.Helper()
	j, err := OpenLocal(durable.OS, t.TempDir(), Unsynced)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	id := types.NewUUID()
	lease, err := j.Acquire(t.Context(), id, "test")
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(j, id, lease)
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	var ms []rnixctx.Message
	say := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	ms = append(ms, rnixctx.Message{Role: rnixctx.RoleUser, Content: "the intent"})
	say(w.Message(&ms[0]))
	for n := range steps {
		ms = append(ms, rnixctx.Message{Role: rnixctx.RoleAssistant, Content: fmt.Sprint("I look at ", n), ToolCalls: []rnixctx.ToolCall{{ID: "call_1", Name: "look", Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}}})
		say(w.Answer(&ms[len(ms)-1], &Answer{Step: n + 1, Prompt: len(ms) - 1, Started: time.Now()}))
		ms = append(ms, rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "call_1", Content: fmt.Sprintf("result %d\n%s", n, strings.Repeat("text \"quoted\"\n", size/14))})
		say(w.Message(&ms[len(ms)-1]))
		say(w.Step(&StepRecord{StepNumber: n + 1, MessageCount: len(ms) - 2}))
	}
	say(w.Commit(t.Context()))
	return j, id, w, ms
}

// A message has its number for good: what a compaction cuts keeps it, what it leaves out leaves a gap, and what it brings in gets one of its own.
func TestNumbersOfMessagesOutliveCompactions(t *testing.T) {
	j, id, w, ms := talk(t, 20, 2000)
	o := NewOutline()
	texts := func(view []Place) map[int]string {
		out := map[int]string{}
		if err := ReadPlaces(t.Context(), j, id, view, func(i int, _ time.Time, m *rnixctx.Message) { out[view[i].N] = m.Content }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	look := func(step int) ([]Place, int) {
		t.Helper()
		if same, err := o.Extend(t.Context(), j, id); err != nil || !same {
			t.Fatal(same, err)
		}
		view, n, err := o.View(step)
		if err != nil {
			t.Fatal(err)
		}
		return view, n
	}
	before, _ := look(0)
	was := texts(before)
	if len(before) != len(ms) || was[1] != ms[0].Content || was[41] != ms[40].Content {
		t.Fatalf("%d messages of %d", len(before), len(ms))
	}
	for round := 1; round <= 2; round++ {
		cut, report := rnixctx.Compact(ms, 3000-1000*round)
		if report.Dropped == 0 || report.Shortened == 0 {
			t.Fatalf("%v: not what is to be tried", report)
		}
		if err := w.Compaction("c", cut); err != nil {
			t.Fatal(err)
		}
		said := rnixctx.Message{Role: rnixctx.RoleUser, Content: fmt.Sprint("round ", round)}
		if err := w.Message(&said); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		ms = append(cut, said)
		view, n := look(0)
		if len(view) != len(ms) || n != round {
			t.Fatalf("%d messages of %d, %d compactions", len(view), len(ms), n)
		}
		now := texts(view)
		short := 0
		for i, p := range view {
			if now[p.N] != ms[i].Content {
				t.Errorf("%+v is %.40q, and should be %.40q", p, now[p.N], ms[i].Content)
			}
			if old, had := was[p.N]; had && p.N > 1 && !strings.HasPrefix(old, now[p.N][:min(20, len(now[p.N]))]) {
				t.Errorf("%d was %.40q and is %.40q", p.N, old, now[p.N])
			}
			if p.Shortened {
				short++
			}
		}
		if last := view[len(view)-1]; short == 0 || last.N != 41+round || now[last.N] != said.Content || last.From != FromSystem {
			t.Errorf("%d are cut; the last is %+v", short, last)
		}
		was = now
	}
	if view, n := look(7); n != 0 || len(view) != 13 || texts(view)[13] != texts(before)[13] {
		t.Errorf("step 7 had %d messages after %d compactions", len(view), n)
	}
	fresh := NewOutline()
	if same, err := fresh.Extend(t.Context(), j, id); err != nil || !same {
		t.Fatal(same, err)
	}
	a, _, _ := o.View(0)
	b, _, _ := fresh.View(0)
	for i := range a {
		if a[i].N != b[i].N || a[i].Seq != b[i].Seq || a[i].Shortened != b[i].Shortened {
			t.Errorf("bit by bit %+v, at once %+v", a[i], b[i])
		}
	}
}

// What brings nothing that was there gets numbers of its own.
func TestConversationThatIsReplacedGetsNewNumbers(t *testing.T) {
	j, id, w, _ := talk(t, 2, 100)
	if err := w.Compaction("c", []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "all in one"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := NewOutline()
	if same, err := o.Extend(t.Context(), j, id); err != nil || !same {
		t.Fatal(same, err)
	}
	if view, _, err := o.View(0); err != nil || len(view) != 1 || view[0].N != 6 || view[0].From != FromCompaction {
		t.Errorf("%+v %v", view, err)
	}
}

// An outline notices that the history it has seen is no longer that.
func TestOutlineOfAnotherPastIsNotGoneOnWith(t *testing.T) {
	j, id, _, _ := talk(t, 3, 100)
	other, oid, _, _ := talk(t, 1, 100)
	o := NewOutline()
	if same, err := o.Extend(t.Context(), j, id); err != nil || !same {
		t.Fatal(same, err)
	}
	if same, err := o.Extend(t.Context(), other, oid); err != nil || same {
		t.Errorf("%v, %v", same, err)
	}
}

// 5,000 messages of 2 KiB.
func BenchmarkPageOfALongConversation(b *testing.B) {
	j, id, _, _ := talk(b, 2500, 4096)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if _, err := NewOutline().Extend(b.Context(), j, id); err != nil {
				b.Fatal(err)
			}
		}
	})
	o := NewOutline()
	if _, err := o.Extend(b.Context(), j, id); err != nil {
		b.Fatal(err)
	}
	b.Run("next", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if same, err := o.Extend(b.Context(), j, id); err != nil || !same {
				b.Fatal(same, err)
			}
			view, _, _ := o.View(0)
			n := 0
			if err := ReadPlaces(b.Context(), j, id, view[2000:2100], func(int, time.Time, *rnixctx.Message) { n++ }); err != nil || n != 100 {
				b.Fatal(n, err)
			}
		}
	})
}

// What the kernel says to an agent has no sender on record: it is told from the words of persons, which have a marker, or came as mail.
func TestNoticesOfTheKernelAreNotSaidByPersons(t *testing.T) {
	j, id, w, _ := talk(t, 1, 100)
	user := func(text string) *rnixctx.Message {
		return &rnixctx.Message{Role: rnixctx.RoleUser, Content: text}
	}
	must(t, w.Message(user("[The same calls have given the same answers.]")),
		w.Marker(InputMarker(1, Said{Text: "left out"})), w.Marker(InputMarker(1, Said{Text: "go on"})), w.Message(user("go on")), w.Message(user("[MCP SERVERS] away")))
	must(t, w.Commit(t.Context()))
	o := NewOutline()
	if same, err := o.Extend(t.Context(), j, id); err != nil || !same {
		t.Fatal(same, err)
	}
	view, _, err := o.View(0)
	if err != nil {
		t.Fatal(err)
	}
	var from []string
	for _, p := range view {
		from = append(from, p.From)
	}
	if got := strings.Join(from, ","); got != "user,,,system,steer,system" {
		t.Error(got)
	}
}

func TestNoticesStandAroundTheWordsOfOthers(t *testing.T) {
	fork := ForkNotice + ", from the end of its step 2. It works in /a] b." + ForkGoesOn
	child, left := ForkChild+"PID 3, belongs to it."+ForkChildEnd, ForkLeftOut+"it had called:\n- x [1]."+ForkAgain
	cut, _ := rnixctx.Compact([]rnixctx.Message{{Role: rnixctx.RoleUser, Content: "do it"}, {Role: rnixctx.RoleAssistant, Content: strings.Repeat("long ", 900)}, {Role: rnixctx.RoleUser, Content: "now"}}, 60)
	note := strings.TrimPrefix(cut[0].Content, "do it\n\n")
	for _, c := range []struct {
		text           string
		before, behind int
	}{
		{"do it", 0, 0}, {fork, len(fork), 0}, {fork + "\n\nmy words", len(fork), 0}, {fork + child + left + "\n\nmy words\n\n" + note, len(fork + child + left), len(note)},
		{left + " mine", 0, 0}, {ForkNotice + " and no end", 0, 0}, {"do it\n\n" + note, 0, len(note)},
	} {
		if before, behind := Notices(&rnixctx.Message{Role: rnixctx.RoleUser, Content: c.text}); before != c.before || behind != c.behind {
			t.Errorf("%q: %d and %d, not %d and %d", c.text, before, behind, c.before, c.behind)
		}
	}
	if before, behind := Notices(&rnixctx.Message{Role: rnixctx.RoleAssistant, Content: fork + note}); before != 0 || behind != 0 {
		t.Errorf("of an answer: %d and %d", before, behind)
	}
}
