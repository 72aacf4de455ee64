package step

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/soak"
	"rnix/types"
)

// tangle writes a history with all that one may have: answers with calls, mail, compactions, steps without an answer, gaps in the
// numbers, steps that were run twice, and calls without a result.
func tangle(t *testing.T, w *Writer, r *rand.Rand, steps int) {
	t.Helper()
	count, n := 0, 0
	say := func(m *rnixctx.Message) *rnixctx.Message { count++; return m }
	must(t, w.Marker(&Marker{Name: MarkerSpawn, Text: "begin"}), w.Message(say(user("begin"))))
	for range steps {
		switch {
		case n > 0 && r.IntN(12) == 0: // again
		case r.IntN(15) == 0:
			n += 3
		default:
			n++
		}
		if r.IntN(20) == 0 {
			must(t, w.Compaction("shorter", []rnixctx.Message{*user("in short")}))
			count = 1
		}
		for range r.IntN(4) {
			must(t, w.Marker(&Marker{Name: MarkerNote, Text: "mail " + strings.Repeat("x", r.IntN(900))}))
		}
		rec := StepRecord{StepNumber: n, MessageCount: count, TokensUsed: n, Action: "tool_call", Summary: fmt.Sprint("does ", n)}
		if r.IntN(8) == 0 {
			rec.Error = "no answer"
			must(t, w.Step(&rec), w.Commit(t.Context()))
			continue
		}
		id := fmt.Sprint("call_", r.IntN(3))
		m := &rnixctx.Message{Role: rnixctx.RoleAssistant, Content: fmt.Sprintf("Answer %d", n), ToolCalls: []rnixctx.ToolCall{{ID: id, Name: "read", Input: []byte(fmt.Sprintf(`{"path":"file%d"}`, n))}}}
		must(t, w.Answer(say(m), rec.Answer()), w.Intent(&Intent{Step: n, CallID: id, Tool: "read", Path: "/dev/fs/x"}), w.Commit(t.Context()))
		if r.IntN(10) == 0 {
			continue // killed here, and gone on with the next one
		}
		text := fmt.Sprintf("result %d %s", n, strings.Repeat("y", r.IntN(2000)))
		must(t, w.Result(&Result{Step: n, CallID: id, Tool: "read"}), w.Message(say(&rnixctx.Message{Role: rnixctx.RoleTool, Content: text, ToolCallID: id})))
		rec.ToolCalls = []Call{{ID: id, Name: "read", Path: "/dev/fs/x"}}
		must(t, w.Step(&rec), w.Commit(t.Context()))
	}
}

func TestPageOfStepsIsThatOfTheWholeHistory(t *testing.T) {
	for seed := range soak.Pick(t, "histories", uint64(4), 12) {
		r := rand.New(rand.NewPCG(seed, 1))
		_, j := memory(t)
		id := types.NewUUID()
		w := newWriter(t, j, id)
		tangle(t, w, r, r.IntN(400))
		h := read(t, j, id)
		for range 60 {
			q := PageQuery{After: r.IntN(300), Before: r.IntN(400), Limit: 1 + r.IntN(30), Last: r.IntN(2) == 0, Bare: r.IntN(2) == 0, Span: 1 + r.IntN(80)}
			q.After *= r.IntN(2)
			q.Before *= r.IntN(2)
			if r.IntN(3) == 0 {
				q.Find = fmt.Sprint("answer ", r.IntN(10))
			}
			got, err := ReadPage(t.Context(), j, id, q)
			if err != nil {
				t.Fatal(err)
			}
			want := h.page(q)
			if len(got.Steps) == 0 {
				got.Steps = nil
			}
			if len(got.Interrupted) == 0 {
				got.Interrupted = nil
			}
			if len(want.Interrupted) == 0 {
				want.Interrupted = nil
			}
			if d := differ(want, got); d != "" {
				t.Fatalf("seed %d, %+v (of %d to %d): %s", seed, q, want.First, want.Last, d)
			}
		}
	}
}

func TestPagesGoThroughAllStepsInBothDirections(t *testing.T) {
	_, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	tangle(t, w, rand.New(rand.NewPCG(7, 7)), 300)
	var want []int
	for _, s := range read(t, j, id).Steps {
		want = append(want, s.StepNumber)
	}
	want = slices.Compact(want)
	for _, find := range []string{"", "RESULT", "result"} {
		for _, last := range []bool{false, true} {
			var got []int
			q := PageQuery{Limit: 7, Last: last, Bare: true, Find: find, Span: 40}
			for {
				p, err := ReadPage(t.Context(), j, id, q)
				must(t, err)
				if last {
					slices.Reverse(p.Steps)
				}
				for _, s := range p.Steps {
					got = append(got, s.StepNumber)
				}
				if q.After, q.Before = p.After, 0; last {
					q.After, q.Before = 0, p.Before
				}
				if q.After == 0 && q.Before == 0 {
					break
				}
			}
			if last {
				slices.Reverse(got)
			}
			switch {
			case find == "" && !slices.Equal(got, want):
				t.Errorf("last %v: %v, want %v", last, got, want)
			case find == "RESULT" && len(got) > 0:
				t.Errorf("capital letters have found small ones: %v", got)
			case find == "result" && (len(got) == 0 || len(got) >= len(want)): // steps without an answer have none
				t.Errorf("last %v: %d of %d found", last, len(got), len(want))
			}
		}
	}
}

// countingReads counts what is replayed.
type countingReads struct {
	Journal
	records int
}

func (c *countingReads) Replay(ctx context.Context, id types.UUID, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range c.Journal.Replay(ctx, id, from) {
			c.records++
			if !yield(r, err) {
				return
			}
		}
	}
}

func TestPageOfALongHistoryReadsNoMoreThanThePage(t *testing.T) {
	j, err := OpenLocal(durable.OS, t.TempDir(), Unsynced)
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	id := types.NewUUID()
	w := newWriter(t, j, id)
	const steps = 4_000
	for n := range steps {
		writeStep(t, w, n+1, "some text")
	}
	c := &countingReads{Journal: j}
	for _, q := range []PageQuery{{Limit: 100}, {Limit: 100, Last: true}, {After: 1_800, Limit: 100}, {Before: 2_345, Limit: 100, Last: true}} {
		c.records = 0
		p, err := ReadPage(t.Context(), c, id, q)
		must(t, err)
		if len(p.Steps) != 100 || p.First != 1 || p.Last != steps {
			t.Errorf("%+v: %d steps of %d to %d", q, len(p.Steps), p.First, p.Last)
		}
		if c.records > 1000 {
			t.Errorf("%+v: %d records were read for 100 steps", q, c.records)
		}
	}
}

func TestPageOfADamagedHistoryIsWhatCanBeRead(t *testing.T) {
	fsys, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	for n := range 200 {
		writeStep(t, w, n+1, strings.Repeat("text ", 100))
	}
	must(t, w.Close(t.Context()))
	path := filepath.Join(j.Dir(id), StepsFile)
	raw, err := durable.ReadFile(fsys, path)
	must(t, err)
	raw[len(raw)/2] ^= 1
	must(t, durable.WriteFile(fsys, path, raw, durable.Cached))
	h, err := ReadHistory(t.Context(), j, id)
	must(t, err)
	p, err := ReadPage(t.Context(), j, id, PageQuery{After: 95, Limit: 20})
	must(t, err)
	if last := len(h.Steps); h.Damage == "" || p.Damage != h.Damage || p.Last != last || len(p.Steps) != last-95 {
		t.Errorf("%+v, of %d steps: %s", p, len(h.Steps), h.Damage)
	}
	if _, err := ReadPage(t.Context(), j, types.NewUUID(), PageQuery{Limit: 5}); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("of a history that there is not: %v", err)
	}
}
