package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/soak"
	"rnix/types"
)

// standard is how encoding/json reads a line.
func standard(line []byte) (*Record, error) {
	r := new(Record)
	return r, json.Unmarshal(line, r)
}

// full has every field of every kind of record set.
func full() []*Record {
	now, id := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), types.UUID{1, 2, 3}
	snap := &Snapshot{Step: 3, Kind: "git", ID: "abc", Root: "/w", Limited: "x"}
	s := &StepRecord{StepNumber: 7, Timestamp: now, MessageCount: 3, TokensUsed: 10, RawResponse: "", Action: "tool_call", Summary: "s", ToolPath: "/dev/x",
		ToolCalls: []Call{{ID: "1", Name: "n", Path: "p", Input: "i", Result: "r", Error: "e", Code: types.ErrDriver, Duration: 5}, {}}, FailedCalls: 1,
		Duration: 5, ModelTime: 6, Provider: "p", Model: "m", StopReason: "end", Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Estimated: true,
		CostUSD: 1e-7, CostFrom: "table", Metered: true, Error: "err", Files: snap,
		End: &Ending{Exit: types.ExitStatus{Code: 2, Reason: "r", Err: types.Errorf(types.ErrDriver, "Write", "/x", "boom")}, Result: "t"}}
	payloads := []Record{
		{Kind: KindMessage, Answer: s.Answer(), Delivered: []uint64{1, 9}, Message: &rnixctx.Message{Role: rnixctx.RoleAssistant, Content: "a\"b\\c\n\u2028é😀<&>\x01", IsError: true, ToolCallID: "x",
			ToolCalls:   []rnixctx.ToolCall{{ID: "1", Name: "n", Input: json.RawMessage(`{"a":[1,-2.5e3,true,false,null,"\u00e9\n"],"b":{}}`), ParseError: "p"}, {}},
			Reasoning:   []rnixctx.Block{{Provider: "p", Data: json.RawMessage(`"x<y"`)}},
			Attachments: []rnixctx.Attachment{{Name: "a b.png", Media: "image/png", SHA256: "00ff", Bytes: 1 << 20, Width: 3, Height: 4, Pages: 5}, {}}}},
		{Kind: KindIntent, Intent: &Intent{Step: 1, CallID: "c", Tool: "t", Path: "/dev/x", Input: json.RawMessage(`[]`), Effect: "none", Child: &id, Background: true, Key: "k", Before: snap}},
		{Kind: KindResult, Result: &Result{Step: 1, CallID: "c", Tool: "t", Output: "o", Error: "e", Code: types.ErrTimeout, Duration: -5}},
		{Kind: KindStep, Step: s},
		{Kind: KindMarker, Marker: &Marker{Name: "exit", PID: 1 << 40, Text: "t", Exit: &types.ExitStatus{Code: 2, Reason: "r", Err: types.Errorf(types.ErrDriver, "Write", "/x", "boom")}, Detail: json.RawMessage(`{"x":"<"}`)}},
	}
	var out []*Record
	for i, r := range payloads {
		r.V, r.Seq, r.Time, r.Joined = 1, uint64(i+1), now, true
		out = append(out, &r)
	}
	return out
}

// unset returns the fields of v, and of what it points to, that have their zero value.
func unset(v reflect.Value, name string) (out []string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return []string{name}
		}
		return unset(v.Elem(), name)
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok {
			break
		}
		for i := range v.NumField() {
			out = append(out, unset(v.Field(i), name+"."+v.Type().Field(i).Name)...)
		}
		return out
	case reflect.Slice:
		if v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct {
			return unset(v.Index(0), name)
		}
	}
	if v.IsZero() {
		return []string{name}
	}
	return nil
}

func TestLinesOfThisProgramNeedNoOtherDecoder(t *testing.T) {
	for _, r := range append(full(), samples()...) {
		line, err := Encode(nil, r)
		must(t, err)
		line = line[:len(line)-1]
		s, got := scanner{lexer: lexer{text: string(line[:len(line)-crcTail])}}, new(Record)
		if s.record(got); !s.done() {
			t.Errorf("refused: %s", line)
			continue
		}
		want, err := standard(line)
		must(t, err)
		if d := differ(want, got, sameError); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
}

func TestEveryFieldOfARecordIsTried(t *testing.T) {
	for _, r := range full() {
		payload := reflect.ValueOf(r).Elem().FieldByName(map[Kind]string{KindMessage: "Message", KindIntent: "Intent", KindResult: "Result", KindStep: "Step", KindMarker: "Marker"}[r.Kind])
		for _, name := range unset(payload, string(r.Kind)) {
			switch name {
			case "step.ToolCalls.Failure", "step.Messages", "step.RawResponse", "step.ToolInput", "step.ToolResult", "step.ToolError": // readers fill them in
			default:
				t.Error(name, "is not set: give it a value here, and read it in decode.go")
			}
		}
	}
}

// TestBothDecodersReadTheSame damages lines in their text, not in their checksums.
func TestBothDecodersReadTheSame(t *testing.T) {
	bits := []string{`"`, `\`, `\u`, `\ud83d`, `\ude00`, "\xff", "é", " ", "null", "{", "}", "[", "]", ",", ":", "0", "-", "1e5", ".5", "\x01", "true", `"seq":1`, "00", "99999999999999999999"}
	r := rand.New(rand.NewPCG(1, 1))
	read, refused := 0, 0
	lines := soak.Pick(t, "damaged lines", 5_000, 20_000)
	for n := range lines {
		line, err := Encode(nil, full()[n%5])
		must(t, err)
		body := line[:len(line)-1-crcTail]
		at, cut := r.IntN(len(body)), 0
		if r.IntN(2) == 0 {
			cut = min(r.IntN(4), len(body)-at)
		}
		body = append(append(bytes.Clone(body[:at]), bits[r.IntN(len(bits))]...), body[at+cut:]...)
		if alike(t, sealed(string(body)+"}")) {
			read++
		} else {
			refused++
		}
	}
	if read < lines/20 || refused < lines/20 {
		t.Errorf("%d were read and %d refused: too few of the one", read, refused)
	}
}

// alike checks that the scanner reads a line as encoding/json does, and reports whether it reads it.
func alike(t *testing.T, line []byte) bool {
	t.Helper()
	s, got := scanner{lexer: lexer{text: string(line[:max(0, len(line)-crcTail)])}}, new(Record)
	if s.record(got); !s.done() {
		return false
	}
	want, err := standard(line)
	if err != nil {
		t.Fatalf("%q is not read by encoding/json: %v", line, err)
	}
	if d := cmp.Diff(want, got, sameError); d != "" {
		t.Fatalf("%q: %s", line, d)
	}
	return true
}

func FuzzDecoders(f *testing.F) {
	for _, r := range append(full(), samples()...) {
		line, err := Encode(nil, r)
		must(f, err)
		f.Add(string(line[:len(line)-1-crcTail]))
	}
	f.Fuzz(func(t *testing.T, body string) { alike(t, sealed(body+"}")) })
}

func FuzzCheckpointDecoders(f *testing.F) {
	c := Checkpoint{V: 1, UUID: types.UUID{1}, Time: time.Unix(1, 2).UTC(), Seq: 3, Step: 4, Tokens: 5, CostUSD: 0.5, Began: time.Unix(2, 0).UTC(), State: json.RawMessage(`{"a":"<"}`)}
	for range 2 {
		b, err := marshal(&c)
		must(f, err)
		f.Add(string(b))
		c.Messages = []rnixctx.Message{*full()[0].Message, {}}
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, want := new(Checkpoint), new(Checkpoint)
		if !new(scanner).checkpoint(text, got) {
			return
		}
		if err := json.Unmarshal([]byte(text), want); err != nil {
			t.Fatalf("%q is not read by encoding/json: %v", text, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q: %s", text, d)
		}
	})
}

// TestReplayFromARecordIsTheEndOfTheWholeReplay reads a history longer than what is read at once, with lines
// that are longer than that.
func TestReplayFromARecordIsTheEndOfTheWholeReplay(t *testing.T) {
	_, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 400 {
		size := r.IntN(1500)
		if n%97 == 5 {
			size = 200 << 10
		}
		must(t, w.Message(user(fmt.Sprint(n, strings.Repeat(" word\n", size/6)))))
	}
	must(t, w.Commit(t.Context()))
	h, err := ReadHistory(t.Context(), j, id)
	must(t, err)
	stride := soak.Pick(t, "records from one beginning to the next, where lines are short", uint64(9), 1)
	for from := uint64(1); from <= 402; from++ {
		if from%stride > 0 && (from+93)%97 > 4 && from < 400 { // records 6, 103 and so on are long
			continue
		}
		due := from
		for rec, err := range j.Replay(t.Context(), id, from) {
			must(t, err)
			if d := differ(h.Records[due-1], rec); d != "" || rec.Seq != due {
				t.Fatal("from", from, "record", due, d)
			}
			due++
		}
		if due != max(from, 401) {
			t.Fatal("from", from, "it ends before record", due)
		}
	}
}

// TestDamageAheadIsNamedWhereverReadingBegins damages a long history and reads from the beginning, from
// shortly before the damage, and from far behind it, where it is not looked at.
func TestDamageAheadIsNamedWhereverReadingBegins(t *testing.T) {
	fsys, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	for n := range 2000 {
		must(t, w.Message(user(fmt.Sprint(n, strings.Repeat("x", 200)))))
	}
	must(t, w.Close(t.Context()))
	path := j.Dir(id) + "/" + StepsFile
	f, err := fsys.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	b, err := durable.ReadFile(fsys, path)
	must(t, err)
	at := bytes.Index(b, []byte(`"content":"1500x`)) + 20
	b[at] = 'y'
	must(t, f.Truncate(0))
	_, err = f.Write(b)
	must(t, err)
	for _, from := range []uint64{1, 2, 1400, 1500, 1501} {
		due, damage := from, ""
		for rec, err := range j.Replay(t.Context(), id, from) {
			if err != nil {
				damage = err.Error()
				break
			}
			if rec.Seq != due {
				t.Fatal("from", from, "record", rec.Seq, "where", due, "is due")
			}
			due++
		}
		if due != 1501 || !strings.Contains(damage, "line 1501, offset ") {
			t.Errorf("from %d: read up to %d, damage %q", from, due-1, damage)
		}
	}
	n := 0
	for _, err := range j.Replay(t.Context(), id, 1990) {
		must(t, err)
		n++
	}
	if n != 11 {
		t.Errorf("%d records are read behind the damage", n)
	}
}

// A step says nothing a second time that is in message lines: its line has no field for it, not an empty one. Lines of
// earlier versions, which have an empty one, are read by the same decoder and mean the same.
func TestAStepHasNoEmptyFieldsAndOldOnesAreReadWithTheirs(t *testing.T) {
	r := full()[3]
	bare := *r.Step
	bare.ToolCalls = []Call{{ID: "1", Name: "n", Path: "p"}}
	r.Step = &bare
	line, err := Encode(nil, r)
	must(t, err)
	for _, name := range []string{"messages", "raw_response", "tool_input", "tool_result", "tool_error"} {
		if strings.Contains(string(line), `"`+name+`"`) {
			t.Errorf("it has %s: %s", name, line)
		}
	}
	old := strings.Replace(string(line[:len(line)-1-crcTail]), `"action":`, `"raw_response":"","action":`, 1)
	s, got := scanner{lexer: lexer{text: old}}, new(Record)
	if s.record(got); !s.done() {
		t.Fatalf("refused: %s", old)
	}
	if d := differ(r, got, sameError); d != "" {
		t.Errorf("%s: %s", old, d)
	}
}
