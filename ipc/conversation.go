package ipc

import (
	"time"

	"rnix/types"
)

// The methods of who reads conversations.
var (
	ListMessages   = Method[MessagesRequest, MessagesResponse]{Name: "list_messages", Doc: "list_messages returns a part of the conversation of a process, living or dead, as it is or as a step had it"}
	ReadAttachment = Method[AttachmentRequest, AttachmentResponse]{Name: "read_attachment", Doc: "read_attachment returns an image or a PDF of a conversation, byte by byte as it was attached"}
)

// How much list_messages returns.
const (
	PageMessages    = 100      // where the request does not say
	MaxPageMessages = 1000     // at most
	TextBytes       = 16 << 10 // of each text, where the request does not say
	MaxTextBytes    = 1 << 20  // at most
)

// MessagesRequest asks for messages of a conversation.
//
// A message has one number for good: they are numbered from 1 in the order in which they were recorded. A
// compaction leaves messages out, and cuts some; what stays keeps its number, so there are gaps then. A
// message that a compaction brings in has a number of its own, of the moment of the compaction. A fork has the numbers of its origin.
type MessagesRequest struct {
	Target string `json:"target"`
	// From is the number of the first message that is returned; one that is not in the conversation stands for the next higher one that is.
	// 0 = the first there is; negative = so many from the end.
	From     int `json:"from,omitempty"`
	Limit    int `json:"limit,omitempty"`     // 0 = 100, at most 1000
	Step     int `json:"step,omitempty"`      // the conversation as the prompt of this step had it; 0 = as it is now
	MaxBytes int `json:"max_bytes,omitempty"` // of each text; 0 = 16 KiB, at most 1 MiB
	Skip     int `json:"skip,omitempty"`      // bytes of the first message's Content to leave out: for the next part of a long one
}

// MessagesResponse is a part of a conversation. Fewer messages than asked for come where they are long: together they
// stay within some MiB.
type MessagesResponse struct {
	PID         types.PID             `json:"pid"`
	UUID        types.UUID            `json:"uuid"`
	Total       int                   `json:"total"`       // messages of the conversation, as it is or as the step had it
	Compactions int                   `json:"compactions"` // up to there
	Messages    []ConversationMessage `json:"messages"`
	Damage      string                `json:"damage,omitempty"` // why its record cannot be read to its end: what is behind is missing
	Prev        int                   `json:"prev,omitempty"`   // From of the page before, with the same Limit; 0 = there is none
	Next        int                   `json:"next,omitempty"`   // From of the page behind; 0 = there is none
}

// ConversationMessage is a message of a conversation. Where a part of a text was cut off, it was cut between characters.
type ConversationMessage struct {
	N          int                `json:"n"`
	Step       int                `json:"step"` // of an answer and of its results, the step; of others the last one before; 0 = none
	Time       time.Time          `json:"time"` // when it was recorded
	Role       string             `json:"role"`
	Content    string             `json:"content"`
	ToolCalls  []ConversationCall `json:"tool_calls,omitempty"`
	ToolCallID string             `json:"tool_call_id,omitempty"`
	IsError    bool               `json:"is_error,omitempty"`
	Bytes      int                `json:"bytes"`          // of Content, whole
	Cut        int                `json:"cut,omitempty"`  // bytes left out behind Content
	Skipped    int                `json:"skip,omitempty"` // bytes left out before it
	// Attachments are images and PDFs that the model is shown with it; Content names them.
	Attachments []Attached `json:"attachments,omitempty"`
	// From says of a user message where it comes from: user (the intent), steer (a person, later), message, child, compaction, or system: a notice of
	// the kernel to the agent, which no person has written.
	From      string `json:"from,omitempty"`
	Shortened bool   `json:"shortened,omitempty"` // a compaction has cut its text
	// NoticeBefore and NoticeBehind are how many bytes at the beginning and at the end of the whole Content are notices of the kernel, around the words of whom
	// From names.
	NoticeBefore int `json:"notice_before,omitempty"`
	NoticeBehind int `json:"notice_behind,omitempty"`
}

// AttachmentRequest names an image or a PDF by its sum, as Attached has it.
type AttachmentRequest struct {
	Target string `json:"target"`
	SHA256 string `json:"sha256"`
}

// AttachmentResponse is an image or a PDF.
type AttachmentResponse struct {
	Media string `json:"media"` // by its content: image/png, image/jpeg, image/gif, image/webp or application/pdf
	Data  []byte `json:"data"`  // in base64
}

// ConversationCall is a call of an answer.
type ConversationCall struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input"`         // JSON, as the model wrote it
	Bytes int    `json:"bytes"`         // of Input, whole
	Cut   int    `json:"cut,omitempty"` // bytes left out behind Input
}
