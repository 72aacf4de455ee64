package step

import (
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/types"
)

// Profile is ctx-profile.json: what filled the context, and how often it was sent.
type Profile struct {
	V        int        `json:"v"`
	UUID     types.UUID `json:"uuid"`
	Time     time.Time  `json:"time"`
	Steps    int        `json:"steps"`
	Tokens   int        `json:"tokens"`      // of the conversation at its end, estimated
	Sent     int        `json:"tokens_sent"` // over all prompts, estimated
	Segments []Segment  `json:"segments"`    // one for each message, in the order in which they came
}

// Segment is one message of a Profile.
type Segment struct {
	Seq       uint64       `json:"seq"` // of its record; a message made by a compaction has that of the marker
	Role      rnixctx.Role `json:"role"`
	Tool      string       `json:"tool_call_id,omitempty"`
	Tokens    int          `json:"tokens"`               // estimated
	Prompts   int          `json:"prompts"`              // how many prompts it was part of
	FirstStep int          `json:"first_step,omitempty"` // first step that saw it
	LastStep  int          `json:"last_step,omitempty"`  // last step that saw it
	Dropped   bool         `json:"dropped,omitempty"`    // a compaction has removed it
}

// Profile makes the profile of the history.
func (h *History) Profile(now time.Time) Profile {
	p := Profile{V: FormatVersion, UUID: h.UUID, Time: now, Steps: len(h.Steps), Segments: []Segment{}}
	live := 0 // index of the first segment of the conversation as it stands
	put := func(seq uint64, m *rnixctx.Message) {
		n := rnixctx.EstimateTokens(m.Content)
		for _, c := range m.ToolCalls {
			n += rnixctx.EstimateTokens(c.Name) + rnixctx.EstimateTokens(string(c.Input))
		}
		p.Segments = append(p.Segments, Segment{Seq: seq, Role: m.Role, Tool: m.ToolCallID, Tokens: n})
	}
	steps := 0
	for _, r := range h.Records {
		switch {
		case r.Message != nil:
			put(r.Seq, r.Message)
		case r.Step != nil:
			n := len(h.prompts[steps])
			steps++
			for i := live; i < live+n && i < len(p.Segments); i++ {
				s := &p.Segments[i]
				if s.Prompts == 0 {
					s.FirstStep = r.Step.StepNumber
				}
				s.Prompts, s.LastStep = s.Prompts+1, r.Step.StepNumber
				p.Sent += s.Tokens
			}
		case r.Marker != nil:
			messages, _ := Compacted(r.Marker)
			if messages == nil {
				continue
			}
			for i := live; i < len(p.Segments); i++ {
				p.Segments[i].Dropped = true
			}
			live = len(p.Segments)
			for _, m := range messages {
				put(r.Seq, &m)
			}
		}
	}
	for _, s := range p.Segments[live:] {
		p.Tokens += s.Tokens
	}
	return p
}

// WriteProfile writes ctx-profile.json.
func WriteProfile(fsys durable.FS, dir string, p *Profile) error {
	c := *p
	c.V = FormatVersion
	return writeJSON(fsys, dir, ProfileFile, &c, durable.Cached)
}

// ReadProfile reads ctx-profile.json.
func ReadProfile(fsys durable.FS, dir string) (*Profile, error) {
	return readJSON[Profile](fsys, dir, ProfileFile)
}
