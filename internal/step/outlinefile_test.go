package step

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/soak"
	"rnix/types"
)

// trailOf is the trail of a history that was read whole.
func trailOf(h *History) Trail {
	t := Trail{open: h.Interrupted}
	for i := range h.Records {
		switch r := &h.Records[i]; {
		case r.Intent != nil:
			if r.Intent.Effect != "none" {
				t.Acts = max(t.Acts, r.Intent.Step)
			}
			if b := r.Intent.Before; b != nil {
				t.Files = append(t.Files, FilesMark{b.Step, true, *b})
			}
		case r.Step != nil:
			n := r.Step.StepNumber
			if t.First == 0 || n < t.First {
				t.First = n
			}
			t.Last = max(t.Last, n)
			if f := r.Step.Files; f != nil {
				t.Files = append(t.Files, FilesMark{n, false, *f})
			}
		case r.Marker != nil && len(r.Marker.Detail) > 0 && (r.Marker.Name == MarkerSpawn || r.Marker.Name == MarkerResumed):
			t.Settled = r.Marker.Detail
		}
	}
	return t
}

// keeps writes into a history what tangle leaves out: snapshots, and a run that goes on.
func keeps(t *testing.T, w *Writer, r *rand.Rand, n int) {
	t.Helper()
	id := fmt.Sprint("keep_", n)
	s := &Snapshot{Step: n - 1, Kind: "git", ID: fmt.Sprintf("%040d", r.IntN(5)), Root: "/w"}
	must(t, w.Marker(&Marker{Name: MarkerResumed, Detail: fmt.Appendf(nil, `{"work_dir":"/w%d"}`, n)}),
		w.Answer(&rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: id, Name: "write", Input: []byte(`{"text":"<a>"}`)}}}, &Answer{Step: n, Prompt: 1}),
		w.Intent(&Intent{Step: n, CallID: id, Tool: "write", Path: "/dev/fs/x", Effect: "reversible", Before: s}))
	if r.IntN(3) > 0 {
		must(t, w.Result(&Result{Step: n, CallID: id, Tool: "write"}), w.Message(&rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: id, Content: "ok"}),
			w.Step(&StepRecord{StepNumber: n, MessageCount: 1, Files: &Snapshot{Step: n, Kind: "git", ID: fmt.Sprintf("%040d", r.IntN(5)), Root: "/w", Limited: "large ones"}}))
	}
	must(t, w.Commit(t.Context()))
}

// An outline that was kept at any moment, and goes on with what came later, is the same as one that is made at once.
func TestOutlineFromItsFileIsThatOfAllRecords(t *testing.T) {
	for seed := range soak.Pick(t, "histories", uint64(6), 20) {
		r := rand.New(rand.NewPCG(seed, 2))
		fsys, j := memory(t)
		id := types.NewUUID()
		w := newWriter(t, j, id)
		kept := NewOutline()
		for part, n := range []int{r.IntN(40), r.IntN(60), r.IntN(60)} {
			tangle(t, w, r, n)
			keeps(t, w, r, 1000+part)
			h := read(t, j, id)
			if part > 0 {
				kept = LoadOutline(fsys, j.Dir(id), id)
				if kept.Seq == 0 {
					t.Fatalf("seed %d: what was saved is not read", seed)
				}
			}
			at := StampOf(fsys, j.Dir(id))
			fresh := NewOutline()
			for _, o := range []*Outline{kept, fresh} {
				if same, err := o.Extend(t.Context(), j, id); err != nil || !same {
					t.Fatalf("seed %d: %v, %v", seed, same, err)
				}
			}
			for step := range 1100 {
				a, na, aerr := kept.View(step)
				b, nb, berr := fresh.View(step)
				if d := differ(b, a, cmpopts.IgnoreUnexported(Place{})); d != "" || na != nb || types.CodeOf(aerr) != types.CodeOf(berr) {
					t.Fatalf("seed %d, step %d: %d and %d compactions, %v, %v: %s", seed, step, na, nb, aerr, berr, d)
				}
			}
			opts := []cmp.Option{cmp.AllowUnexported(Trail{}), cmpopts.IgnoreFields(Trail{}, "calls"), cmpopts.EquateEmpty()}
			want := trailOf(h)
			for _, o := range []*Outline{kept, fresh} {
				if d := cmp.Diff(want, o.Trail(), opts...); d != "" {
					t.Fatalf("seed %d: %s", seed, d)
				}
			}
			must(t, kept.Save(fsys, j.Dir(id), id, at))
		}
	}
}

// A prompt that is read where its messages stand is the one of the whole history.
func TestOutlineFindsEachPromptOfAHistory(t *testing.T) {
	_, j := memory(t)
	id := types.NewUUID()
	tangle(t, newWriter(t, j, id), rand.New(rand.NewPCG(3, 3)), 120)
	h := read(t, j, id)
	o := NewOutline()
	if same, err := o.Extend(t.Context(), j, id); err != nil || !same {
		t.Fatal(same, err)
	}
	for _, s := range h.Steps {
		want, err := h.Step(s.StepNumber)
		must(t, err)
		view, _, err := o.View(s.StepNumber)
		must(t, err)
		got := make([]rnixctx.Message, len(view))
		must(t, ReadPlaces(t.Context(), j, id, view, func(i int, _ time.Time, m *rnixctx.Message) { got[i] = *m }))
		if want.MessageCount != len(view) { // it was begun once more, and has not ended
			continue
		}
		last := uint64(0)
		if len(view) > 0 {
			last = view[len(view)-1].Seq
		}
		rec, ok := ReadStepBehind(t.Context(), j, id, last, s.StepNumber)
		if rec.Messages = got; !ok {
			t.Fatalf("step %d is not found behind record %d", s.StepNumber, last)
		}
		if d := differ(want, rec, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("step %d: %s", s.StepNumber, d)
		}
	}
}

// What is in the file is not believed when the records are not those that it was made of.
func TestOutlineOfOtherRecordsIsNotRead(t *testing.T) {
	fsys, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	for n := range 30 {
		writeStep(t, w, n+1, "text")
	}
	must(t, w.Close(t.Context()))
	dir := j.Dir(id)
	o, at := NewOutline(), StampOf(fsys, dir)
	if same, err := o.Extend(t.Context(), j, id); err != nil || !same {
		t.Fatal(same, err)
	}
	path := filepath.Join(dir, OutlineFile)
	save := func() []byte {
		must(t, o.Save(fsys, dir, id, at))
		b, err := durable.ReadFile(fsys, path)
		must(t, err)
		return b
	}
	good := save()
	if got := LoadOutline(fsys, dir, id); got.Seq != o.Seq || got.Places() != o.Places() {
		t.Fatalf("%d of %d records", got.Seq, o.Seq)
	}
	for name, spoil := range map[string]func(){
		"another history": func() { must(t, o.Save(fsys, dir, types.NewUUID(), at)) },
		"longer records":  func() { must(t, o.Save(fsys, dir, id, Stamp{at.Size + 1, at.Changed})) },
		"other records":   func() { must(t, o.Save(fsys, dir, id, Stamp{at.Size, at.Changed.Add(time.Second)})) },
		"cut off":         func() { must(t, durable.WriteFile(fsys, path, good[:len(good)/2], durable.Cached)) },
		"a bit":           func() { b := save(); b[len(b)/2] ^= 4; must(t, durable.WriteFile(fsys, path, b, durable.Cached)) },
		"empty":           func() { must(t, durable.WriteFile(fsys, path, nil, durable.Cached)) },
	} {
		if spoil(); LoadOutline(fsys, dir, id).Seq != 0 {
			t.Errorf("%s: it was read", name)
		}
	}
}

func FuzzOutlineFile(f *testing.F) {
	f.Add([]byte{2, 2, 2, 0, 0}, []byte{2, 0, 2})
	f.Fuzz(func(t *testing.T, era, prompts []byte) {
		b := outlineBody{From: []string{"", FromUser}, Eras: [][]byte{era}, Prompts: prompts, Seq: 1}
		o := NewOutline()
		if !b.into(o) {
			return
		}
		again := outlineBody{}
		if got, ok := again.era(again.places(o.eras[0])); ok && len(got) != len(o.eras[0]) {
			t.Errorf("%d places of %d", len(got), len(o.eras[0]))
		}
		for n := range o.prompts {
			if _, _, err := o.View(n); n != 0 && err != nil {
				t.Error(err)
			}
		}
	})
}
