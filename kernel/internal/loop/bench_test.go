package loop

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	rnixctx "rnix/context"
)

// Row 10 of performance.md: two messages are appended to a conversation of 500 messages and 200 KiB,
// the request is built and written to a socket on the loopback. The baseline writes as many bytes.
func BenchmarkRequestSent(b *testing.B) {
	const messages, fresh = 500, 32 // a conversation is made anew after so many steps
	said := []rnixctx.Message{
		{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: "call_1", Name: "read_file", Input: json.RawMessage(`{"path":"some/file.go"}`)}}},
		{Role: rnixctx.RoleTool, ToolCallID: "call_1", Content: strings.Repeat("if x { return \"z\" }\n", 26)},
	}
	begin := func(b *testing.B) (next func() []byte) {
		m := rnixctx.NewManager()
		cid, err := m.CtxAlloc(0)
		if err != nil {
			b.Fatal(err)
		}
		r, err := newRequest(Head{Intent: "x", SystemPrompt: strings.Repeat("rule ", 400)}, []byte("[]"))
		if err != nil {
			b.Fatal(err)
		}
		for range messages / 2 {
			if err := m.Append(cid, said...); err != nil {
				b.Fatal(err)
			}
		}
		next = func() []byte {
			if err := m.Append(cid, said...); err != nil {
				b.Fatal(err)
			}
			p, err := m.BuildPrompt(cid)
			if err != nil {
				b.Fatal(err)
			}
			return r.bytes(p, 0)
		}
		next() // the first request of a process is written whole
		return next
	}
	b.Run("bare", func(b *testing.B) {
		conn := drain(b)
		next := begin(b)
		var docs [fresh][]byte
		for i := range docs {
			docs[i] = append([]byte(nil), next()...)
		}
		b.SetBytes(int64(len(docs[fresh/2])))
		for i := 0; b.Loop(); i++ {
			if _, err := conn.Write(docs[i%fresh]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("rnix", func(b *testing.B) {
		conn := drain(b)
		b.ReportAllocs()
		var next func() []byte
		for i := 0; b.Loop(); i++ {
			if i%fresh == 0 {
				b.StopTimer()
				next = begin(b)
				b.StartTimer()
			}
			if _, err := conn.Write(next()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// drain returns a connection whose other end reads and forgets.
func drain(b *testing.B) net.Conn {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() { // ends when the writer closes its end
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, 256<<10))
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(); <-done })
	return conn
}
