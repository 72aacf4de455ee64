package controlplane

import (
	"slices"
	"strconv"
	"time"

	"rnix/types"
)

func (c call) list() (any, error) {
	ids := c.server.listed()
	after, limit := c.r.URL.Query().Get("after"), maxPage
	i, found := slices.BinarySearch(ids, after)
	if found {
		i++
	}
	ids = ids[i:]
	return map[string][]string{"sessions": ids[:min(len(ids), limit)]}, nil
}

func (c call) show() (any, error) { return in(c, false, struct{}{}, (*session).showLocked) }

// +checklocks:x.mu
func (x *session) showLocked(_ call, _ struct{}, now time.Time) (any, error) {
	a := sessionAnswer{ID: x.id, Owner: x.ownershipLocked(now), Stop: x.stop, Status: x.status, Completion: x.done,
		Injects: []injectState{}, Counts: map[string]int{}, Bytes: x.bytes}
	for kind, n := range x.counts {
		a.Counts[kind] = n
	}
	for _, d := range x.injects.list {
		a.Injects = append(a.Injects, injectState{d.DeliveryID, d.State, d.Text, d.Reason})
	}
	if !x.beat.IsZero() {
		a.LastStepAt = x.beat.UTC().Format(time.RFC3339Nano)
	}
	return a, nil
}

// readable are the kinds that can be read.
var readable = []string{kindClaim, kindRelease, kindActivity, kindDelta, kindStatus, kindCompletion, kindInject, kindStop}

func (c call) events() (any, error) {
	kind := c.r.PathValue("kind")
	kinds := []string{kind}
	if kind == "events" {
		kinds = readable
	} else if !slices.Contains(readable, kind) {
		return nil, types.Errorf(types.ErrNotFound, "Read", kind, "there are events, %v", readable)
	}
	after, err := number(c.r.URL.Query().Get("after"), 0, 1<<62)
	if err != nil {
		return nil, err
	}
	limit, err := number(c.r.URL.Query().Get("limit"), 100, maxPage)
	if err != nil {
		return nil, err
	}
	return in(c, false, pageRequest{after, int(limit), kinds}, (*session).readLocked)
}

// pageRequest asks for events after a number.
type pageRequest struct {
	after uint64
	limit int
	kinds []string
}

// +checklocks:x.mu
func (x *session) readLocked(_ call, req pageRequest, _ time.Time) (any, error) {
	events, err := x.journal.Read(req.after, req.limit, req.kinds...)
	if err != nil {
		return nil, err
	}
	page := pageAnswer{Events: []eventAnswer{}, Next: req.after}
	for _, e := range events {
		page.Events = append(page.Events, eventAnswer{e.Seq, e.Time.Format(time.RFC3339Nano), e.Kind, e.Data})
		page.Next = e.Seq
	}
	return page, nil
}

func number(text string, missing, most uint64) (uint64, error) {
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		return 0, types.Errorf(types.ErrInvalid, "Read", text, "is not a number up to %d", most)
	}
	return n, nil
}
