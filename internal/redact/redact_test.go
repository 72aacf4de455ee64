package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func setOf(values ...string) *Set {
	s := new(Set)
	for i, v := range values {
		s.Add(Secret{"S" + strconv.Itoa(i), v})
	}
	return s
}

func TestEverythingElseStaysAsItIs(t *testing.T) {
	s := setOf("sk-canary-4711", "another-secret")
	for text, want := range map[string]string{
		"":                               "",
		"nothing here":                   "nothing here",
		"sk-canary-471":                  "sk-canary-471",
		"key sk-canary-4711.":            "key [secret S0].",
		"sk-canary-4711sk-canary-4711":   "[secret S0][secret S0]",
		"sk-sk-canary-4711":              "sk-[secret S0]",
		"another-secret of sk-canary-47": "[secret S1] of sk-canary-47",
		"wrapped sk-can\r\nary-4711\n":   "wrapped [secret S0]\n",
		"apart sk-can\n\n\nary-4711":     "apart sk-can\n\n\nary-4711",
		"\xff\xfesk-canary-4711\xff":     "\xff\xfe[secret S0]\xff",
	} {
		if got := s.String(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := s.Bytes([]byte(text)); string(got) != want {
			t.Errorf("bytes %q: %q", text, got)
		}
		if again := s.String(s.String(text)); again != want {
			t.Errorf("%q: a second time gives %q", text, again)
		}
	}
}

func TestWithoutSecretsNothingIsTouched(t *testing.T) {
	var none *Set
	for _, s := range []*Set{none, new(Set), setOf("short")} {
		b := []byte("text")
		var out bytes.Buffer
		w := s.Writer(&out)
		_, err := w.Write(b)
		if !s.Empty() || s.String("text") != "text" || &s.Bytes(b)[0] != &b[0] || &s.JSON(b)[0] != &b[0] || err != nil || w.Flush() != nil || out.String() != "text" || len(s.Names()) != 0 {
			t.Errorf("%+v does something", s)
		}
	}
}

// shown are the ways in which programs show a value.
func shown(v string) map[string]string {
	j, _ := json.Marshal(v)
	out := map[string]string{
		"plain": v, "query": url.QueryEscape(v), "path": url.PathEscape(v), "url": "https://u:" + url.QueryEscape(v) + "@h/",
		"json": string(j), "go": strconv.Quote(v), "html": html.EscapeString(v), "hex": hex.EncodeToString([]byte(v)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(v))),
		"dump": fmt.Sprintf("%x", v), "basic": base64.StdEncoding.EncodeToString([]byte("user:" + v)),
	}
	for before := range 4 {
		b := []byte("xyz"[:min(before, 3)] + v + "tail"[:before])
		for name, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "rawstd": base64.RawStdEncoding, "rawurl": base64.RawURLEncoding} {
			out[fmt.Sprintf("%s%d", name, before)] = e.EncodeToString(b)
		}
	}
	return out
}

func TestEveryFormIsFound(t *testing.T) {
	for _, v := range []string{"sk-canary-4711", "p@ss/w:rd+&=<>\"'\\#%", "ünï-cödé-🔑-key", "with space and\ttab", "AKIAIOSFODNN7EXAMPLE", "ends with\\", "12345678"} {
		s := setOf(v)
		for form, text := range shown(v) {
			for name, text := range map[string]string{"alone": text, "among": "before " + text + " after", "wrapped": wrap(text, 7)} {
				if got := s.String(text); !strings.Contains(got, "[secret S0]") || strings.Contains(got, v) {
					t.Errorf("%q as %s, %s: %q becomes %q", v, form, name, text, got)
				}
			}
		}
	}
}

// wrap breaks a text into lines, as base64 and xxd do.
func wrap(text string, at int) string {
	var b strings.Builder
	for i := range len(text) {
		if i > 0 && i%at == 0 {
			b.WriteByte('\n')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func TestAValueOfManyLinesIsFoundByItsLinesToo(t *testing.T) {
	const key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----\n"
	s := setOf(key)
	for _, text := range []string{key, "head: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", strings.ReplaceAll(key, "\n", "\r\n"), strings.ReplaceAll(key, "\n", `\n`)} {
		if got := s.String(text); strings.Contains(got, "MII") || strings.Contains(got, "BKcw") {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := s.String("-----BEGIN PRIVATE KEY-----"); !strings.HasPrefix(got, "-----") {
		t.Errorf("the header is no secret: %q", got)
	}
}

func TestTheLongestSecretGoesFirst(t *testing.T) {
	s := setOf("sk-ant-api", "sk-ant-api-0123456789", "0123456789")
	if got := s.String("sk-ant-api-0123456789 sk-ant-api-01 0123456789"); got != "[secret S1] [secret S0]-01 [secret S2]" {
		t.Error(got)
	}
}

func TestASplitValueIsFoundHoweverItIsSplit(t *testing.T) {
	s := setOf("sk-canary-4711", "sk-canary-4711-and-more", "other-secret-value")
	text := "a sk-canary-4711 b sk-canary-4711-and-mor c other-secret-value" + wrap(base64.StdEncoding.EncodeToString([]byte("x=sk-canary-4711\n")), 5) + " sk-can"
	want := s.String(text)
	for cut := range len(text) + 1 {
		for _, size := range []int{1, 2, 3, 7, len(text)} {
			var out bytes.Buffer
			w := s.Writer(&out)
			for _, part := range []string{text[:cut], text[cut:]} {
				for len(part) > 0 {
					n := min(size, len(part))
					if k, err := w.Write([]byte(part[:n])); k != n || err != nil {
						t.Fatal(k, err)
					}
					part = part[n:]
				}
			}
			if err := w.Flush(); err != nil || out.String() != want {
				t.Fatalf("cut at %d, in pieces of %d: %q, want %q", cut, size, out.String(), want)
			}
		}
	}
}

func TestOutputIsNotHeldBackWithoutReason(t *testing.T) {
	s := setOf("sk-canary-4711")
	var out bytes.Buffer
	w := s.Writer(&out)
	for _, line := range []string{"prompt> ", "line\n", "x" + strings.Repeat("\n", 100)} {
		before := out.Len()
		if _, err := w.Write([]byte(line)); err != nil || out.Len()-before != len(line) {
			t.Errorf("%q: %d bytes are passed on", line, out.Len()-before)
		}
	}
	for range 100_000 {
		if _, err := w.Write([]byte("sk-can\n")); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.held) > 100 {
		t.Errorf("%d bytes are held back", len(w.held))
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestAFailureBehindTheWriterIsTold(t *testing.T) {
	for _, s := range []*Set{setOf("sk-canary-4711"), nil} {
		if _, err := s.Writer(broken{}).Write([]byte("text")); err == nil {
			t.Error("no error")
		}
		if _, err := s.Lines(broken{}).Write([]byte("text")); err == nil {
			t.Error("no error")
		}
	}
}

func TestJSONStaysJSON(t *testing.T) {
	s := setOf("sk-canary-4711", "nabcdefgh", "12345678", `quo"ted\key`)
	for in, want := range map[string]string{
		`{"a": "sk-canary-4711",  "b":[1.50,"x"]}`:     `{"a": "[secret S0]",  "b":[1.50,"x"]}`,
		`{"sk-canary-4711":1}`:                         `{"[secret S0]":1}`,
		`{"a":"x\nabcdefgh"}`:                          `{"a":"x\nabcdefgh"}`, // no n there
		`{"a":"x\\nabcdefgh"}`:                         `{"a":"x\\[secret S1]"}`,
		`{"a":"\u0073k-canary-4711 <b>"}`:              `{"a":"[secret S0] <b>"}`,
		`[12345678, -12345678.5e3, 1234567]`:           `["[secret S2]", "-[secret S2].5e3", 1234567]`,
		`{"a":"quo\"ted\\key"}`:                        `{"a":"[secret S3]"}`,
		`{"a":"{\"b\":\"quo\\\"ted\\\\key\"}"}`:        `{"a":"{\"b\":\"[secret S3]\"}"}`,
		`{"b64":"` + wrapJSON("sk-canary-4711") + `"}`: `{"b64":"[secret S0]EhIQ=="}`,
		`plain sk-canary-4711`:                         `plain [secret S0]`,
		`{"cut": "sk-canary-4711`:                      `{"cut": "[secret S0]`,
		`{"bad": "\x sk-canary-4711"}`:                 `{"bad": "\x [secret S0]"}`,
		``:                                             ``,
	} {
		if got := string(s.JSON([]byte(in))); got != want {
			t.Errorf("%s:\n%s, want\n%s", in, got, want)
		}
	}
}

// wrapJSON is base64 in two lines, as it stands in a JSON string.
func wrapJSON(v string) string {
	b := base64.StdEncoding.EncodeToString([]byte(v + "!!"))
	return b[:9] + `\n` + b[9:]
}

func TestNoSecretIsLeftAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching(`[a-cA\-/+ü"\\ ]{8,20}`), 1, 4).Draw(t, "values")
		s := setOf(values...)
		var text strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "pieces") {
			text.WriteString(rapid.StringMatching(`[a-cA\-/+ü"\\ \n]{0,12}`).Draw(t, "filler"))
			forms := shown(rapid.SampledFrom(values).Draw(t, "value"))
			keys := []string{"plain", "query", "json", "go", "hex", "std0", "std1", "url2", "rawstd3", "basic"}
			text.WriteString(forms[rapid.SampledFrom(keys).Draw(t, "form")])
		}
		got := s.String(text.String())
		for _, v := range values {
			v = strings.Trim(v, " ")
			if len(v) >= MinLen && strings.Contains(got, v) {
				t.Fatalf("%q is left in %q", v, got)
			}
		}
		var out bytes.Buffer
		w := s.Writer(&out)
		rest := text.String()
		for len(rest) > 0 {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			_, _ = w.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if _ = w.Flush(); out.String() != got {
			t.Fatalf("in pieces: %q, at once: %q", out.String(), got)
		}
		doc, _ := json.Marshal(map[string]string{"k": text.String()})
		clean := s.JSON(doc)
		var back map[string]string
		if err := json.Unmarshal(clean, &back); err != nil {
			t.Fatalf("%s: %v", clean, err)
		}
		for _, v := range back {
			if v != got {
				t.Fatalf("as JSON: %q, as text: %q", v, got)
			}
		}
	})
}

func TestASetTakesWhatItCanUseOnce(t *testing.T) {
	s := new(Set)
	long := strings.Repeat("0123456789abcdef", MaxLen/16)
	if n := s.Add(Secret{"A", "12345678"}, Secret{"B", "12345678"}, Secret{"C", " 1234567 "}, Secret{"D", long}, Secret{"E", long + "x"}, Secret{"A b\"\n[]ü", "abcdefgh"}, Secret{"", "no-name-"}); n != 4 {
		t.Errorf("%d were added", n)
	}
	if got := s.String("12345678 abcdefgh no-name- " + long); got != "[secret A] [secret A_b_____] [secret value] [secret D]" {
		t.Error(got)
	}
	if got := strings.Join(s.Names(), " "); !strings.Contains(got, "[secret A]") {
		t.Error(got)
	}
	many := make([]Secret, maxValues+10)
	for i := range many {
		many[i] = Secret{"M", fmt.Sprintf("%08d-value", i)}
	}
	if n := new(Set).Add(many...); n != maxValues {
		t.Errorf("%d of %d were added", n, len(many))
	}
}

func TestWhatWasRemovedIsASecretNoMore(t *testing.T) {
	s := setOf("sk-canary-4711", "another-secret")
	s.Remove("sk-canary-4711", "never-there")
	if got := s.String("sk-canary-4711 another-secret"); got != "sk-canary-4711 [secret S1]" {
		t.Error(got)
	}
	if s.Remove("another-secret"); !s.Empty() || s.Add(Secret{"A", "sk-canary-4711"}) != 1 {
		t.Error("the set does not begin anew")
	}
	var none *Set
	if none.Remove("x"); none.Add(Secret{"A", "sk-canary-4711"}) != 0 {
		t.Error("nothing keeps a secret")
	}
}

func FuzzAnyTextIsTaken(f *testing.F) {
	f.Add("sk-canary-4711", `{"a":"sk-canary-4711"}`, uint8(3))
	f.Fuzz(func(t *testing.T, value, text string, n uint8) {
		s := setOf(value, "fixed-secret")
		got := s.String(text)
		var out bytes.Buffer
		w := s.Writer(&out)
		for rest := text; len(rest) > 0; {
			k := min(int(n)+1, len(rest))
			_, _ = w.Write([]byte(rest[:k]))
			rest = rest[k:]
		}
		if _ = w.Flush(); out.String() != got {
			t.Errorf("in pieces %q, at once %q", out.String(), got)
		}
		if json.Valid([]byte(text)) && !json.Valid(s.JSON([]byte(text))) {
			t.Errorf("%q is JSON and %q is not", text, s.JSON([]byte(text)))
		}
	})
}

func BenchmarkString(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, and func main() { println(42) }\n", 850) // 64 KiB
	for _, n := range []int{0, 1, 20, 200} {
		s := new(Set)
		for i := range n {
			s.Add(Secret{"S", fmt.Sprintf("sk-ant-%d-0123456789abcdef", i)})
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_ = s.String(text)
			}
		})
	}
}
