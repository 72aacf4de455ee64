package context

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const (
	benchSize = 200 << 10 // bytes of a conversation, about 50,000 tokens
	fresh     = 32        // after so many steps a conversation is made anew, so that it keeps about its size
)

// turn is the two messages of a step, of about size bytes together.
func turn(i, size int) []Message {
	id := fmt.Sprintf("call_%d", i)
	return []Message{
		{Role: RoleAssistant, ToolCalls: []ToolCall{{ID: id, Name: "read_file", Input: json.RawMessage(`{"path":"some/file.go"}`)}}},
		{Role: RoleTool, ToolCallID: id, Content: strings.Repeat("if x { return \"z\" }\n", max(size-200, 0)/23)},
	}
}

// Row 10 of performance.md: two messages are appended to a conversation of n, and the prompt is built.
// The baseline encodes the whole conversation each time, as the specification has it.
func BenchmarkPrompt(b *testing.B) {
	for _, n := range []int{64, 500, 2000} {
		next := turn(n, 2*benchSize/n)
		b.Run(fmt.Sprint("whole/", n), func(b *testing.B) {
			b.ReportAllocs()
			var ms []Message
			for i := 0; b.Loop(); i++ {
				if i%fresh == 0 {
					b.StopTimer()
					ms = nil
					for j := range n / 2 {
						ms = append(ms, turn(j, 2*benchSize/n)...)
					}
					b.StartTimer()
				}
				ms = append(ms, next...)
				if _, err := json.Marshal(ms); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint("rnix/", n), func(b *testing.B) {
			b.ReportAllocs()
			m := NewManager()
			cid, err := m.CtxAlloc(0)
			must(b, err)
			for i := 0; b.Loop(); i++ {
				if i%fresh == 0 {
					b.StopTimer()
					must(b, m.CtxFree(cid))
					cid, err = m.CtxAlloc(0)
					must(b, err)
					for j := range n / 2 {
						must(b, m.Append(cid, turn(j, 2*benchSize/n)...))
					}
					b.StartTimer()
				}
				must(b, m.Append(cid, next...))
				if _, err := m.BuildPrompt(cid); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A whole run from nothing to 2,000 messages and 800 KiB, the prompt built after every second. The
// baseline only copies each message's text once.
func BenchmarkWholeRun(b *testing.B) {
	const n, size = 2000, 800
	turns := make([][]Message, n/2)
	for i := range turns {
		turns[i] = turn(i, size)
	}
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			var all []byte
			for _, t := range turns {
				for i := range t {
					all = append(all, t[i].Content...)
				}
			}
			if len(all) == 0 {
				b.Fatal("nothing was copied")
			}
		}
	})
	b.Run("rnix", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m := NewManager()
			cid, err := m.CtxAlloc(0)
			must(b, err)
			for _, t := range turns {
				must(b, m.Append(cid, t...))
				if _, err := m.BuildPrompt(cid); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
