package llm

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func readEvents(r io.Reader) (out []string, err error) {
	s := newSSEReader(r)
	for {
		ev, err := s.next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, ev.name+"|"+string(ev.data))
	}
}

func TestEventsAreDividedAsTheStandardSays(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"data: a\n\n", []string{"|a"}},
		{"data:a\r\n\r\ndata:  b\r\rdata\n\n", []string{"|a", "| b", "|"}},
		{"event: x\ndata: 1\ndata: 2\n\n: comment\n\ndata: 3\n\n", []string{"x|1\n2", "|3"}},
		{"event: lost\n\ndata: x\n\n", []string{"|x"}},
		{"\ufeffdata: bom\nid: 7\nretry: 3\n\n", []string{"|bom"}},
		{"data: torn", []string{"|torn"}},
		{"data: torn\n", []string{"|torn"}},
		{"data: a\r\ndata: b\r\n\r\n", []string{"|a\nb"}},
		{"dataset: no\n\n\n\n", nil},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
			if got, err := readEvents(r); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q: got %q, %v, want %q", c.in, got, err, c.want)
			}
		}
	}
}

func TestEventWithoutEndIsBounded(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), zeros{})
	if _, err := readEvents(io.LimitReader(endless, maxEvent*2)); !errors.Is(err, errEventTooLong) {
		t.Errorf("one line: %v", err)
	}
	lines := strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 20))
	if _, err := readEvents(lines); !errors.Is(err, errEventTooLong) {
		t.Errorf("many lines: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// FuzzEvents: the division does not depend on how the bytes arrive, and data never holds a line end
// that was not one.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "event: x\r\ndata: y\r\r", "\ufeff: c\n\ndata", "data: \xff\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		whole, err1 := readEvents(strings.NewReader(in))
		bytewise, err2 := readEvents(iotest.OneByteReader(strings.NewReader(in)))
		if (err1 == nil) != (err2 == nil) || !slices.Equal(whole, bytewise) {
			t.Fatalf("%q, %v and byte by byte %q, %v", whole, err1, bytewise, err2)
		}
		for _, ev := range whole {
			if strings.Contains(ev, "\r") {
				t.Fatalf("event %q holds a CR", ev)
			}
		}
	})
}

// FuzzAnswers: no stream makes the parsers panic, and what comes out of them is legal.
func FuzzAnswers(f *testing.F) {
	f.Add("data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":-3}}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"name\":\"x\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n")
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":[{\"text\":\"a\"}],\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}},{\"index\":3}]}}],\"usage\":{\"prompt_tokens\":1e30}}\n\ndata: [DONE]\n\n")
	f.Add("data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"thinking\",\"signature\":7}}\n\n")
	c, err := newHTTPClient(HTTPConfig{Name: "fuzz", BaseURL: "http://fuzz"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in string) {
		a := anthropicAnswer{http: c, emit: func(StreamEvent) {}}
		o := openaiAnswer{http: c, emit: func(StreamEvent) {}}
		for _, each := range []func(sseEvent) (piece, error){a.each, o.each} {
			events := newSSEReader(strings.NewReader(in))
			for {
				ev, err := events.next()
				if err != nil {
					break
				}
				if what, err := each(ev); what == theLast || err != nil {
					break
				}
			}
		}
		for _, r := range []*LLMResponse{a.response(10), o.response(10)} {
			identify(r.ToolCalls, nil)
			if r.TokensUsed < 0 || r.StopReason == "" {
				t.Fatalf("bad response %+v", r)
			}
			checkCalls(t, r)
			if _, err := encode(r); err != nil {
				t.Fatal(err)
			}
		}
	})
}
