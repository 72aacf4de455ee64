package actions

import (
	"encoding/json"
	"strings"
	"testing"

	rnixctx "rnix/context"
)

// An answer of recv is JSON that nobody cuts, whatever the messages hold, and what does not fit comes with the next.
func TestRecvGivesWholeMessagesHoweverLongTheirEscapesAre(t *testing.T) {
	const (
		message = 16 << 10  // kernel.promptMessage
		most    = 256 << 10 // loop.maxAnswer
	)
	for _, text := range []string{strings.Repeat("\x01", message), strings.Repeat("<", message+1), strings.Repeat("a", message), "\xff", ""} {
		ls := make([]Letter, 3000)
		for i := range ls {
			ls[i] = Letter{Seq: uint64(i + 1), From: 7, Text: text}
		}
		for left := ls; len(left) > 2970; {
			n := fitting(left)
			if n < 1 {
				t.Fatalf("%.10q: none is given", text)
			}
			answer, err := received(left[:n], "")
			var got struct{ Messages []Letter }
			if err != nil || len(answer) > most || json.Unmarshal([]byte(answer), &got) != nil || len(got.Messages) != n {
				t.Fatalf("%.10q: %d messages are an answer of %d bytes, %v", text, n, len(answer), err)
			}
			left = left[n:]
		}
	}
}

func TestOneAnswerShowsNoMoreFilesThanAMessageMay(t *testing.T) {
	files := make([]rnixctx.Attachment, 15)
	ls := []Letter{{Seq: 1, Attachments: files}, {Seq: 2, Attachments: files[:5]}, {Seq: 3}, {Seq: 4, Attachments: files[:1]}}
	if n := fitting(ls); n != 3 {
		t.Errorf("%d messages", n)
	}
}
