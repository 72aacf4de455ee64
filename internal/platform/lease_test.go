package platform

import (
	"context"
	"errors"
	"testing"

	"rnix/runtime/heartbeat"
	"time"
)

func TestWhatWasDoneBeforeTheLossIsToldWhenTheSessionIsFreeAndHowItEndedIsNot(t *testing.T) {
	p := newPlane(t)
	s := opened(t, p.config(t))
	p.away.Store(true)
	s.Record(words)
	s.Record(end)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(cancelled); err == nil || s.State().Pending != 4 {
		t.Fatalf("%+v, %v", s.State(), err)
	}
	p.away.Store(false)
	other := p.config(t) // of the same name, so nobody has to wait until the lease has run out
	next := opened(t, other)
	if _, err := Settle(context.Background(), s.cfg); !errors.Is(err, heartbeat.ErrLostOwnership) {
		t.Errorf("the session is taken from its owner: %v", err)
	}
	if st := next.Standing(); !st.Ours || st.Token != 2 {
		t.Errorf("the owner has %+v", st)
	}
	next.Record(words)
	next.Record(end)
	if err := next.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	before, acts := p.said("completion", "status"), p.said("activity")
	if left, err := Settle(context.Background(), s.cfg); left != 0 || err != nil {
		t.Errorf("%d left, %v", left, err)
	}
	if after := p.said("completion", "status"); after != before {
		t.Errorf("how it ended is told over what its successor said: %s, then %s", before, after)
	}
	if now := p.said("activity"); len(now) <= len(acts) {
		t.Errorf("what it did is not told: %s", now)
	}
}

func TestALeaseThatHasRunOutIsNotOursUntilItIsConfirmed(t *testing.T) {
	p := newPlaneOf(t, 1500*time.Millisecond)
	held := make(chan Standing, 4)
	cfg := p.config(t)
	cfg.Held = func(st Standing) { held <- st }
	s := opened(t, cfg)
	if ours, _ := s.Owns(); !ours {
		t.Error("it does not own what it has claimed")
	}
	p.away.Store(true)
	if st := <-held; st.Ours || st.Token != 1 || st.Left > 0 {
		t.Errorf("%+v", st)
	}
	ours, changed := s.Owns()
	if ours {
		t.Error("it owns what may be somebody else's")
	}
	p.away.Store(false)
	<-changed
	if st := <-held; !st.Ours || st.Token != 1 || st.Left <= 0 {
		t.Errorf("%+v", st)
	}
	if ours, _ := s.Owns(); !ours {
		t.Error("it was confirmed")
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
