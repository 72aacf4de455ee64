package controlplane

import (
	"slices"

	"rnix/types"
)

// injectDoc is one step in the life of a message to a session. Part of the on-disk format.
type injectDoc struct {
	DeliveryID string `json:"deliveryId"`
	State      string `json:"state"` // pending, acked or dead
	Text       string `json:"text,omitempty"`
	Kind       string `json:"kind,omitempty"`
	TurnID     string `json:"turnId,omitempty"`
	Reason     string `json:"reason,omitempty"` // why it is dead
	Token      uint64 `json:"token,omitempty"`  // of the owner that says so
}

// States of a message. Part of the wire format.
const (
	statePending = "pending"
	stateAcked   = "acked"
	stateDead    = "dead"
)

// Bounds of messages.
const (
	maxInjects    = 1000     // that are not acknowledged
	maxInjectText = 64 << 10 // bytes
)

// injects are the messages to one session, in the order in which they were sent.
type injects struct {
	list []injectDoc // without those that were acknowledged
	done map[string]bool
}

func (in *injects) find(id string) int {
	return slices.IndexFunc(in.list, func(d injectDoc) bool { return d.DeliveryID == id })
}

// fold applies one step.
func (in *injects) fold(d injectDoc) {
	i := in.find(d.DeliveryID)
	switch {
	case d.State == stateAcked:
		if in.done == nil {
			in.done = map[string]bool{}
		}
		in.done[d.DeliveryID] = true
		if i >= 0 {
			in.list = slices.Delete(in.list, i, i+1)
		}
	case i < 0:
		in.list = append(in.list, d)
	default:
		in.list[i].State, in.list[i].Reason = d.State, d.Reason
	}
}

// offer returns the oldest message that waits.
func (in *injects) offer() (injectDoc, bool) {
	for _, d := range in.list {
		if d.State == statePending {
			return d, true
		}
	}
	return injectDoc{}, false
}

// settle returns the steps that an owner's word makes: acknowledgements first, each once, and of messages that exist.
func (in *injects) settle(acked []string, dead map[string]string, token uint64) (steps []injectDoc) {
	known := func(id string) bool {
		return in.find(id) >= 0 && !slices.ContainsFunc(steps, func(d injectDoc) bool { return d.DeliveryID == id })
	}
	for _, id := range acked {
		if known(id) {
			steps = append(steps, injectDoc{DeliveryID: id, State: stateAcked, Token: token})
		}
	}
	for _, d := range in.list {
		if reason, ok := dead[d.DeliveryID]; ok && d.State == statePending && known(d.DeliveryID) {
			steps = append(steps, injectDoc{DeliveryID: d.DeliveryID, State: stateDead, Reason: reason, Token: token})
		}
	}
	return steps
}

// send returns the step that a new message is, or none if it was sent already.
func (in *injects) send(d injectDoc) ([]injectDoc, error) {
	if in.done[d.DeliveryID] || in.find(d.DeliveryID) >= 0 {
		return nil, nil
	}
	if len(in.list) >= maxInjects {
		return nil, types.Errorf(types.ErrExhausted, "Inject", d.DeliveryID, "%d messages wait already, which is the limit", len(in.list))
	}
	d.State = statePending
	return []injectDoc{d}, nil
}

// requeue returns the step by which a dead message waits again.
func (in *injects) requeue(id string) ([]injectDoc, error) {
	i := in.find(id)
	if i < 0 {
		return nil, types.Errorf(types.ErrNotFound, "Inject", id, "no message of that ID is waiting or dead")
	}
	if in.list[i].State == statePending {
		return nil, nil
	}
	return []injectDoc{{DeliveryID: id, State: statePending}}, nil
}
