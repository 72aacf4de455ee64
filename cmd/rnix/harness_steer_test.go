package main

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
)

// texts are all that a request says, in order.
func texts(r llmtest.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Text + "\n")
	}
	return b.String()
}

func TestRealCommandLinesHearEachTextOnceAndInOrder(t *testing.T) {
	for name, l := range lines {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, name, nil)
			var calls atomic.Int32
			u.Answer(func(r llmtest.Request) llmtest.Reply {
				switch said := texts(r); {
				case calls.CompareAndSwap(0, 1):
					return l.use("shell", map[string]any{"command": waits})
				case strings.Contains(said, "the third word"):
					return llmtest.Reply{Text: "heard it all"}
				case strings.Contains(said, "the second word") && calls.CompareAndSwap(1, 2):
					return l.use("shell", map[string]any{"command": "rm -f gate; echo > again; " + waits})
				}
				return llmtest.Reply{Text: "not told yet"}
			})
			u.must(append(append([]string{"run", "--detach", "--tools", "kernel", "--name", "p"}, l.args...), "wait for the gate")...)
			u.exists("began")
			u.must("steer", "--no-wait", "p", "the first word")
			u.must("steer", "--no-wait", "p", "the second word")
			u.write("gate")
			u.exists("again")
			u.must("pause", "p")
			u.must("steer", "--no-wait", "p", "the third word")
			u.write("gate")
			u.must("resume", "p")
			began := time.Now()
			if out := u.must("wait", "--timeout", "60s", "p"); !strings.Contains(out, "heard it all") {
				t.Errorf("%s\n%s", out, u.must("log", "p"))
			}
			if took := time.Since(began); took > 40*time.Second {
				t.Errorf("it took %v", took)
			}
			asked := u.Requests()
			said, at := texts(asked[len(asked)-1]), -1
			for _, word := range []string{"the first word", "the second word", "the third word"} {
				if n := strings.Count(said, word); n != 1 {
					t.Errorf("%q is there %d times in\n%s", word, n, said)
				}
				if i := strings.Index(said, word); i < at {
					t.Errorf("%q comes too early in\n%s", word, said)
				} else {
					at = i
				}
			}
		})
	}
}
