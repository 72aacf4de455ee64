package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/recovery/recoverytest"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

// ledger is a store with what a test asks of it.
type ledger struct {
	*Store
	files *store.Files
	now   time.Time // of the profiles
}

// answers returns what the records of a history amount to, for each way that something derived makes quicker.
func (l *ledger) answers(t *testing.T, id types.UUID) (out []string) {
	t.Helper()
	say := func(v any, err error) {
		b, merr := json.Marshal(v)
		if err != nil || merr != nil {
			t.Fatal(err, merr)
		}
		out = append(out, string(b))
	}
	state, _, damage, err := l.Read(t.Context(), id)
	if err != nil || damage != "" {
		t.Fatal(damage, err)
	}
	say(state.Checkpoint(id))
	o := l.files.Derived().Outline(id)
	if same, err := o.Extend(t.Context(), l.files, id); err != nil || !same {
		o = step.NewOutline()
		if _, err = o.Extend(t.Context(), l.files, id); err != nil {
			t.Fatal(err)
		}
	}
	trail := o.Trail()
	say(trail, nil)
	say(append([]step.Intent{}, trail.Interrupted()...), nil)
	for n := range state.Step + 1 {
		places, compactions, err := o.View(n)
		out = append(out, fmt.Sprint(compactions, err))
		for _, p := range places {
			out = append(out, fmt.Sprint(p.N, p.Seq, p.Step, p.From, p.Shortened))
		}
	}
	h, err := step.ReadHistory(t.Context(), l.files, id)
	if err != nil {
		t.Fatal(err)
	}
	say(h.Profile(step.ProfileOptions{Now: l.now}))
	return out
}

// derive keeps all that is derived of a history, as it is now.
func (l *ledger) derive(t *testing.T, id types.UUID) {
	t.Helper()
	kept := l.files.Derived()
	state, _, _, err := l.Read(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	cp, err := state.Checkpoint(id)
	if err == nil {
		_, err = kept.SaveCheckpoint(id, cp)
	}
	if err != nil {
		t.Fatal(err)
	}
	o, at := step.NewOutline(), kept.Stamp(id)
	if _, err := o.Extend(t.Context(), l.files, id); err != nil {
		t.Fatal(err)
	}
	if err := kept.SaveOutline(id, o, at); err != nil {
		t.Fatal(err)
	}
	h, err := step.ReadHistory(t.Context(), l.files, id)
	if err == nil {
		err = l.profile(h, id)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// write begins a history and gives it back.
func (l *ledger) write(t *testing.T, id types.UUID, r *rand.Rand) *step.Writer {
	t.Helper()
	lease, err := l.files.Acquire(t.Context(), id, "test")
	if err != nil {
		t.Fatal(err)
	}
	w := step.NewWriter(l.files, id, lease)
	if _, err := recoverytest.Write(t.Context(), w, r, recoverytest.Options{Steps: 12}); err != nil {
		t.Fatal(err)
	}
	return w
}

// more adds records to a history that nobody has.
func (l *ledger) more(t *testing.T, id types.UUID, n int) {
	t.Helper()
	lease, err := l.files.Open(t.Context(), id, "test")
	if err != nil {
		t.Fatal(err)
	}
	w := step.NewWriter(l.files, id, lease)
	for i := range n {
		if err := w.Marker(&step.Marker{Name: step.MarkerInput, Text: fmt.Sprint(i, " of ", n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// derivedKinds are the files that are made of records.
var derivedKinds = []string{step.CheckpointFile, "checkpoint.prev.json", step.OutlineFile, step.ProfileFile}

// kept returns what is derived of a history; a file that is not there is empty.
func (l *ledger) kept(id types.UUID) map[string][]byte {
	out := map[string][]byte{}
	for _, name := range derivedKinds {
		out[name], _ = os.ReadFile(filepath.Join(l.files.Dir(id), name)) // as said
	}
	return out
}

// TestWhatIsDerivedIsLostWithoutLoss is the rule of all that is made of records: removed, cut off, changed in any byte, of another history, of
// an earlier moment or of records that were lost, no answer is another one.
func TestWhatIsDerivedIsLostWithoutLoss(t *testing.T) {
	for range soak.Pick(t, "histories whose derived files are spoiled", 6, 200) {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			files, err := store.Open(durable.OS, t.TempDir(), step.Unsynced)
			if err != nil {
				t.Fatal(err)
			}
			defer files.Close()
			l := &ledger{New(files, "test", config.Checkpoint{}, slog.New(slog.DiscardHandler)), files, time.Now()}
			id, other := types.NewUUID(), types.NewUUID()
			w, twin := l.write(t, id, r), l.write(t, other, r)
			l.derive(t, id)
			l.derive(t, other)
			early := l.kept(id)
			if err := errors.Join(w.Close(t.Context()), twin.Close(t.Context())); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(l.files.Dir(id), step.StepsFile)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			l.more(t, id, 1)
			l.derive(t, id)
			lost := l.kept(id)
			if err := os.WriteFile(path, before, 0o600); err != nil { // power loss has taken the last record back
				t.Fatal(err)
			}
			l.more(t, id, 3)
			l.derive(t, id)
			l.derive(t, id) // the one before is of these records too
			whole := l.kept(id)
			want := l.answers(t, id)
			for range 60 {
				said := ""
				for _, name := range derivedKinds {
					path := filepath.Join(l.files.Dir(id), name)
					b, err := os.ReadFile(filepath.Join(l.files.Dir(other), name))
					if err != nil {
						b = nil
					}
					bad, how := spoil(r, whole[name], early[name], lost[name], b)
					said += fmt.Sprintf("%s: %s; ", name, how)
					if bad == nil {
						err = os.Remove(path)
					} else {
						err = os.WriteFile(path, bad, 0o600)
					}
					if err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
				}
				got := l.answers(t, id)
				for i := range max(len(got), len(want)) {
					if i >= min(len(got), len(want)) || got[i] != want[i] {
						t.Fatalf("%s another answer:\n%v\nwant\n%v", said, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
					}
				}
			}
		})
	}
}

// spoil returns what becomes of a file; nil = it is gone.
func spoil(r *rand.Rand, whole, early, lost, other []byte) (bad []byte, how string) {
	switch r.IntN(8) {
	case 0:
		return nil, "removed"
	case 1:
		return whole[:r.IntN(len(whole))], "cut off"
	case 2:
		return early, "of an earlier moment"
	case 3:
		return other, "of another history"
	case 4:
		return slices.Concat(whole[:len(whole)/2], early), "of two halves"
	case 5:
		return whole, "whole"
	case 6:
		return lost, "of records that were lost"
	}
	bad = slices.Clone(whole)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(bad))
		if c := bad[at]; c >= '0' && c <= '9' { // JSON still, which says another thing
			bad[at] = '0' + (c-'0'+1)%10
		} else {
			bad[at] ^= 1 << r.IntN(7)
		}
	}
	return bad, "changed"
}
