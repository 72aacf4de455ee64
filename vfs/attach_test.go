package vfs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"
)

func TestImagesOfAnMCPToolAreGivenBesideItsText(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 5, 4))); err != nil {
		t.Fatal(err)
	}
	data := base64.StdEncoding.EncodeToString(b.Bytes())
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.4\n<</Type/Page>>\n%%EOF\n"))
	result := fmt.Sprintf(`{"content":[{"type":"text","text":"before"},{"type":"image","data":%q,"mimeType":"image/jpeg"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},`+
		`{"type":"image","data":"!","mimeType":"image/png"},{"type":"resource","resource":{"uri":"file:///r/report.pdf","blob":%q}},{"type":"resource","resource":{"uri":"x:/y","blob":"AAAA"}}]}`, data, pdf)
	text, given, err := callText(json.RawMessage(result), 1<<20)
	if err != nil || len(given) != 2 || given[0].Name != "image-1.png" || !bytes.Equal(given[0].Data, b.Bytes()) || given[1].Name != "file:///r/report.pdf" {
		t.Fatalf("%v, %d given: %s", err, len(given), text)
	}
	for _, want := range []string{"before\n[image: image/jpeg, ", "5 bytes; not shown: the content is no PNG", "not shown: its data is no base64]", "[resource file:///r/report.pdf: ", "[resource x:/y: unknown type, 3 bytes]"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nwithout %q", text, want)
		}
	}
	failed := strings.Replace(result, `{"content"`, `{"isError":true,"content"`, 1)
	if _, given, err := callText(json.RawMessage(failed), 1<<20); err == nil || given != nil {
		t.Errorf("a tool that fails: %v, %d given", err, len(given))
	}
}

func TestAttachmentsAreThoseOfTheLastAnswer(t *testing.T) {
	f := NewRequestFile(FileStat{}, func(ctx context.Context, _ Caller, data []byte) ([]byte, error) {
		if string(data) != "none" && !Attach(ctx, string(data), []byte("x")) {
			t.Error("nobody takes it")
		}
		return []byte("answer"), nil
	})
	defer f.Close()
	for _, c := range []struct {
		ask string
		n   int
	}{{"a.png", 1}, {"b.png", 1}, {"none", 0}} {
		if err := f.Write(t.Context(), []byte(c.ask)); err != nil || len(f.Attachments()) != c.n {
			t.Errorf("%s: %v, %v", c.ask, f.Attachments(), err)
		}
	}
	if Attach(t.Context(), "a", nil) {
		t.Error("a request of nothing takes it")
	}
}
