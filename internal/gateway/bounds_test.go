package gateway

import (
	"bytes"
	"strings"
	"testing"
)

func TestRequestsThatCannotBeBoundedAreRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","max_completion_tokens":10,"max_tokens":1000000}`: "differ",
		`{"model":"m","max_tokens":10,"max_completion_tokens":1000000}`: "differ",
	} {
		if _, err := read(chat, []byte(body), &Upstream{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
	if r, err := read(chat, []byte(`{"model":"m","max_tokens":10,"max_completion_tokens":10}`), &Upstream{}); err != nil || r.Answer != 10 {
		t.Errorf("one bound said twice: %+v, %v", r, err)
	}
}

func TestAStreamedChatAlwaysSaysItsUsage(t *testing.T) {
	for _, options := range []string{"", `,"stream_options":{}`, `,"stream_options":{"include_usage":false}`, `,"stream_options":null`} {
		r, err := read(chat, []byte(`{"model":"m","stream":true`+options+`}`), &Upstream{})
		if err != nil {
			t.Fatal(err)
		}
		changes := map[string]string{}
		r.counting(changes)
		if body := text(r.with(changes)); strings.Count(body, "stream_options") != 1 || !strings.Contains(body, `"stream_options":{"include_usage":true}`) {
			t.Errorf("%s becomes %s", options, body)
		}
	}
}

func TestAnAnswerForWhichNoOneWaitsCountsAsReserved(t *testing.T) {
	q := &Question{Bytes: 40, Answer: 32000}
	if u := (&answer{call: messages}).hungUp(q); !u.Estimated || u.Output != 32000 || u.Input == 0 {
		t.Errorf("not streamed: %+v", u)
	}
	if u := (&answer{call: messages, stream: true, said: 400}).hungUp(q); !u.Estimated || u.Output != 32000 {
		t.Errorf("streamed: %+v", u)
	}
	if u := (&answer{call: messages, stream: true, said: 400}).took(q); u.Output != 100 {
		t.Errorf("one that was cut off by us: %+v", u)
	}
}

// text is a body in one piece.
func text(p pieces) string { return string(bytes.Join(p, nil)) }
