package ipc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strconv"

	"rnix/types"
)

// maxFrame is the longest event in bytes that a client accepts.
const maxFrame = 64 << 20

// Frame is one entry of a stream.
type Frame[T any] struct {
	Seq    uint64
	Kind   string
	Data   T
	Raw    json.RawMessage // Data as it came; valid until the next frame is read
	Missed *Missed         // not nil: these events are lost to this reader, and Data is zero
}

// Feed reads a stream. It is for one goroutine, except Close, which anybody may call.
type Feed[T any] struct {
	ctx    context.Context // of the stream, from Open to Close
	cancel context.CancelFunc
	client *Client
	name   string
	path   string
	req    any

	conn     *conn
	stop     func() bool // of the watch on ctx
	lines    frameReader
	instance string
	last     uint64 // the last event that was returned
	moved    bool   // there was one since the stream was opened
	err      error  // sticky
}

// Open calls the stream m and returns when the daemon has accepted or refused it. The stream ends
// with ctx. The caller must call Close.
func Open[Req, Resp any](ctx context.Context, c *Client, m Method[Req, Resp], req Req) (*Feed[Resp], error) {
	ctx, cancel := context.WithCancel(ctx)
	e := &Feed[Resp]{ctx: ctx, cancel: cancel, client: c, name: m.Name, path: m.Path(), req: req}
	if err := e.open(); err != nil {
		cancel()
		return nil, err
	}
	return e, nil
}

// Next waits for the next frame. It returns io.EOF when the stream is complete, and the error with
// which the daemon or ctx ended it. When the daemon closed the connection without a word, as it does
// to a reader that stood still for minutes, Next opens the stream again where it was; if that
// cannot be done the error has the code DEVICE_DISCONNECTED. All errors are final.
func (e *Feed[T]) Next() (Frame[T], error) {
	f, err := e.NextRaw()
	if err != nil || f.Missed != nil {
		return f, err
	}
	if err := json.Unmarshal(f.Raw, &f.Data); err != nil {
		return f, e.fail(types.Errorf(types.ErrInternal, e.name, e.client.socket, "event %d is not what this program understands; are daemon and program of the same version? %w", f.Seq, err))
	}
	return f, nil
}

// NextRaw is Next for a reader who passes the events on: it leaves Data zero.
func (e *Feed[T]) NextRaw() (Frame[T], error) {
	for e.err == nil {
		w, err := e.lines.next()
		if err != nil {
			if e.resume(err) {
				continue
			}
			return Frame[T]{}, e.fail(broken(e.ctx, e.name, e.client.socket, noEOF(err)))
		}
		if w.seq != 0 {
			e.last, e.moved = w.seq, true
		}
		switch w.kind {
		case kindEnd:
			return Frame[T]{}, e.fail(io.EOF)
		case kindError:
			var we *types.WireError
			if err := json.Unmarshal(w.data, &we); err != nil {
				return Frame[T]{}, e.fail(protocolError("its error is %q", w.data[:min(len(w.data), 80)]))
			}
			return Frame[T]{}, e.fail(refusal(e.name, e.client.socket, we))
		case kindMissed:
			m := new(Missed)
			if err := json.Unmarshal(w.data, m); err != nil {
				return Frame[T]{}, e.fail(protocolError("its missed range is %q", w.data[:min(len(w.data), 80)]))
			}
			return Frame[T]{Seq: w.seq, Kind: w.kind, Raw: w.data, Missed: m}, nil
		}
		return Frame[T]{Seq: w.seq, Kind: w.kind, Raw: w.data}, nil
	}
	return Frame[T]{}, e.err
}

// All ranges over the frames until the stream is complete. An error other than io.EOF is the last
// thing that it yields.
func (e *Feed[T]) All() iter.Seq2[Frame[T], error] {
	return func(yield func(Frame[T], error) bool) {
		for {
			f, err := e.Next()
			if err == io.EOF || !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the stream. A Next that is waiting returns an error of code CANCELLED.
func (e *Feed[T]) Close() error {
	e.cancel()
	return nil
}

// fail makes err the answer to all that is asked from now on, and closes the connection.
func (e *Feed[T]) fail(err error) error {
	e.err = err
	e.cancel()
	e.stop()
	_ = e.conn.Close()
	return err
}

// open connects and reads the head of the answer.
func (e *Feed[T]) open() error {
	msg, err := request(e.name, e.path, e.req, e.last)
	if err != nil {
		return err
	}
	cn, err := e.client.conn(e.ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(e.ctx, func() { _ = cn.Close() }) // ends with ctx, which Close ends
	res, err := cn.exchange(msg)
	if err != nil {
		stop()
		_ = cn.Close()
		return broken(e.ctx, e.name, e.client.socket, err)
	}
	if res.kind == "text/event-stream" {
		e.conn, e.stop, e.instance = cn, stop, res.instance
		e.lines = frameReader{br: bufio.NewReaderSize(res.body, 32<<10)}
		return nil
	}
	defer cn.Close()
	defer stop()
	body, err := res.all()
	if err != nil {
		return broken(e.ctx, e.name, e.client.socket, err)
	}
	var f failure
	if err := json.Unmarshal(body, &f); err != nil || f.OK {
		return protocolError("it answers a stream with %q", body[:min(len(body), 80)])
	}
	return refusal(e.name, e.client.socket, f.Error)
}

// resume opens the stream again after the last event that was seen, and reports whether that was
// possible: only with the same run of the daemon, which alone knows what the number means, only if
// the stream has moved since the last time, and not after nonsense.
func (e *Feed[T]) resume(err error) bool {
	var nonsense *types.SyscallError
	if e.ctx.Err() != nil || !e.moved || errors.As(err, &nonsense) {
		return false
	}
	was := e.instance
	e.moved = false
	e.stop()
	_ = e.conn.Close()
	return e.open() == nil && e.instance == was && was != ""
}

// wireFrame is an event as it came.
type wireFrame struct {
	seq  uint64
	kind string
	data []byte
}

// frameReader reads server-sent events.
type frameReader struct {
	br   *bufio.Reader
	data []byte // of the frame in hand
	long []byte // a line that is longer than br's buffer
	kind string // of the frame before
}

// next returns the next event that has data. A stream that ends within an event ends with
// io.ErrUnexpectedEOF.
func (r *frameReader) next() (wireFrame, error) {
	var f wireFrame
	r.data = r.data[:0]
	begun, has := false, false
	for {
		line, err := r.line()
		if err != nil {
			if begun {
				err = noEOF(err)
			}
			return f, err
		}
		if len(line) == 0 {
			if has {
				f.data = r.data
				return f, nil
			}
			f, begun = wireFrame{}, false
			continue
		}
		key, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		begun = true
		switch string(key) {
		case "id":
			if f.seq, err = strconv.ParseUint(string(value), 10, 64); err != nil {
				return f, protocolError("its event number is %q", value[:min(len(value), 80)])
			}
		case "event":
			if string(value) != r.kind { // mostly the same again, and then nothing is allocated
				r.kind = string(value)
			}
			f.kind = r.kind
		case "data":
			if len(r.data)+len(value) > maxFrame {
				return f, protocolError("its event is longer than %d MiB", maxFrame>>20)
			}
			if has {
				r.data = append(r.data, '\n')
			}
			r.data = append(r.data, value...)
			has = true
		}
	}
}

// line returns the next line without its end; it is valid until the next call.
func (r *frameReader) line() ([]byte, error) {
	part, err := r.br.ReadSlice('\n')
	if err == nil {
		return bytes.TrimRight(part, "\r\n"), nil
	}
	r.long = r.long[:0]
	for err == bufio.ErrBufferFull {
		if r.long = append(r.long, part...); len(r.long) > maxFrame {
			return nil, protocolError("its line is longer than %d MiB", maxFrame>>20)
		}
		part, err = r.br.ReadSlice('\n')
	}
	r.long = append(r.long, part...)
	if err == nil {
		return bytes.TrimRight(r.long, "\r\n"), nil
	}
	if len(r.long) > 0 {
		err = noEOF(err)
	}
	return nil, err
}
