package flows

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/internal/supervisor"
	"rnix/types"
)

// stateOf returns what has become of the nodes of a run, as its history says.
func stateOf(s *recovery.State) (*compose.State, run.Spec, error) {
	was, err := s.Was()
	if err != nil || was.Body == nil {
		return nil, run.Spec{}, types.Errorf(types.ErrStorage, "Compose", "", "the history does not say which workflow it ran: %w", err)
	}
	spec, err := run.ParseSpec(was.Body.Spec)
	if err != nil {
		return nil, spec, err
	}
	state, err := compose.NewState(spec.File.Plan(), spec.Rounds, s.Notes)
	if err != nil {
		return nil, spec, types.Errorf(types.ErrStorage, "Compose", was.UUID.String(), "%w", err)
	}
	return state, spec, nil
}

// attempts returns the attempts of nodes that a run has started, and that have not ended as far as it knows.
func attempts(s *compose.State) (ids []types.UUID) {
	for _, id := range s.Live() {
		ids = append(ids, id)
	}
	return ids
}

// Awaited returns the attempts of nodes that a run has started and that have not ended, as its notes say.
func (*Service) Awaited(spec json.RawMessage, notes map[string]json.RawMessage) []types.UUID {
	sp, err := run.ParseSpec(spec)
	if err != nil {
		return nil
	}
	state, err := compose.NewState(sp.File.Plan(), sp.Rounds, notes)
	if err != nil {
		return nil
	}
	return attempts(state)
}

// Ending reports whether the history of a run says that it is ending, with which exit status, and the nodes that are to end before.
func (*Service) Ending(s *recovery.State) (exit types.ExitStatus, nodes []types.UUID, ending bool) {
	state, spec, err := stateOf(s)
	if err != nil {
		return exit, nil, false
	}
	e, ending := run.EndingIn(s.Notes, len(spec.Rounds))
	return e.Exit, attempts(state), ending
}

// Left returns which histories a run or a supervisor has left without an end when it ended itself: the daemon was killed before they could be
// ended. None if it has not ended.
func (s *Service) Left(ctx context.Context, up *step.ProcInfo) []types.UUID {
	if up.Exit == nil || up.Suspended || up.Kind != run.Kind && up.Kind != supervisor.Kind {
		return nil
	}
	state, err := s.Stored.Read(ctx, up.UUID)
	if err != nil || state.Phase != recovery.Ended {
		return nil
	}
	if up.Kind == run.Kind {
		nodes, _, err := stateOf(state)
		if err != nil {
			return nil
		}
		return attempts(nodes)
	}
	was, err := s.Stored.Was(state, up.UUID)
	if err != nil {
		return nil
	}
	decl, err := declaredIn(&was, up.UUID)
	if err != nil {
		return nil
	}
	spec, err := decl.plan(nil)
	if err != nil {
		return nil
	}
	status, err := supervisor.Stored(spec, state, time.Now())
	if err != nil {
		return nil
	}
	var ids []types.UUID
	for i := range status.Children {
		ids = append(ids, status.Children[i].UUID)
	}
	return slices.DeleteFunc(ids, func(id types.UUID) bool { return id == types.UUID{} })
}
