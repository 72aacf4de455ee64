package journal

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
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
