package fs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"rnix/internal/media"
	"rnix/types"
	"rnix/vfs"
)

const (
	readLines = 2_000   // lines of an answer, unless the request says otherwise
	readLine  = 2_000   // bytes of a line that are shown
	sniff     = 8 << 10 // bytes that tell text from the rest

	// MaxEdit is the size of the largest file that can be edited, in bytes. Files up to this size are
	// read to their end whatever part is shown, so that their hash is known; of larger ones only what
	// is asked for is read.
	MaxEdit = 16 << 20
)

// readFile answers with a range of the lines of a file.
func (c *call) readFile(ctx context.Context) error {
	var in struct {
		Op     string `json:"op"`
		Path   string `json:"path"`
		Offset int    `json:"offset"`
		Limit  int    `json:"limit"`
	}
	if err := vfs.DecodeRequest(c.data, &in); err != nil {
		return err
	}
	switch {
	case in.Path == "":
		return types.Errorf(types.ErrInvalid, "read_file", "", "no path given")
	case in.Offset < 0 || in.Limit < 0:
		return types.Errorf(types.ErrInvalid, "read_file", in.Path, "offset and limit count from 1")
	}
	in.Offset = max(in.Offset, 1)
	if in.Limit == 0 {
		in.Limit = readLines
	}
	f, info, place, err := c.roots.Open(in.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.IsDir() {
		return types.Errorf(types.ErrIsDirectory, "read_file", place.Name, "is a directory: use list_files")
	}
	head := make([]byte, sniff)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return Failure("read_file", place.Name, err)
	}
	head = head[:n]
	var sum hash.Hash
	src := io.MultiReader(bytes.NewReader(head), untilEnded{ctx, f})
	if info.Size() <= MaxEdit {
		sum = sha256.New()
		src = io.TeeReader(src, sum)
	}
	switch kind := media.Type(head); {
	case kind != "":
		err = c.showMedia(ctx, src, place, info, head, kind)
	case bytes.IndexByte(head, 0) >= 0:
		c.describe(place, info, head)
		if sum != nil {
			_, err = io.Copy(io.Discard, src)
		}
	default:
		err = c.showLines(src, place, info.Size(), in.Offset, in.Limit, sum != nil)
	}
	if err != nil {
		return Failure("read_file", place.Name, err)
	}
	if sum != nil {
		c.seen.Read(c.caller.PID, place.Abs, Sum(sum.Sum(nil)))
	}
	return nil
}

// showLines writes lines from offset on, and notes what was left out. toEnd says to read on to the
// end after the last line that is shown.
func (c *call) showLines(src io.Reader, place Place, size int64, offset, limit int, toEnd bool) error {
	l := newLineReader(src, readLine)
	number, shown, last, long, replaced := 0, 0, 0, 0, false
	stopped := false // there are lines after the last one shown
	for {
		line, length, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		number++
		if number < offset {
			continue
		}
		if stopped || shown == limit || c.full(len(line)) {
			stopped = true
			if !toEnd {
				break
			}
			continue
		}
		shown, last = shown+1, number
		cut := length > len(line)
		t := text(line, cut)
		replaced = replaced || !cut && t != string(line)
		c.text.WriteString(strconv.Itoa(number) + "\t" + t)
		if cut {
			long++
			fmt.Fprintf(&c.text, "... [line cut: %d of %d bytes shown]", len(line), length)
		}
		c.text.WriteByte('\n')
	}
	switch {
	case number == 0:
		c.note("the file is empty")
	case shown == 0 && offset > number:
		return types.Errorf(types.ErrInvalid, "read_file", place.Name, "offset %d is past the end: the file has %s", offset, count(number, "line"))
	case stopped && toEnd:
		c.note(fmt.Sprintf("lines %d to %d of %d; go on with offset %d", offset, last, number, last+1))
	case stopped:
		c.note(fmt.Sprintf("lines %d to %d of a file of %d bytes; go on with offset %d", offset, last, size, last+1))
	case offset > 1:
		c.note(fmt.Sprintf("lines %d to %d of %d, the end", offset, last, number))
	}
	if long > 0 {
		c.note(count(long, "line") + " cut: grep shows the surroundings of a match in a long line")
	}
	if l.crlf {
		c.note("lines end with CR LF")
	}
	if replaced {
		c.note("not all of it is UTF-8: U+FFFD stands for other bytes")
	}
	if l.binary {
		c.note("contains NUL bytes")
	}
	return nil
}

// showMedia attaches an image or a document to the answer, or says why it cannot be.
func (c *call) showMedia(ctx context.Context, src io.Reader, p Place, info os.FileInfo, head []byte, kind string) error {
	data, err := io.ReadAll(io.LimitReader(src, int64(media.Limit(kind))+1))
	if err != nil {
		return err
	}
	_, bad := media.Check(data)
	if len(data) > media.Limit(kind) {
		bad = media.TooLarge(kind, max(info.Size(), int64(len(data))))
		if _, err = io.Copy(io.Discard, src); err != nil {
			return err
		}
	}
	c.describe(p, info, head)
	if bad != nil {
		c.note("not shown: " + bad.Error())
	} else if !vfs.Attach(ctx, filepath.Base(p.Name), data) {
		c.note("not shown: whoever reads takes text alone")
	}
	return nil
}

// describe says what a file is whose content is no text.
func (c *call) describe(p Place, info os.FileInfo, head []byte) {
	kind := "binary file"
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		kind = "UTF-16 text, which is not shown"
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		kind = "program or library (ELF)"
	case media.Type(head) != "":
		kind = media.Word(media.Type(head))
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		kind = "archive (zip)"
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		kind = "compressed data (gzip)"
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		kind = "database (SQLite)"
	}
	fmt.Fprintf(&c.text, "%s: %s, %d bytes, modified %s, begins with % x\n",
		shownName(p.Name), kind, info.Size(), info.ModTime().UTC().Format("2006-01-02 15:04:05Z"), head[:min(len(head), 16)])
}
