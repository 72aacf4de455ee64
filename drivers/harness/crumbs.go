package harness

import (
	"errors"
	"time"

	"rnix/drivers/llm"
	"rnix/runtime/state"
)

// crumbs is what a session leaves for whoever comes after a crash: .agent/state.json. A failure of it is no
// failure of the session.
type crumbs struct {
	store *state.Store
	place StatePlace
	s     *session
}

// Steps of a session, as state.json names them.
const (
	stepSpawning  = "spawning"
	stepStreaming = "streaming"
	stepCompleted = "completed"
	stepStopped   = "stopped" // the command line is gone, in the middle of a turn
)

// beats is how long the state may say nothing new while the command line says something.
const beats = 30 * time.Second

func (s *session) crumbs(req *llm.LLMRequest) crumbs {
	return crumbs{store: s.cfg.states, place: s.cfg.StateOf(s.id, req.WorkDir), s: s}
}

// begin notes that a command line is about to be started.
func (c crumbs) begin() error {
	_, err := c.store.Update(c.place.Root, func(st *state.State) error {
		if st.SessionID != c.s.id {
			*st = state.State{SessionID: c.s.id, StartedAt: time.Now().UnixMilli()}
		}
		st.ProviderName, st.CurrentStep, st.AttemptCount = c.s.cfg.CLI.Name(), stepSpawning, st.AttemptCount+1
		st.IssueID, st.IssueIdentifier, st.WorkerID = c.place.Issue, c.place.Issue, c.place.Worker
		st.PID, st.OSStartTime = 0, 0
		return nil
	})
	return err
}

// at notes how far the session is. It writes nothing into the state of another one.
func (c crumbs) at(step string) error {
	return ofSession(c.store, c.place.Root, c.s.id, func(st *state.State) {
		now := time.Now()
		st.CurrentStep, st.LastHeartbeat = step, max(st.LastHeartbeat, now.UnixMilli())
		if c.s.cliID != "" {
			st.ProviderSessionID = c.s.cliID
		}
		st.PID, st.OSStartTime = 0, 0
		if c.s.child != nil {
			st.PID, st.OSStartTime = c.s.child.PID(), c.s.child.StartTime()
		}
		c.s.beat = now
	})
}

// alive notes that the command line says something, now and then.
func (c crumbs) alive() error {
	if now := time.Now(); now.Sub(c.s.beat) > beats {
		c.s.beat = now
		return Beat(c.place.Root, c.s.id, now.UnixMilli())
	}
	return nil
}

// ended notes that the command line is gone.
func (c crumbs) ended() {
	if c.store != nil {
		_ = Stopped(c.place.Root, c.s.id) // the next session of the process writes it anew
	}
}

// session returns the command line's own id of the session; "" if it is not known.
func (c crumbs) session() string {
	if c.s.cliID != "" {
		return c.s.cliID
	}
	st, err := c.store.ReadExpect(c.place.Root, c.place.Issue)
	if err != nil || st.SessionID != c.s.id || st.ProviderName != c.s.cfg.CLI.Name() {
		return ""
	}
	return st.ProviderSessionID
}

// noting returns what shows an error that is no failure, in the log of the process.
func noting(emit func(llm.StreamEvent)) func(error) {
	return func(err error) {
		if err != nil {
			emit(llm.StreamEvent{Type: llm.EventReasoning, Text: "[state.json: " + err.Error() + "]\n"})
		}
	}
}

// ofSession changes the state of a session, below root. ErrNotOwner if it is another's.
func ofSession(store *state.Store, root, session string, change func(*state.State)) error {
	st, err := store.Read(root)
	if err != nil {
		return err
	}
	if st.SessionID != session {
		return state.ErrNotOwner
	}
	_, err = store.UpdateOwned(root, st.Fence(), func(st *state.State) error {
		change(st)
		return nil
	})
	return err
}

// Beat notes in the state of a session, below root, that it was alive at a time in ms since 1970.
func Beat(root, session string, at int64) error {
	store := state.NewStore()
	st, err := store.Read(root)
	switch {
	case errors.Is(err, state.ErrNotFound), err == nil && st.SessionID != session:
		return nil // it has not begun, or another one has the directory
	case err != nil:
		return err
	}
	return store.Heartbeat(root, st.Fence(), at)
}

// Stopped notes in the state of a session, below root, that its command line is gone, and that it had not ended its turn if it
// had not.
func Stopped(root, session string) error {
	store := state.NewStore()
	st, err := store.Read(root)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	if err != nil || st.SessionID != session || st.PID == 0 && st.CurrentStep != stepSpawning {
		return nil
	}
	return ofSession(store, root, session, func(st *state.State) {
		st.PID, st.OSStartTime = 0, 0
		if st.CurrentStep != stepCompleted {
			st.CurrentStep = stepStopped
		}
	})
}
