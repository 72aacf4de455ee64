package gateway

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"
)

// exchange is one request of a CLI and its answer.
type exchange struct {
	h       *Handler
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context // of the request to the vendor, which cancel ends
	cancel  context.CancelFunc
	secrets map[string]string
	whole   atomic.Bool // the vendor was sent all of the request
	sent    func()      // is called when the body of the request is not needed any more; nil = it has none
}

// hop are the headers that are of one connection, and those that are ours to say.
var hop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
	"Content-Length", "Content-Encoding", "Accept-Encoding", "Cookie", "Set-Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}

// ask sends a request to the vendor. Redirects are not followed.
func (x *exchange) ask(body pieces) (*http.Response, error) {
	url := x.h.up.Base + strings.TrimPrefix(x.r.URL.EscapedPath(), "/v1")
	if x.r.URL.RawQuery != "" {
		url += "?" + x.r.URL.RawQuery
	}
	req, err := http.NewRequestWithContext(x.ctx, x.r.Method, url, nil)
	if err != nil {
		return nil, err
	}
	if req.ContentLength = body.size(); req.ContentLength > 0 {
		req.Body, req.GetBody = body.reader(), func() (io.ReadCloser, error) { return body.reader(), nil }
	}
	req.Header = x.r.Header.Clone()
	for _, name := range strings.Split(req.Header.Get("Connection"), ",") {
		req.Header.Del(textproto.TrimString(name))
	}
	for _, name := range hop {
		req.Header.Del(name)
	}
	for name, values := range x.h.up.Header {
		req.Header[name] = values
	}
	for name, value := range x.secrets {
		req.Header.Set(name, value)
	}
	req.Header.Set("Accept-Encoding", "identity")
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { x.whole.Store(false) }, // also of a second try
		WroteRequest: func(i httptrace.WroteRequestInfo) { x.whole.Store(i.Err == nil) },
	}))
	resp, err := x.h.via.transport.RoundTrip(req)
	if err == nil && x.sent != nil { // it is answered
		resp.Request = nil // which holds the body
		x.sent()
	}
	return resp, err
}

// free passes on what costs nothing.
func (x *exchange) free(body pieces) error {
	resp, err := x.ask(body)
	if err != nil {
		return x.unreachable(err)
	}
	defer resp.Body.Close() // it is read, or given up
	if no := redirected(resp); no != nil {
		return no
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return x.explained(resp)
	}
	x.head(resp, false)
	_, _ = io.Copy(x.w, resp.Body) // who has gone needs no more
	return nil
}

// metered passes on a request that was reserved, and settles it.
func (x *exchange) metered(body pieces, q *Question, c call, stream bool, claim Claim) error {
	resp, err := x.ask(body)
	if err != nil {
		if gone(x.ctx) || x.whole.Load() { // the vendor may have begun
			u := Usage{Input: guess(q), Estimated: true}
			if gone(x.r.Context()) {
				u.Output = q.Answer // see hungUp
			}
			x.settled(claim.Settle(u))
		} else {
			claim.Drop()
		}
		return x.unreachable(err)
	}
	defer resp.Body.Close() // it is read, or given up
	if no := redirected(resp); no != nil {
		claim.Drop()
		return no
	}
	if resp.StatusCode >= http.StatusBadRequest {
		claim.Drop()
		return x.explained(resp)
	}
	from, plain := decoded(resp)
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	a := &answer{call: c, stream: media == "text/event-stream" || stream && media != "application/json"}
	x.head(resp, plain)
	x.pass(from, a, func() {
		if gone(x.r.Context()) {
			x.settled(claim.Settle(a.hungUp(q)))
			return
		}
		x.settled(claim.Settle(a.took(q)))
	})
	return nil
}

// settled notes that what was used could not be recorded. It counts all the same.
func (x *exchange) settled(err error) {
	if err != nil {
		x.h.via.log.Warn("what a request to a model has taken is in no record", "vendor", x.h.up.Name, "err", err)
	}
}

// redirected refuses an answer that leads elsewhere: with it would go what was asked, and perhaps the key.
func redirected(resp *http.Response) error {
	if resp.StatusCode < 300 || resp.StatusCode == http.StatusNotModified || resp.StatusCode >= 400 {
		return nil
	}
	return refused(http.StatusBadGateway, "api_error", "rnix gateway: the vendor sends the request on to another place, which is refused: check the base URL")
}

// unreachable says that the vendor has not answered.
func (x *exchange) unreachable(err error) error {
	if gone(x.ctx) {
		return refused(http.StatusServiceUnavailable, "api_error", "rnix gateway: the request was given up")
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return refused(http.StatusGatewayTimeout, "api_error", "rnix gateway: "+x.h.up.Name+" does not answer")
	}
	return refused(http.StatusBadGateway, "api_error", "rnix gateway: cannot reach "+x.h.up.Name+": "+x.hidden(err.Error()))
}

// maxError bounds what is passed on of an error, in bytes.
const maxError = 1 << 20

// explained passes on an error of the vendor as it is, but for the secrets that some repeat.
func (x *exchange) explained(resp *http.Response) error {
	from, plain := decoded(resp)
	text, _ := io.ReadAll(io.LimitReader(from, maxError)) // a torn explanation is one too
	x.headers(resp, plain)
	x.w.Header().Del("Content-Length")
	x.w.WriteHeader(resp.StatusCode)
	_, _ = io.WriteString(x.w, x.hidden(string(text))) // who has gone needs none
	return nil
}

// hidden returns a text without the secrets that were put in.
func (x *exchange) hidden(text string) string {
	if len(x.h.up.Keys) == 0 && x.h.up.Header == nil {
		return text
	}
	for _, k := range x.h.up.Keys {
		text = strings.ReplaceAll(text, k.Secret, k.Placeholder)
	}
	for _, values := range x.h.up.Header {
		for _, v := range values {
			if v = strings.TrimPrefix(v, "Bearer "); len(v) >= 6 {
				text = strings.ReplaceAll(text, v, "[secret]")
			}
		}
	}
	return text
}

// decoded returns the body of an answer as it can be read, and whether it was packed although that was not asked for.
func decoded(resp *http.Response) (body io.Reader, unpacked bool) {
	if !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return resp.Body, false
	}
	return &lazyGzip{from: resp.Body}, true
}

// lazyGzip unpacks from the first Read on: its beginning may come later than the header of the answer.
type lazyGzip struct {
	from io.Reader
	z    *gzip.Reader
}

func (g *lazyGzip) Read(p []byte) (n int, err error) {
	if g.z == nil {
		if g.z, err = gzip.NewReader(g.from); err != nil {
			return 0, err
		}
	}
	return g.z.Read(p)
}

// head begins the answer.
func (x *exchange) head(resp *http.Response, unpacked bool) {
	x.headers(resp, unpacked)
	x.w.WriteHeader(resp.StatusCode)
	_ = http.NewResponseController(x.w).Flush() // it is one of net/http
}

func (x *exchange) headers(resp *http.Response, unpacked bool) {
	out := x.w.Header()
	for name, values := range resp.Header {
		out[name] = values
	}
	packed := out.Get("Content-Encoding")
	for _, name := range hop {
		out.Del(name)
	}
	if packed != "" && !unpacked { // as it is
		out.Set("Content-Encoding", packed)
	}
	for name, values := range out {
		for i, v := range values {
			if hid := x.hidden(v); hid != v {
				out[name] = append([]string(nil), values...)
				out[name][i] = hid
			}
		}
	}
}

// maxSpool is how much of an answer is kept for a CLI that does not read, in bytes.
const maxSpool = 16 << 20

// pass passes an answer on as it comes, and calls done when its end has come or it was given up. How slowly the CLI reads, which may be frozen, does not
// keep it from being counted.
func (x *exchange) pass(from io.Reader, a *answer, done func()) {
	s := newSpool()
	go func() { // ends with the answer, or when the context of the exchange does; waited for by take
		err := x.fill(s, from, a)
		done()
		s.end(err)
	}()
	var err error
	for {
		var part []byte
		if part, err = s.take(); part == nil {
			break
		}
		if _, werr := x.w.Write(part); werr != nil { // who has gone needs no more
			x.cancel()
			continue
		}
		_ = http.NewResponseController(x.w).Flush() // as of head
	}
	if err != nil { // the CLI has to see that the answer is not whole
		panic(http.ErrAbortHandler)
	}
}

// fill reads an answer into a spool, up to its end.
func (x *exchange) fill(s *spool, from io.Reader, a *answer) error {
	quiet := time.AfterFunc(silence, x.cancel)
	defer quiet.Stop()
	part := make([]byte, 32<<10)
	for {
		quiet.Reset(silence)
		n, err := from.Read(part)
		quiet.Stop()
		_, _ = a.Write(part[:n]) // it never fails
		if perr := s.put(x.ctx, part[:n]); perr != nil {
			return perr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
