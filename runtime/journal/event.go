package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync"
	"time"

	"rnix/types"
)

// Event is one thing that happened in a session.
type Event struct {
	Seq  uint64          // from 1, without a gap
	ID   string          // the same for the same session, source and number, for ever
	Time time.Time       // when it was appended, in UTC
	Kind string          // whose it is: cursors choose by it
	Data json.RawMessage // what the kind says
}

// KindGap is the kind of an entry that stands for events that are gone: an in-memory journal had no
// room for them, or a file is damaged. Its data is a Gap. Part of the wire format.
const KindGap = "gap"

// Gap says which events are gone.
type Gap struct {
	From   uint64 `json:"from"` // the first number that is gone
	To     uint64 `json:"to"`   // the last one
	Count  int    `json:"count"`
	Reason string `json:"reason"`
}

// MaxEvent is the largest event in bytes of JSON.
const MaxEvent = 1 << 20

// idVersion begins what an event's ID is a hash of. Part of the wire format.
const idVersion = "rnix.journal/v1"

// eventID returns the ID of event seq: equal only for the same session, source and number.
func eventID(prefix, session, source string, seq uint64) string {
	sum := sha256.Sum256([]byte(idVersion + "\x00" + session + "\x00" + source + "\x00" + strconv.FormatUint(seq, 10)))
	return prefix + hex.EncodeToString(sum[:])
}

// lineVersion is the newest form of a line that this program writes and reads. Part of the on-disk
// format.
const lineVersion = 1

// line is an event as it lies in a file. Begins marks the first line of those that were written at
// once: see durable.OpenBatches. The checksum is the last field.
type line struct {
	V      int             `json:"v"`
	Seq    uint64          `json:"seq"`
	ID     string          `json:"id"`
	At     time.Time       `json:"at"`
	Kind   string          `json:"kind"`
	Begins bool            `json:"begins,omitempty"`
	Data   json.RawMessage `json:"data"`
}

// A line ends with the CRC-32C of the bytes before it: `,"crc":"0123abcd"}`. Part of the on-disk format.
const crcKey = `,"crc":"`

const crcTail = len(crcKey) + 8 + len(`"}`)

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// encode appends the line of an event, with its newline.
func encode(dst []byte, e Event, begins bool) ([]byte, error) {
	b, err := json.Marshal(line{V: lineVersion, Seq: e.Seq, ID: e.ID, At: e.Time, Kind: e.Kind, Begins: begins, Data: e.Data})
	if err != nil {
		return dst, types.Errorf(types.ErrInvalid, "Append", "", "event %d: %w", e.Seq, err)
	}
	b = b[:len(b)-1]
	return fmt.Appendf(append(dst, b...), "%s%08x\"}\n", crcKey, crc32.Checksum(b, castagnoli())), nil
}

// decode reads a line without its newline. Damaged bytes are STORAGE, a line of a newer program is
// VERSION.
func decode(b []byte) (e Event, begins bool, err error) {
	damaged := func(format string, args ...any) (Event, bool, error) {
		return Event{}, false, types.Errorf(types.ErrStorage, "", "", format, args...)
	}
	body := len(b) - crcTail
	if body < 0 || !bytes.HasPrefix(b[body:], []byte(crcKey)) || !bytes.HasSuffix(b, []byte(`"}`)) {
		return damaged("the line has no checksum at its end")
	}
	sum := b[body+len(crcKey) : len(b)-2]
	if want := fmt.Sprintf("%08x", crc32.Checksum(b[:body], castagnoli())); want != string(sum) {
		return damaged("the checksum is %s, that of its bytes is %s", sum, want)
	}
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return damaged("%w", err)
	}
	switch {
	case l.V > lineVersion:
		return Event{}, false, types.Errorf(types.ErrVersion, "", "",
			"event %d has format version %d, this program reads up to %d: use the newer program", l.Seq, l.V, lineVersion)
	case l.V < 1 || l.Seq == 0 || l.Kind == "":
		return damaged("the line is no event")
	}
	return Event{Seq: l.Seq, ID: l.ID, Time: l.At, Kind: l.Kind, Data: l.Data}, l.Begins, nil
}

// begins reports whether a line is whole and the first of a batch.
func begins(b []byte) bool {
	_, first, err := decode(b)
	return err == nil && first
}
