package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// minLine is the least length of a line of a value that is a secret by itself, such as one of a PEM file, in bytes.
const minLine = 24

// formsOf returns the ways to write a value, each once, without line ends and what no screen shows.
func formsOf(value string) []string {
	var out []string
	add := func(texts ...string) {
		for _, t := range texts {
			out = append(out, bare(t))
		}
	}
	encode := func(v string) {
		add(v)
		add(base64Forms(v)...)
		h := hex.EncodeToString([]byte(v))
		add(h, strings.ToUpper(h))
		for _, u := range []string{url.QueryEscape(v), url.PathEscape(v), percent(v)} {
			add(u, lowerEscapes(u))
		}
		quoted := strconv.Quote(v)
		add(jsonForms(v)...)
		add(quoted[1:len(quoted)-1], html.EscapeString(v))
	}
	encode(value)
	if lines := strings.FieldsFunc(value, func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 1 {
		encode(strings.Join(lines, ""))
		for _, line := range lines {
			if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				encode(line)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// base64Forms returns what of a value is the same wherever it stands in what was encoded: three places, two alphabets. Padding,
// and the character at either end that a neighbour has a part in, are not in it.
func base64Forms(v string) []string {
	var out []string
	for before := range 3 {
		b := append(make([]byte, before), v...)
		first := []int{0, 2, 3}[before]
		last := len(b) * 8 / 6
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			out = append(out, enc.EncodeToString(b)[first:last])
		}
	}
	return out
}

// jsonForms returns a value as it stands in a JSON string, in the ways in which that is usually written.
func jsonForms(v string) []string {
	quoted, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	marshalled := string(quoted[1 : len(quoted)-1])
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(marshalled)
	var ascii strings.Builder
	for _, r := range plain {
		if r < 0x80 {
			ascii.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&ascii, `\u%04x`, unit)
		}
	}
	return []string{marshalled, plain, ascii.String(), strings.ReplaceAll(plain, "/", `\/`)}
}

// percent escapes everything but what no URL escapes.
func percent(v string) string {
	var b strings.Builder
	for _, c := range []byte(v) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

func lowerEscapes(u string) string { return escape.ReplaceAllStringFunc(u, strings.ToLower) }
