package recovery

import (
	"encoding/json"
	"iter"
	"testing"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/recovery/recoverytest"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

// use calls everything that can be asked of a state.
func use(t *testing.T, s *State) {
	s.Conversation()
	s.Unfinished()
	for _, c := range s.Unknown() {
		v := Decide(&c, Tell, true)
		Explain(&c, v)
	}
	if s.Open != nil {
		for i := range s.Open.Calls {
			Decide(&s.Open.Calls[i], Retry, false)
		}
	}
	if _, err := s.Clone().Checkpoint(types.UUID{1}); err != nil && len(s.Settled) > 0 && json.Valid(s.Settled) {
		t.Errorf("no checkpoint: %v", err)
	}
}

// FuzzRead folds whatever stands in steps.jsonl: what can be read of it is a state, and the rest is said.
func FuzzRead(f *testing.F) {
	for seed := range uint64(4) {
		s := write(f, seed, recoverytest.Options{Steps: 3})
		b, err := durable.ReadFile(s.fs, s.dir+"/"+step.StepsFile)
		must(f, err)
		f.Add(b)
		f.Add(b[:len(b)*2/3])
	}
	id := types.NewUUID()
	f.Fuzz(func(t *testing.T, b []byte) {
		fsys := faultfs.New(step.Dir("/data", id))
		must(t, durable.WriteFile(fsys, step.Dir("/data", id)+"/"+step.StepsFile, b, durable.Durable))
		j, err := store.Open(fsys, "/data", step.Unsynced)
		must(t, err)
		defer j.Close()
		src := func(from uint64) iter.Seq2[step.Record, error] { return j.Replay(t.Context(), id, from) }
		s, used, damage, err := Read(src, nil)
		if err != nil {
			return
		}
		if used || damage == "" && s.Seq == 0 && len(b) > 0 {
			t.Fatalf("used %v, %d records of %d bytes, and no word of it", used, s.Seq, len(b))
		}
		use(t, s)
	})
}

// FuzzFromCheckpoint reads whatever stands in the state of a checkpoint.
func FuzzFromCheckpoint(f *testing.F) {
	for seed := range uint64(4) {
		s := write(f, seed, recoverytest.Options{Steps: 3})
		for k := 1; k <= len(s.onDisk); k += 5 {
			cp, err := folded(s.onDisk[:k]).Checkpoint(s.id)
			must(f, err)
			f.Add([]byte(cp.State), cp.Seq)
		}
	}
	f.Add([]byte(`{"seq":1,"open":{"calls":[{"id":"a","begun":true}]}}`), uint64(1))
	f.Add([]byte(`{"seq":1,"open":null,"files":{},"exit":{}}`), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, seq uint64) {
		s, ok := FromCheckpoint(&step.Checkpoint{Seq: seq, State: b})
		if !ok {
			return
		}
		if s.Seq != seq || seq == 0 {
			t.Fatalf("record %d of a checkpoint of %d", s.Seq, seq)
		}
		use(t, s)
		s.Apply(&step.Record{Seq: seq + 1, Kind: step.KindMessage, Message: &rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "a"}})
		s.Apply(&step.Record{Seq: seq + 2, Kind: step.KindIntent, Intent: &step.Intent{CallID: "b"}})
		s.Apply(&step.Record{Seq: seq + 3, Kind: step.KindResult, Result: &step.Result{CallID: "b"}})
		s.Apply(&step.Record{Seq: seq + 4, Kind: step.KindStep, Step: &step.StepRecord{StepNumber: 1, ToolCalls: []step.Call{{ID: "a", Name: "plan"}}}})
		use(t, s)
	})
}
