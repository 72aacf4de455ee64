package media

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
)

// maxInflated is how many bytes of compressed parts of a PDF are looked at, so that none of them is a bomb.
const maxInflated = 64 << 20

func checkPDF(in Info, data []byte) (Info, error) {
	switch tail := data[max(0, len(data)-8<<10):]; {
	case !bytes.Contains(tail, []byte("%%EOF")):
		return in, errors.New("the PDF is cut off: its end is missing")
	case bytes.Contains(data, []byte("/Encrypt ")), bytes.Contains(data, []byte("/Encrypt\n")), bytes.Contains(data, []byte("/Encrypt\r")):
		return in, errors.New("the PDF is encrypted, and models take none that is: save it without a password first")
	}
	if in.Pages = pages(data); in.Pages > MaxPages {
		return in, fmt.Errorf("the PDF has %d pages, and models take at most %d: split it first", in.Pages, MaxPages)
	}
	return in, nil
}

// pages counts the page objects of a PDF, those in compressed object streams too; 0 = there are none to be seen. Pages of earlier
// versions of the file count as well, so that it may be too many.
func pages(data []byte) int {
	n, room := pageObjects(data), int64(maxInflated)
	for rest := data; room > 0; {
		at := bytes.Index(rest, []byte("/ObjStm"))
		if at < 0 {
			break
		}
		rest = rest[at+len("/ObjStm"):]
		start := bytes.Index(rest, []byte("stream"))
		if start < 0 {
			break
		}
		rest = bytes.TrimLeft(rest[start+len("stream"):], "\r\n")
		z, err := zlib.NewReader(bytes.NewReader(rest))
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(z, room)) // what can be read of it counts
		room -= int64(len(text))
		n += pageObjects(text)
	}
	return n
}

// pageObjects counts "/Type /Page", with any space between, but not "/Type /Pages".
func pageObjects(text []byte) (n int) {
	for {
		at := bytes.Index(text, []byte("/Type"))
		if at < 0 {
			return n
		}
		text = bytes.TrimLeft(text[at+len("/Type"):], " \t\r\n\x00\f")
		if rest, ok := bytes.CutPrefix(text, []byte("/Page")); ok && (len(rest) == 0 || !regular(rest[0])) {
			n++
		}
	}
}

// regular reports whether a name goes on with c.
func regular(c byte) bool {
	return c > ' ' && bytes.IndexByte([]byte("()<>[]{}/%"), c) < 0
}
