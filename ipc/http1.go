package ipc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// What a client accepts of a server, in bytes.
const (
	maxHead   = 64 << 10
	maxAnswer = 512 << 20
)

// instanceHeader names the run of the server that a stream came from. Part of the wire format.
const instanceHeader = "Rnix-Instance"

// wireHost is how a client calls the server. No page can say that of an address with a port. Part of the wire format.
const wireHost = "rnix"

// conn is one connection of a client, with one exchange at a time.
type conn struct {
	net.Conn
	br   *bufio.Reader
	used time.Time // when the last exchange ended
}

func newConn(nc net.Conn) *conn { return &conn{Conn: nc, br: bufio.NewReaderSize(nc, 4<<10)} }

// during runs f, and closes the connection when ctx ends before f does. It returns f's error, or
// ctx's if that came first: the connection is then closed, whatever f says.
func (c *conn) during(ctx context.Context, f func() error) error {
	if ctx.Done() == nil {
		return f()
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err := f()
	if !stop() {
		return context.Cause(ctx)
	}
	return err
}

// alive reports whether the server has neither closed the idle connection nor said anything on it.
func (c *conn) alive() bool {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok || c.br.Buffered() > 0 {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		alive = err == unix.EAGAIN
	})
	return err == nil && alive
}

// request returns a whole request as bytes. Last, if not 0, is the event after which a stream
// continues.
func request(name, path string, req any, last uint64) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(req); err != nil {
		return nil, types.Errorf(types.ErrInvalid, name, "", "the request cannot be encoded: %w", err)
	}
	if body.Len() > MaxBody {
		return nil, tooLarge(name)
	}
	b := make([]byte, 0, 192+body.Len())
	b = append(b, "POST "+path+" HTTP/1.1\r\nHost: "+wireHost+"\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(body.Len()), 10)
	if last != 0 {
		b = append(b, "\r\nLast-Event-ID: "...)
		b = strconv.AppendUint(b, last, 10)
	}
	b = append(b, "\r\n\r\n"...)
	return append(b, body.Bytes()...), nil
}

// response is the head of an answer and what is needed to read the rest.
type response struct {
	status   int
	kind     string // media type without parameters
	instance string
	keep     bool // the connection can be used again once the body has been read
	body     io.Reader
}

// exchange writes the request msg and reads the head of the answer. That the server takes no more of
// msg is no error if it has answered already.
func (c *conn) exchange(msg []byte) (*response, error) {
	_, werr := c.Write(msg)
	res, err := readHead(c.br)
	if err != nil && werr != nil {
		return nil, werr
	}
	if err == nil && werr != nil {
		res.keep = false
	}
	return res, err
}

// all returns the whole body.
func (r *response) all() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r.body, maxAnswer+1))
	if err == nil && len(b) > maxAnswer {
		err = protocolError("the answer is longer than %d MiB", maxAnswer>>20)
	}
	return b, err
}

func protocolError(format string, args ...any) error {
	return types.Errorf(types.ErrInternal, "", "", "what listens here is not an rnix daemon: "+format, args...)
}

// readHead reads the status line and the header of an answer, and passes over interim ones.
func readHead(br *bufio.Reader) (*response, error) {
	for {
		r, err := readOneHead(br)
		if err != nil || r.status >= 200 || r.status == 101 {
			return r, err
		}
	}
}

func readOneHead(br *bufio.Reader) (*response, error) {
	budget := maxHead
	line, err := headLine(br, &budget)
	if err != nil {
		return nil, err
	}
	proto, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || proto != "HTTP/1.1" && proto != "HTTP/1.0" {
		return nil, protocolError("it answers %q", line[:min(len(line), 80)])
	}
	r := &response{status: status, keep: proto == "HTTP/1.1"}
	length, chunked := int64(-1), false
	for {
		if line, err = headLine(br, &budget); err != nil {
			return nil, noEOF(err)
		}
		if line == "" {
			break
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.EqualFold(key, "Content-Length"):
			if length, err = strconv.ParseInt(value, 10, 64); err != nil || length < 0 {
				return nil, protocolError("its Content-Length is %q", value)
			}
		case strings.EqualFold(key, "Transfer-Encoding"):
			chunked = strings.EqualFold(value, "chunked")
		case strings.EqualFold(key, "Connection"):
			r.keep = r.keep && !strings.EqualFold(value, "close")
		case strings.EqualFold(key, "Content-Type"):
			kind, _, _ := strings.Cut(value, ";")
			r.kind = strings.ToLower(strings.TrimSpace(kind))
		case strings.EqualFold(key, instanceHeader):
			r.instance = value
		}
	}
	switch {
	case chunked:
		r.body, r.keep = httputil.NewChunkedReader(br), false // its trailer is not worth a reader
	case length >= 0:
		r.body = &exactly{br, length}
	default:
		r.body, r.keep = br, false
	}
	return r, nil
}

// headLine reads one line of a head and takes its length off budget.
func headLine(br *bufio.Reader, budget *int) (string, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		if *budget -= len(part); *budget < 0 {
			return "", protocolError("its header is longer than %d KiB", maxHead>>10)
		}
		line = append(line, part...)
		if err == nil {
			return string(bytes.TrimRight(line, "\r\n")), nil
		}
		if err != bufio.ErrBufferFull {
			if len(line) > 0 {
				err = noEOF(err)
			}
			return "", err
		}
	}
}

// exactly reads n bytes, and an end before that is an error.
type exactly struct {
	r io.Reader
	n int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.n)])
	e.n -= int64(n)
	if e.n > 0 {
		err = noEOF(err)
	}
	return n, err
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
