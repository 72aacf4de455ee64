package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rnixctx "rnix/context"
	"rnix/types"
)

var sameError = cmp.Comparer(func(x, y error) bool { return (x == nil) == (y == nil) && (x == nil || x.Error() == y.Error()) })

func samples() []*Record {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return []*Record{
		{V: 1, Kind: KindMessage, Seq: 1, Time: now, Message: &rnixctx.Message{Role: rnixctx.RoleAssistant, Content: "<&>\n\x00é😀\u2028",
			ToolCalls: []rnixctx.ToolCall{{ID: "1", Name: "n", Input: json.RawMessage(`{"a":[1,2]}`)}}}},
		{V: 1, Kind: KindIntent, Seq: 2, Time: now, Intent: &Intent{Step: 1, CallID: "c", Tool: "t", Path: "/dev/x", Effect: "none"}},
		{V: 1, Kind: KindResult, Seq: 3, Time: now, Result: &Result{Step: 1, CallID: "c", Output: `,"crc":"00000000"}`, Code: types.ErrDriver, Duration: 5}},
		{V: 1, Kind: KindStep, Seq: 4, Time: now, Step: &StepRecord{StepNumber: 1, MessageCount: 1, CostUSD: 0.1, ToolCalls: []Call{{ID: "c"}}}},
		{V: 1, Kind: KindMarker, Seq: 5, Time: now, Marker: &Marker{Name: MarkerExit, Exit: &types.ExitStatus{Code: 1, Reason: "r", Err: types.Errorf(types.ErrDriver, "Write", "/dev/llm/x", "boom")}}},
	}
}

func TestRecordIsReadAsItWasWritten(t *testing.T) {
	for _, want := range samples() {
		line, err := Encode([]byte("before"), want)
		if err != nil {
			t.Fatal(err)
		}
		line, ok := bytes.CutPrefix(line, []byte("before"))
		if !ok || bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' || !json.Valid(line) {
			t.Fatalf("not one line of JSON: %q", line)
		}
		got, err := Decode(line[:len(line)-1])
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, sameError); d != "" {
			t.Error(d)
		}
	}
}

// sealed adds the checksum that belongs to a line.
func sealed(body string) []byte {
	body = strings.TrimSuffix(body, "}")
	return fmt.Appendf(nil, `%s,"crc":"%08x"}`, body, crc32.Checksum([]byte(body), castagnoli()))
}

func TestUnreadableLineSaysWhy(t *testing.T) {
	good, _ := Encode(nil, samples()[1])
	good = good[:len(good)-1]
	flipped := bytes.Clone(good)
	flipped[30] ^= 1
	tests := []struct {
		name string
		line []byte
		code types.ErrCode
		says string
	}{
		{"a flipped bit", flipped, types.ErrStorage, "checksum is wrong"},
		{"torn", good[:40], types.ErrStorage, "not a record"},
		{"empty", nil, types.ErrStorage, "not a record"},
		{"no checksum", []byte(`{"v":1,"kind":"marker","seq":1}`), types.ErrInvalid, "changed by hand"},
		{"newer", sealed(`{"v":2,"kind":"dance","seq":1}`), types.ErrVersion, "newer program"},
		{"newer without our checksum", []byte(`{"v":2}`), types.ErrVersion, "newer program"},
		{"unknown kind", sealed(`{"v":1,"kind":"dance","seq":1}`), types.ErrInvalid, "dance"},
		{"kind without its payload", sealed(`{"v":1,"kind":"step","seq":1,"marker":{"name":"exit"}}`), types.ErrInvalid, "step"},
		{"no version", sealed(`{"kind":"marker","seq":1,"marker":{"name":"exit"}}`), types.ErrInvalid, "version 0"},
		{"not a record", sealed(`{"v":1,"kind":"marker","seq":1,"marker":7}`), types.ErrInvalid, "cannot be read"},
	}
	for _, tt := range tests {
		_, err := Decode(tt.line)
		if types.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestOlderVersionIsRead(t *testing.T) {
	// There is no version below 1; a line of ours with unknown keys is what a sibling of the same
	// version may write.
	if r, err := Decode(sealed(`{"v":1,"kind":"marker","seq":3,"marker":{"name":"exit","new":1},"extra":true}`)); err != nil || r.Seq != 3 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestValueThatCannotBeWrittenLeavesTheOthers(t *testing.T) {
	fsys, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	must(t, w.Message(user("a")))
	if err := w.Marker(&Marker{Detail: json.RawMessage("{")}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("got %v", err)
	}
	must(t, w.Message(user("b")), w.Commit(t.Context()))
	h, err := ReadDir(t.Context(), fsys, j.Dir(id), id)
	if err != nil || len(h.Messages) != 2 || h.Damage != "" {
		t.Errorf("%+v, %v", h, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, r := range samples() {
		line, _ := Encode(nil, r)
		f.Add(line[:len(line)-1])
	}
	f.Add([]byte(`{"v":1,"kind":"marker","seq":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		peek(line)
		for _, l := range [][]byte{line, sealed(string(line))} {
			r, err := Decode(l)
			if err != nil {
				if types.CodeOf(err) == types.ErrInternal {
					t.Fatalf("no code: %v", err)
				}
				continue
			}
			if h, err := peek(l); err != nil || h.Seq != r.Seq || h.V != r.V {
				t.Fatalf("peek says %+v, %v of %q", h, err, l)
			}
			again, err := Encode(nil, r)
			if err != nil {
				continue // JSON that decodes to what cannot be encoded, such as a year over 9999
			}
			r2, err := Decode(again[:len(again)-1])
			if err != nil {
				t.Fatalf("%v in %q, made of %q", err, again, l)
			}
			twice, err := Encode(nil, r2)
			if err != nil || !bytes.Equal(again, twice) {
				t.Fatalf("not stable: %q, %q", again, twice)
			}
		}
	})
}
