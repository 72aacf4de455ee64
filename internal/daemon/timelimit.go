package daemon

import (
	"time"

	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// timeLimit settles the time limit with which a history goes on. What it had counts over all its runs; a request gives
// it so much longer than it has lived. One that has ended by its limit is EXHAUSTED without that. A fork begins its
// time anew.
func timeLimit(a *again, req *ipc.ResumeRequest) (time.Duration, error) {
	limit, s := a.was.Timeout, a.state
	if ms := req.TimeoutMs; ms != nil {
		if *ms == 0 {
			return 0, nil
		}
		return s.Active + service.Timeout(*ms), nil
	}
	if a.fork || limit <= 0 || s.Phase != recovery.Ended || s.Exit == nil || a.over(req) {
		return limit, nil
	}
	if _, late := s.Exit.TimedOut(); late || s.Active >= limit {
		return 0, types.Errorf(types.ErrExhausted, "Resume", a.rec.ID.String(), "its time limit of %v is used up; give it more with --timeout TIME (so much longer)", limit)
	}
	return limit, nil
}
