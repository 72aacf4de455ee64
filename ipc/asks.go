package ipc

import (
	"encoding/json"
	"time"

	"rnix/internal/permit"
	"rnix/types"
)

// The methods about what persons are asked.
var (
	ListAsks    = Method[AsksRequest, AsksResponse]{Name: "asks", Doc: "asks lists the calls that wait for the answer of a person, and what was granted with answers."}
	AnswerAsk   = Method[AnswerRequest, AnswerResponse]{Name: "answer", Doc: "answer allows or refuses a call that waits for the answer of a person, or answers a question of an agent. The first answer counts; it is on disk when the call returns. For persons only."}
	RevokeGrant = Method[RevokeRequest, RevokeResponse]{Name: "revoke", Doc: "revoke takes back what was granted with an answer. For persons only."}
)

// AsksRequest says which asks are wanted: all, or those of one process.
type AsksRequest struct {
	Target string `json:"target,omitempty"` // a process; empty = all
	Number uint64 `json:"number,omitempty"` // this one alone; 0 = all
	Grants bool   `json:"grants,omitempty"` // with what was granted
	All    bool   `json:"all,omitempty"`    // before those that wait, those that were answered: of the last 1000 histories
	Limit  int    `json:"limit,omitempty"`  // with All: at most so many answered ones, the latest; 0 = 100, and not more than 1000
	// MaxInput leaves inputs out that are longer, in bytes; Ask.InputBytes says then how long they are. 0 = none is left out.
	MaxInput int `json:"max_input,omitempty"`
}

// AsksResponse lists asks, the oldest first.
type AsksResponse struct {
	Asks   []Ask   `json:"asks"`
	Grants []Grant `json:"grants,omitempty"`
}

// Ask is a call that waits for the answer of a person, or a question of an agent that does.
type Ask struct {
	Number uint64     `json:"number"` // by which it is answered; no other ask has had it
	PID    types.PID  `json:"pid"`
	UUID   types.UUID `json:"uuid"`
	Name   string     `json:"name,omitempty"`
	// Lineage are the processes above, the one that a person has started first.
	Lineage   []Kin           `json:"lineage,omitempty"`
	Suspended bool            `json:"suspended,omitempty"` // the process does not run; the answer counts when it does
	Paused    bool            `json:"paused,omitempty"`    // the process is paused; what is allowed is done when it is resumed
	Tool      string          `json:"tool"`
	Path      string          `json:"path"`            // of its device
	Text      string          `json:"text"`            // the call in a line
	Input     json.RawMessage `json:"input,omitempty"` // of the call; what runs, if nobody changes it
	// InputBytes is how long the input is, if it was left out because of AsksRequest.MaxInput.
	InputBytes int       `json:"input_bytes,omitempty"`
	Fixed      bool      `json:"fixed,omitempty"` // nothing else can be run in its place
	Rule       string    `json:"rule"`            // because of which it is asked; empty for a question
	Since      time.Time `json:"since,omitzero"`
	// Question is what the agent itself wants to know; null = a call waits.
	Question *Question `json:"question,omitempty"`
	// Answer is what was answered; null = it waits for an answer.
	Answer *Answered `json:"answer,omitempty"`
}

// Who has answered an ask.
const (
	ByPerson  = "person"
	ByDefault = "default" // of a question, since no person had answered in time
)

// Answered is the answer to an ask, as it stands in the record.
type Answered struct {
	Verdict string          `json:"verdict"`         // allow, edit, deny, answer, default or withdrawn
	By      string          `json:"by,omitempty"`    // person or default; empty = it was withdrawn, and none has answered
	Time    time.Time       `json:"time"`            // when it was written down
	Text    string          `json:"text,omitempty"`  // the answer to a question, or why a call was refused
	Input   json.RawMessage `json:"input,omitempty"` // what ran in place of what was asked about
	// For says what else the answer allowed: process or family; empty = this call alone. Match, Until and Revoked are those of that.
	For     permit.Scope `json:"for,omitempty"`
	Match   string       `json:"match,omitempty"`  // which calls; empty = the same again
	Until   time.Time    `json:"until,omitzero"`   // zero = it does not end by itself
	Revoked time.Time    `json:"revoked,omitzero"` // when it was taken back; zero = it was not
}

// Question is a question of an agent. Its texts are the agent's.
type Question struct {
	Text    string   `json:"text"`
	Choices []string `json:"choices,omitempty"` // what the agent proposes; anything else can be answered, too
	Default string   `json:"default,omitempty"` // what the agent would do without an answer
	// Until is when the default counts if no person has answered by then; zero = never.
	Until time.Time `json:"until,omitzero"`
}

// Kin is a process above another one.
type Kin struct {
	PID  types.PID  `json:"pid"`
	UUID types.UUID `json:"uuid"`
	Name string     `json:"name,omitempty"`
}

// Grant lets calls pass without asking.
type Grant struct {
	permit.Grant
	Text string     `json:"text"` // what is granted
	PID  types.PID  `json:"pid"`  // in whose record it stands: the process, or the one at the top of its family
	UUID types.UUID `json:"uuid"`
	Name string     `json:"name,omitempty"`
	// Ended says that the process has ended: it counts when that is resumed.
	Ended bool `json:"ended,omitempty"`
}

// AnswerRequest is the answer of a person.
type AnswerRequest struct {
	Number uint64 `json:"number"`
	// Allow lets a call be made, or says that Text answers a question.
	Allow bool `json:"allow"`
	// Text is the answer to a question: a choice, its number from 1, or any other text of at most 16384 bytes.
	Text    string          `json:"text,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`   // with Allow: what is run instead, a JSON object
	Because string          `json:"because,omitempty"` // without Allow: what the model is told, at most 4096 bytes
	// For says with Allow what else passes: call (nothing; also if it is empty), process, family. Match is what of it, a pattern as in a rule;
	// empty = the same again. ForMs is for how long, in milliseconds; 0 = as long as there is the process or the family. With ForMs and no For it
	// counts for the family.
	For   permit.Scope `json:"for,omitempty"`
	Match string       `json:"match,omitempty"`
	ForMs int64        `json:"for_ms,omitempty"`
}

// AnswerResponse says what was answered.
type AnswerResponse struct {
	Ask     Ask    `json:"ask"`
	Allowed bool   `json:"allowed"`
	Text    string `json:"text,omitempty"` // what was answered to a question
	Grant   *Grant `json:"grant,omitempty"`
}

// RevokeRequest names a grant: by the number of the ask with whose answer it was given.
type RevokeRequest struct {
	Number uint64 `json:"number"`
}

// RevokeResponse is what counts no more.
type RevokeResponse struct {
	Grant Grant `json:"grant"`
}
