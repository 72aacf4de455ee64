package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"rnix/internal/egress"
	"rnix/internal/hidden"
	"rnix/internal/hosts"
	"rnix/internal/media"
	"rnix/types"
)

// fetch is one page on its way.
type fetch struct {
	room      chan struct{}
	first     *url.URL
	at        *url.URL // where redirects have led
	to        hosts.Target
	start     int
	redirects int
}

func newFetch(text string, start int) (*fetch, error) {
	u, to, err := hosts.ParseURL(text)
	if err != nil {
		return nil, err
	}
	return &fetch{first: u, at: u, to: to, start: start}, nil
}

// shown is the URL in errors.
func (f *fetch) shown() string {
	if f.redirects > 0 {
		return shortURL(f.at) + " (redirected from " + shortURL(f.first) + ")"
	}
	return shortURL(f.at)
}

// shortURL returns a URL as it is said to models: what stands behind the host, which a server may have chosen, is no sentence.
func shortURL(u *url.URL) string {
	var b strings.Builder
	host := len(u.Scheme) + len("://") + len(u.Host)
	for i, c := range []byte(u.String()) {
		if i >= host && (c <= ' ' || c >= 0x7f || strings.IndexByte("[]<>{}|^`\"\\", c) >= 0) {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	text := b.String()
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return text
}

// run fetches the page, and returns what the model is told.
func (f *fetch) run(ctx context.Context, way Way, by *http.Transport) ([]byte, error) {
	defer by.CloseIdleConnections()
	for {
		resp, err := f.ask(ctx, by)
		if err != nil {
			return nil, err
		}
		next, err := f.led(resp)
		if err == nil && next == "" {
			answer, err := f.read(ctx, resp)
			_ = resp.Body.Close() // what of it was to be read has been
			return answer, err
		}
		_ = resp.Body.Close() // what it says is for browsers
		if err == nil {
			err = f.follow(ctx, way, next)
		}
		if err != nil {
			return nil, err
		}
	}
}

// ask makes one request.
func (f *fetch) ask(ctx context.Context, by http.RoundTripper) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.at.String(), nil)
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Write", Path, "cannot fetch %s: %w", f.shown(), err)
	}
	req.Header.Set("User-Agent", "rnix (web_fetch)")
	req.Header.Set("Accept", "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5")
	resp, err := by.RoundTrip(req)
	if err == nil {
		return resp, nil
	}
	code, err := unreached(err)
	return nil, types.Errorf(code, "Write", Path, "cannot fetch %s: %w", f.shown(), err)
}

// unreached returns why a server was not reached, as it is said.
func unreached(err error) (types.ErrCode, error) {
	if text, refused := egress.Refusal(err); refused {
		return types.ErrPermission, errors.New(text)
	}
	if types.CodeOf(err) == types.ErrPermission {
		return types.ErrPermission, short(err)
	}
	return types.ErrUnavailable, short(err)
}

// short bounds what an error says, in which a server may have words of its own.
func short(err error) error {
	const most = 300
	text := hidden.Strip(err.Error())
	if len(text) <= most {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:most], "") + "...")
}

// led returns where a redirect leads; empty = it is none.
func (f *fetch) led(resp *http.Response) (string, error) {
	to := resp.Header.Get("Location")
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return "", nil
	}
	if to == "" {
		return "", nil
	}
	if f.redirects >= MaxRedirects {
		return "", types.Errorf(types.ErrUnavailable, "Write", Path, "cannot fetch %s: it redirects again and again, and %d redirects are followed; the last one leads to %s", shortURL(f.first), MaxRedirects, f.shown())
	}
	return to, nil
}

// follow goes where a redirect leads, if that may be fetched.
func (f *fetch) follow(ctx context.Context, way Way, location string) error {
	refused := func(err error) error {
		return types.Errorf(types.CodeOf(err), "Write", Path, "cannot fetch %s: it redirects to where that is refused: %w", f.shown(), permitReason(err))
	}
	next, err := f.at.Parse(location)
	if err != nil {
		return types.Errorf(types.ErrUnavailable, "Write", Path, "cannot fetch %s: it redirects to what is no URL", f.shown())
	}
	u, to, err := hosts.ParseURL(next.String())
	if err != nil {
		return refused(err)
	}
	if to != f.to || u.Scheme != f.at.Scheme { // on one host a redirect belongs to the call
		if err := way.Follow(ctx, u.String()); err != nil {
			return refused(err)
		}
	}
	f.at, f.to = u, to
	f.redirects++
	return nil
}

// read reads what an answer holds and makes it readable.
func (f *fetch) read(ctx context.Context, resp *http.Response) ([]byte, error) {
	select {
	case f.room <- struct{}{}:
		defer func() { <-f.room }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if by := resp.Header.Get("Content-Encoding"); by != "" && !strings.EqualFold(by, "identity") { // gzip is taken off by the transport
		return nil, types.Errorf(types.ErrUnavailable, "Write", Path, "cannot show %s: the server has compressed it by %.20q, which was not asked for", f.shown(), by)
	}
	head := make([]byte, media.SniffLen)
	n, err := io.ReadFull(resp.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, f.broken(err)
	}
	head = head[:n]
	body := io.MultiReader(bytes.NewReader(head), resp.Body)
	if kind := media.Type(head); kind != "" {
		return f.media(ctx, resp, body, kind)
	}
	data, err := io.ReadAll(io.LimitReader(body, MaxBody+1))
	cut := len(data) > MaxBody
	if err != nil {
		if len(data) == 0 || ctx.Err() != nil {
			return nil, f.broken(err)
		}
	} else if cut {
		data = data[:MaxBody]
	}
	if cut || err != nil {
		data = uncut(data)
	}
	p, ok := readable(ctx, resp.Header.Get("Content-Type"), data, f.at)
	if !ok {
		return nil, types.Errorf(types.ErrInvalid, "Write", Path, "cannot show %s: it is %.80s, %s; text, JSON, images and PDFs can be shown, so use a command for this", f.shown(), p.kind, size(resp, data, cut))
	}
	if err != nil {
		p.notes = append(p.notes, fmt.Sprintf("the connection broke off after %s; the text is not all of the page", media.Size(int64(len(data)))))
	}
	if cut {
		p.notes = append(p.notes, fmt.Sprintf("the page is longer than %s; what is behind that was not read", media.Size(MaxBody)))
	}
	return f.tell(resp.StatusCode, p)
}

// broken is why a body could not be read.
func (f *fetch) broken(err error) error {
	return types.Errorf(types.ErrUnavailable, "Write", Path, "cannot fetch %s: the connection broke off: %w", f.shown(), err)
}

// size says how large what is not shown is, as far as it is known.
func size(resp *http.Response, data []byte, cut bool) string {
	switch {
	case resp.ContentLength >= 0:
		return media.Size(resp.ContentLength)
	case cut:
		return "more than " + media.Size(MaxBody)
	}
	return media.Size(int64(len(data)))
}

// permitReason is an error without what was called.
func permitReason(err error) error {
	if e, ok := errors.AsType[*types.SyscallError](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}
