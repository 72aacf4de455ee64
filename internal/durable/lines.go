package durable

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"rnix/types"
)

// MaxLine is the longest line in bytes that is read or written, without its newline. It is far above
// what a step holds; it bounds the memory that a damaged file can ask for.
const MaxLine = 256 << 20

// Line is one line of a file.
type Line struct {
	Data   []byte // without the newline; valid until the next line is read
	Number int    // from 1
	Offset int64  // of its first byte
}

// Damage says what is wrong with a file of lines, and where. It is the cause of the error that a
// reader gets.
type Damage struct {
	File   string
	Line   int    // from 1; 0 if it was not counted
	Offset int64  // of the first byte that cannot be trusted
	Bytes  int64  // from Offset to the end of the line or of the file
	Reason string //
	Tail   bool   // nothing follows: an append that a crash has torn
	Cut    bool   // the bytes were cut off
	Saved  string // where a cut line is kept, if it was whole
}

// Error names file, line, offset, length and reason, and what was done.
func (d *Damage) Error() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: ", d.File)
	if d.Line > 0 {
		fmt.Fprintf(&b, "line %d, ", d.Line)
	}
	fmt.Fprintf(&b, "offset %d: %s", d.Offset, d.Reason)
	switch {
	case d.Cut:
		fmt.Fprintf(&b, "; %d bytes were cut off", d.Bytes)
		if d.Saved != "" {
			fmt.Fprintf(&b, " and are kept in %s", d.Saved)
		}
	case d.Tail:
		fmt.Fprintf(&b, "; the last %d bytes are ignored", d.Bytes)
	default:
		b.WriteString("; what follows was not read, and nothing was changed")
	}
	return b.String()
}

// ErrStop, returned by a Check, ends a scan without an error.
var ErrStop = errors.New("stop")

// Check looks at one line. An error of code STORAGE says that its bytes are damaged; an error of any
// other code (such as VERSION) says that the line is whole but not for this program, and is returned
// by the scan as it is: such a line is never cut.
type Check func(Line) error

// Scan gives each line of r to check, from the first on, whatever its length up to MaxLine. It
// returns the offset up to which the lines are good and, if they are not good to the end, what is
// wrong. A line is damaged if its newline is missing, if it holds a NUL byte (which a file system
// leaves where it had no time to write), or if check says so. The error is of reading, or of check.
func Scan(r io.Reader, file string, check Check) (good int64, damage *Damage, err error) {
	br := readers.Get().(*bufio.Reader)
	br.Reset(r)
	defer func() { br.Reset(nil); readers.Put(br) }()
	var long []byte
	for n := 1; ; n++ {
		data, whole, err := readLine(br, &long)
		switch {
		case err == errTooLong:
			return good, &Damage{File: file, Line: n, Offset: good, Bytes: int64(len(data)),
				Reason: fmt.Sprintf("the line is longer than %d MiB", MaxLine>>20)}, nil
		case err != nil:
			return good, nil, wrap("Scan", file, err)
		case len(data) == 0 && !whole:
			return good, nil, nil
		}
		reason := ""
		if i := bytes.IndexByte(data, 0); i >= 0 {
			reason = fmt.Sprintf("a NUL byte at offset %d", good+int64(i))
		} else if !whole {
			reason = "the line has no end"
		} else if check != nil {
			switch err := check(Line{Data: data, Number: n, Offset: good}); {
			case err == nil:
			case errors.Is(err, ErrStop):
				return good, nil, nil
			case types.CodeOf(err) == types.ErrStorage:
				reason = cause(err)
			default:
				return good, nil, err
			}
		}
		if reason == "" {
			good += int64(len(data)) + 1
			continue
		}
		d := &Damage{File: file, Line: n, Offset: good, Bytes: int64(len(data)), Reason: reason}
		if whole {
			d.Bytes++
			_, err = br.Peek(1)
			d.Tail = err == io.EOF
		} else {
			d.Tail = true
		}
		return good, d, nil
	}
}

// readers are kept, since each has a large buffer and most files are small.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

var errTooLong = errors.New("line too long")

// readLine returns the next line without its newline, and whether it had one. It copies only lines
// that are longer than the reader's buffer.
func readLine(br *bufio.Reader, long *[]byte) (line []byte, whole bool, err error) {
	part, err := br.ReadSlice('\n')
	if err == nil {
		return part[:len(part)-1], true, nil
	}
	buf := (*long)[:0]
	for {
		buf = append(buf, part...)
		*long = buf
		switch {
		case err == nil:
			return buf[:len(buf)-1], true, nil
		case err == io.EOF:
			return buf, false, nil
		case err != bufio.ErrBufferFull:
			return buf, false, err
		case len(buf) > MaxLine:
			return buf, false, errTooLong
		}
		part, err = br.ReadSlice('\n')
	}
}

// cause returns the text of err without the operation that a SyscallError puts before it.
func cause(err error) string {
	var s *types.SyscallError
	if errors.As(err, &s) && s.Err != nil {
		return s.Err.Error()
	}
	return err.Error()
}
