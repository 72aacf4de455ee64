package step

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"maps"
	"path/filepath"
	"slices"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/types"
)

// OutlineFile is the name of the outline of a history beside its records: a cache, so that a long history is read once and not
// by each daemon. Part of the on-disk format.
const OutlineFile = "outline.json"

// OutlineVersion is its "v". One of another version is not read. Part of the on-disk format.
const OutlineVersion = 2

// outlineHead is the first line of the file. Part of the on-disk format.
type outlineHead struct {
	V   int    `json:"v"`
	Sum uint32 `json:"crc"` // CRC-32C of the second line
}

// outlineBody is the second line. Part of the on-disk format.
type outlineBody struct {
	UUID     types.UUID          `json:"uuid"`
	Seq      uint64              `json:"seq"`
	Time     time.Time           `json:"time"` // of that record
	Size     int64               `json:"size"` // of steps.jsonl, when no more of it was in the outline
	Changed  time.Time           `json:"changed"`
	Numbers  int                 `json:"numbers"`
	Step     int                 `json:"step"`
	Answered int                 `json:"answered"`
	From     []string            `json:"from"`
	Eras     [][]byte            `json:"eras"`    // places; see places
	Prompts  []byte              `json:"prompts"` // of each step, in their order: its number, its era and how many messages
	Mail     map[uint64]MailKind `json:"mail,omitempty"`
	Said     []string            `json:"said,omitempty"`

	First   int                `json:"first"`
	Last    int                `json:"last"`
	Origin  *ForkDetail        `json:"origin,omitempty"`
	Settled json.RawMessage    `json:"settled,omitempty"`
	Acts    int                `json:"acts,omitempty"`
	Kept    []Snapshot         `json:"kept,omitempty"`  // what snapshots have in common: without number and ID
	Files   []outlineFiles     `json:"files,omitempty"` //
	Open    []Intent           `json:"open,omitempty"`
	Calls   []rnixctx.ToolCall `json:"calls,omitempty"`
}

// outlineFiles is a FilesMark. Part of the on-disk format.
type outlineFiles struct {
	Step   int    `json:"n"`
	Before bool   `json:"b,omitempty"`
	Under  int    `json:"s"`
	ID     string `json:"i"`
	Kept   int    `json:"k,omitempty"` // index
}

// saveFrom is from how many records on an outline is worth a file: shorter histories are read in no time.
const saveFrom = 2000

// Stamp says how a file of records looked at one moment.
type Stamp struct {
	Size    int64
	Changed time.Time
}

// StampOf returns the stamp of the records in dir; the zero one if there are none.
func StampOf(fsys durable.FS, dir string) Stamp {
	s, err := fsys.Stat(filepath.Join(dir, StepsFile))
	if err != nil {
		return Stamp{}
	}
	return Stamp{s.Size(), s.ModTime()}
}

// Worth reports whether the outline is to be saved: it is long, whole, and has grown by an eighth since it was saved last. So what
// is written of it stays in proportion to the history.
func (o *Outline) Worth() bool {
	return o.Damage == "" && o.Seq >= saveFrom && o.Seq-o.saved >= max(o.saved/8, saveFrom)
}

// Save writes the outline beside its records. at is their stamp before the outline was extended last.
func (o *Outline) Save(fsys durable.FS, dir string, id types.UUID, at Stamp) error {
	b := outlineBody{UUID: id, Seq: o.Seq, Time: o.at, Size: at.Size, Changed: at.Changed, Numbers: o.numbers, Step: o.step, Answered: o.answered,
		Mail: o.mail, Said: o.said, First: o.trail.First, Last: o.trail.Last, Origin: o.trail.Origin, Settled: o.trail.Settled, Acts: o.trail.Acts,
		Open: o.trail.open, Calls: o.trail.calls}
	for _, era := range o.eras {
		b.Eras = append(b.Eras, b.places(era))
	}
	var last [3]int64
	for _, n := range slices.Sorted(maps.Keys(o.prompts)) {
		p := o.prompts[n]
		b.Prompts = deltas(b.Prompts, &last, int64(n), int64(p.era), int64(p.count))
	}
	for i := range o.trail.Files {
		f := &o.trail.Files[i]
		k := Snapshot{Kind: f.Kind, Root: f.Root, Limited: f.Limited}
		at := slices.Index(b.Kept, k)
		if at < 0 {
			at, b.Kept = len(b.Kept), append(b.Kept, k)
		}
		b.Files = append(b.Files, outlineFiles{f.Step, f.Before, f.Snapshot.Step, f.ID, at})
	}
	body, err := marshal(&b)
	if err != nil {
		return types.Errorf(types.ErrInvalid, "Write", OutlineFile, "%w", err)
	}
	head, err := marshal(outlineHead{OutlineVersion, crc32.Checksum(body, castagnoli())})
	if err != nil {
		return types.Errorf(types.ErrInvalid, "Write", OutlineFile, "%w", err)
	}
	if err := durable.WriteFile(fsys, filepath.Join(dir, OutlineFile), append(head, body...), durable.Cached); err != nil {
		return err
	}
	o.saved = o.Seq
	return nil
}

// LoadOutline reads the outline beside the records in dir. Whatever is wrong with it, or if the records were changed since by
// anything but what was added, it returns the outline of no record.
func LoadOutline(fsys durable.FS, dir string, id types.UUID) *Outline {
	raw, err := durable.ReadFile(fsys, filepath.Join(dir, OutlineFile))
	if err != nil {
		return NewOutline()
	}
	line, body, _ := bytes.Cut(raw, []byte("\n"))
	var head outlineHead
	var b outlineBody
	if json.Unmarshal(line, &head) != nil || head.V != OutlineVersion || crc32.Checksum(body, castagnoli()) != head.Sum || json.Unmarshal(body, &b) != nil || b.UUID != id || b.Seq == 0 || len(b.Eras) == 0 {
		return NewOutline()
	}
	if now := StampOf(fsys, dir); now.Size < b.Size || now.Size == b.Size && !now.Changed.Equal(b.Changed) {
		return NewOutline()
	}
	o := NewOutline()
	if !b.into(o) {
		return NewOutline()
	}
	return o
}

// into fills an outline. It reports false if something is not as Save writes it.
func (b *outlineBody) into(o *Outline) bool {
	o.Seq, o.at, o.saved, o.numbers, o.step, o.answered, o.said, o.blank = b.Seq, b.Time, b.Seq, b.Numbers, b.Step, b.Answered, b.Said, true
	if b.Mail != nil {
		o.mail = b.Mail
	}
	o.eras = nil
	for _, e := range b.Eras {
		places, ok := b.era(e)
		if !ok {
			return false
		}
		o.eras = append(o.eras, places)
	}
	var last [3]int64
	for rest := b.Prompts; len(rest) > 0; {
		if rest = undeltas(rest, &last); rest == nil || last[1] < 0 || last[1] >= int64(len(o.eras)) || last[2] < 0 || last[2] > int64(len(o.eras[last[1]])) {
			return false
		}
		o.prompts[int(last[0])] = prompt{int(last[1]), int(last[2])}
	}
	o.trail = Trail{First: b.First, Last: b.Last, Origin: b.Origin, Settled: b.Settled, Acts: b.Acts, open: b.Open, calls: b.Calls}
	for _, f := range b.Files {
		if f.Kept < 0 || f.Kept >= len(b.Kept) {
			return false
		}
		s := b.Kept[f.Kept]
		s.Step, s.ID = f.Under, f.ID
		o.trail.Files = append(o.trail.Files, FilesMark{f.Step, f.Before, s})
	}
	return true
}

// places encodes places: of each its number, record, step, part, and where it comes from twice, and one more if it was shortened.
// Of the first four, what they are more than those before.
func (b *outlineBody) places(era []Place) (out []byte) {
	var last [4]int64
	for i := range era {
		p := &era[i]
		from := slices.Index(b.From, p.From)
		if from < 0 {
			from, b.From = len(b.From), append(b.From, p.From)
		}
		if from *= 2; p.Shortened {
			from++
		}
		now := [4]int64{int64(p.N), int64(p.Seq), int64(p.Step), int64(p.part)}
		for k := range now {
			out = binary.AppendVarint(out, now[k]-last[k])
		}
		last = now
		out = binary.AppendUvarint(out, uint64(from))
	}
	return out
}

func (b *outlineBody) era(rest []byte) (out []Place, ok bool) {
	var at [4]int64
	for len(rest) > 0 {
		for k := range at {
			d, n := binary.Varint(rest)
			if n <= 0 {
				return nil, false
			}
			at[k], rest = at[k]+d, rest[n:]
		}
		from, n := binary.Uvarint(rest)
		if n <= 0 || from/2 >= uint64(len(b.From)) || at[1] <= 0 {
			return nil, false
		}
		rest = rest[n:]
		out = append(out, Place{N: int(at[0]), Seq: uint64(at[1]), Step: int(at[2]), part: int(at[3]), From: b.From[from/2], Shortened: from%2 == 1})
	}
	return slices.Clip(out), true
}

// deltas appends three numbers, as what they are more than the last ones.
func deltas(b []byte, last *[3]int64, now ...int64) []byte {
	for k, n := range now {
		b = binary.AppendVarint(b, n-last[k])
		last[k] = n
	}
	return b
}

// undeltas reads three numbers and returns what follows them; nil if there are not three.
func undeltas(b []byte, last *[3]int64) []byte {
	for k := range last {
		d, n := binary.Varint(b)
		if n <= 0 {
			return nil
		}
		last[k], b = last[k]+d, b[n:]
	}
	return b
}

// fill describes the messages of the conversation that were read from a file: a compaction is going to ask what stays of them.
func (o *Outline) fill(ctx context.Context, j Journal, id types.UUID) error {
	o.blank = false
	now := *o.now()
	return ReadPlaces(ctx, j, id, now, func(i int, _ time.Time, m *rnixctx.Message) {
		p := o.place(m)
		now[i].sum, now[i].like, now[i].head = p.sum, p.like, p.head
	})
}
