package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"rnix/types"
	"rnix/vfs"
)

// The bounds of HTTP calls that HTTPConfig does not set.
const (
	defaultConnect   = 10 * time.Second
	defaultFirstByte = 120 * time.Second
	defaultIdle      = 90 * time.Second
	defaultSilence   = 5 * time.Minute
	defaultCall      = 30 * time.Minute
	defaultAnswer    = 64 << 20 // bytes
	maxErrorBody     = 64 << 10 // bytes of an error's text that are looked at
)

// HTTPConfig configures a driver that calls a provider over HTTP. Zero values mean the default.
type HTTPConfig struct {
	Name          string            // of the provider; the driver's own name by default
	BaseURL       string            // http or https; the vendor's by default
	APIKeyEnv     string            // variable that holds the key; the vendor's for the vendor's own URL, else none
	Model         string            // used when a request names none; without either a call is INVALID
	MaxTokens     int               // of an answer, when a request does not say
	ContextWindow int               // in tokens; 0 = unknown
	Effort        string            // reasoning effort, when a request does not say
	Thinking      int               // Anthropic only: tokens to think with; -1 lets the model decide; 0 = do not ask for it
	CacheKey      bool              // OpenAI only: name the session, so that its requests meet the same prompt cache
	Headers       map[string]string // sent with every request, and kept secret like the key

	ConnectTimeout   time.Duration // to reach the server, TLS included
	FirstByteTimeout time.Duration // from the request to the first byte of the answer's body
	IdleTimeout      time.Duration // between two events, signs of life too
	SilenceTimeout   time.Duration // without a piece of the answer, however many signs of life come
	CallTimeout      time.Duration // of a whole call whose request has no TimeoutMs
	MaxAnswer        int64         // of a whole answer, in bytes
}

// httpClient posts requests and reads their answers as event streams.
type httpClient struct {
	cfg    HTTPConfig
	base   string // without a slash at the end
	client *http.Client
}

func newHTTPClient(cfg HTTPConfig) (*httpClient, error) {
	u, err := url.Parse(cfg.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, types.Errorf(types.ErrInvalid, "Configure", cfg.Name, "base_url is not an http or https address")
	case u.User != nil:
		return nil, types.Errorf(types.ErrInvalid, "Configure", cfg.Name, "base_url holds a user or password: put credentials into the variable that api_key_env names")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, types.Errorf(types.ErrInvalid, "Configure", cfg.Name, "base_url ends with a query or fragment: leave it out")
	case cfg.MaxTokens < 0 || cfg.ContextWindow < 0 || cfg.Thinking < -1:
		return nil, types.Errorf(types.ErrInvalid, "Configure", cfg.Name, "max_tokens, context_window and thinking must not be negative")
	}
	for _, d := range []struct {
		value *time.Duration
		std   time.Duration
	}{{&cfg.ConnectTimeout, defaultConnect}, {&cfg.FirstByteTimeout, defaultFirstByte}, {&cfg.IdleTimeout, defaultIdle}, {&cfg.SilenceTimeout, defaultSilence}, {&cfg.CallTimeout, defaultCall}} {
		if *d.value <= 0 {
			*d.value = d.std
		}
	}
	if cfg.MaxAnswer <= 0 {
		cfg.MaxAnswer = defaultAnswer
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: cfg.ConnectTimeout, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = cfg.ConnectTimeout
	t.MaxIdleConnsPerHost = 8
	return &httpClient{cfg: cfg, base: strings.TrimRight(cfg.BaseURL, "/"), client: &http.Client{Transport: t, CheckRedirect: sameHost}}, nil
}

// sameHost lets a request be sent on only to where it was meant to go, key and prompt included.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Host != first.Host || req.URL.Scheme != first.Scheme || req.Method != http.MethodPost || len(via) > 3 {
		return errRedirect
	}
	return nil
}

var errRedirect = errors.New("the server sends the request on to another place, which is refused: check base_url")

// close drops the idle connections.
func (c *httpClient) close() error { c.client.CloseIdleConnections(); return nil }

// within bounds a call by the request's TimeoutMs, or by the configuration.
func (c *httpClient) within(ctx context.Context, req LLMRequest) (context.Context, context.CancelFunc) {
	d := c.cfg.CallTimeout
	if req.TimeoutMs > 0 {
		d = time.Duration(min(req.TimeoutMs, int64(longest/time.Millisecond))) * time.Millisecond
	}
	return context.WithTimeoutCause(ctx, d, errors.New("the model took longer than "+d.String()))
}

// key returns the API key, "" if none is configured, and AUTH if it is configured and missing.
func (c *httpClient) key(ctx context.Context) (string, error) {
	if c.cfg.APIKeyEnv == "" {
		return "", nil
	}
	if v, ok := SecretFrom(ctx, c.cfg.APIKeyEnv); ok {
		return strings.TrimSpace(v), nil
	}
	return "", types.Errorf(types.ErrAuth, "Call", c.cfg.Name, "%w", noKey{c.cfg.APIKeyEnv})
}

// noKey is the cause of an AUTH error of a provider whose key nobody has: it may come later.
type noKey struct{ name string }

func (e noKey) Error() string {
	return "no API key: set " + e.name + ", or api_key_file or api_key_command in providers.yaml"
}

// KeyMissing says that there is no key, which is another thing than one that is refused.
func (noKey) KeyMissing() bool { return true }

// refusedKey is the cause of an AUTH error of a key that the server refuses.
type refusedKey struct {
	name, message string
	key           string // never shown; empty = it was refused within an answer
	later         bool   // another one can come
}

func (e *refusedKey) Error() string {
	return "the server refuses the key in " + e.name + ": " + e.message
}

// KeyMissing says that the process can wait for another key: who prints keys prints another one when this one has been replaced.
func (e *refusedKey) KeyMissing() bool { return e.later }

// exchange is one request and its answer.
type exchange struct {
	path   string
	header http.Header
	key    string // never shown
	model  string
	body   []byte
	// each takes the events in order and says what each was.
	each func(sseEvent) (piece, error)
}

// piece is what an event is.
type piece int

const (
	lifeSign  piece = iota // nothing of the answer: a ping, or an event that is newer than we
	something              // a piece of the answer
	theLast                // nothing more comes
)

// do performs x. Its errors have codes and hold neither key nor headers.
func (c *httpClient) do(ctx context.Context, x exchange) error {
	w := watch(ctx, c.cfg.FirstByteTimeout, types.Errorf(types.ErrTimeout, "Call", c.cfg.Name, "no answer within %v", c.cfg.FirstByteTimeout))
	defer w.stop()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, c.base+x.path, bytes.NewReader(x.body))
	if err != nil {
		return types.Errorf(types.ErrInvalid, "Call", c.cfg.Name, "bad address %s%s", c.base, x.path)
	}
	req.Header = x.header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	for k, v := range c.cfg.Headers {
		req.Header.Set(k, v)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return c.broken(ctx, w, x, err)
	}
	defer func() { _ = resp.Body.Close() }() // the answer is read, or given up
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a torn explanation is one too
		return c.refused(x, resp, body)
	}
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media == "text/html" || media == "application/json" {
		return c.notAStream(x, media, resp.Body)
	}
	return c.read(ctx, w, x, resp.Body)
}

// read hands the events to x.each until the last.
func (c *httpClient) read(ctx context.Context, w *watchdog, x exchange, body io.Reader) error {
	idle := types.Errorf(types.ErrUnavailable, "Call", c.cfg.Name, "the stream stalled: nothing came for %v", c.cfg.IdleTimeout)
	silent := types.Errorf(types.ErrUnavailable, "Call", c.cfg.Name, "the stream stalled: no piece of the answer came for %v, only signs of life", c.cfg.SilenceTimeout)
	last := time.Now() // when a piece of the answer came, or its beginning
	heard := func() {
		if left := c.cfg.SilenceTimeout - time.Since(last); left < c.cfg.IdleTimeout {
			w.set(max(left, 0), silent)
			return
		}
		w.set(c.cfg.IdleTimeout, idle)
	}
	in := &boundedReader{r: body, left: c.cfg.MaxAnswer, heard: heard}
	events := newSSEReader(in)
	for {
		ev, err := events.next()
		if err == io.EOF {
			return c.cut()
		}
		if err != nil {
			return c.broken(ctx, w, x, err)
		}
		what, err := x.each(ev)
		if err != nil {
			if ev.torn && types.CodeOf(err) == types.ErrUnavailable {
				return c.cut()
			}
			return c.cleaned(x, err)
		}
		switch what {
		case something:
			last = time.Now()
			heard()
		case theLast:
			w.set(100*time.Millisecond, errDrained)
			_, _ = io.CopyN(io.Discard, body, 4<<10) // lets the connection be used again, if the rest comes soon
			return nil
		}
	}
}

var errDrained = errors.New("the answer is complete")

func (c *httpClient) cut() error {
	return types.Errorf(types.ErrUnavailable, "Call", c.cfg.Name, "the stream was cut before its end")
}

// broken says why an exchange broke off: our own deadline, the caller, or the network.
func (c *httpClient) broken(ctx context.Context, w *watchdog, x exchange, err error) error {
	var own *types.SyscallError
	switch {
	case ctx.Err() != nil:
		return vfs.Ended(ctx, "Call", c.cfg.Name)
	case errors.As(context.Cause(w.ctx), &own):
		return own
	case errors.Is(err, errAnswerTooLong):
		return types.Errorf(types.ErrDriver, "Call", c.cfg.Name, "the answer is larger than %d MiB", c.cfg.MaxAnswer>>20)
	case errors.Is(err, errEventTooLong), errors.Is(err, errRedirect):
		return types.Errorf(types.ErrDriver, "Call", c.cfg.Name, "%w", unwrapURL(err))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return c.cut()
	}
	return c.cleaned(x, types.Errorf(types.ErrUnavailable, "Call", c.cfg.Name, "%s: %w", c.base, unwrapURL(err)))
}

// unwrapURL drops the method and address that net/http puts before its errors.
func unwrapURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// notAStream explains an answer that is none.
func (c *httpClient) notAStream(x exchange, media string, body io.Reader) error {
	text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // as much of the explanation as there is
	if p := explain(text); media == "application/json" && p.message != "" {
		return c.cleaned(x, c.problem(p, x.model))
	}
	return types.Errorf(types.ErrDriver, "Call", c.cfg.Name, "%s%s answers with %s and not with a stream of events: check base_url", c.base, x.path, media)
}

// secrets are the texts that must not be shown.
func (c *httpClient) secrets(x exchange) []string {
	all := []string{x.key}
	for _, v := range c.cfg.Headers {
		all = append(all, v, strings.TrimPrefix(v, "Bearer "))
	}
	return slices.DeleteFunc(all, func(s string) bool { return len(s) < 6 })
}

// cleaned returns err without secrets in its text: servers repeat keys that they refuse.
func (c *httpClient) cleaned(x exchange, err error) error {
	text := causeOf(err).Error()
	for _, s := range c.secrets(x) {
		if strings.Contains(err.Error(), s) {
			e := types.Errorf(types.CodeOf(err), "Call", c.cfg.Name, "%s", redact(text, c.secrets(x)))
			if r, ok := errors.AsType[*refusedKey](err); ok {
				e.Err = &refusedKey{name: r.name, message: redact(r.message, c.secrets(x))}
			}
			var limit *RateLimit
			if errors.As(err, &limit) {
				e.Err = &RateLimit{RetryAfter: limit.RetryAfter, Message: redact(limit.Message, c.secrets(x)), Account: limit.Account}
			}
			return e
		}
	}
	return err
}

// causeOf is an error of a driver without the words that name the call and the provider, for one that names them again.
func causeOf(err error) error {
	if e, ok := errors.AsType[*types.SyscallError](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

func redact(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "[secret]")
	}
	return text
}

// encode writes v as JSON without escaping HTML, so that a prompt is what was written.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Call", "", "the request cannot be written as JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
