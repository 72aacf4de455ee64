package step

import (
	"bytes"
	"strings"
	"testing"

	"rnix/types"
)

// A long line that is not the first is read in many pieces.
func TestReplayFromALineBeforeALongOne(t *testing.T) {
	_, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	long := strings.Repeat("word ", 1<<20)
	must(t, w.Message(user("first")), w.Message(user("second")), w.Message(user(long)), w.Message(user("last")), w.Commit(t.Context()))
	var got []string
	for r, err := range j.Replay(t.Context(), id, 2) {
		must(t, err)
		got = append(got, r.Message.Content)
	}
	if len(got) != 3 || got[1] != long || got[2] != "last" {
		t.Errorf("%d messages", len(got))
	}
}

// Reading in pieces that grow gives what there is, however often it is read.
func TestGrowingReadsAllHoweverMuchThereIs(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 1000)
	g := &growing{r: bytes.NewReader(want), size: 1}
	var got []byte
	buf := make([]byte, 3)
	for {
		n, err := g.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	if !bytes.Equal(got, want) || g.size <= 0 {
		t.Errorf("%d bytes of %d, the next piece has %d", len(got), len(want), g.size)
	}
}
