package media_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"rnix/internal/media"
)

func encoded(t *testing.T, w, h int, enc func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := enc(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func aPNG(t *testing.T, w, h int) []byte {
	return encoded(t, w, h, func(b *bytes.Buffer, m image.Image) error { return png.Encode(b, m) })
}

// huge is a PNG whose header says another size than it has.
func huge(t *testing.T, w, h uint32) []byte {
	p := aPNG(t, 1, 1)
	binary.BigEndian.PutUint32(p[16:], w)
	binary.BigEndian.PutUint32(p[20:], h)
	binary.BigEndian.PutUint32(p[29:], crc32.ChecksumIEEE(p[12:29]))
	return p
}

func aPDF(n int, packed bool) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n1 0 obj << /Type /Pages /Count 9 >> endobj\n")
	kids := strings.Repeat("<< /Type /Page /Parent 1 0 R >>\n", n)
	if packed {
		b.WriteString("2 0 obj << /Type/ObjStm /Filter /FlateDecode >> stream\r\n")
		z := zlib.NewWriter(&b)
		fmt.Fprint(z, kids)
		_ = z.Close()
		b.WriteString("\nendstream endobj\n")
	} else {
		b.WriteString(kids)
	}
	b.WriteString("trailer << >>\n%%EOF\n")
	return b.Bytes()
}

// webp is a lossless WebP image of 1×1 pixels.
var webp = []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")

func TestAFileIsWhatItsContentSays(t *testing.T) {
	for name, tt := range map[string]struct {
		data []byte
		want media.Info
	}{
		"png":                            {aPNG(t, 640, 480), media.Info{Type: media.PNG, Width: 640, Height: 480}},
		"jpeg":                           {encoded(t, 3, 5, func(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) }), media.Info{Type: media.JPEG, Width: 3, Height: 5}},
		"gif":                            {encoded(t, 7, 2, func(b *bytes.Buffer, m image.Image) error { return gif.Encode(b, m, nil) }), media.Info{Type: media.GIF, Width: 7, Height: 2}},
		"webp":                           {webp, media.Info{Type: media.WebP, Width: 1, Height: 1}},
		"lossy webp":                     {[]byte("RIFF\x16\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x30\x01\x00\x9d\x01\x2a\x40\x01\xf0\x00"), media.Info{Type: media.WebP, Width: 320, Height: 240}},
		"extended webp":                  {[]byte("RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00\x1f\x03\x00\x57\x02\x00"), media.Info{Type: media.WebP, Width: 800, Height: 600}},
		"pdf":                            {aPDF(3, false), media.Info{Type: media.PDF, Pages: 3}},
		"pdf whose pages are compressed": {aPDF(12, true), media.Info{Type: media.PDF, Pages: 12}},
	} {
		if got, err := media.Check(tt.data); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
}

func TestWhatAVendorWouldRefuseIsRefusedWithAReason(t *testing.T) {
	whole := aPNG(t, 90, 90)
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"empty":            {nil, "is empty"},
		"text":             {[]byte("no picture"), "whatever the name says"},
		"huge header":      {huge(t, 1<<30, 1<<30), "damaged"},
		"too many pixels":  {huge(t, 8001, 1), "8001×1 pixels, and models take at most 8000×8000"},
		"truncated":        {whole[:len(whole)-5], "cut off"},
		"header alone":     {whole[:20], "damaged"},
		"truncated webp":   {webp[:len(webp)-2], "cut off"},
		"too large":        {append(aPNG(t, 1, 1), make([]byte, media.MaxImage)...), "3.9 MB, and models take at most 3.9 MB"},
		"truncated pdf":    {aPDF(1, false)[:60], "cut off"},
		"pages":            {aPDF(101, false), "101 pages, and models take at most 100"},
		"compressed pages": {aPDF(101, true), "101 pages"},
		"password":         {bytes.Replace(aPDF(1, false), []byte("trailer << "), []byte("trailer << /Encrypt 9 0 R "), 1), "encrypted"},
	} {
		if got, err := media.Check(tt.data); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, got, err, tt.want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(webp)
	f.Add(aPDF(1, true))
	f.Fuzz(func(t *testing.T, data []byte) {
		if in, err := media.Check(data); err == nil && (in.Type == "" || in.Type != media.PDF && (in.Width < 1 || in.Width > media.MaxSide || in.Height > media.MaxSide)) {
			t.Errorf("%+v was taken", in)
		}
	})
}
