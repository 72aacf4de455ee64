package ipc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"rnix/internal/soak"
	"rnix/types"
)

// addCount adds a stream of the numbers from From to Target.
func addCount(s *Server) {
	HandleStream(s, count, func(_ context.Context, _ *Peer, r EventsRequest, out *Stream) error {
		to, err := strconv.Atoi(r.Target)
		if err != nil {
			return types.Errorf(types.ErrNotFound, "Count", "", "%q is no number", r.Target)
		}
		for n := r.From; n <= uint64(to); n++ {
			if err := out.SendRaw(n, "n", strconv.AppendUint(nil, n, 10)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestStreamBringsEveryEventInOrderAndThenEOF(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, addCount)
	f, err := Open(t.Context(), c, count, EventsRequest{From: 1, Target: "100000"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for fr, err := range f.All() {
		n++
		if err != nil || fr.Data != n || fr.Seq != uint64(n) || fr.Kind != "n" {
			t.Fatalf("frame %d: %+v, %v", n, fr, err)
		}
	}
	if n != 100000 {
		t.Errorf("%d events", n)
	}
	if _, err := f.Next(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

func TestRefusalOfAStreamIsAnOrdinaryError(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, addCount)
	if _, err := Open(t.Context(), c, count, EventsRequest{Target: "x"}); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("err = %v", err)
	}
	status, f := post(t, c, "POST", "/v1/count", strings.NewReader(`{"target":"x"}`))
	if status != 404 || f.Error.Code != types.ErrNotFound {
		t.Errorf("%d %+v", status, f.Error)
	}
}

func TestErrorAndPanicInAStreamAreItsLastEvent(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, func(s *Server) {
		HandleStream(s, count, func(_ context.Context, _ *Peer, r EventsRequest, out *Stream) error {
			_ = out.Send(1, "n", 1)
			_ = out.Missed(2, 5)
			if err := out.Send(6, "end", 1); types.CodeOf(err) != types.ErrInternal {
				t.Errorf("reserved kind: %v", err)
			}
			if r.Target == "panic" {
				panic("oh")
			}
			return types.Errorf(types.ErrStorage, "Read", "/x", "gone")
		})
	})
	for target, code := range map[string]types.ErrCode{"": types.ErrStorage, "panic": types.ErrInternal} {
		f, err := Open(t.Context(), c, count, EventsRequest{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		if fr, err := f.Next(); err != nil || fr.Data != 1 {
			t.Errorf("%+v, %v", fr, err)
		}
		if fr, err := f.Next(); err != nil || fr.Missed == nil || *fr.Missed != (Missed{2, 5}) {
			t.Errorf("%+v, %v", fr, err)
		}
		if _, err := f.Next(); types.CodeOf(err) != code {
			t.Errorf("err = %v", err)
		}
		f.Close()
	}
}

func TestLastEventIDContinuesAfterIt(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, addCount)
	cn, err := c.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cn.Close()
	body := `{"from":1,"target":"9"}`
	res, err := cn.exchange([]byte(fmt.Sprintf("POST /v1/count HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 7\r\nContent-Length: %d\r\n\r\n%s", len(body), body)))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(res.body)
	if want := "id: 8\nevent: n\ndata: 8\n\nid: 9\nevent: n\ndata: 9\n\nevent: end\ndata: {}\n\n"; string(got) != want {
		t.Errorf("%q", got)
	}
}

func TestBrokenStreamIsContinuedWithoutLossOrRepetition(t *testing.T) {
	runs := 0
	c, _ := serveOn(t, ServerOptions{}, func(s *Server) {
		HandleStream(s, count, func(_ context.Context, _ *Peer, r EventsRequest, out *Stream) error {
			runs++
			for n := r.From; n <= 9; n++ {
				if err := out.Send(n, "n", n); err != nil {
					return err
				}
				if n%4 == 0 { // what a connection looks like that was cut between two events
					for buffered := 1; buffered > 0; {
						out.mu.Lock()
						conn := out.conn
						buffered = len(out.buf)
						if buffered > 0 {
							_, _ = conn.Write(out.buf)
							out.buf = nil
						}
						out.mu.Unlock()
						_ = conn.Close()
					}
					return nil
				}
			}
			return nil
		})
	})
	f, err := Open(t.Context(), c, count, EventsRequest{From: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []int
	for fr, err := range f.All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fr.Data)
	}
	if fmt.Sprint(got) != "[1 2 3 4 5 6 7 8 9]" || runs != 3 {
		t.Errorf("got %v in %d runs", got, runs)
	}
}

func TestClientThatStopsReadingHoldsUpNobodyElse(t *testing.T) {
	ended := make(chan error, 1)
	endless := Method[Empty, int]{Name: "endless", Stream: true}
	c, _ := serveOn(t, ServerOptions{StallTimeout: 2 * time.Second}, func(s *Server) {
		addCount(s)
		HandleStream(s, endless, func(ctx context.Context, _ *Peer, _ Empty, out *Stream) error {
			data := []byte(`"` + strings.Repeat("x", 1000) + `"`)
			for n := uint64(1); ; n++ {
				if err := out.SendRaw(n, "n", data); err != nil {
					<-ctx.Done() // a stream that is cut off ends the handler's context too
					ended <- err
					return err
				}
			}
		})
	})
	cn, err := c.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cn.Close()
	if _, err := io.WriteString(cn, "POST /v1/endless HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), c, count, EventsRequest{From: 1, Target: "20000"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for _, err := range f.All() {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 20000 {
		t.Errorf("%d events", n)
	}
	if err := <-ended; types.CodeOf(err) != types.ErrDisconnected {
		t.Errorf("err = %v", err)
	}
}

func TestHandlerLearnsThatTheClientHasLeft(t *testing.T) {
	ended := make(chan error, 1)
	quiet := Method[Empty, int]{Name: "quiet", Stream: true}
	c, _ := serveOn(t, ServerOptions{}, func(s *Server) {
		HandleStream(s, quiet, func(ctx context.Context, _ *Peer, _ Empty, out *Stream) error {
			if err := out.Start(); err != nil {
				return err
			}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		})
	})
	f, err := Open(t.Context(), c, quiet, Empty{})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := f.Next(); types.CodeOf(err) != types.ErrCancelled {
		t.Errorf("reader: %v", err)
	}
	if err := <-ended; types.CodeOf(err) != types.ErrCancelled {
		t.Errorf("handler: %v", err)
	}
}

func TestSilentStreamShowsThatItIsAlive(t *testing.T) {
	quiet := Method[Empty, int]{Name: "quiet", Stream: true}
	c, s := serveOn(t, ServerOptions{KeepAlive: time.Millisecond}, func(s *Server) {
		HandleStream(s, quiet, func(ctx context.Context, _ *Peer, _ Empty, out *Stream) error {
			<-ctx.Done() // it neither starts nor sends
			return ctx.Err()
		})
	})
	cn, err := c.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cn.Close()
	res, err := cn.exchange([]byte("POST /v1/quiet HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(res.body)
	for range 3 {
		if line, err := br.ReadString('\n'); err != nil || line != ":\n" && line != "\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	go func() { _ = s.Shutdown(context.Background()) }()
	rest, _ := io.ReadAll(br)
	if !strings.Contains(string(rest), "event: error\ndata: {\"code\":\"SERVICE_UNAVAILABLE\"") {
		t.Errorf("%q", rest)
	}
}

func TestHugeEventArrivesWhole(t *testing.T) {
	text := Method[Empty, string]{Name: "text", Stream: true}
	want := strings.Repeat("\n<ü>", soak.Pick(t, "MiB of text", 5, 25)<<20/5)
	c, _ := serveOn(t, ServerOptions{}, func(s *Server) {
		HandleStream(s, text, func(_ context.Context, _ *Peer, _ Empty, out *Stream) error { return out.Send(1, "t", want) })
	})
	f, err := Open(t.Context(), c, text, Empty{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if fr, err := f.Next(); err != nil || fr.Data != want {
		t.Errorf("%d bytes, %v", len(fr.Data), err)
	}
}

func FuzzFrameReader(f *testing.F) {
	f.Add([]byte("id: 1\nevent: x\ndata: {}\n\n:\n\ndata: a\ndata: b\n\n"))
	f.Add([]byte("id: x\n"))
	f.Add(appendFrame(nil, 3, "k", []byte("a\nb")))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := frameReader{br: bufio.NewReaderSize(strings.NewReader(string(in)), 16)}
		for {
			w, err := r.next()
			if err != nil {
				return
			}
			if strings.ContainsAny(w.kind, "\r") || strings.Contains(string(w.data), "\r") {
				continue // our own streams have none
			}
			again := frameReader{br: bufio.NewReader(strings.NewReader(string(appendFrame(nil, w.seq, w.kind, w.data))))}
			w2, err := again.next()
			if err != nil || w2.seq != w.seq || w2.kind != w.kind || string(w2.data) != string(w.data) {
				t.Errorf("%+v became %+v, %v", w, w2, err)
			}
		}
	})
}

func FuzzResponseHead(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
	f.Add("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 404 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		res, err := readHead(bufio.NewReader(strings.NewReader(in)))
		if err != nil {
			return
		}
		if _, err := res.all(); err == nil && res.keep && !strings.Contains(in, "ength") {
			t.Error("a body without a length leaves the connection usable")
		}
	})
}

func TestStrangerOnTheSocketIsNamedAsSuch(t *testing.T) {
	_, err := readHead(bufio.NewReader(strings.NewReader("SSH-2.0-x\r\n")))
	var e *types.SyscallError
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "not an rnix daemon") {
		t.Errorf("err = %v", err)
	}
}
