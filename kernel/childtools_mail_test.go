package kernel

import (
	"encoding/json"
	"strings"
	"testing"
)

// An answer of recv is JSON that nobody cuts, whatever the messages hold, and what does not fit comes with the next.
func TestRecvGivesWholeMessagesHoweverLongTheirEscapesAre(t *testing.T) {
	const most = 256 << 10 // loop.maxAnswer
	for _, text := range []string{strings.Repeat("\x01", promptMessage), strings.Repeat("<", promptMessage+1), strings.Repeat("a", promptMessage), "\xff", ""} {
		ms := make([]*Message, 3000)
		for i := range ms {
			ms[i] = &Message{Seq: uint64(i + 1), From: 7, Data: []byte(text)}
		}
		for left := ms; len(left) > 2970; {
			n := recvPortion(left[:portion(left)])
			if n < 1 {
				t.Fatalf("%.10q: none is given", text)
			}
			answer, err := received(left[:n], "")
			var got struct{ Messages []receivedMessage }
			if err != nil || len(answer) > most || json.Unmarshal([]byte(answer), &got) != nil || len(got.Messages) != n {
				t.Fatalf("%.10q: %d messages are an answer of %d bytes, %v", text, n, len(answer), err)
			}
			left = left[n:]
		}
	}
}
