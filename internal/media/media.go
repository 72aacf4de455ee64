// Package media knows the images and documents that models take: what a file is by its content, how large it is, and whether a vendor
// would refuse it. It decodes no picture: it reads headers and looks for the end, so that a hostile file costs no memory.
package media

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
)

// The types that are taken, as media types.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"
	WebP = "image/webp"
	PDF  = "application/pdf"
)

// What is taken of one file: the least that the vendors' documents state, so that a conversation can change its model.
const (
	MaxImage = 5 << 20 * 3 / 4 // bytes; Anthropic takes 5 MB of base64
	MaxSide  = 8000            // pixels, of Anthropic
	MaxPDF   = 20 << 20        // bytes; Anthropic takes 32 MB of request, OpenAI 50 MB
	MaxPages = 100             // of Anthropic
	MaxBytes = MaxPDF          // of any file
)

// SniffLen is how many bytes of a file tell what it is.
const SniffLen = 16

// Info is what is known of a file.
type Info struct {
	Type   string // one of the types
	Width  int    // in pixels, of an image
	Height int
	Pages  int // of a PDF; 0 = they could not be counted
}

// Type returns what a file is that begins with head; "" = none of the types. It believes no name.
func Type(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return PNG
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return JPEG
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return GIF
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return WebP
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return PDF
	}
	return ""
}

// Word names a type as people do: "PNG image", "PDF".
func Word(kind string) string {
	switch kind {
	case PNG:
		return "PNG image"
	case JPEG:
		return "JPEG image"
	case GIF:
		return "GIF image"
	case WebP:
		return "WebP image"
	case PDF:
		return "PDF"
	}
	return "file"
}

// Limit returns how many bytes a file of a type may have.
func Limit(kind string) int {
	if kind == PDF {
		return MaxPDF
	}
	return MaxImage
}

// Check returns what a whole file is, or why no model could be shown it, in words that follow its name.
func Check(data []byte) (Info, error) {
	in := Info{Type: Type(data)}
	switch limit := Limit(in.Type); {
	case len(data) == 0:
		return in, errors.New("the file is empty")
	case in.Type == "":
		return in, errors.New("the content is no PNG, JPEG, GIF or WebP image and no PDF, whatever the name says")
	case len(data) > limit:
		return in, TooLarge(in.Type, int64(len(data)))
	}
	if in.Type == PDF {
		return checkPDF(in, data)
	}
	size, err := header(in.Type, data)
	switch {
	case err != nil:
		return in, fmt.Errorf("the %s is damaged: %w", Word(in.Type), err)
	case size.Width > MaxSide || size.Height > MaxSide:
		return in, fmt.Errorf("the %s has %d×%d pixels, and models take at most %d×%d: make it smaller first", Word(in.Type), size.Width, size.Height, MaxSide, MaxSide)
	case size.Width < 1 || size.Height < 1:
		return in, fmt.Errorf("the %s has no pixels", Word(in.Type))
	case !ends(in.Type, data):
		return in, fmt.Errorf("the %s is cut off: its end is missing", Word(in.Type))
	}
	in.Width, in.Height = size.Width, size.Height
	return in, nil
}

// TooLarge says that a file of a type has more bytes than models take.
func TooLarge(kind string, size int64) error {
	return fmt.Errorf("the %s has %s, and models take at most %s: make it smaller first", Word(kind), Size(size), Size(int64(Limit(kind))))
}

// header reads the size of a picture. A decoder that panics has found damage.
func header(kind string, data []byte) (size image.Config, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	r := bytes.NewReader(data)
	switch kind {
	case PNG:
		return png.DecodeConfig(r)
	case JPEG:
		return jpeg.DecodeConfig(r)
	case GIF:
		return gif.DecodeConfig(r)
	}
	return webp(data)
}

// webp reads the size of a WebP image, whose first chunk has it: of a lossy, a lossless or an extended one. The standard library has no
// decoder, and the header is all that is needed of one.
func webp(data []byte) (size image.Config, err error) {
	if len(data) < 30 {
		return size, errors.New("its header is cut off")
	}
	kind, b := string(data[12:16]), data[20:]
	number := func(at int) int { return int(b[at]) | int(b[at+1])<<8 }
	switch {
	case kind == "VP8 " && string(b[3:6]) == "\x9d\x01\x2a":
		size.Width, size.Height = number(6)&0x3fff, number(8)&0x3fff
	case kind == "VP8L" && b[0] == 0x2f:
		bits := number(1) | number(3)<<16
		size.Width, size.Height = bits&0x3fff+1, bits>>14&0x3fff+1
	case kind == "VP8X":
		size.Width, size.Height = number(4)|int(b[6])<<16, number(7)|int(b[9])<<16
		size.Width, size.Height = size.Width+1, size.Height+1
	default:
		return size, errors.New("its first part is none that tells its size")
	}
	return size, nil
}

// ends reports whether the end of a picture is there. What some programs add behind it does no harm.
func ends(kind string, data []byte) bool {
	switch kind {
	case PNG:
		return bytes.Contains(data, []byte("\x00\x00\x00\x00IEND\xaeB`\x82"))
	case JPEG:
		return bytes.Contains(data[len(data)/2:], []byte("\xff\xd9"))
	case GIF:
		return bytes.IndexByte(data[max(0, len(data)-64):], ';') >= 0
	}
	n := int(data[4]) | int(data[5])<<8 | int(data[6])<<16 | int(data[7])<<24
	return n+8 <= len(data)
}

// Size writes a number of bytes as people read it: "812 bytes", "12 kB", "3.9 MB".
func Size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 999_500:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
