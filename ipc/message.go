package ipc

import (
	"time"

	"rnix/types"
)

// The methods about messages.
var (
	Send      = Method[SendRequest, SendResponse]{Name: "send", Doc: "send puts a message into the mailbox of a process, running or suspended, durably: data, not an instruction"}
	Steer     = Method[SendRequest, SendResponse]{Name: "steer", Doc: "steer says something to an agent as the person whom it works for, durably; it gets it before its next prompt"}
	Delivered = Method[DeliveredRequest, DeliveredResponse]{Name: "delivered", Doc: "delivered waits until a message has reached the conversation of its process"}
	Recv      = Method[RecvRequest, RecvResponse]{Name: "recv", Doc: "recv takes the oldest message out of the mailbox of a running process"}
)

// SendRequest is a message.
type SendRequest struct {
	Target string `json:"target"`
	Text   string `json:"text"` // at most 1 MiB
	// Attachments are images and PDFs that the model is shown with it, as in SpawnRequest.
	Attachments []Attachment `json:"attachments,omitempty"`
	// WaitRoom says that a full mailbox is waited for, at most TimeoutMs milliseconds (0 = as long as the
	// client stays), and is no error.
	WaitRoom  bool  `json:"wait_room,omitempty"`
	TimeoutMs int64 `json:"timeout_ms,omitempty"`
	// Key names the sending: what comes again with it is not put into the mailbox again. At most 128 bytes.
	Key string `json:"key,omitempty"`
}

// SendResponse says where the message is.
type SendResponse struct {
	PID   types.PID  `json:"pid"` // of the receiver
	UUID  types.UUID `json:"uuid"`
	Name  string     `json:"name,omitempty"`
	Seq   uint64     `json:"seq"`   // its number among the messages to this process
	State string     `json:"state"` // running, or suspended: then it is delivered when the process goes on
}

// DeliveredRequest asks for a message by its number.
type DeliveredRequest struct {
	Target    string `json:"target"`
	Seq       uint64 `json:"seq"`
	TimeoutMs int64  `json:"timeout_ms,omitempty"` // how long to wait; 0 = not at all
}

// DeliveredResponse says where a message is. One that was not delivered when its process ended is kept, and
// is delivered if the process is resumed.
type DeliveredResponse struct {
	PID       types.PID  `json:"pid"` // of the receiver
	UUID      types.UUID `json:"uuid"`
	Delivered bool       `json:"delivered"`
	State     string     `json:"state"` // of the receiver
	Step      int        `json:"step"`
	Wait      string     `json:"wait,omitempty"` // what the receiver waits for
}

// RecvRequest takes a message.
type RecvRequest struct {
	Target    string `json:"target,omitempty"`     // empty = the agent inside which the client runs
	TimeoutMs int64  `json:"timeout_ms,omitempty"` // how long to wait; 0 = until the process ends
}

// RecvResponse is a message. Either Text or Data is set.
type RecvResponse struct {
	Seq  uint64    `json:"seq"`
	Kind string    `json:"kind"` // message, steer, child
	From types.PID `json:"from"` // 0 = a person or the kernel
	Name string    `json:"name,omitempty"`
	Time time.Time `json:"time,omitzero"`
	Text string    `json:"text,omitempty"`
	Data []byte    `json:"data,omitempty"` // if it is no text
}
