package step

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/types"
)

// Outline says where the messages of a conversation stand in a history, and holds none of their texts. It is made of
// the records from the first on, and goes on with those that come later.
//
// It numbers messages from 1 in the order in which they were recorded. A message that stays over a compaction keeps its
// number, cut or not; one that the compaction brings in gets the next number of that moment. So a number means the same message for ever.
//
// It is not safe for concurrent use.
type Outline struct {
	Seq    uint64 // of the last record that is in it
	Damage string // why the records end before their file does; empty = they do not

	at       time.Time // of that record
	numbers  int       // given away
	eras     [][]Place // the conversation between two compactions; each begins with what stays
	prompts  map[int]prompt
	step     int // the last one that has ended
	answered int // the step of the last answer
	mail     map[uint64]MailKind
	said     []string // by persons at the point of resume, and not in the conversation yet
	seed     maphash.Seed
	trail    Trail
	saved    uint64 // up to which record it is in a file
	blank    bool   // it was read from there, where places have no sums
}

// Trail returns what it has besides the conversation. It stays as it is when the outline goes on.
func (o *Outline) Trail() Trail {
	t := o.trail
	t.open = slices.Clone(t.open)
	return t
}

// prompt is the conversation that a step had: so many messages of an era.
type prompt struct{ era, count int }

// Place is a message of a conversation, and where it stands.
type Place struct {
	N         int    // its number
	Seq       uint64 // of the record
	Step      int    // of an answer and what answers its calls; of others the last one before
	From      string // of a user message: user, steer, message, child, compaction, system
	Shortened bool   // a compaction has cut its text

	part int    // of the messages of a compaction, from 1; 0 = it is the record's own
	sum  uint64 // of the whole message
	like uint64 // of what a compaction does not change
	head string // the beginning of its text, which a compaction does not change either
}

// headBytes is how much of the beginning of a text survives each compaction.
const headBytes = 40

// Where user messages come from. Part of the wire format.
const (
	FromUser       = "user"
	FromSystem     = "system" // a notice of the kernel: a step limit, a server that is away, a resume
	FromCompaction = "compaction"
)

// NewOutline returns the outline of no record.
func NewOutline() *Outline {
	return &Outline{eras: [][]Place{nil}, prompts: map[int]prompt{}, mail: map[uint64]MailKind{}, seed: maphash.MakeSeed()}
}

// Extend takes in the records of a history behind those that it has. It reports false if those are no longer what it has seen: then a
// new one must be made. An error is that of the journal, where nothing could be read.
func (o *Outline) Extend(ctx context.Context, j Journal, id types.UUID) (bool, error) {
	o.Damage = ""
	known := o.Seq
	for r, err := range j.Replay(ctx, id, max(known, 1)) {
		switch code := types.CodeOf(err); {
		case code == types.ErrStorage || code == types.ErrInvalid:
			o.Damage = err.Error()
		case err != nil:
			return true, err
		case r.Seq == known:
			if !(Made{o.Seq, o.at}).By(&r) {
				return false, nil
			}
			known = 0
		case known > 0:
			return false, nil // the record that it ends with is not there
		default:
			if o.blank && r.Marker != nil && r.Marker.Name == MarkerCompaction {
				if err := o.fill(ctx, j, id); err != nil {
					return types.CodeOf(err) != types.ErrStorage, err
				}
			}
			o.add(&r)
		}
	}
	return known == 0, nil
}

func (o *Outline) add(r *Record) {
	o.Seq, o.at = r.Seq, r.Time
	o.trail.add(r)
	switch r.Kind {
	case KindMessage:
		p := o.place(r.Message)
		p.Seq, p.Step, p.From = r.Seq, o.answered, o.from(r)
		if r.Message.Role == rnixctx.RoleAssistant {
			p.Step = o.step + 1
			if r.Answer != nil {
				p.Step = r.Answer.Step
				o.prompts[p.Step] = prompt{len(o.eras) - 1, min(max(r.Answer.Prompt, 0), len(*o.now()))}
			}
			o.answered = p.Step
		}
		o.number(&p)
		*o.now() = append(*o.now(), p)
	case KindStep:
		o.step = max(o.step, r.Step.StepNumber)
		o.prompts[r.Step.StepNumber] = prompt{len(o.eras) - 1, min(max(r.Step.MessageCount, 0), len(*o.now()))}
	case KindMarker:
		o.marker(r)
	}
}

func (o *Outline) now() *[]Place { return &o.eras[len(o.eras)-1] }

func (o *Outline) number(p *Place) { o.numbers++; p.N = o.numbers }

func (o *Outline) marker(r *Record) {
	switch m := r.Marker; m.Name {
	case MarkerMail:
		var mail Mail
		if json.Unmarshal(m.Detail, &mail) == nil {
			o.mail[mail.Seq] = mail.Kind
		}
	case MarkerInput:
		o.said = append(o.said, m.Text)
	case MarkerCompaction:
		if ms, ok := Compacted(m); ok {
			o.trail.compacted(ms)
			o.eras = append(o.eras, o.compacted(ms, r.Seq))
		}
	}
}

// from says where a user message comes from.
func (o *Outline) from(r *Record) string {
	switch m := r.Message; {
	case m.Role != rnixctx.RoleUser:
	case len(r.Delivered) > 0:
		kind := o.mail[r.Delivered[0]]
		for _, n := range r.Delivered {
			if o.mail[n] != kind {
				kind = MailMessage
			}
			delete(o.mail, n)
		}
		if kind == "" {
			kind = MailMessage
		}
		return string(kind)
	case slices.Contains(o.said, m.Content):
		o.said = o.said[slices.Index(o.said, m.Content)+1:]
		return string(MailSteer)
	case slices.ContainsFunc(*o.now(), func(p Place) bool { return p.From != "" }):
		return FromSystem // the words of persons behind the intent come as mail, or have a marker
	default:
		return FromUser
	}
	return ""
}

// place describes a message.
func (o *Outline) place(m *rnixctx.Message) Place {
	var h maphash.Hash
	h.SetSeed(o.seed)
	write := func(s string) { _, _ = h.WriteString(s); _ = h.WriteByte(0) } // cannot fail
	write(string(m.Role))
	write(m.ToolCallID)
	for i := range m.ToolCalls {
		write(m.ToolCalls[i].ID)
		write(string(m.ToolCalls[i].Input))
	}
	p := Place{like: h.Sum64(), head: strings.Clone(m.Content[:min(len(m.Content), headBytes)])}
	write(m.Content)
	p.sum = h.Sum64()
	return p
}

// compacted returns what a compaction at record seq makes of the conversation. It leaves out messages of one stretch and cuts
// others, so what stays is found from both ends.
func (o *Outline) compacted(ms []rnixctx.Message, seq uint64) []Place {
	old := *o.now()
	out := make([]Place, len(ms))
	stays := func(i, j int) bool {
		p, was := &out[j], &old[i]
		if p.like != was.like || !strings.HasPrefix(ms[j].Content, was.head) {
			return false
		}
		if p.sum == was.sum {
			*p = *was
			return true
		}
		p.N, p.Step, p.From, p.Shortened = was.N, was.Step, was.From, true
		return true
	}
	for j := range ms {
		out[j] = o.place(&ms[j])
		out[j].Seq, out[j].part = seq, j+1
	}
	first, last, end := 0, len(ms), len(old)
	for last > 0 && end > 0 && stays(end-1, last-1) {
		last, end = last-1, end-1
	}
	for first < last && first < end && stays(first, first) {
		first++
	}
	for j := first; j < last; j++ {
		out[j].Step = o.answered
		if out[j].From = FromCompaction; ms[j].Role != rnixctx.RoleUser {
			out[j].From = ""
		}
		o.number(&out[j])
	}
	return out
}

// View returns the messages of the conversation as the prompt of a step had it, or with step 0 as it is now, and how many
// compactions there were until then. They must not be changed. A step that has no answer yet, or is not there, is NOT_FOUND.
func (o *Outline) View(step int) (places []Place, compactions int, err error) {
	if step == 0 {
		return *o.now(), len(o.eras) - 1, nil
	}
	p, ok := o.prompts[step]
	if !ok {
		return nil, 0, types.Errorf(types.ErrNotFound, "Step", "", "no step %d: %s", step, o.stepsText())
	}
	return o.eras[p.era][:p.count], p.era, nil
}

func (o *Outline) stepsText() string {
	first, last := 0, 0
	for n := range o.prompts {
		if first == 0 || n < first {
			first = n
		}
		last = max(last, n)
	}
	if first == 0 {
		return "none has an answer yet"
	}
	return fmt.Sprintf("there are steps %d to %d", first, last)
}

// Places returns how many places it holds: what it takes of memory.
func (o *Outline) Places() (n int) {
	for _, era := range o.eras {
		n += len(era)
	}
	return n
}

// together is how many records may lie between two messages that are read at once.
const together = 64

// ReadPlaces calls yield for the messages of places, which a View of the outline of a history has, with the index of each and the time
// at which its record was written: in the order of the file, and one after the other, so that no more than one record is in memory. What
// yield is given is valid until it returns. A record that is no longer there is STORAGE.
func ReadPlaces(ctx context.Context, j Journal, id types.UUID, places []Place, yield func(i int, at time.Time, m *rnixctx.Message)) error {
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(places[a].Seq, places[b].Seq), cmp.Compare(places[a].part, places[b].part))
	})
	for len(order) > 0 {
		due := len(order)
		for r, err := range j.Replay(ctx, id, places[order[0]].Seq) {
			if err != nil {
				return err
			}
			for ms := messagesOf(&r, &places[order[0]]); len(order) > 0 && places[order[0]].Seq == r.Seq; order = order[1:] {
				part := max(places[order[0]].part-1, 0)
				if part >= len(ms) {
					return types.Errorf(types.ErrStorage, "Read", id.String(), "record %d is not what it was", r.Seq)
				}
				yield(order[0], r.Time, &ms[part])
			}
			if len(order) == 0 || places[order[0]].Seq > r.Seq+together {
				break
			}
		}
		if len(order) == due {
			return types.Errorf(types.ErrStorage, "Read", id.String(), "record %d is no longer there", places[order[0]].Seq)
		}
	}
	return nil
}

// messagesOf returns the messages that a record holds, if the place is one of them.
func messagesOf(r *Record, p *Place) []rnixctx.Message {
	switch {
	case r.Seq != p.Seq:
	case r.Kind == KindMessage:
		return []rnixctx.Message{*r.Message}
	case r.Kind == KindMarker:
		ms, _ := Compacted(r.Marker)
		return ms
	}
	return nil
}
