package types

import (
	"encoding/json"
	"testing"
)

// What older programs wrote has no kind: its words say it.
func TestTheWordsOfAnOlderProgramSayWhyAProcessIsSuspended(t *testing.T) {
	for words, want := range map[string]SuspendKind{
		"": "", "paused": SuspendPaused, "the daemon was stopped": SuspendStopped, "the daemon ended without warning": SuspendBroken,
		"budget: 9 of 10 tokens are used": SuspendBudget, "budget of PID 5: $1.00 of $1.00 are used": SuspendBudget,
		"context: it is full, and cannot be made any shorter": SuspendContext, "rate limit: come back": SuspendLimit,
		"child PID 4 (01a2), which is suspended: paused": SuspendChild, "its nodes, which are suspended: a (paused)": SuspendNodes,
		"room on the disk": SuspendNoRoom, "a writable disk": SuspendReadOnly,
		"the daemon has broken off 3 times in step 2; it stays suspended until a person resumes it": SuspendHeld,
		"it could not be resumed automatically: no key":                                             SuspendHeld, "interrupted": SuspendOther, "pausedd": SuspendOther,
	} {
		if got := (Suspension{SuspendReason: words}).Why(); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

// A kind counts, whatever the words say: they may be of another version, and have secrets taken out of them.
func TestTheKindOfASuspensionCountsAndItsWordsAreForPeople(t *testing.T) {
	for _, s := range []Suspension{Suspend(SuspendPaused), Suspend(SuspendNoRoom), SuspendFor(SuspendBudget, "***"), SuspendFor("of a newer program", "paused")} {
		b, err := json.Marshal(s)
		var got Suspension
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil || got != s || got.Why() != s.SuspendKind || !got.Waits() {
			t.Errorf("%s is read as %+v, %v", b, got, err)
		}
	}
	for kind, words := range suspendWords {
		if s := Suspend(kind); s.SuspendReason != words || (Suspension{SuspendReason: words}).Why() != kind {
			t.Errorf("%q: %+v", kind, s)
		}
	}
	if (Suspension{}).Waits() || (Suspension{}).Why() != "" {
		t.Error("a process that is not suspended waits for something")
	}
}
