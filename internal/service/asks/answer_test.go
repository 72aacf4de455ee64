package asks

import (
	"context"
	"encoding/json"
	"testing"

	"rnix/internal/permit"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// answeredFirst is a kernel whose ask another person answers just before the answer of this one arrives.
type answeredFirst struct {
	Kernel
	answered         bool
	left             context.CancelFunc // the person goes while the answer is under way; nil = stays
	granted, revoked []uint64
}

func (k *answeredFirst) AsksShown(context.Context) {}

func (k *answeredFirst) Asks() []kernel.Ask {
	if k.answered {
		return nil
	}
	a := kernel.Ask{Ask: step.Ask{Number: 7, Tool: "shell", Path: "/dev/shell"}}
	a.Call.Input = json.RawMessage(`{"command":"make"}`)
	return []kernel.Ask{a}
}

func (k *answeredFirst) Answer(step.Answered) (kernel.Ask, error) {
	if k.left != nil {
		k.left()
		return kernel.Ask{}, types.Errorf(types.ErrConflict, "Answer", "7", "it is being suspended")
	}
	k.answered = true
	return kernel.Ask{}, types.Errorf(types.ErrNotFound, "Answer", "7", "gone")
}

func (k *answeredFirst) Grant(_ types.UUID, g *permit.Grant) error {
	k.granted = append(k.granted, g.Number)
	return nil
}

func (k *answeredFirst) RevokeGrant(_ types.UUID, n uint64) error {
	k.revoked = append(k.revoked, n)
	return nil
}

// gone are histories of which none can be written to.
type gone struct{ Stored }

func (gone) Answer(context.Context, types.UUID, step.Answered) error {
	return types.Errorf(types.ErrNotFound, "Answer", "7", "gone")
}

// anybody is a finder for whom every caller is a person.
type anybody struct{ Finder }

func (anybody) Settled(context.Context) error       { return nil }
func (anybody) AgentOf(*ipc.Peer) (types.PID, bool) { return 0, false }

// What a person has denied does not pass because another one, who was later, wanted to allow it for good.
func TestAnAnswerThatComesTooLateGrantsNothing(t *testing.T) {
	k := &answeredFirst{}
	d := &Service{Kernel: k, Stored: gone{}, Index: histories{}, Finder: anybody{}, Secrets: &redact.Set{}}
	_, err := d.answer(t.Context(), nil, ipc.AnswerRequest{Number: 7, Allow: true, For: permit.ForProcess})
	if types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("the answer: %v", err)
	}
	if len(k.granted) != 1 || len(k.revoked) != 1 || k.revoked[0] != 7 {
		t.Errorf("granted %v, taken back %v", k.granted, k.revoked)
	}
}

// Nor does what a person would have granted who has gone before the answer was there.
func TestAnAnswerThatIsCutOffGrantsNothing(t *testing.T) {
	ctx, left := context.WithCancel(t.Context())
	k := &answeredFirst{left: left}
	d := &Service{Kernel: k, Stored: gone{}, Index: histories{}, Finder: anybody{}, Secrets: &redact.Set{}}
	if _, err := d.answer(ctx, nil, ipc.AnswerRequest{Number: 7, Allow: true, For: permit.ForProcess}); err == nil {
		t.Error("it was answered")
	}
	if len(k.granted) != 1 || len(k.revoked) != 1 || k.revoked[0] != 7 {
		t.Errorf("granted %v, taken back %v", k.granted, k.revoked)
	}
}
