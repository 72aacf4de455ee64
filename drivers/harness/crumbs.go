package harness

import (
	"time"

	"rnix/drivers/llm"
	"rnix/runtime/state"
)

// crumbs is what a session leaves for whoever comes after a crash: .agent/state.json. A failure of it is no
// failure of the session.
type crumbs struct {
	store *state.Store
	root  string // the work tree, or the private directory
	s     *session
}

// Steps of a session, as state.json names them.
const (
	stepSpawning  = "spawning"
	stepStreaming = "streaming"
	stepCompleted = "completed"
)

func (s *session) crumbs(req *llm.LLMRequest) crumbs {
	return crumbs{store: s.cfg.states, root: s.cfg.StateRoot(s.id, req.WorkDir), s: s}
}

// begin notes that a command line is about to be started.
func (c crumbs) begin() error {
	_, err := c.store.Update(c.root, func(st *state.State) error {
		if st.SessionID != c.s.id {
			*st = state.State{SessionID: c.s.id, StartedAt: time.Now().UnixMilli()}
		}
		st.ProviderName, st.CurrentStep, st.AttemptCount = c.s.cfg.CLI.Name(), stepSpawning, st.AttemptCount+1
		return nil
	})
	return err
}

// at notes how far the session is. It writes nothing into the state of another one.
func (c crumbs) at(step string) error {
	st, err := c.store.Read(c.root)
	if err != nil {
		return err
	}
	if st.SessionID != c.s.id {
		return state.ErrNotOwner
	}
	_, err = c.store.UpdateOwned(c.root, st.Fence(), func(st *state.State) error {
		st.CurrentStep, st.ProviderSessionID = step, c.s.cliID
		if c.s.child != nil {
			st.PID = c.s.child.PID()
		}
		return nil
	})
	return err
}

// session returns the command line's own id of the session; "" if it is not known.
func (c crumbs) session() string {
	if c.s.cliID != "" {
		return c.s.cliID
	}
	st, err := c.store.Read(c.root)
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
