package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"rnix/types"
)

// doctorMethod is the one method of the page that the daemon knows nothing of: what it finds concerns this machine, and also
// a daemon that does not answer.
const doctorMethod = "doctor"

// Finding is one line of what rnix doctor says; the names are those of its --json.
type Finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // "ok", "warning", "broken", "absent"
	Detail string `json:"detail"`
	Mend   string `json:"mend,omitempty"` // "" = nothing has to be done

	Sandbox any `json:"sandbox,omitempty"` // of the check of this name: what is said in JSON besides the text
}

// Limits of an examination.
const (
	examLimit    = time.Minute      // for all checks together
	examPatience = 10 * time.Second // for an answer to the page
)

// examiner makes the checks, once at a time: who asks meanwhile gets the answer of those under way.
type examiner struct {
	examine func(context.Context) []Finding

	life context.Context // of the server
	end  context.CancelFunc

	mu sync.Mutex
	// +checklocks:mu
	under *examination // nil = none
	// +checklocks:mu
	patience time.Duration // examPatience
}

// examination is one round of checks.
type examination struct {
	done chan struct{} // closed when the rest is there

	Findings []Finding `json:"findings"`
	At       time.Time `json:"at"` // when they were done
}

func newExaminer(examine func(context.Context) []Finding) *examiner {
	e := &examiner{examine: examine, patience: examPatience}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// begin begins to examine, if that is not done already, and says how long to wait for it.
func (e *examiner) begin() (*examination, time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.under != nil {
		return e.under, e.patience
	}
	x := &examination{done: make(chan struct{})}
	e.under = x
	// Ends with the checks, or with the server; nobody waits for it, since a disk that does not answer holds it up for ever.
	go func() {
		ctx, cancel := context.WithTimeout(e.life, examLimit)
		defer cancel()
		x.Findings = e.examine(ctx)
		x.At = time.Now()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.under = nil
		close(x.done)
	}()
	return x, e.patience
}

// doctor answers with what the checks have found.
func (s *Server) doctor(w http.ResponseWriter, r *http.Request) {
	if s.exam.examine == nil {
		refuse(w, http.StatusNotFound, types.Errorf(types.ErrNotFound, "Doctor", "", "this dashboard makes no checks: run rnix doctor in a terminal"))
		return
	}
	x, patience := s.exam.begin()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-x.done:
	case <-r.Context().Done():
		return
	case <-late.C:
		refuse(w, http.StatusGatewayTimeout, types.Errorf(types.ErrTimeout, "Doctor", "", "the checks are not done after %v, as when a disk or the daemon does not answer; they go on, and the next look shows what they find", patience))
		return
	}
	say(w, x)
}
