package ipc

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkCall and BenchmarkStream stand beside a bare Unix socket that carries the same bytes in
// the same run; read them as ratios.
func BenchmarkCall(b *testing.B) {
	c, _ := serveOn(b, ServerOptions{}, nil)
	text := strings.Repeat("x", 200)
	b.Run("bare", func(b *testing.B) {
		conn := bareEcho(b)
		buf := make([]byte, 240)
		for b.Loop() {
			if _, err := conn.Write(buf); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(conn, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("call", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Call(context.Background(), c, echo, echoRequest{Text: text}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("call by net-http", func(b *testing.B) {
		b.ReportAllocs()
		tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", c.socket)
		}}
		defer tr.CloseIdleConnections()
		for b.Loop() {
			res, err := (&http.Client{Transport: tr}).Post("http://rnix/v1/echo", "application/json", strings.NewReader(`{"text":"`+text+`"}`))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	})
	over := func(b *testing.B, address string) {
		for b.Loop() {
			c, err := Connect(context.Background(), address)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := Call(context.Background(), c, who, Empty{}); err != nil {
				b.Fatal(err)
			}
			_ = c.Close()
		}
	}
	b.Run("connect over a channel, call, close", func(b *testing.B) {
		address, _, _ := openChannel(b, channelOn(b), 5)
		over(b, address)
	})
	b.Run("connect over a road, call, close", func(b *testing.B) {
		address, _ := openRoad(b, roadOn(b, ours), 5)
		over(b, address)
	})
	b.Run("connect, call, close", func(b *testing.B) {
		for b.Loop() {
			c, err := Connect(context.Background(), c.socket)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := Call(context.Background(), c, echo, echoRequest{Text: text}); err != nil {
				b.Fatal(err)
			}
			_ = c.Close()
		}
	})
}

func BenchmarkStream(b *testing.B) {
	data := []byte(`{"seq":1234567,"time":"2026-01-02T03:04:05.123456789Z","pid":42,"uuid":"0190a0b0-0000-7000-8000-000000000000","kind":"syscall","name":"Open","path":"/dev/fs/some/where/file.go","result":"fd 12","dur_ns":12345}`)
	endless := Method[Empty, Empty]{Name: "endless", Stream: true}
	c, _ := serveOn(b, ServerOptions{}, func(s *Server) {
		HandleStream(s, endless, func(_ context.Context, _ *Peer, _ Empty, out *Stream) error {
			for n := uint64(1); ; n++ {
				if err := out.SendRaw(n, "syscall", data); err != nil {
					return err
				}
			}
		})
	})
	b.Run("bare", func(b *testing.B) {
		l, err := net.Listen("unix", tempSocket(b))
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		go func() { // ends when the reader closes its end
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			w := bufio.NewWriterSize(conn, flushSize)
			for err == nil {
				_, err = w.Write(data)
			}
		}()
		conn, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		r := bufio.NewReaderSize(conn, 32<<10)
		buf := make([]byte, len(data))
		for b.Loop() {
			if _, err := io.ReadFull(r, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("event", func(b *testing.B) {
		b.ReportAllocs()
		f, err := Open(b.Context(), c, endless, Empty{})
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		for b.Loop() {
			if _, err := f.NextRaw(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// bareEcho returns a connection whose other end sends back what it reads.
func bareEcho(b *testing.B) net.Conn {
	b.Helper()
	l, err := net.Listen("unix", tempSocket(b))
	if err != nil {
		b.Fatal(err)
	}
	go func() { // ends when the other end is closed
		conn, err := l.Accept()
		_ = l.Close()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}, make([]byte, 4096))
	}()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}
