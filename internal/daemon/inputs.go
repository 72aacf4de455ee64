package daemon

import (
	"slices"

	"rnix/internal/step"
	"rnix/types"
)

// inputsDir is where the inputs of a history are kept.
func (s *store) inputsDir(id types.UUID) string { return step.InputsDir(s.journal.Dir(id)) }

// SaveInputs makes the inputs of a history durable.
func (s *store) SaveInputs(id types.UUID, inputs []step.Input) ([]step.InputRef, error) {
	if !s.secrets.Empty() {
		inputs = slices.Clone(inputs)
	}
	for i := range inputs {
		s.secrets.Strings(&inputs[i].Text)
	}
	return step.WriteInputs(s.journal.FS(), s.journal.Dir(id), inputs)
}

// Input reads an input of a history.
func (s *store) Input(id types.UUID, ref step.InputRef) (string, error) {
	return step.ReadInput(s.journal.FS(), s.journal.Dir(id), ref)
}
