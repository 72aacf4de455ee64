package records

import (
	"context"
	"slices"

	"rnix/internal/step"
	"rnix/types"
)

// SaveInputs makes the inputs of a history durable.
func (s *Store) SaveInputs(id types.UUID, inputs []step.Input) ([]step.InputRef, error) {
	if !s.Secrets.Empty() {
		inputs = slices.Clone(inputs)
	}
	for i := range inputs {
		s.Secrets.Strings(&inputs[i].Text)
	}
	return s.journal.Blobs().SaveInputs(id, inputs)
}

// Input reads an input of a history.
func (s *Store) Input(id types.UUID, ref step.InputRef) (string, error) {
	return s.journal.Blobs().Input(id, ref)
}

// SaveAttachment makes an image or a document of a message durable.
func (s *Store) SaveAttachment(id types.UUID, data []byte) (sum string, err error) {
	return s.journal.Blobs().SaveAttachment(id, data)
}

// Attachment reads an image or a document of a message.
func (s *Store) Attachment(id types.UUID, sum string) ([]byte, error) {
	return s.journal.Blobs().Attachment(id, sum)
}

// Letters reads the messages of a history, as far as it is on disk, for /proc.
func (s *Store) Letters(id types.UUID) ([]step.Letter, error) {
	return step.Letters(s.journal.Replay(context.Background(), id, 1))
}

// PastAsks reads what a history was asked about and got an answer for, and what was granted in it, as far as it is on disk.
func PastAsks(ctx context.Context, s *Store, id types.UUID) ([]step.PastAsk, map[uint64]step.PastGrant, error) {
	return step.PastAsks(s.journal.Replay(ctx, id, 1))
}
