package ipc

import (
	"time"

	"rnix/types"
)

// The method of this file.
var ContextProfile = Method[ContextRequest, ContextResponse]{Name: "context_profile",
	Doc: "context_profile says what fills the context of a process, how it grew, how much room is left and what a prompt cache can use again"}

// ContextRequest asks what fills the context of a process, alive or dead.
type ContextRequest struct {
	Target string `json:"target"`
	Step   int    `json:"step,omitempty"` // the prompt of this step; 0 = what the next one has
	// Largest is how many of the largest messages are shown, with how they begin; 0 = 20, at most 1000.
	Largest int `json:"largest,omitempty"`
	// Segments asks for all messages; without it Segments is empty.
	Segments bool `json:"segments,omitempty"`
}

// ContextResponse is the profile. Its lists are never null.
type ContextResponse struct {
	PID    types.PID `json:"pid"`
	Live   bool      `json:"live"`             // it runs, or is paused
	Damage string    `json:"damage,omitempty"` // why its record could not be read to the end
	Profile
	Largest []ContextSegment `json:"largest"` // of the prompt that is shown, the largest first
}

// Profile is what fills the context, how it grew, and what of it a cache can use again.
// All counts are tokens. The provider counts whole prompts; what stands in one is its share of such a count, by
// our estimate (Counted), or our estimate alone.
type Profile struct {
	V         int        `json:"v"`
	UUID      types.UUID `json:"uuid"`
	Time      time.Time  `json:"time"`
	Steps     int        `json:"steps"`               // that have ended
	Step      int        `json:"step,omitempty"`      // the prompt of this step is shown; 0 = what the next one has
	Tokens    int        `json:"tokens"`              // of the prompt that is shown, with system prompt and tools
	Estimated bool       `json:"estimated,omitempty"` // Tokens, or a part of it, is no count of the provider's
	Sent      int        `json:"tokens_sent"`         // over all prompts
	Provider  string     `json:"provider,omitempty"`
	Model     string     `json:"model,omitempty"`
	// Uncounted says why no count of the provider's is used; empty = they are, as far as there are any.
	Uncounted string `json:"uncounted,omitempty"`

	Sections    []ContextSection `json:"sections"`                   // what the prompt consists of, in its order; those that are empty are left out
	Segments    []ContextSegment `json:"segments"`                   // one for each message, in the order in which they came
	Prompts     []ContextPrompt  `json:"prompts"`                    // one for each step that has ended
	Compactions int              `json:"compactions"`                //
	Window      ContextWindow    `json:"window"`                     //
	Cache       ContextCache     `json:"cache"`                      //
	Missing     []string         `json:"missing,omitempty"`          // what could not be seen, for people
	Shown       int              `json:"shown_messages"`             // messages in the prompt that is shown
	Dropped     int              `json:"dropped_messages,omitempty"` // that compactions have removed
}

// ContextSection is a part of a prompt.
type ContextSection struct {
	Section   string `json:"section"`
	Name      string `json:"name,omitempty"`
	Messages  int    `json:"messages,omitempty"` // how many have something of it
	Bytes     int    `json:"bytes"`
	Tokens    int    `json:"tokens"`
	Estimated bool   `json:"estimated"`         // no provider has counted just this
	Counted   bool   `json:"counted,omitempty"` // a share of what the provider has counted
}

// ContextSegment is one message of a Profile.
type ContextSegment struct {
	Seq       uint64 `json:"seq"` // of its record; a message made by a compaction has that of the marker
	Role      string `json:"role"`
	Tool      string `json:"tool_call_id,omitempty"`
	Tokens    int    `json:"tokens"`
	Prompts   int    `json:"prompts"`              // how many prompts it was part of
	FirstStep int    `json:"first_step,omitempty"` // first step that saw it
	LastStep  int    `json:"last_step,omitempty"`  // last step that saw it
	Dropped   bool   `json:"dropped,omitempty"`    // a compaction has removed it

	N       int    `json:"n,omitempty"`       // its place in the prompt that is shown, from 1; 0 = it is not in it
	Section string `json:"section,omitempty"` // of most of it
	Name    string `json:"name,omitempty"`    // of the tool
	Bytes   int    `json:"bytes,omitempty"`
	Counted bool   `json:"counted,omitempty"` // Tokens is a share of what the provider has counted, else our estimate
	Preview string `json:"preview,omitempty"` // how it begins; only where it was asked for
}

// ContextPrompt is the prompt of one step.
type ContextPrompt struct {
	Step       int           `json:"step"`
	Messages   int           `json:"messages"`
	Tokens     int           `json:"tokens"`
	Estimated  bool          `json:"estimated,omitempty"` // Tokens is ours
	Added      int           `json:"added"`               // more than the prompt before; negative after a compaction
	Output     int           `json:"output_tokens,omitempty"`
	CacheRead  int           `json:"cache_read_tokens,omitempty"`  // as the provider says
	CacheWrite int           `json:"cache_write_tokens,omitempty"` // likewise
	Stable     int           `json:"stable_tokens"`                // of its beginning, which is byte for byte that of the prompt before
	Broke      *ContextBreak `json:"broke,omitempty"`              // null: all of the prompt before stands at its beginning, or there is none
	Compacted  bool          `json:"compacted,omitempty"`          // a compaction came before it
}

// ContextBreak says where a prompt stops being that of the step before.
type ContextBreak struct {
	By      string `json:"by"`
	Message int    `json:"message,omitempty"` // the first one that differs, from 1; 0 = the system prompt, or all of it
	Byte    int    `json:"byte,omitempty"`    // of its content, where it begins to differ, from 0
	Lost    int    `json:"lost_tokens"`       // of the prompt before, that cannot be used again
}

// ContextWindow is how much room there is.
type ContextWindow struct {
	Tokens    int    `json:"tokens"`         // of the model; 0 = nobody says
	From      string `json:"from"`           // where that stands, or why it is not known
	CompactAt int    `json:"compact_at"`     // a prompt over so many tokens is compacted; 0 = not known
	Growth    int    `json:"growth"`         // tokens for each step, over the last ones
	Over      int    `json:"over"`           // how many steps that is taken from; 0 = there are too few
	StepsLeft *int   `json:"steps_left"`     // until a compaction, at this growth; null = nobody can say
	Used      int    `json:"used_per_mille"` // of the window
}

// ContextCache is what a prompt cache can use again, and what the provider says that it has.
type ContextCache struct {
	Stable     int   `json:"stable_tokens"`         // over all prompts but the first: the beginnings that were there before
	Sent       int   `json:"sent_tokens"`           // over all prompts but the first
	Next       int   `json:"next_tokens"`           // of the next prompt, that the last one had
	Read       int   `json:"read_tokens"`           // from the cache, as the provider says, over all steps
	Write      int   `json:"write_tokens"`          // to the cache, likewise
	Said       bool  `json:"said"`                  // the provider has named cached tokens at least once
	Breaks     int   `json:"breaks"`                // how often a beginning did not stay
	BreakSteps []int `json:"break_steps,omitempty"` // the steps before whose prompt it broke
}
