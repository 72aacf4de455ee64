package ipc

import (
	"time"

	"rnix/types"
)

// The method that looks into a mailbox.
var (
	Mailbox = Method[MailboxRequest, MailboxResponse]{Name: "mailbox", Doc: "mailbox shows which messages wait in the mailbox of a process, running or not, and takes none out"}
)

// MaxLetters is how many messages an answer of mailbox has at most.
const MaxLetters = 1000

// MailboxRequest names a mailbox.
type MailboxRequest struct {
	Target string `json:"target,omitempty"` // empty = the agent inside which the client runs
	Limit  int    `json:"limit,omitempty"`  // only the oldest so many; 0 = MaxLetters
}

// MailboxResponse is what waits in a mailbox. Nothing is taken out.
type MailboxResponse struct {
	PID     types.PID  `json:"pid"`
	UUID    types.UUID `json:"uuid"`
	Total   int        `json:"total"`    // messages that wait
	Bytes   int        `json:"bytes"`    // of all of them
	LastSeq uint64     `json:"last_seq"` // number of the last message that has come, read or not; 0 = none has
	Letters []Letter   `json:"letters"`  // oldest first
}

// Letter is a message that waits, without what it says but for its first line.
type Letter struct {
	Seq      uint64     `json:"seq"`                // its number among the messages to this process
	Kind     string     `json:"kind"`               // message, steer, child
	From     types.PID  `json:"from,omitempty"`     // 0 = a person or the kernel
	FromUUID types.UUID `json:"from_uuid,omitzero"` // likewise
	Name     string     `json:"name,omitempty"`     // of the sender
	Time     time.Time  `json:"time,omitzero"`      // when it was sent; zero = not known
	Bytes    int        `json:"bytes"`
	Line     string     `json:"line"`             // its first line, cut
	Binary   bool       `json:"binary,omitempty"` // it is no text
	// Attachments are images and PDFs that the model is shown with it.
	Attachments []Attached `json:"attachments,omitempty"`
}
