package controlplane

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"rnix/runtime/journal"
	"rnix/types"
)

// call is a request for one session that may come in.
type call struct {
	w      http.ResponseWriter
	r      *http.Request
	server *Server
	token  uint64
}

// routes sets up what is served.
func (s *Server) routes() {
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]bool{"ok": true}) })
	handle := func(pattern string, do func(call) (any, error)) {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			var answer any
			err := s.authorized(r)
			if err != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			c := call{w: w, r: r, server: s}
			if err == nil {
				c.token, err = fencingToken(r)
			}
			if err == nil {
				answer, err = do(c)
			}
			if err != nil {
				s.refuse(w, r, err)
				return
			}
			reply(w, answer)
		})
	}
	handle("GET /api/sessions", call.list)
	handle("GET /api/sessions/{id}", call.show)
	handle("GET /api/sessions/{id}/ownership", call.ownership)
	handle("GET /api/sessions/{id}/{kind}", call.events)
	handle("POST /api/sessions/{id}/claim", call.claim)
	handle("POST /api/sessions/{id}/release", call.release)
	handle("POST /api/sessions/{id}/lock-refresh", call.refresh)
	handle("POST /api/sessions/{id}/activity", call.activity)
	handle("POST /api/sessions/{id}/token-delta", func(c call) (any, error) { return c.tell(kindDelta) })
	handle("POST /api/sessions/{id}/status", func(c call) (any, error) { return c.tell(kindStatus) })
	handle("POST /api/sessions/{id}/completion", func(c call) (any, error) { return c.tell(kindCompletion) })
	handle("POST /api/sessions/{id}/step-heartbeat", call.step)
	handle("POST /api/sessions/{id}/inject", call.inject)
	handle("POST /api/sessions/{id}/inject/{delivery}/requeue", call.requeue)
	handle("POST /api/sessions/{id}/stop", call.stop)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, types.Errorf(types.ErrNotFound, r.Method, r.URL.Path, "nothing is served here; see docs/control-plane.md"))
	})
}

// in runs do with the session of a request, loaded and locked.
func in[R any](c call, create bool, req R, do func(x *session, c call, req R, now time.Time) (any, error)) (answer any, err error) {
	x, err := c.server.session(c.r.PathValue("id"), create)
	if err != nil {
		return nil, err
	}
	err = x.with(func() error {
		answer, err = do(x, c, req, c.server.opt.Now())
		return err
	})
	return answer, err
}

// +checklocks:x.mu
func (x *session) ownershipLocked(now time.Time) ownerAnswer {
	l := x.lease
	a := ownerAnswer{Owned: l.held(now), Owner: l.owner, Token: l.token}
	if a.Owned {
		a.TTLMs = l.expires.Sub(now).Milliseconds()
	}
	return a
}

// grantLocked begins a lease.
//
// +checklocks:x.mu
func (x *session) grantLocked(worker, claim string, now time.Time) error {
	d := claimDoc{Owner: worker, Token: x.lease.token + 1, Claim: claim}
	if err := x.appendLocked(journal.Draft{Kind: kindClaim, Data: d}); err != nil {
		return err
	}
	x.lease.expires = now.Add(x.server.opt.TTL)
	return nil
}

func (c call) claim() (any, error) {
	var req claimRequest
	if err := decode(c.w, c.r, &req); err != nil {
		return nil, err
	}
	if req.WorkerID == "" || len(req.WorkerID) > 256 || len(req.ClaimID) > 256 {
		return nil, types.Errorf(types.ErrInvalid, "Claim", "workerId", "is required; it and claimId have at most 256 bytes")
	}
	return in(c, true, req, (*session).claimLocked)
}

// +checklocks:x.mu
func (x *session) claimLocked(_ call, req claimRequest, now time.Time) (any, error) {
	switch x.lease.claimed(req.WorkerID, req.ClaimID, x.claims[req.ClaimID], now) {
	case denied:
		return nil, types.Errorf(types.ErrConflict, "Claim", x.id, "%q has the session under fencing token %d", x.lease.owner, x.lease.token)
	case granted:
		if err := x.grantLocked(req.WorkerID, req.ClaimID, now); err != nil {
			return nil, err
		}
	}
	return x.ownershipLocked(now), nil
}

func (c call) release() (any, error) {
	var req workerRequest
	if err := decode(c.w, c.r, &req); err != nil {
		return nil, err
	}
	return in(c, false, req, (*session).releaseLocked)
}

// +checklocks:x.mu
func (x *session) releaseLocked(c call, req workerRequest, now time.Time) (any, error) {
	if !x.lease.writes(req.WorkerID, c.token) {
		return nil, x.lease.fenced(x.id, c.token)
	}
	err := x.appendLocked(journal.Draft{Kind: kindRelease, Data: releaseDoc{x.lease.token}})
	return x.ownershipLocked(now), err
}

func (c call) ownership() (any, error) {
	return in(c, false, struct{}{}, (*session).showOwnershipLocked)
}

// +checklocks:x.mu
func (x *session) showOwnershipLocked(_ call, _ struct{}, now time.Time) (any, error) {
	return x.ownershipLocked(now), nil
}

// refresh renews a lease. Who is refused is told so in the answer, not in the status, as clients of old expect; what
// they say of messages is then not heard, since the new owner is offered these.
func (c call) refresh() (any, error) {
	var req refreshRequest
	if err := decode(c.w, c.r, &req); err != nil {
		return nil, err
	}
	return in(c, true, req, (*session).refreshLocked)
}

// +checklocks:x.mu
func (x *session) refreshLocked(c call, req refreshRequest, now time.Time) (any, error) {
	switch x.lease.refreshed(req.WorkerID, c.token, now) {
	case denied:
		return refreshAnswer{}, nil
	case granted:
		if err := x.grantLocked(req.WorkerID, "", now); err != nil {
			return nil, err
		}
	}
	dead := map[string]string{}
	for _, d := range req.DeadLetters {
		dead[d.DeliveryID] = d.Reason[:min(len(d.Reason), 1000)]
	}
	steps := x.injects.settle(append(req.AckedInjects, req.AckedInject), dead, x.lease.token)
	if err := x.appendLocked(drafts(steps)...); err != nil {
		return nil, err
	}
	x.lease.expires = now.Add(x.server.opt.TTL)
	a := refreshAnswer{Refreshed: true, Stop: x.stop, TTLMs: x.server.opt.TTL.Milliseconds(), Token: x.lease.token}
	if d, ok := x.injects.offer(); ok && !x.stop {
		a.Inject = &injectAnswer{d.DeliveryID, d.Text, d.Kind, d.TurnID}
	}
	return a, nil
}

func drafts(steps []injectDoc) (out []journal.Draft) {
	for _, d := range steps {
		out = append(out, journal.Draft{Kind: kindInject, Data: d})
	}
	return out
}

// post is one thing that an owner tells.
type post struct {
	id   string // of the event; "" = it has none
	body json.RawMessage
}

// posts is what an owner tells in one request.
type posts struct {
	kind, worker string
	list         []post
	maxBatch     int // for the answer; 0 = it does not say
}

// storeLocked writes what is new of posts. What is there already is answered with success whoever tells it: nothing is
// written for it.
//
// +checklocks:x.mu
func (x *session) storeLocked(c call, req posts, _ time.Time) (any, error) {
	a := takenAnswer{MaxBatch: req.maxBatch}
	var fresh []journal.Draft
	now := map[[16]byte]bool{}
	for _, p := range req.list {
		if p.id != "" {
			key := seenKey(req.kind, p.id)
			if x.seen[key] || now[key] {
				a.Duplicates++
				continue
			}
			now[key] = true
		}
		fresh = append(fresh, journal.Draft{Kind: req.kind, Data: told{EventID: p.id, Token: x.lease.token, Worker: req.worker, Body: p.body}})
	}
	if len(fresh) == 0 {
		return a, nil
	}
	if !x.lease.writes(req.worker, c.token) {
		return a, x.lease.fenced(x.id, c.token)
	}
	a.Accepted = len(fresh)
	return a, x.appendLocked(fresh...)
}

func (c call) activity() (any, error) {
	var req activityRequest
	if err := decode(c.w, c.r, &req); err != nil {
		return nil, err
	}
	list := req.Activities
	if req.Activity != nil {
		list = append(list, req.Activity)
	}
	if len(list) == 0 || len(list) > maxBatch {
		return nil, types.Errorf(types.ErrInvalid, "Activity", "", "%d activities; send 1 to %d", len(list), maxBatch)
	}
	p := posts{kind: kindActivity, worker: req.WorkerID, maxBatch: maxBatch}
	for i, raw := range list {
		var a struct {
			EventID string `json:"eventId"`
			Type    string `json:"type"`
		}
		if err := json.Unmarshal(raw, &a); err != nil || a.Type == "" || len(a.EventID) > 256 {
			return nil, types.Errorf(types.ErrInvalid, "Activity", "", "activity %d is no object with a type and an eventId of at most 256 bytes", i+1)
		}
		p.list = append(p.list, post{a.EventID, raw})
	}
	return in(c, false, p, (*session).storeLocked)
}

// tell stores a body as it is.
func (c call) tell(kind string) (any, error) {
	var raw json.RawMessage
	if err := decode(c.w, c.r, &raw); err != nil {
		return nil, err
	}
	var head struct {
		EventID  string            `json:"eventId"`
		WorkerID string            `json:"workerId"`
		Status   string            `json:"status"`
		Frames   []json.RawMessage `json:"frames"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || len(head.EventID) > 256 {
		return nil, types.Errorf(types.ErrInvalid, "Tell", kind, "is no object with an eventId of at most 256 bytes")
	}
	if kind == kindStatus && head.Status == "" {
		return nil, types.Errorf(types.ErrInvalid, "Tell", kind, "says no status")
	}
	if kind == kindDelta && len(head.Frames) == 0 {
		return nil, types.Errorf(types.ErrInvalid, "Tell", kind, "has no frames")
	}
	return in(c, false, posts{kind: kind, worker: head.WorkerID, list: []post{{head.EventID, raw}}}, (*session).storeLocked)
}

func (c call) step() (any, error) {
	var req workerRequest
	if err := decode(c.w, c.r, &req); err != nil {
		return nil, err
	}
	return in(c, false, req, (*session).stepLocked)
}

// +checklocks:x.mu
func (x *session) stepLocked(c call, req workerRequest, now time.Time) (any, error) {
	if !x.lease.writes(req.WorkerID, c.token) {
		return nil, x.lease.fenced(x.id, c.token)
	}
	x.beat = now
	return struct{}{}, nil
}

func (c call) inject() (any, error) {
	var req injectRequest
	if err := decode(c.w, c.r, &req); err != nil {
		return nil, err
	}
	if req.Text == "" || len(req.Text) > maxInjectText || len(req.DeliveryID)+len(req.Kind)+len(req.TurnID) > 1000 {
		return nil, types.Errorf(types.ErrInvalid, "Inject", "text", "is required, and has at most %d KiB", maxInjectText>>10)
	}
	if req.DeliveryID == "" {
		req.DeliveryID = "dlv_" + rand.Text()
	}
	return in(c, true, req, (*session).injectLocked)
}

// +checklocks:x.mu
func (x *session) injectLocked(_ call, req injectRequest, _ time.Time) (any, error) {
	steps, err := x.injects.send(injectDoc{DeliveryID: req.DeliveryID, Text: req.Text, Kind: req.Kind, TurnID: req.TurnID})
	if err == nil {
		err = x.appendLocked(drafts(steps)...)
	}
	return map[string]string{"deliveryId": req.DeliveryID}, err
}

func (c call) requeue() (any, error) {
	return in(c, false, c.r.PathValue("delivery"), (*session).requeueLocked)
}

// +checklocks:x.mu
func (x *session) requeueLocked(_ call, id string, _ time.Time) (any, error) {
	steps, err := x.injects.requeue(id)
	if err == nil {
		err = x.appendLocked(drafts(steps)...)
	}
	return map[string]string{"deliveryId": id}, err
}

func (c call) stop() (any, error) {
	var req stopRequest
	if err := decode(c.w, c.r, &req); err != nil {
		return nil, err
	}
	return in(c, false, stopDoc{req.Stop == nil || *req.Stop}, (*session).stopLocked)
}

// +checklocks:x.mu
func (x *session) stopLocked(_ call, want stopDoc, _ time.Time) (any, error) {
	if x.stop == want.Stop {
		return want, nil
	}
	return want, x.appendLocked(journal.Draft{Kind: kindStop, Data: want})
}
