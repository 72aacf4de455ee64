package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"sync"

	"rnix/internal/durable"
	"rnix/types"
)

// A line ends with the CRC-32C of the bytes before it: `,"crc":"0123abcd"}`. Part of the on-disk
// format.
const (
	crcKey  = `,"crc":"`
	crcTail = len(crcKey) + 8 + len(`"}`)
)

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// encoder collects lines. The zero value is ready for use.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

// add appends the line of r. After an error the lines before are as they were.
func (e *encoder) add(r *Record) error {
	if e.json == nil {
		e.json = json.NewEncoder(&e.buf)
		e.json.SetEscapeHTML(false)
	}
	start := e.buf.Len()
	if err := e.json.Encode(r); err != nil {
		e.buf.Truncate(start)
		return types.Errorf(types.ErrInvalid, "Encode", "", "%s record %d: %w", r.Kind, r.Seq, err)
	}
	body := e.buf.Bytes()[start : e.buf.Len()-len("}\n")]
	sum := checksum(body)
	e.buf.Truncate(start + len(body))
	e.buf.WriteString(crcKey)
	e.buf.Write(sum[:])
	e.buf.WriteString("\"}\n")
	if e.buf.Len()-start > durable.MaxLine {
		n := e.buf.Len() - start
		e.buf.Truncate(start)
		return types.Errorf(types.ErrInvalid, "Encode", "", "%s record %d has %d bytes, the limit is %d MiB", r.Kind, r.Seq, n, durable.MaxLine>>20)
	}
	return nil
}

// checksum returns the CRC-32C of b as it is written.
func checksum(b []byte) (hex [8]byte) {
	sum := crc32.Checksum(b, castagnoli())
	for i := range hex {
		hex[i] = "0123456789abcdef"[sum>>(28-4*i)&15]
	}
	return hex
}

// Encode appends the line of r, with its newline, to dst. Values that JSON cannot hold are INVALID.
func Encode(dst []byte, r *Record) ([]byte, error) {
	var e encoder
	if err := e.add(r); err != nil {
		return dst, err
	}
	return append(dst, e.buf.Bytes()...), nil
}

// Decode reads a line without its newline. Damaged bytes are STORAGE, a line of a newer program is
// VERSION. A line without a checksum was not written by this program: it is INVALID, since what a
// person or a script has changed in a history cannot be told from the truth.
func Decode(line []byte) (*Record, error) {
	if _, err := verify(line); err != nil {
		return nil, err
	}
	r := new(Record)
	if err := new(scanner).whole(line, r); err != nil {
		return nil, err
	}
	return r, nil
}

// whole reads a line that verify has found good into r.
func (s *scanner) whole(line []byte, r *Record) error {
	if err := s.decode(line, len(line)-crcTail, r); err != nil {
		return types.Errorf(types.ErrInvalid, "Decode", "", "the checksum is right but the record cannot be read: %w", err)
	}
	if r.V < 1 || r.Seq < 1 {
		return types.Errorf(types.ErrInvalid, "Decode", "", "version %d, sequence %d: both begin at 1", r.V, r.Seq)
	}
	if !r.holds(r.Kind) {
		return types.Errorf(types.ErrInvalid, "Decode", "", "record %d of kind %q does not hold one", r.Seq, r.Kind)
	}
	return nil
}

// holds reports whether exactly the payload of kind is set.
func (r *Record) holds(kind Kind) bool {
	for _, p := range [...]struct {
		kind Kind
		set  bool
	}{
		{KindMessage, r.Message != nil}, {KindIntent, r.Intent != nil}, {KindResult, r.Result != nil},
		{KindStep, r.Step != nil}, {KindMarker, r.Marker != nil},
	} {
		if p.set != (p.kind == kind) {
			return false
		}
	}
	return kind == KindMessage || kind == KindIntent || kind == KindResult || kind == KindStep || kind == KindMarker
}

// verify checks the checksum and the version of a line, and returns its beginning.
func verify(line []byte) (header, error) {
	n := len(line) - crcTail
	if n > 0 && string(line[n:n+len(crcKey)]) == crcKey && string(line[len(line)-2:]) == `"}` {
		written, right := line[n+len(crcKey):len(line)-2], checksum(line[:n])
		if !bytes.Equal(written, right[:]) {
			return header{}, types.Errorf(types.ErrStorage, "Decode", "", "the checksum is wrong: %q is written, %q is right for these bytes", written, right)
		}
		return readable(line)
	}
	if !json.Valid(line) {
		return header{}, types.Errorf(types.ErrStorage, "Decode", "", "not a record")
	}
	if _, err := readable(line); err != nil {
		return header{}, err
	}
	return header{}, types.Errorf(types.ErrInvalid, "Decode", "", "the line has no checksum: the file was changed by hand or by another program; undo the change, or remove the line if it was added")
}

// readable returns the beginning of a line. That of a newer program is VERSION.
func readable(line []byte) (header, error) {
	h, err := peek(line)
	if err == nil && h.V > FormatVersion {
		err = types.Errorf(types.ErrVersion, "Decode", "", "written in format %d by a newer program, this one reads up to %d", h.V, FormatVersion)
	}
	return h, err
}

// header is the beginning of a line.
type header struct {
	V   int    `json:"v"`
	Seq uint64 `json:"seq"`
}

// peek reads version and sequence number of a line without decoding the rest, as long as the line
// begins as this program writes it.
func peek(line []byte) (h header, err error) {
	if h, ok := opening(line); ok {
		return h, nil
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, types.Errorf(types.ErrInvalid, "Decode", "", "not a record: %w", err)
	}
	return h, nil
}

// opening is peek for a line that begins as this program writes it, of which the rest need not be there.
func opening(line []byte) (h header, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"v":`))
	v, rest, ok2 := digits(rest)
	rest, ok3 := bytes.CutPrefix(rest, []byte(`,"kind":"`))
	i := bytes.IndexByte(rest[:min(len(rest), 16)], '"')
	if !ok || !ok2 || !ok3 || i < 0 {
		return h, false
	}
	if rest, ok = bytes.CutPrefix(rest[i:], []byte(`","seq":`)); !ok {
		return h, false
	}
	seq, rest, ok := digits(rest)
	return header{V: int(v), Seq: seq}, ok && len(rest) > 0 && rest[0] == ','
}

// digits reads a decimal number of at most 19 digits.
func digits(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && i < 19 && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + uint64(b[i]-'0')
	}
	return n, b[i:], i > 0
}

// beginsCommit reports whether a line is whole and is not joined to the line before it.
func beginsCommit(line []byte) bool {
	var h struct {
		Joined bool `json:"joined"`
	}
	_, err := verify(line)
	return err == nil && json.Unmarshal(line, &h) == nil && !h.Joined
}

// inOrder returns a check for a scan: each line is whole and readable, and the sequence numbers are
// dense from 1. visit sees each line that is.
func inOrder(visit func(durable.Line) error) durable.Check {
	return inOrderFrom(1, func(l durable.Line, _ header) error { return visit(l) })
}

// inOrderFrom is inOrder for a scan that begins with the line numbered next.
func inOrderFrom(next uint64, visit func(durable.Line, header) error) durable.Check {
	return func(l durable.Line) error {
		h, err := verify(l.Data)
		if err != nil {
			return at(l, err)
		}
		if h.Seq != next {
			return at(l, types.Errorf(types.ErrInvalid, "Decode", "", "the sequence number is %d where %d is due: lines are missing or were added", h.Seq, next))
		}
		next++
		return visit(l, h)
	}
}

// at adds the place to an error that is not of damaged bytes; for those the scan does it.
func at(l durable.Line, err error) error {
	code := types.CodeOf(err)
	if code == types.ErrStorage {
		return err
	}
	s := err.(*types.SyscallError)
	return types.Errorf(code, "Read", StepsFile, "line %d, offset %d: %w", l.Number, l.Offset, s.Err)
}

// sequence checks that lines are whole lines numbered from seq on, and returns how many they are.
func sequence(lines []byte, seq uint64) (uint64, error) {
	n := uint64(0)
	for len(lines) > 0 {
		line, rest, ok := bytes.Cut(lines, []byte{'\n'})
		if !ok {
			return 0, fmt.Errorf("the last line has no end")
		}
		h, err := peek(line)
		if err != nil {
			return 0, err
		}
		if h.Seq != seq+n {
			return 0, fmt.Errorf("%w: line %d is numbered %d, %d is due", ErrSeq, n+1, h.Seq, seq+n)
		}
		n++
		lines = rest
	}
	if n == 0 {
		return 0, fmt.Errorf("no lines")
	}
	return n, nil
}
