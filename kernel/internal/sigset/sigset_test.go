package sigset

import (
	"testing"

	"pgregory.net/rapid"

	"rnix/types"
)

func TestSignalTable(t *testing.T) { // 002, "Signal System"
	for sig := types.SIGTERM; sig <= types.SIGRESUME; sig++ {
		var s Set
		can := sig != types.SIGKILL
		if s.Deliver(sig).Action != Default {
			t.Errorf("%v: no default", sig)
		}
		if s.Block(sig) != can || s.SetHandler(sig, func(types.Signal) {}) != can {
			t.Errorf("%v: blockable and handleable must be %v", sig, can)
		}
		want := Pend
		if !can {
			want = Default
		}
		if got := s.Deliver(sig).Action; got != want {
			t.Errorf("%v blocked: %v", sig, got)
		}
		d, ok := s.Unblock(sig)
		if ok != can || can && d.Action != Handle {
			t.Errorf("%v unblocked: %v %v", sig, d.Action, ok)
		}
	}
	var s Set
	if s.Deliver(0).Action != Ignore || s.Deliver(6).Action != Ignore {
		t.Error("something that is no signal was delivered")
	}
}

func TestPendingPauseAndResumeTakeEachOtherBack(t *testing.T) {
	var s Set
	s.Block(types.SIGPAUSE)
	s.Block(types.SIGRESUME)
	s.Deliver(types.SIGPAUSE)
	s.Deliver(types.SIGRESUME)
	if _, ok := s.Unblock(types.SIGPAUSE); ok {
		t.Error("a pause that was taken back was delivered")
	}
	if _, ok := s.Unblock(types.SIGRESUME); !ok {
		t.Error("the resume is lost")
	}
}

// The model: a blocked signal is delivered exactly once after it is unblocked, however often it came.
func TestNoSignalIsLostOrDoubled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		blocked, pending := map[types.Signal]bool{}, map[types.Signal]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			sig := rapid.SampledFrom([]types.Signal{types.SIGTERM, types.SIGKILL, types.SIGINT}).Draw(t, "sig")
			switch rapid.IntRange(0, 2).Draw(t, "op") {
			case 0:
				s.Block(sig)
				blocked[sig] = sig != types.SIGKILL
			case 1:
				_, got := s.Unblock(sig)
				if got != pending[sig] {
					t.Fatalf("unblock %v: delivered %v, want %v", sig, got, pending[sig])
				}
				blocked[sig], pending[sig] = false, false
			case 2:
				if got := s.Deliver(sig).Action == Pend; got != blocked[sig] {
					t.Fatalf("deliver %v: pending %v, want %v", sig, got, blocked[sig])
				}
				pending[sig] = pending[sig] || blocked[sig]
			}
		}
	})
}
