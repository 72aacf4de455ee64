package step

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/types"
)

// Names of markers. Part of the on-disk format.
const (
	MarkerSpawn       = "spawn" // Detail: the settled options; what of it is a field of ProcInfo counts as such
	MarkerExit        = "exit"
	MarkerPause       = "pause"
	MarkerResume      = "resume"
	MarkerCompaction  = "compaction" // Detail: {"messages": [...]}, which take the place of all before, and what the model took that summed them up
	MarkerCompact     = "compact"    // a person wants a compaction before the next question; Text: what is to be kept above all
	MarkerDaemonStop  = "daemon_stop"
	MarkerInterrupted = "interrupted" // the daemon ended without warning
	MarkerResumed     = "resumed"     // a new run; Detail: the settled options, as of spawn; Text: ByPerson, or empty
	MarkerFork        = "fork"        // the first record of a fork; Detail: ForkDetail
	MarkerSuspended   = "suspended"   // ended this run, to be resumed; Text: what it waits for; Detail: SuspendDetail
	MarkerNote        = "note"        // what a process without a model keeps; Text: under which key, Detail: its own
	MarkerName        = "name"        // people call it by another name from here on; Text: the name, empty = none
	MarkerLimit       = "limit"       // the budget was raised; Detail: LimitDetail
	MarkerInput       = "input"       // a person's words at the point of resume; the message follows; Detail: its attachments, if there are any (InputMarker)
	MarkerMail        = "mail"        // a message to the process; Text: what it says, Detail: Mail
	MarkerTaken       = "taken"       // messages left the mailbox, and not for the conversation; Detail: their numbers
	MarkerAlive       = "alive"       // a process with a time limit still lives, so a crash takes little from what it has lived
	MarkerSkill       = "skill"       // its instructions are in the system prompt from here on; Text: the name, Detail: SkillDetail
	MarkerMetered     = "metered"     // a request of a program of the process to a model, past its loop; Detail: Answer
	MarkerCutOff      = "cut_off"     // a request to the model that has no answer and may be billed; Detail: Answer, with an estimate
)

// ByPerson is the text of a MarkerResumed of a run that a person has asked for.
const ByPerson = "by a person"

// ForkDetail is the Detail of a fork marker. The Records that follow it are copies of the first ones of
// Origin; a fork that has fewer was never finished.
type ForkDetail struct {
	Origin  types.UUID `json:"origin_uuid"`
	Step    int        `json:"origin_step"`
	Records uint64     `json:"records"`
}

// SuspendDetail is the Detail of a suspended marker.
type SuspendDetail struct {
	Wake time.Time `json:"wake_at,omitzero"` // when it goes on by itself
	Hint string    `json:"hint,omitempty"`   // the command with which a person lets it go on
	// Kind says of which kind the marker's text is; empty = an earlier version wrote it. See types.Suspension.
	Kind types.SuspendKind `json:"kind,omitempty"`
	// Purse is the budget that it waits for; null = it waits for none.
	Purse *PurseWait `json:"purse,omitempty"`
}

// PurseWait names a budget of which there was too little, with its limits at that time: with others, who
// waits for it can go on.
type PurseWait struct {
	UUID   types.UUID `json:"uuid"` // of the history whose budget it is
	Tokens int        `json:"tokens,omitempty"`
	USD    float64    `json:"usd,omitempty"`
	// MoreTokens and MoreUSD are how much more is enough for a while: one of them.
	MoreTokens int     `json:"more_tokens,omitempty"`
	MoreUSD    float64 `json:"more_usd,omitempty"`
}

// LimitDetail is the Detail of a limit marker: how much more the budget has from there on.
type LimitDetail struct {
	Tokens int     `json:"tokens,omitempty"`
	USD    float64 `json:"usd,omitempty"`
}

// compaction is the Detail of a compaction marker. Part of the on-disk format.
type compaction struct {
	Messages []rnixctx.Message `json:"messages"`         // null = the conversation stays as it is
	Answer   *Answer           `json:"answer,omitempty"` // what a model took to sum it up; null = none was asked
	Left     bool              `json:"wish_left,omitempty"`
}

// History is what steps.jsonl says, as far as it could be read.
type History struct {
	UUID     types.UUID
	Records  []Record
	Messages []rnixctx.Message // the conversation as it stands, after compactions
	Steps    []StepRecord      // without their messages; see Step
	Markers  []Marker
	// Interrupted has the calls that were announced and have no result, in order: nobody knows
	// whether they ran.
	Interrupted []Intent
	Damage      string // why and where reading stopped before the end; empty = it did not
	Next        uint64 // sequence number of the next line

	prompts [][]rnixctx.Message // of each step
}

// ReadHistory reads a history from a journal. A history that can be read only in part is returned
// with Damage; one of which nothing may be read (not there, or written by a newer program) is an
// error.
func ReadHistory(ctx context.Context, j Journal, id types.UUID) (*History, error) {
	return Fold(id, j.Replay(ctx, id, 1))
}

// ReadDir reads a history from its directory, without a journal. If it is being written, its last
// line may be reported as torn.
func ReadDir(ctx context.Context, fsys durable.FS, dir string, id types.UUID) (*History, error) {
	return Fold(id, func(yield func(Record, error) bool) { replay(ctx, fsys, dir, -1, 1, yield) })
}

// Fold makes a History of records from the first on, as Journal.Replay yields them.
func Fold(id types.UUID, records iter.Seq2[Record, error]) (*History, error) {
	h := &History{UUID: id, Next: 1}
	open := map[call]int{} // index into h.Records
	for r, err := range records {
		switch code := types.CodeOf(err); code {
		case "":
			h.add(&r, open)
		case types.ErrStorage, types.ErrInvalid:
			h.Damage = err.Error()
		default:
			return nil, err
		}
	}
	for _, i := range slices.Sorted(maps.Values(open)) {
		h.Interrupted = append(h.Interrupted, *h.Records[i].Intent)
	}
	return h, nil
}

// call names a tool call. Providers number calls anew in each answer, so the step belongs to it.
type call struct {
	step int
	id   string
}

func (h *History) add(r *Record, open map[call]int) {
	h.Records = append(h.Records, *r)
	h.Next = r.Seq + 1
	switch r.Kind {
	case KindMessage:
		h.Messages = append(h.Messages, *r.Message)
	case KindIntent:
		filled := *r.Intent
		filled.Input = h.inputOf(r.Intent.CallID)
		h.Records[len(h.Records)-1].Intent = &filled
		open[call{r.Intent.Step, r.Intent.CallID}] = len(h.Records) - 1
	case KindResult:
		delete(open, call{r.Result.Step, r.Result.CallID})
	case KindStep:
		n := min(max(r.Step.MessageCount, 0), len(h.Messages))
		h.Steps = append(h.Steps, r.Step.filled(h.Messages[n:]))
		h.prompts = append(h.prompts, h.Messages[:n:n])
	case KindMarker:
		h.Markers = append(h.Markers, *r.Marker)
		if ms, ok := Compacted(r.Marker); ok {
			h.Messages = ms
		}
	}
}

// inputOf returns the input of a call of the last answer; nil if it has no such call.
func (h *History) inputOf(id string) json.RawMessage {
	for _, m := range slices.Backward(h.Messages) {
		if m.Role != rnixctx.RoleAssistant {
			continue
		}
		for _, c := range m.ToolCalls {
			if c.ID == id {
				return c.Input
			}
		}
		return nil
	}
	return nil
}

// filled returns the record with what stands in the messages behind its prompt: the answer, and the
// results of its calls.
func (s StepRecord) filled(behind []rnixctx.Message) StepRecord {
	if len(behind) == 0 || behind[0].Role != rnixctx.RoleAssistant {
		return s
	}
	s.RawResponse = RawText(&behind[0])
	calls := slices.Clone(s.ToolCalls)
	for i := range calls {
		c := &calls[i]
		for _, asked := range behind[0].ToolCalls {
			if asked.ID == c.ID {
				c.Input = string(asked.Input)
			}
		}
		for _, m := range behind[1:] {
			if m.Role == rnixctx.RoleTool && m.ToolCallID == c.ID && !m.IsError {
				c.Result = m.Content
			}
		}
	}
	if s.ToolCalls = calls; len(calls) > 0 {
		s.ToolPath, s.ToolInput, s.ToolResult, s.ToolError = calls[0].Path, calls[0].Input, calls[0].Result, calls[0].Error
	}
	return s
}

// RawText is an answer as one text: what was said, and a line for each call.
func RawText(m *rnixctx.Message) string {
	var b strings.Builder
	b.WriteString(m.Content)
	for _, c := range m.ToolCalls {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.Name + " " + string(c.Input))
	}
	return b.String()
}

// Compacted returns the messages that a compaction has put in the place of all before; false if m is
// none.
func Compacted(m *Marker) ([]rnixctx.Message, bool) {
	var c compaction
	if m.Name != MarkerCompaction || json.Unmarshal(m.Detail, &c) != nil {
		return nil, false
	}
	return slices.Clip(c.Messages), c.Messages != nil
}

// SummedUp returns what a model has taken to sum up a conversation; false if m is about something else, or no model was asked.
func SummedUp(m *Marker) (*Answer, bool) {
	var c struct {
		Answer *Answer `json:"answer"`
	}
	if m.Name != MarkerCompaction || json.Unmarshal(m.Detail, &c) != nil || c.Answer == nil {
		return nil, false
	}
	return c.Answer, true
}

// wishLeft reports whether a person has wished for a compaction while the one of the marker ran already, which is left for the next one.
func wishLeft(m *Marker) bool {
	var c struct {
		Left bool `json:"wish_left"`
	}
	return json.Unmarshal(m.Detail, &c) == nil && c.Left
}

// CompactionDetail returns the Detail of a compaction marker. took is what a model took that has summed the conversation up; nil = none was asked. left says
// that the latest wish of a person for one came while it ran. What JSON cannot hold is INVALID.
func CompactionDetail(messages []rnixctx.Message, took *Answer, left bool) (json.RawMessage, error) {
	b, err := marshal(compaction{messages, took, left})
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Encode", "", "compaction: %w", err)
	}
	return b[:len(b)-1], nil
}

// Step returns the step numbered n with its Messages filled in: the prompt that was sent. Of a step
// that was run twice it is the later one. The messages are shared and must not be changed.
func (h *History) Step(n int) (StepRecord, error) {
	for i, s := range slices.Backward(h.Steps) {
		if s.StepNumber == n {
			s.Messages = h.prompts[i]
			return s, nil
		}
	}
	if len(h.Steps) == 0 {
		return StepRecord{}, types.Errorf(types.ErrNotFound, "Step", h.UUID.String(), "no step %d: no step has ended yet", n)
	}
	byNumber := func(a, b StepRecord) int { return cmp.Compare(a.StepNumber, b.StepNumber) }
	first, last := slices.MinFunc(h.Steps, byNumber), slices.MaxFunc(h.Steps, byNumber)
	return StepRecord{}, types.Errorf(types.ErrNotFound, "Step", h.UUID.String(), "no step %d: there are steps %d to %d", n, first.StepNumber, last.StepNumber)
}

// Life returns what the records amount to, apart from the conversation.
func (h *History) Life() *Life {
	l := new(Life)
	for i := range h.Records {
		l.Apply(&h.Records[i])
	}
	return l
}

// Info makes a ProcInfo of the history, for when proc-info.json is lost: that of its Life.
func (h *History) Info() ProcInfo { return h.Life().Info(h.UUID) }

// OpenAnswer returns what is known of an answer behind the last step, whose own has not ended; nil if there is none.
func (h *History) OpenAnswer() *Answer {
	for _, r := range slices.Backward(h.Records) {
		switch {
		case r.Kind == KindStep:
			return nil
		case r.Answer != nil:
			return r.Answer
		}
	}
	return nil
}

// readSteps reads the history in dir for a caller that has no context.
func readSteps(fsys durable.FS, dir string, id types.UUID) (*History, error) {
	return ReadDir(context.Background(), fsys, dir, id)
}
