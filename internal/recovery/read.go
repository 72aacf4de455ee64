package recovery

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"

	"rnix/internal/step"
	"rnix/types"
)

// Source reads the records of one history from a sequence number on, as Journal.Replay yields them.
type Source func(from uint64) iter.Seq2[step.Record, error]

// Read folds a history. A checkpoint, which may be nil, makes it quicker and changes nothing: one that
// does not belong to these records is left aside, and used says whether it was. What cannot be read
// ends the folding there and is said in damage; a history of which nothing can be read is an error.
func Read(src Source, cp *step.Checkpoint) (s *State, used bool, damage string, err error) {
	if cp != nil {
		if s, ok := FromCheckpoint(cp); ok {
			if s, damage, ok, err = resume(src, s); ok || err != nil {
				return s, ok, damage, err
			}
		}
	}
	s = new(State)
	damage, err = fold(src, 1, s)
	if err == nil && s.Seq == 0 && damage != "" {
		err = types.Errorf(types.ErrStorage, "Read", "", "nothing of the history can be read: %s", damage)
	}
	return s, false, damage, err
}

// resume folds the records behind a checkpoint. It reports false if the checkpoint is not of these
// records: the one that it ends with is not there, or is another.
func resume(src Source, s *State) (_ *State, damage string, ok bool, err error) {
	at, made := s.Seq, step.Made{Seq: s.Seq, Time: s.Time}
	for r, err := range src(at) {
		switch code := types.CodeOf(err); {
		case code == types.ErrStorage || code == types.ErrInvalid:
			damage = err.Error()
			continue
		case err != nil:
			return nil, "", false, err
		}
		if r.Seq == at {
			if ok = made.By(&r); !ok {
				return nil, "", false, nil
			}
			continue
		}
		if !ok {
			return nil, "", false, nil
		}
		s.Apply(&r)
	}
	return s, damage, ok, nil
}

// fold applies the records from a sequence number on.
func fold(src Source, from uint64, s *State) (damage string, err error) {
	for r, err := range src(from) {
		switch code := types.CodeOf(err); {
		case err == nil:
			s.Apply(&r)
		case code == types.ErrStorage || code == types.ErrInvalid:
			damage = err.Error()
		default:
			return "", err
		}
	}
	return damage, nil
}

// Until folds the records up to the end of a step; 0 is the state before the first one. Records behind it
// are not looked at. A step that the history does not have is INVALID, naming those that it has.
func Until(id types.UUID, src Source, n int) (*State, error) {
	s, at := new(State), (*State)(nil)
	for r, err := range src(1) {
		if code := types.CodeOf(err); code == types.ErrStorage || code == types.ErrInvalid {
			break
		} else if err != nil {
			return nil, err
		}
		if n == 0 && r.Kind == step.KindMessage && r.Answer == nil && s.Step == 0 && s.Open == nil && at == nil {
			s.Apply(&r)
			at = s.Clone()
			continue
		}
		s.Apply(&r)
		if r.Kind == step.KindStep && r.Step.StepNumber == n {
			at = s.Clone() // of a step that was run twice, the later one
		}
	}
	if n < 0 || at == nil {
		return nil, types.Errorf(types.ErrInvalid, "Resume", id.String(), "there is no step %d to resume from: its steps are 0 (the beginning) to %d", n, s.Step)
	}
	return at, nil
}

// Checkpoint returns the state as checkpoint.json keeps it.
func (s *State) Checkpoint(id types.UUID) (*step.Checkpoint, error) {
	var state bytes.Buffer
	enc := json.NewEncoder(&state)
	enc.SetEscapeHTML(false) // JSON that others wrote stays as it is
	if err := enc.Encode(s); err != nil {
		return nil, types.Errorf(types.ErrInternal, "Checkpoint", id.String(), "encode: %w", err)
	}
	return &step.Checkpoint{UUID: id, Time: s.Time, Seq: s.Seq, Step: s.Step, Messages: s.Messages, Tokens: s.Tokens, CostUSD: s.CostUSD, Began: s.Began, State: bytes.TrimSpace(state.Bytes())}, nil
}

// Outdated reports whether another version of the fold has made the state of a checkpoint: it is left aside, and nothing is wrong with it.
func Outdated(cp *step.Checkpoint) bool {
	var by struct {
		Version int `json:"life"`
	}
	return len(cp.State) > 0 && json.Unmarshal(cp.State, &by) == nil && !(&step.Life{Version: by.Version}).Folded()
}

// FromCheckpoint returns the state of a checkpoint, or false if it holds none of this version.
func FromCheckpoint(cp *step.Checkpoint) (*State, bool) {
	s := new(State)
	if len(cp.State) == 0 || json.Unmarshal(cp.State, s) != nil || s.Seq != cp.Seq || s.Seq == 0 || !s.Folded() {
		return nil, false
	}
	if s.Open != nil && slices.ContainsFunc(s.Open.Calls, func(c Call) bool { return c.Begun != (c.Intent != nil) }) {
		return nil, false
	}
	s.Messages, s.Began = cp.Messages, cp.Began
	if s.Open != nil {
		s.Answered = &s.Open.Answer
	}
	return s, true
}
