package step

import (
	"bytes"
	"testing"
	"time"
)

// TestASealBreaksWithEachBit says that whatever bit of a sealed object is another one, or wherever it is cut off, it is not believed.
func TestASealBreaksWithEachBit(t *testing.T) {
	for _, text := range []string{"{\"a\":1}\n", `{"a":"x,\"crc\":1}"}`} {
		sealed := seal([]byte(text))
		got, ok := unseal(bytes.Clone(sealed))
		if want := bytes.TrimSuffix([]byte(text), []byte{'\n'}); !ok || !bytes.Equal(got, want) {
			t.Fatalf("%s became %s, %v", text, got, ok)
		}
		for i := range sealed {
			if _, ok := unseal(bytes.Clone(sealed[:i])); ok {
				t.Errorf("%s is believed without what is behind byte %d", sealed, i)
			}
			for bit := range 8 {
				other := bytes.Clone(sealed)
				other[i] ^= 1 << bit
				if _, ok := unseal(other); ok {
					t.Errorf("%s is believed", other)
				}
			}
		}
		if _, ok := unseal([]byte(text)); ok {
			t.Errorf("%s is believed, and was not sealed", text)
		}
	}
}

func TestWhatTookALostRecordsNumberIsAnother(t *testing.T) {
	at := time.Now()
	m := Made{7, at}
	for _, c := range []struct {
		r    Record
		want bool
	}{{Record{Seq: 7, Time: at.UTC()}, true}, {Record{Seq: 7, Time: at.Add(1)}, false}, {Record{Seq: 8, Time: at}, false}} {
		if m.By(&c.r) != c.want {
			t.Errorf("%+v by %+v: %v", m, c.r, !c.want)
		}
	}
}
