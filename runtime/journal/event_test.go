package journal

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"rnix/types"
)

// FuzzDecode feeds any bytes to the reader of lines: what it takes is what it would write, and no other byte may
// stand where the checksum is over.
func FuzzDecode(f *testing.F) {
	whole, err := encode(nil, Event{Seq: 7, ID: "evt_x", Time: time.Unix(1, 2).UTC(), Kind: "a", Data: json.RawMessage(`{"text":"hé\u0000"}`)}, true)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[:len(whole)-1])
	f.Add([]byte(`{"v":1,"crc":"00000000"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, first, err := decode(b)
		if err != nil {
			if begins(b) {
				t.Error("a line that cannot be read begins a batch")
			}
			return
		}
		again, err := encode(nil, e, first)
		if err != nil {
			t.Fatal(err)
		}
		e2, first2, err := decode(bytes.TrimSuffix(again, []byte("\n")))
		if err != nil || e2.Seq != e.Seq || e2.Kind != e.Kind || e2.ID != e.ID || !e2.Time.Equal(e.Time) || first2 != first {
			t.Errorf("%+v became %+v, %v", e, e2, err)
		}
		for i := range b[:len(b)-crcTail] {
			broken := bytes.Clone(b)
			broken[i] ^= 1
			if _, _, err := decode(broken); err == nil {
				t.Errorf("byte %d of %s may be any", i, b)
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	j, err := Open(Options{Session: "s", Dir: b.TempDir() + "/j"})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := j.Append(b.Context(), Draft{"a", "forty characters of text, more or less, yes"}); err != nil {
				b.Error(err)
			}
		}
	})
}

func TestACursorThatIsBeingOpenedHoldsWhatItHasNotSeen(t *testing.T) {
	j, err := Open(Options{Session: "s", Dir: t.TempDir() + "/j", SegmentBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	slow, err := j.Cursor("slow")
	if err != nil {
		t.Fatal(err)
	}
	slow.Close()
	fast, err := j.Cursor("fast")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := j.Append(t.Context(), Draft{"a", 1}); err != nil {
			t.Fatal(err)
		}
	}
	j.mu.Lock()
	j.cursors["slow"] = &Cursor{j: j, name: "slow"} // as in the middle of Journal.Cursor
	j.mu.Unlock()
	if err := fast.Ack(5); err != nil {
		t.Fatal(err)
	}
	j.mu.Lock()
	delete(j.cursors, "slow")
	j.mu.Unlock()
	if slow, err = j.Cursor("slow"); err != nil || slow.Pending() != 5 {
		t.Errorf("%d of 5 are left: %v", slow.Pending(), err)
	}
}

func TestABurstLargerThanTheRoomIsAGapAndNoError(t *testing.T) {
	j, err := Open(Options{Session: "s", MaxEvents: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	c, err := j.Cursor("c")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan int)
	go func() { // reads beside the bursts
		n := 0
		for {
			events, err := c.Next(t.Context(), 10, 1<<20)
			if err != nil {
				t.Errorf("Next = %v", err)
			}
			for _, e := range events {
				n++
				if e.Kind == KindGap {
					var g Gap
					if err := json.Unmarshal(e.Data, &g); err != nil {
						t.Error(err)
					}
					n += g.Count - 1
				}
			}
			if len(events) == 0 || n >= 2000 {
				done <- n
				return
			}
			if err := c.Ack(events[len(events)-1].Seq); err != nil {
				t.Errorf("Ack = %v", err)
				done <- n
				return
			}
		}
	}()
	for range 200 {
		drafts := make([]Draft, 10)
		for i := range drafts {
			drafts[i] = Draft{"a", i}
		}
		if _, err := j.Append(t.Context(), drafts...); err != nil {
			t.Fatal(err)
		}
	}
	if n := <-done; n != 2000 {
		t.Errorf("2000 events are %d, with those that are gone", n)
	}
}

func TestAFileThatSomebodyHasRemovedIsSaidAndNotWaitedFor(t *testing.T) {
	dir := t.TempDir() + "/j"
	j, err := Open(Options{Session: "s", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	c, err := j.Cursor("c")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), Draft{"a", 1}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir + "/" + segmentName(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(t.Context(), 1, 1); types.CodeOf(err) != types.ErrStorage {
		t.Errorf("Next = %v", err)
	}
}
