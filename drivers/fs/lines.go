package fs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"rnix/vfs"
)

// lineReader gives the lines of a file of any size, and of a line of any length its beginning.
type lineReader struct {
	r    *bufio.Reader
	keep int // bytes of a line that are kept
	buf  []byte
	text bool // a line with a NUL byte is not read to its end: a file with a hole may have one of any length

	binary bool // a NUL byte has been met in a line
	crlf   bool // a line ended with CR LF
	torn   bool // the last line had no end
}

func newLineReader(r io.Reader, keep int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), keep: keep}
}

// next returns the next line without its end, cut at keep bytes, and its full length. The line is
// valid until the next call. It returns io.EOF after the last one.
func (l *lineReader) next() (line []byte, length int, err error) {
	l.buf = l.buf[:0]
	for {
		piece, err := l.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		length += len(piece)
		l.buf = append(l.buf, piece[:min(len(piece), max(l.keep+2-len(l.buf), 0))]...)
		switch {
		case err == nil:
			length--
			if length < len(l.buf) {
				l.buf = l.buf[:length]
			}
			if length > 0 && length == len(l.buf) && l.buf[length-1] == '\r' {
				l.buf, length, l.crlf = l.buf[:length-1], length-1, true
			}
		case errors.Is(err, io.EOF):
			if length == 0 {
				return nil, 0, io.EOF
			}
			l.torn = true
		default:
			if l.text && bytes.IndexByte(piece, 0) >= 0 {
				l.binary = true
				return l.buf[:min(len(l.buf), l.keep)], length, nil
			}
			continue
		}
		if bytes.IndexByte(l.buf, 0) >= 0 {
			l.binary = true
		}
		return l.buf[:min(len(l.buf), l.keep)], length, nil
	}
}

// untilEnded is r until ctx ends.
type untilEnded struct {
	ctx context.Context
	r   io.Reader
}

func (u untilEnded) Read(b []byte) (int, error) {
	if err := vfs.Ended(u.ctx, "Read", ""); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// text returns bytes of a file as valid UTF-8, ending on a character's edge.
func text(b []byte, cut bool) string {
	if cut {
		for i := 1; i <= min(3, len(b)); i++ {
			if c := b[len(b)-i]; utf8.RuneStart(c) {
				if !utf8.FullRune(b[len(b)-i:]) {
					b = b[:len(b)-i]
				}
				break
			}
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// shownName returns a name as it can stand in a line: quoted if it would break the line or hide
// something.
func shownName(name string) string {
	for _, r := range name {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return name
}

// count returns "1 line" or "n lines".
func count(n int, singular string) string {
	if n == 1 {
		return "1 " + singular
	}
	if strings.HasSuffix(singular, "y") {
		return strconv.Itoa(n) + " " + strings.TrimSuffix(singular, "y") + "ies"
	}
	if strings.HasSuffix(singular, "ch") {
		return strconv.Itoa(n) + " " + singular + "es"
	}
	return strconv.Itoa(n) + " " + singular + "s"
}
