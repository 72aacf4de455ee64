package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestShortOutputIsKeptWholeWithoutAFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "scratch")
	h := NewHeadTail(8, dir, "out-*.txt")
	_, _ = h.Write([]byte("0123456789abcdef"))
	if h.Text() != "0123456789abcdef" || h.File() != "" {
		t.Errorf("%q, %q", h.Text(), h.File())
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("the directory was made for nothing")
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestLongOutputKeepsHeadTailAndFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "scratch")
	rapid.Check(t, func(t *rapid.T) {
		h := NewHeadTail(rapid.IntRange(4, 20).Draw(t, "keep"), dir, "out-*.txt")
		var whole []byte
		for _, piece := range rapid.SliceOf(rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.StringN(0, 30, -1), func(s string) []byte { return []byte(s) }))).Draw(t, "pieces") {
			whole = append(whole, piece...)
			_, _ = h.Write(piece)
		}
		text := h.Text()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || h.Total() != int64(len(whole)) {
			t.Fatalf("text is %q of %d bytes", text, h.Total())
		}
		if len(whole) <= 2*h.keep+h.keep/8 {
			if text != validText(whole) || h.File() != "" {
				t.Fatalf("%q became %q", whole, text)
			}
			return
		}
		if b, err := os.ReadFile(h.File()); err != nil || !bytes.Equal(b, whole) {
			t.Fatalf("the file holds %q, %v; want %q", b, err, whole)
		}
		if !strings.Contains(text, "left out; the whole output is in "+h.File()) {
			t.Fatalf("text is %q", text)
		}
		_ = os.Remove(h.File())
	})
}

// What all outputs of a process take together is bounded, also of those that are written at once; what is over it is not kept, and
// that is said.
func TestOutputsHaveAQuota(t *testing.T) {
	dir := t.TempDir()
	const quota = 3 << 20
	a, b := NewHeadTail(16, dir, "a-*.txt"), NewHeadTail(16, dir, "b-*.txt")
	a.Quota(quota)
	b.Quota(quota)
	piece := bytes.Repeat([]byte("x"), 300<<10)
	for range 10 {
		_, _ = a.Write(piece)
		_, _ = b.Write(piece)
	}
	var sum int64
	for _, h := range []*HeadTail{a, b} {
		i, err := os.Stat(h.File())
		if err != nil {
			t.Fatal(err)
		}
		sum += i.Size()
		if text := h.Text(); !strings.Contains(text, fmt.Sprintf("the first %d bytes are in %s, and more are not kept: all outputs of this process may take %d bytes", i.Size(), h.File(), quota)) {
			t.Errorf("%s", text)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	if sum < quota/2 || sum > quota+2*quotaEvery {
		t.Errorf("%d bytes are kept of a quota of %d", sum, quota)
	}
	c := NewHeadTail(16, dir, "c-*.txt")
	c.Quota(quota + 4*quotaEvery)
	_, _ = c.Write(piece)
	if text := c.Text(); !strings.Contains(text, "the whole output is in "+c.File()) {
		t.Errorf("%s", text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestCharactersAreNotCutInTwo(t *testing.T) {
	h := NewHeadTail(4, "", "")
	_, _ = h.Write([]byte("abc€ the middle €xyz"))
	if text := h.Text(); strings.Contains(text, "\uFFFD") || !strings.HasPrefix(text, "abc\n") || !strings.HasSuffix(text, "\nxyz") {
		t.Errorf("text is %q", text)
	}
	r := NewRing(4)
	_, _ = r.Write([]byte("€€"))
	if r.String() != "€" {
		t.Errorf("ring is %q", r.String())
	}
}

func TestFullDiskLosesTheFileAndNotTheText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := NewHeadTail(2, file, "x")
	if n, err := h.Write([]byte("0123456789")); n != 10 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if text := h.Text(); !strings.Contains(text, "could not be kept") || !strings.HasSuffix(text, "89") {
		t.Errorf("text is %q", text)
	}
	h = NewHeadTail(2, t.TempDir(), "x")
	h.limit = 6
	_, _ = h.Write([]byte("01234"))
	_, _ = h.Write([]byte("56789"))
	if text := h.Text(); !strings.Contains(text, "the first 6 bytes are in") {
		t.Errorf("text is %q", text)
	}
	if b, _ := os.ReadFile(h.File()); string(b) != "012345" {
		t.Errorf("file is %q", b)
	}
	_ = h.Close()
}

func TestRingKeepsTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 9).Draw(t, "size")
		r := NewRing(size)
		var whole []byte
		for _, piece := range rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "pieces") {
			whole = append(whole, piece...)
			_, _ = r.Write(piece)
		}
		if got, want := r.Bytes(), whole[max(0, len(whole)-size):]; !bytes.Equal(got, want) {
			t.Fatalf("ring of %d keeps %q of %q", size, got, whole)
		}
	})
}
