package types

import "strings"

// SuspendKind says in one word why a process is suspended. Programs compare it; people read the words beside it. A kind that is not known here is
// one of a newer program. Part of the wire format and of the files.
type SuspendKind string

// The kinds.
const (
	SuspendPaused   SuspendKind = "paused"     // a person has paused it
	SuspendStopped  SuspendKind = "stopped"    // the daemon was stopped
	SuspendBroken   SuspendKind = "broken"     // the daemon ended without warning
	SuspendBudget   SuspendKind = "budget"     // a budget is used up, its own or one above it
	SuspendContext  SuspendKind = "context"    // its conversation does not fit its model any more
	SuspendLimit    SuspendKind = "rate_limit" // of a provider
	SuspendKey      SuspendKind = "key"        // nobody has the key of its provider
	SuspendChild    SuspendKind = "child"      // a child that it waits for is suspended
	SuspendNodes    SuspendKind = "nodes"      // nodes of the workflow that it runs are suspended
	SuspendAsk      SuspendKind = "ask"        // a person is asked about a call
	SuspendNoRoom   SuspendKind = "no_room"    // its record could not be written: the disk is full
	SuspendReadOnly SuspendKind = "read_only"  // its record could not be written: the disk is read-only
	SuspendHeld     SuspendKind = "held"       // it is not resumed automatically; the words say why
	SuspendOther    SuspendKind = "other"      // only the words say why
)

// Suspension is why a process is suspended: of which kind, and in words. The zero value: it is not, or nobody has written down why.
type Suspension struct {
	SuspendKind   SuspendKind `json:"suspend_kind,omitempty"` // Why also knows that of what was written without one
	SuspendReason string      `json:"suspend_reason,omitempty"`
}

// suspendWords are the words of the kinds of which there is nothing else to say. Part of the on-disk format: older files have only them.
var suspendWords = map[SuspendKind]string{
	SuspendPaused:   "paused",
	SuspendStopped:  "the daemon was stopped",
	SuspendBroken:   "the daemon ended without warning",
	SuspendNoRoom:   "room on the disk",
	SuspendReadOnly: "a writable disk",
}

// suspendHeads are how the words of the other kinds begin in files that do not name the kind.
var suspendHeads = []struct {
	head string
	kind SuspendKind
}{
	{"budget: ", SuspendBudget}, {"budget of ", SuspendBudget}, {"context: ", SuspendContext}, {"rate limit: ", SuspendLimit}, {"key: ", SuspendKey},
	{"child ", SuspendChild}, {"its nodes, ", SuspendNodes},
	{"the daemon has broken off ", SuspendHeld}, {"more processes were running than ", SuspendHeld}, {"it could not be resumed", SuspendHeld},
	{"rnix fsck has cut ", SuspendHeld},
}

// Suspend returns the suspension of a kind in the words that it always has.
func Suspend(kind SuspendKind) Suspension { return Suspension{kind, suspendWords[kind]} }

// SuspendFor returns a suspension of a kind in words of its own.
func SuspendFor(kind SuspendKind, words string) Suspension { return Suspension{kind, words} }

// Why returns the kind; "" = it is not suspended, or nobody has written down why. What an older program wrote has only words, which say it.
func (s Suspension) Why() SuspendKind {
	if s.SuspendKind != "" || s.SuspendReason == "" {
		return s.SuspendKind
	}
	for kind, words := range suspendWords {
		if s.SuspendReason == words {
			return kind
		}
	}
	for _, h := range suspendHeads {
		if strings.HasPrefix(s.SuspendReason, h.head) {
			return h.kind
		}
	}
	return SuspendOther
}

// Waits reports whether there is a reason.
func (s Suspension) Waits() bool { return s != Suspension{} }
