package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// errTooLong is what Read returns for a message that is longer than a frame may be. The rest of the
// message was skipped; reading can go on.
var errTooLong = errors.New("the server's message is too long")

// maxSkipped is how many bytes of a message that is too long are skipped, waiting for its end. A server that sends more has no
// end, and is given up: it would keep a processor busy for ever.
const maxSkipped = 256 << 20

// errEndless is what Read returns then. Nothing can be read any more.
var errEndless = errors.New("the server's message does not end")

// lines is a connection over a child's standard input and output: one JSON message on each line.
// Writing never waits for the child: a writer of its own does.
type lines struct {
	in    io.WriteCloser // the child's standard input
	out   io.ReadCloser  // the child's standard output
	buf   *bufio.Reader
	limit int

	queue  chan []byte
	once   sync.Once
	closed chan struct{}
	writer sync.WaitGroup
}

func newLines(in io.WriteCloser, out io.ReadCloser, limit int) *lines {
	l := &lines{in: in, out: out, buf: bufio.NewReaderSize(out, 32<<10), limit: limit,
		queue: make(chan []byte, 64), closed: make(chan struct{})}
	l.writer.Go(l.write) // ends with Close, waited for by the child's undertaker
	return l
}

// SessionID returns "": there is one session in the life of a child.
func (l *lines) SessionID() string { return "" }

// Read returns the next message. A line that is none is an error that quotes it.
func (l *lines) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := readLine(l.buf, l.limit, maxSkipped)
		if len(line) == 0 && err == nil {
			continue
		}
		if err != nil {
			if errors.Is(err, errTooLong) {
				return nil, err
			}
			select {
			case <-l.closed:
				return nil, io.EOF
			default:
			}
			return nil, err
		}
		if line[0] != '{' && line[0] != '[' {
			return nil, fmt.Errorf("the server wrote a line to its standard output that is not part of the protocol: %s (text for people belongs on standard error)", quote(line))
		}
		msg, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			return nil, fmt.Errorf("the server sent a malformed message: %s: %w", quote(line), err)
		}
		return msg, nil
	}
}

// readLine returns the next line without its end and the white space around it. It returns io.EOF
// only when nothing is left, and errTooLong, after skipping it, for a line of more than limit bytes. errEndless is one of more
// than limit and skipped bytes.
func readLine(r *bufio.Reader, limit, skipped int) ([]byte, error) {
	var line []byte
	size := 0
	for {
		piece, err := r.ReadSlice('\n')
		size += len(piece)
		if size <= limit {
			line = append(line, piece...)
		} else {
			line = nil
			if size > limit+skipped {
				return nil, fmt.Errorf("%w (%d bytes without a line end)", errEndless, size)
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (size == 0 || !errors.Is(err, io.EOF)) {
			return nil, err
		}
		if size > limit {
			return nil, fmt.Errorf("%w (%d bytes, at most %d are read)", errTooLong, size, limit)
		}
		return bytes.TrimSpace(line), nil
	}
}

// Write queues a message. It waits only when the child has left many messages unread.
func (l *lines) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	select {
	case <-l.closed:
		return io.ErrClosedPipe
	default:
	}
	select {
	case l.queue <- append(data, '\n'):
		return nil
	case <-l.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write moves queued messages to the child. A child that closed its input gets no more; that it
// answers no more is noticed by Read.
func (l *lines) write() {
	var err error
	for {
		select {
		case data := <-l.queue:
			if err == nil {
				_, err = l.in.Write(data)
			}
		case <-l.closed:
			return
		}
	}
}

// Close closes both pipes. It does not wait for the child.
func (l *lines) Close() error {
	l.once.Do(func() {
		close(l.closed)
		_ = l.in.Close()  // what is lost was for a child that is to end
		_ = l.out.Close() // nothing was written
	})
	return nil
}

// quote returns the beginning of a line as it can be shown.
func quote(line []byte) string {
	const most = 200
	if len(line) > most {
		return fmt.Sprintf("%q...", line[:most])
	}
	return fmt.Sprintf("%q", line)
}
