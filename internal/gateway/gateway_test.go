package gateway

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rnix/drivers/llm/llmtest"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// purse notes what is reserved and settled.
type purse struct {
	mu      sync.Mutex
	answer  int   // that is allowed
	limited bool  // dollars are
	no      error // instead of a claim
	asked   []Question
	settled []Usage
	dropped int
	over    chan struct{} // has a value for each claim that is over
}

func newPurse() *purse { return &purse{over: make(chan struct{}, 1000)} }

func (p *purse) Reserve(ctx context.Context, q Question) (Claim, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked = append(p.asked, q); p.no != nil {
		return nil, p.no
	}
	return &claim{p, ctx}, nil
}

func (p *purse) Limited() (tokens, usd bool) { return false, p.limited }

type claim struct {
	p   *purse
	ctx context.Context
}

func (c *claim) Answer() int              { return c.p.answer }
func (c *claim) Context() context.Context { return c.ctx }
func (c *claim) Settle(u Usage) error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.settled = append(c.p.settled, u)
	c.p.over <- struct{}{}
	return nil
}
func (c *claim) Drop() {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.dropped++
	c.p.over <- struct{}{}
}

const (
	secret      = "sk-real-key-0123456789"
	placeholder = "rnix-gateway-X"
)

// gate is a gateway before a vendor, for a test.
type gate struct {
	*purse
	t    testing.TB
	url  string
	api  string
	show *http.Client
}

// before starts a gateway before what answers at a base URL.
func before(t testing.TB, api, base string) *gate {
	t.Helper()
	g := &gate{purse: newPurse(), t: t, api: api}
	via := NewVendors(nil)
	h, err := New(Upstream{Name: "vendor", API: api, Base: base, Keys: []Key{{placeholder, secret}}}, g.purse, via)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	g.url, g.show = s.URL, s.Client()
	t.Cleanup(func() { s.Close(); via.Close() })
	return g
}

// vendor starts a gateway before a stand-in.
func vendor(t testing.TB, api string, script func(llmtest.Request) llmtest.Reply) (*gate, *llmtest.API) {
	t.Helper()
	a, url := llmtest.NewAPI(t, script)
	a.Require(secret)
	return before(t, api, url+"/v1"), a
}

func (g *gate) do(method, path, body string, change ...func(*http.Request)) (*http.Response, string) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+placeholder)
	for _, c := range change {
		c(r)
	}
	resp, err := g.show.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		text = append(text, "<"+err.Error()+">"...)
	}
	return resp, string(text)
}

// asks are a request of each kind, streamed and not.
var asks = []struct{ api, path, body string }{
	{Anthropic, "/v1/messages?beta=true", `{"model":"m","max_tokens":1000,"stream":%t,"messages":[{"role":"user","content":"hello"}]}`},
	{OpenAI, "/v1/chat/completions", `{"model":"m","max_tokens":1000,"stream":%t,"messages":[{"role":"user","content":"hello"}]}`},
	{OpenAI, "/v1/responses", `{"model":"m","max_output_tokens":1000,"stream":%t,"input":[{"role":"user","content":[{"type":"input_text","text":"hello"}]}]}`},
}

func TestEachCallIsPassedOnAndCounted(t *testing.T) {
	for _, ask := range asks {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprint(ask.path, stream), func(t *testing.T) {
				want := Usage{Input: 100, Output: 20, CacheRead: 30, Model: "m"}
				g, a := vendor(t, ask.api, func(llmtest.Request) llmtest.Reply {
					return llmtest.Reply{Text: "good day", Usage: &llmtest.Usage{Input: 100, Output: 20, CacheRead: 30}, Header: http.Header{"Request-Id": {"r1"}, "Anthropic-Ratelimit-Tokens-Remaining": {"5"}}}
				})
				resp, text := g.do("POST", ask.path, fmt.Sprintf(ask.body, stream))
				if resp.StatusCode != 200 || !strings.Contains(text, "good day") || resp.Header.Get("Request-Id") != "r1" || resp.Header.Get("Anthropic-Ratelimit-Tokens-Remaining") != "5" {
					t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
				}
				if len(g.settled) != 1 || g.settled[0] != want || g.asked[0].Answer != 1000 || g.asked[0].Model != "m" {
					t.Errorf("%+v %+v", g.settled, g.asked)
				}
				r := a.Requests()[0]
				if r.Header.Get("Authorization") != "Bearer "+secret || r.Path != ask.path || strings.Contains(fmt.Sprint(r.Header), placeholder) {
					t.Errorf("%s %v", r.Path, r.Header)
				}
			})
		}
	}
}

// With too little left for the whole answer the request asks for a shorter one.
func TestAnswersAreMadeShorter(t *testing.T) {
	for _, c := range []struct{ api, path, body, want string }{
		{Anthropic, "/v1/messages", `{"model":"m","max_tokens":1000,"messages":[]}`, `{"model":"m","max_tokens":600,"messages":[]}`},
		{Anthropic, "/v1/messages", `{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":8000},"model":"m"}`, `{"max_tokens":600,"thinking":{"type":"disabled"},"model":"m"}`},
		{Anthropic, "/v1/messages", `{"max_tokens":9000,"thinking":{"type":"adaptive"},"model":"m"}`, `{"max_tokens":600,"thinking":{"type":"adaptive"},"model":"m"}`},
		{OpenAI, "/v1/chat/completions", `{"model":"m"}`, `{"max_tokens":600,"model":"m"}`},
		{OpenAI, "/v1/chat/completions", `{"model":"m","n":2,"max_completion_tokens":800}`, `{"model":"m","n":2,"max_completion_tokens":300}`},
		{OpenAI, "/v1/chat/completions", `{"max_tokens":null,"model":"m","max_completion_tokens":800,"stream":true}`, `{"stream_options":{"include_usage":true},"max_tokens":null,"model":"m","max_completion_tokens":600,"stream":true}`},
		{OpenAI, "/v1/responses", ` { "model":"m" } `, ` {"max_output_tokens":600, "model":"m" } `},
	} {
		var got string
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			got = string(b)
		}))
		g := before(t, c.api, s.URL+"/v1")
		g.answer = 600
		if resp, text := g.do("POST", c.path, c.body); resp.StatusCode != 200 || got != c.want || !json.Valid([]byte(got)) {
			t.Errorf("%d %s\nsent %s\nwant %s", resp.StatusCode, text, got, c.want)
		}
		s.Close()
	}
}

// Without a budget a request is passed on byte by byte.
func TestRequestsWithoutABudgetAreNotChanged(t *testing.T) {
	body := ` {"model":"m" , "max_tokens": 7,"x":"\u00e9<&>", "messages":[ {"role":"user","content":"x"} ]}`
	g, a := vendor(t, Anthropic, nil)
	g.do("POST", "/v1/messages", body)
	if got := string(a.Requests()[0].Body); got != body {
		t.Errorf("sent %s", got)
	}
}

func TestNoRoomIsTheVendorsLimit(t *testing.T) {
	for _, ask := range asks {
		g, a := vendor(t, ask.api, nil)
		g.no = types.Errorf(types.ErrExhausted, "Meter", "", "budget: $1 of $1 are used")
		resp, text := g.do("POST", ask.path, fmt.Sprintf(ask.body, true))
		var e struct {
			Type  string `json:"type"`
			Error struct{ Type, Code, Message string }
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || e.Error.Type != "rate_limit_error" || !strings.Contains(e.Error.Message, "budget: $1 of $1 are used; the process is suspended") {
			t.Errorf("%d %s %v", resp.StatusCode, text, err)
		}
		if ask.api == Anthropic && e.Type != "error" || ask.api == OpenAI && e.Error.Code != "insufficient_quota" || len(a.Requests()) != 0 {
			t.Errorf("%s", text)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	good := fmt.Sprintf(asks[0].body, false)
	big := `{"model":"m","x":"` + strings.Repeat("x", maxBody) + `"}`
	for name, c := range map[string]struct {
		api, method, path, body string
		change                  func(*http.Request)
		status                  int
		says                    string
	}{
		"another path":            {Anthropic, "POST", "/v1/files", good, nil, 404, "POST /v1/files is not served"},
		"another vendor's":        {Anthropic, "POST", "/v1/responses", good, nil, 404, "is not served"},
		"no version":              {Anthropic, "POST", "/messages", good, nil, 404, "is not served"},
		"above the base":          {OpenAI, "GET", "/v1/models/../files", "", nil, 404, "is not served"},
		"another method":          {Anthropic, "PUT", "/v1/messages", good, nil, 405, "use POST"},
		"a socket":                {OpenAI, "GET", "/v1/responses", "", func(r *http.Request) { r.Header.Set("Upgrade", "websocket"); r.Header.Set("Connection", "Upgrade") }, 426, "use POST"},
		"no key":                  {Anthropic, "POST", "/v1/messages", good, func(r *http.Request) { r.Header.Del("Authorization") }, 401, "placeholder"},
		"another key":             {Anthropic, "POST", "/v1/messages", good, func(r *http.Request) { r.Header.Set("Authorization", "Bearer other") }, 401, "placeholder"},
		"the key itself":          {Anthropic, "POST", "/v1/messages", good, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }, 401, "placeholder"},
		"a page":                  {Anthropic, "POST", "/v1/messages", good, func(r *http.Request) { r.Header.Set("Origin", "http://localhost") }, 403, "pages"},
		"no JSON":                 {Anthropic, "POST", "/v1/messages", "{", nil, 400, "not valid JSON"},
		"a list":                  {Anthropic, "POST", "/v1/messages", "[]", nil, 400, "not a JSON object"},
		"nothing":                 {Anthropic, "POST", "/v1/messages", "", nil, 400, "not a JSON object"},
		"two":                     {Anthropic, "POST", "/v1/messages", good + "{}", nil, 400, "behind its end"},
		"no model":                {Anthropic, "POST", "/v1/messages", `{"max_tokens":1}`, nil, 400, "model: missing"},
		"a bound said twice":      {Anthropic, "POST", "/v1/messages", `{"model":"m","max_tokens":1,"max_tokens":100000}`, nil, 400, "max_tokens: said twice"},
		"a bound that is a text":  {Anthropic, "POST", "/v1/messages", `{"model":"m","max_tokens":"1"}`, nil, 400, "max_tokens: has a value"},
		"a bound below one":       {Anthropic, "POST", "/v1/messages", `{"model":"m","max_tokens":-1}`, nil, 400, "max_tokens: -1"},
		"many answers":            {OpenAI, "POST", "/v1/chat/completions", `{"model":"m","n":100000}`, nil, 400, "n: 100000"},
		"an answer that is later": {OpenAI, "POST", "/v1/responses", `{"model":"m","background":true}`, nil, 400, "background"},
		"too large":               {Anthropic, "POST", "/v1/messages", big, nil, 413, "64 MiB"},
		"packed otherwise":        {Anthropic, "POST", "/v1/messages", good, func(r *http.Request) { r.Header.Set("Content-Encoding", "zstd") }, 415, "zstd"},
		"packed wrongly":          {Anthropic, "POST", "/v1/messages", good, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, 400, "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			g, a := vendor(t, c.api, nil)
			change := func(*http.Request) {}
			if c.change != nil {
				change = c.change
			}
			resp, text := g.do(c.method, c.path, c.body, change)
			if resp.StatusCode != c.status || !strings.Contains(text, c.says) || !json.Valid([]byte(text)) || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
			if len(a.Requests()) != 0 || len(g.asked) != 0 {
				t.Errorf("passed on: %v, reserved: %v", a.Requests(), g.asked)
			}
		})
	}
}

// What the vendor refuses costs nothing, and is told as it is but for the key.
func TestErrorsOfTheVendorPass(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 413, 429, 500, 529} {
		g, _ := vendor(t, Anthropic, func(llmtest.Request) llmtest.Reply {
			return llmtest.Reply{Status: status, Text: "no, with " + secret, Header: http.Header{"Retry-After": {"7"}, "X-Key": {secret}, "Set-Cookie": {"a=b"}}}
		})
		resp, text := g.do("POST", "/v1/messages", fmt.Sprintf(asks[0].body, true))
		if resp.StatusCode != status || !strings.Contains(text, "no, with "+placeholder) || resp.Header.Get("Retry-After") != "7" || resp.Header.Get("Set-Cookie") != "" || strings.Contains(fmt.Sprint(text, resp.Header), secret) {
			t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
		}
		if g.dropped != 1 || len(g.settled) != 0 {
			t.Errorf("%d: %+v", status, g.settled)
		}
	}
}

func TestWhatIsFreeIsNotReserved(t *testing.T) {
	g, _ := vendor(t, Anthropic, nil)
	if resp, text := g.do("POST", "/v1/messages/count_tokens", fmt.Sprintf(asks[0].body, false)); resp.StatusCode != 200 || !strings.Contains(text, "input_tokens") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, text := g.do("GET", "/v1/models?limit=1", ""); resp.StatusCode != 200 || !strings.Contains(text, "fake-1") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, _ := g.do("HEAD", "/", "", func(r *http.Request) { r.Header.Del("Authorization") }); resp.StatusCode != 200 {
		t.Errorf("%d", resp.StatusCode)
	}
	if len(g.asked) != 0 {
		t.Errorf("%+v", g.asked)
	}
}

// A stream that breaks counts as an estimate, and the CLI sees that it is not whole.
func TestBrokenStreamsAreEstimated(t *testing.T) {
	for name, reply := range map[string]llmtest.Reply{
		"reset":        {Text: strings.Repeat("word ", 100), Reset: true},
		"no end":       {Text: strings.Repeat("word ", 100), Cut: true},
		"an error":     {Text: strings.Repeat("word ", 100), MidError: "overloaded_error"},
		"no usage":     {Text: strings.Repeat("word ", 100), NoUsage: true},
		"wrong counts": {Text: strings.Repeat("word ", 100), Usage: &llmtest.Usage{Input: -5, Output: -1}},
	} {
		g, _ := vendor(t, Anthropic, func(llmtest.Request) llmtest.Reply { return reply })
		_, text := g.do("POST", "/v1/messages", fmt.Sprintf(asks[0].body, true))
		<-g.over // the client may see the end first
		if len(g.settled) != 1 || !g.settled[0].Estimated || g.settled[0].Input < 10 || g.settled[0].Output < 100 || g.settled[0].Output > 300 {
			t.Errorf("%s: %+v", name, g.settled)
		}
		if name == "reset" && !strings.Contains(text, "unexpected EOF") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Who goes away ends the vendor's work, too, and all that was reserved counts: what the vendor would have said cannot be seen.
func TestClientThatGoesAwayIsCounted(t *testing.T) {
	for name, reply := range map[string]llmtest.Reply{"in the answer": {Text: "half an ", Hang: true}, "before it": {Delay: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			g, _ := vendor(t, Anthropic, func(llmtest.Request) llmtest.Reply { return reply })
			ctx, cancel := context.WithCancel(t.Context())
			r, _ := http.NewRequestWithContext(ctx, "POST", g.url+"/v1/messages", strings.NewReader(fmt.Sprintf(asks[0].body, true)))
			r.Header.Set("X-Api-Key", placeholder)
			if name == "before it" {
				time.AfterFunc(50*time.Millisecond, cancel)
			}
			resp, err := g.show.Do(r)
			if err == nil {
				part := make([]byte, 10)
				_, _ = io.ReadFull(resp.Body, part)
				cancel()
				_ = resp.Body.Close()
			}
			<-g.over
			if len(g.settled) != 1 || !g.settled[0].Estimated || g.settled[0].Input == 0 || g.settled[0].Output != g.asked[0].Answer {
				t.Errorf("%+v %d", g.settled, g.dropped)
			}
			cancel()
		})
	}
}

func TestVendorThatIsNotThereCostsNothing(t *testing.T) {
	s := httptest.NewServer(nil)
	base := s.URL
	s.Close()
	g := before(t, Anthropic, base+"/v1")
	if resp, text := g.do("POST", "/v1/messages", fmt.Sprintf(asks[0].body, true)); resp.StatusCode != 502 || !strings.Contains(text, "cannot reach vendor") || g.dropped != 1 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// A vendor that breaks off before it answers may have begun if it has got all: then the prompt counts, by an estimate. If it has not, nothing does.
func TestVendorThatDoesNotAnswerCountsForWhatItWasSent(t *testing.T) {
	for name, c := range map[string]struct {
		whole bool
		size  int
	}{"all was sent": {true, 100}, "half was sent": {false, 8 << 20}} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() { // ends with the listener
				defer close(done)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					if c.whole {
						if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
							_, _ = io.Copy(io.Discard, r.Body)
						}
					}
					_ = conn.(*net.TCPConn).SetLinger(0)
					_ = conn.Close()
				}
			}()
			g := before(t, Anthropic, "http://"+l.Addr().String()+"/v1")
			body := `{"model":"m","max_tokens":1000,"system":"` + strings.Repeat("word ", c.size/5) + `"}`
			resp, text := g.do("POST", "/v1/messages", body)
			want := []Usage{{Input: (len(body) + 3) / 4, Estimated: true}}
			if !c.whole {
				want = nil
			}
			if resp.StatusCode != 502 || !slices.Equal(g.settled, want) || g.dropped != 1-len(want) {
				t.Errorf("%d %s: %+v, %d dropped", resp.StatusCode, text, g.settled, g.dropped)
			}
			_ = l.Close()
			<-done
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	hit := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hit = true }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	g := before(t, Anthropic, s.URL+"/v1")
	for _, c := range []struct{ method, path, body string }{{"POST", "/v1/messages", fmt.Sprintf(asks[0].body, true)}, {"GET", "/v1/models", ""}} {
		if resp, text := g.do(c.method, c.path, c.body); resp.StatusCode != 502 || !strings.Contains(text, "another place") || hit || resp.Header.Get("Location") != "" {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
	}
}

// Each event arrives when it is sent, also packed ones, and is counted.
func TestEventsArriveAsTheyAreSent(t *testing.T) {
	for _, packed := range []bool{false, true} {
		next := make(chan string)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			var out io.Writer = w
			flush := w.(http.Flusher).Flush
			if packed {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				out, flush = z, func() { _ = z.Flush(); w.(http.Flusher).Flush() }
				defer z.Close()
			}
			w.(http.Flusher).Flush()
			for data := range next {
				_, _ = io.WriteString(out, data)
				flush()
			}
		}))
		g := before(t, Anthropic, s.URL+"/v1")
		r, _ := http.NewRequestWithContext(t.Context(), "POST", g.url+"/v1/messages", strings.NewReader(fmt.Sprintf(asks[0].body, true)))
		r.Header.Set("X-Api-Key", placeholder)
		resp, err := g.show.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range []string{
			"event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m2\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1,\"cache_creation_input_tokens\":4}}}\r\n\r\n",
			": ping\n\n", "data: {\"type\":\"message_delta\",\ndata: \"usage\":{\"output_tokens\":25}}\n\n", "data: {\"type\":\"message_stop\"}\n\n",
		} {
			next <- event
			got := make([]byte, len(event))
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != event {
				t.Errorf("%q %v", got, err)
			}
		}
		close(next)
		_, _ = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := (Usage{Input: 10, Output: 25, CacheWrite: 4, Model: "m2"}); len(g.settled) != 1 || g.settled[0] != want {
			t.Errorf("%+v", g.settled)
		}
		s.Close()
	}
}

// A CLI that is frozen does not keep its request from being counted.
func TestAnswerIsCountedThoughNobodyReads(t *testing.T) {
	g, _ := vendor(t, Anthropic, func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: strings.Repeat("word ", 1<<20), Chunks: 100, Usage: &llmtest.Usage{Input: 3, Output: 4}}
	})
	r, _ := http.NewRequestWithContext(t.Context(), "POST", g.url+"/v1/messages", strings.NewReader(fmt.Sprintf(asks[0].body, true)))
	r.Header.Set("X-Api-Key", placeholder)
	resp, err := g.show.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	<-g.over
	if g.settled[0] != (Usage{Input: 3, Output: 4, Model: "m"}) {
		t.Errorf("%+v", g.settled)
	}
	if text, err := io.ReadAll(resp.Body); err != nil || len(text) < 5<<20 {
		t.Errorf("%d %v", len(text), err)
	}
	_ = resp.Body.Close()
}

func TestPackedRequestsAreRead(t *testing.T) {
	g, a := vendor(t, Anthropic, nil)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, fmt.Sprintf(asks[0].body, false))
	_ = z.Close()
	resp, text := g.do("POST", "/v1/messages", b.String(), func(r *http.Request) {
		r.Header.Set("Content-Encoding", "gzip")
		r.Header.Set("Expect", "100-continue")
	})
	if resp.StatusCode != 200 || len(a.Requests()) != 1 || a.Requests()[0].Header.Get("Content-Encoding") != "" {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// Without a key a login passes as it is, and nothing else does.
func TestLoginsPassAsTheyAre(t *testing.T) {
	a, url := llmtest.NewAPI(t, nil)
	via := NewVendors(nil)
	h, err := New(Upstream{Name: "vendor", API: Anthropic, Base: url + "/v1"}, newPurse(), via)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer func() { s.Close(); via.Close() }()
	g := &gate{t: t, url: s.URL, show: s.Client()}
	if resp, text := g.do("POST", "/v1/messages", fmt.Sprintf(asks[0].body, false), func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer login")
		r.Header.Set("Cookie", "a=b")
	}); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if r := a.Requests()[0]; r.Header.Get("Authorization") != "Bearer login" || r.Header.Get("Cookie") != "" {
		t.Errorf("%v", r.Header)
	}
	if resp, text := g.do("POST", "/v1/messages", fmt.Sprintf(asks[0].body, false), func(r *http.Request) { r.Header.Del("Authorization") }); resp.StatusCode != 401 || !strings.Contains(text, "no login") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

func TestPicturesAreNoText(t *testing.T) {
	png := "iVBORw0KGgo" + strings.Repeat("A1+/", 50_000)
	for body, want := range map[string][2]int{
		`{"data":"` + png + `"}`:                              {11, pictureTokens},
		`{"url":"data:image/png;base64,` + png + `","a":"b"}`: {18, pictureTokens},
		`{"data":"` + png + ` and words"}`:                    {11 + len(png) + 10, 0}, // words do not hide behind a picture's beginning
		`{"a":"\"iVBORw0KGgo"}`:                               {21, 0},
		`{"a":"unfinished`:                                    {16, 0},
		`{"a":"unfinished\`:                                   {17, 0},
	} {
		if text, extra := measure([]byte(body)); text != want[0] || extra != want[1] {
			t.Errorf("%.40s: %d %d, want %v", body, text, extra, want)
		}
	}
	r, err := read(messages, []byte(`{"model":"m","max_tokens":1,"tools":[{"type":"web_search_20260101"},{"name":"x"}]}`), &Upstream{})
	if err != nil || r.Extra != vendorTool {
		t.Errorf("%+v %v", r, err)
	}
}

// Any bytes are taken as a body, or refused; what is taken can be made shorter, and says so then.
func FuzzRead(f *testing.F) {
	for _, ask := range asks {
		f.Add(fmt.Sprintf(ask.body, true), 1)
	}
	f.Add(`{"model":"m","max_tokens":1e3,"thinking":null,"n":3}`, 2)
	f.Add(`{"model":"m","tools":[[]],"max_tokens":1}`, 0)
	f.Fuzz(func(t *testing.T, body string, n int) {
		c := []call{messages, chat, responses}[((n%3)+3)%3]
		r, err := read(c, []byte(body), &Upstream{Base: "https://api.openai.com/v1"})
		if err != nil {
			if _, ok := errors.AsType[*refusal](err); !ok {
				t.Error(err)
			}
			return
		}
		for _, answer := range []int{1, 700, 5000} {
			changes := map[string]string{}
			r.counting(changes)
			r.shorten(answer, changes)
			r.weigh()
			r.priced(&Upstream{}, changes)
			sent := []byte(text(r.with(changes)))
			short, err := read(c, sent, &Upstream{})
			if err != nil || short.Answer > max(answer, r.choice) || short.Model != r.Model {
				t.Fatalf("%q becomes %q: %+v %v", body, sent, short, err)
			}
		}
	})
}

// A stream is counted alike however it is cut into parts.
func FuzzAnswer(f *testing.F) {
	f.Add("data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":25}}\n\ndata: x\r\n\r\n", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if n = max(n, 1); n > 1<<20 {
			n = 1
		}
		for _, c := range []call{messages, chat, responses} {
			whole, parts := &answer{call: c, stream: true}, &answer{call: c, stream: true}
			_, _ = whole.Write([]byte(text))
			for part := range slices.Chunk([]byte(text), n) {
				_, _ = parts.Write(part)
			}
			q := &Question{Bytes: 10, Answer: 5}
			if a, b := whole.took(q), parts.took(q); a != b || a.Input < 0 || a.Output < 0 {
				t.Errorf("%+v %+v", a, b)
			}
		}
	})
}

// BenchmarkRequest is what the gateway adds to a request of 64 KiB with a streamed answer: compare with direct.
func BenchmarkRequest(b *testing.B) {
	body := fmt.Sprintf(`{"model":"m","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":"hello"}],"system":%q}`, strings.Repeat("word ", 13_000))
	var events strings.Builder
	events.WriteString("data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n")
	for range 200 {
		events.WriteString("data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"some words\"}}\n\n")
	}
	events.WriteString("data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":25}}\n\n")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events.String())
	}))
	defer s.Close()
	run := func(b *testing.B, g *gate) {
		for b.Loop() {
			if resp, text := g.do("POST", "/v1/messages", body); resp.StatusCode != 200 || len(text) != events.Len() {
				b.Fatal(resp.StatusCode, text)
			}
		}
	}
	b.Run("direct", func(b *testing.B) {
		c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
		defer c.CloseIdleConnections()
		run(b, &gate{t: b, url: s.URL, show: c})
	})
	b.Run("gateway", func(b *testing.B) {
		g := before(b, Anthropic, s.URL+"/v1")
		go func() {
			for range g.over { // ends with the benchmark
			}
		}()
		g.answer = 600
		run(b, g)
		close(g.over)
	})
}
