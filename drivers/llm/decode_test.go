package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rnixctx "rnix/context"
	"rnix/types"
	"rnix/vfs"
)

// document is a request with n messages, as the kernel writes it.
func document(n int) []byte {
	req := LLMRequest{SystemPrompt: strings.Repeat("Be brief. ", 50), Tools: []ToolSpec{{"look", "Looks.", json.RawMessage(`{"type":"object"}`)}}}
	for i := range n {
		switch m := (rnixctx.Message{Content: fmt.Sprintf("message %d: %s", i, strings.Repeat("words ", 20))}); i % 3 {
		case 0:
			m.Role = rnixctx.RoleUser
			req.Messages = append(req.Messages, m)
		case 1:
			m.Role, m.ToolCalls = rnixctx.RoleAssistant, []rnixctx.ToolCall{{ID: fmt.Sprint(i), Name: "look", Input: json.RawMessage(`{"a":"b"}`)}}
			req.Messages = append(req.Messages, m)
		default:
			m.Role, m.ToolCallID = rnixctx.RoleTool, fmt.Sprint(i-1)
			req.Messages = append(req.Messages, m)
		}
	}
	b, err := json.Marshal(req)
	if err != nil {
		panic(err)
	}
	return b
}

func TestGrowingRequestIsDecodedLikeAFreshOne(t *testing.T) {
	var d decoder
	for _, n := range []int{1, 2, 3, 3, 6, 30, 29, 31, 0, 1, 2} {
		doc := document(n)
		got, err := d.decode(doc)
		if err != nil {
			t.Fatal(err)
		}
		var want LLMRequest
		if err := json.Unmarshal(doc, &want); err != nil {
			t.Fatal(err)
		}
		if len(want.Messages) == 0 {
			want.Messages = got.Messages[:0:0] // nil or empty is the same
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d messages: %s", n, diff)
		}
	}
}

func TestEarlierRequestIsNotChangedByLaterOnes(t *testing.T) {
	var d decoder
	first, _ := d.decode(document(3))
	kept := fmt.Sprint(first)
	buf := append([]byte(nil), document(5)...)
	if _, err := d.decode(buf); err != nil {
		t.Fatal(err)
	}
	clear(buf)
	if _, err := d.decode(document(4)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(first); got != kept {
		t.Errorf("the first request became %s", got)
	}
}

func TestTextIsTheIntent(t *testing.T) {
	var d decoder
	for in, code := range map[string]types.ErrCode{
		"say hello\n": "", "[1] list the files": "", "\xff": types.ErrInvalid, "a\x00b": types.ErrInvalid, "": types.ErrInvalid, "  \n": types.ErrInvalid,
		`{"intent":`: types.ErrInvalid, `{"prompt":"x"}`: types.ErrInvalid, `{"messages":7}`: types.ErrInvalid,
	} {
		req, err := d.decode([]byte(in))
		if got := types.CodeOf(err); got != code {
			t.Errorf("%q: %v, want code %q", in, err, code)
		}
		if code == "" && req.Intent != strings.TrimSpace(in) {
			t.Errorf("%q: intent is %q", in, req.Intent)
		}
	}
}

// FuzzDecoder: whatever was decoded before, a document is decoded as if it were the first.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte(`{"messages":[]}`), []byte(`{"messages":[{"role":"user","content":"x"}]}`))
	f.Add([]byte(`{"messages":[{"role":"user"}]}`), []byte(`{"messages":[{"role":"user"}],"messages":[null]}`))
	f.Add([]byte(`{"intent":"\"messages\":[","messages":[{}]}`), []byte(`{"intent":"\"messages\":[","messages":[{},{"content":"y"}]} `))
	f.Add([]byte(`{"Messages":[{}]}`), []byte(`{"Messages":[{},{"tool_calls":[{"id":"1"}]}]}`))
	f.Add([]byte(`{"messages":[1]}`), []byte(`{"messages":[12]}`))
	f.Add([]byte(`{"messages":[null]}`), []byte(`{"messages":[null,{}]}`))
	f.Add(document(3), document(7))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var d decoder
		_, _ = d.decode(a) // only what it remembers of it matters
		for range 2 {
			got, err := d.decode(b)
			var want LLMRequest
			if body := bytes.Trim(b, jsonSpace); len(body) == 0 || body[0] != '{' {
				continue
			}
			if wantErr := vfs.DecodeRequest(b, &want); (err == nil) != (wantErr == nil) {
				t.Fatalf("error is %v, want %v", err, wantErr)
			} else if err != nil {
				continue
			}
			if len(want.Messages) == 0 && len(got.Messages) == 0 {
				want.Messages, got.Messages = nil, nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func BenchmarkDecodeStep(b *testing.B) {
	for _, n := range []int{20, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			docs := make([][]byte, 400)
			for i := range docs {
				docs[i] = document(n + 2*i)
			}
			var d decoder
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				k := i % len(docs)
				if k == 0 {
					b.StopTimer()
					if _, err := d.decode(document(n - 2)); err != nil { // the first step is not measured
						b.Fatal(err)
					}
					b.StartTimer()
				}
				if _, err := d.decode(docs[k]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
