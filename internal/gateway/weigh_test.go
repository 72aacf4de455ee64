package gateway

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
)

// weighed reads and weighs a request.
func weighed(t *testing.T, c call, body string) *request {
	t.Helper()
	r, err := read(c, []byte(body), &Upstream{})
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	r.weigh()
	return r
}

func TestWhatNothingBoundsIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		call call
		body string // members besides the model
		open string // what is said of it; empty = it is bounded
		odd  string
	}{
		"a conversation":            {responses, `"input":[{"role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"x"}],"encrypted_content":"abc"},{"type":"function_call_output","call_id":"c","output":"x"}]`, "", ""},
		"a text":                    {responses, `"input":"x","previous_response_id":null`, "", ""},
		"what claude sends":         {messages, `"max_tokens":1,"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"system","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"x"},{"type":"tool_use","input":{"type":"document","content":[{"type":"file"}]}}]},{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"url","url":"http://x"}}]}]}],"tools":[{"name":"Bash"},{"type":"custom","name":"x"},{"type":"bash_20250124","name":"bash"}]`, "", ""},
		"what codex sends":          {responses, `"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"f","tools":[{"type":"custom","name":"exec"}]},{"type":"function","name":"wait"}]},{"type":"message","content":[{"type":"input_image","image_url":"data:image/png;base64,xx"}]}]`, "", ""},
		"an earlier answer":         {responses, `"input":"x","previous_response_id":"resp_1"`, "previous_response_id", ""},
		"a kept conversation":       {responses, `"conversation":"c"`, "conversation", ""},
		"a kept prompt":             {responses, `"prompt":{"id":"p"}`, "prompt", ""},
		"a container":               {messages, `"container":"c"`, "container", ""},
		"servers of MCP":            {messages, `"mcp_servers":[{}]`, "mcp_servers", ""},
		"a kept item":               {responses, `"input":[{"type":"item_reference","id":"msg_1"}]`, "item_reference", ""},
		"a kept item without type":  {responses, `"input":[{"id":"msg_1"}]`, "input", ""},
		"a kept item of no type":    {responses, `"input":[{"role":"user","content":"x"},{"type":null,"id":"msg_1"}]`, "input", ""},
		"an empty type":             {responses, `"input":[{"type":"","id":"msg_1"}]`, "input", ""},
		"a type that is taken back": {responses, `"input":[{"type":"message","type":null,"id":"msg_1"}]`, "input", ""},
		"a role that is none":       {responses, `"input":[{"role":null,"content":"x","id":"msg_1"}]`, "input", ""},
		"a role and no words":       {responses, `"input":[{"role":"user","id":"msg_1"}]`, "input", ""},
		"a message without type":    {responses, `"input":[{"type":null,"role":"user","content":"x"},"words"]`, "", ""},
		"a document of files":       {messages, `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"document","source":{"type":"url","url":"http://x"}}]}}]}]`, "document", ""},
		"a document of two sources": {messages, `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"http://x"},"source":{"type":"text","data":"x"}}]}]`, "document", ""},
		"a document of parts":       {messages, `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"url","url":"http://x"}}]}}]}]`, "", ""},
		"kept thoughts":             {responses, `"input":[{"type":"reasoning","id":"rs_1","encrypted_content":null}]`, "reasoning", ""},
		"a file":                    {responses, `"input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]`, "input_file", ""},
		"a document elsewhere":      {messages, `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"http://x"}}]}]`, "document", ""},
		"a document":                {messages, `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","data":"JVBERi0"}}]}]`, "document", ""},
		"a document in a result":    {messages, `"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}]`, "document", ""},
		"a document as text":        {messages, `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"words"}}]}]`, "", ""},
		"an upload":                 {messages, `"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"f"}]}]`, "container_upload", ""},
		"sound":                     {chat, `"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]`, "input_audio", ""},
		"two kinds at once":         {chat, `"messages":[{"role":"user","content":[{"type":"text","type":"image_url"}]}]`, "twice", ""},
		"search alone":              {messages, `"tools":[{"type":"web_search_20250305","max_uses":8}]`, "web_search_20250305", ""},
		"search by force":           {responses, `"tools":[{"type":"web_search"},{"type":"function","name":"f"}],"tool_choice":{"type":"web_search"}`, "web_search", ""},
		"search in a list":          {responses, `"input":[{"type":"additional_tools","tools":[{"type":"web_search"}]}]`, "web_search", ""},
		"an adviser":                {messages, `"tools":[{"type":"advisor_20260301","model":"dear"}]`, "advisor_20260301", ""},
		"compaction":                {messages, `"context_management":{"edits":[{"type":"compact_20260112"}]}`, "compact_20260112", ""},
		"compaction of OpenAI":      {responses, `"context_management":[{"type":"compaction"}]`, "compaction", ""},
		"the priority tier":         {chat, `"service_tier":"priority"`, "", "service_tier"},
		"another tier":              {chat, `"service_tier":7`, "", "service_tier"},
		"the slow tier":             {chat, `"service_tier":"flex"`, "", ""},
		"a fast answer":             {messages, `"speed":"fast"`, "", "speed"},
		"a usual answer":            {messages, `"speed":"standard","inference_geo": "global"`, "", ""},
		"another place":             {messages, `"inference_geo":"us"`, "", "inference_geo"},
		"other models":              {chat, `"models":["dear"]`, "", "models"},
		"plugins":                   {chat, `"plugins":[{"id":"web"}]`, "", "plugins"},
		"a route":                   {chat, `"provider":{"sort":"throughput"}`, "", "provider"},
		"a search":                  {chat, `"web_search_options":{}`, "", "web_search_options"},
		"a prediction":              {chat, `"prediction":{"type":"content"}`, "", "prediction"},
		"an answer that is said":    {chat, `"modalities":["text","audio"]`, "", "modalities"},
	} {
		r := weighed(t, c.call, `{"model":"m",`+c.body+`}`)
		if !strings.Contains(r.Open, c.open) || (c.open == "") != (r.Open == "") || !strings.Contains(r.Odd, c.odd) || (c.odd == "") != (r.Odd == "") {
			t.Errorf("%s: open %q, odd %q", name, r.Open, r.Odd)
		}
	}
}

// Tools that the vendor runs are left out where there are others, and the tier of OpenAI is named.
func TestUnderABudgetRequestsCostTheUsualPrice(t *testing.T) {
	r := weighed(t, responses, `{"model":"m","tools":[{"type":"function","name":"f"}, {"type":"web_search"} ,{"name":"g"}],"tool_choice":"auto","input":"x"}`)
	for base, want := range map[string]string{
		"https://api.openai.com/v1": `{"service_tier":"default","model":"m","tools":[{"type":"function","name":"f"},{"name":"g"}],"tool_choice":"auto","input":"x"}`,
		"http://x/v1":               `{"model":"m","tools":[{"type":"function","name":"f"},{"name":"g"}],"tool_choice":"auto","input":"x"}`,
	} {
		changes := map[string]string{}
		if r.priced(&Upstream{Base: base}, changes); text(r.with(changes)) != want || r.Open != "" {
			t.Errorf("%s: %s %q", base, text(r.with(changes)), r.Open)
		}
	}
}

// A part counts as many tokens as it has bytes, a picture by what it can be at most.
func TestPartsBoundAPrompt(t *testing.T) {
	words := strings.Repeat("word ", 1000)
	image := `{"type":"image","source":{"type":"base64","data":"` + strings.Repeat("iVBORw0KGgo", 10_000) + `"}}`
	hidden := `{"type":"tool_use","input":{"content":[` + image + `]}}` // a text, as the model has written it
	for body, want := range map[string]int{
		`{"model":"m","system":"` + words + `"}`:                                                       3 + len(words) + 2,
		`{"model":"m","messages":[{"role":"user","content":[` + image + `]}]}`:                         3 + len(`{"role":"user","content":[]}`) + mostPicture,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"url":"u"}}]}]}`: 3 + len(`{"role":"user","content":[]}`) + mostPicture,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url","url":"u"}}]}}]}]}`: 3 + len(`{"role":"user","content":[{"type":"document","source":{"type":"content","content":[]}}]}`) + mostPicture,
		`{"model":"gpt-4o-mini","messages":[{"role":"user","content":[{"type":"image_url","image_url":"u"}]}]}`:                                                                 13 + len(`{"role":"user","content":[]}`) + mostTiledPicture,
		`{"model":"m","messages":[{"role":"assistant","content":[` + hidden + `]}]}`:                                                                                            3 + len(`{"role":"assistant","content":[]}`) + len(hidden),
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"iVBORw0KGgo` + words + `"}]}]}`:                                                              3 + len(`{"role":"user","content":[{"type":"text","text":"iVBORw0KGgo"}]}`) + len(words),
	} {
		n := 0
		for _, p := range weighed(t, messages, body).Parts {
			n += p.Most
		}
		if n != want {
			t.Errorf("%.80s: %d, want %d", body, n, want)
		}
	}
	r := weighed(t, messages, `{"model":"m","messages":[`+strings.Repeat(`1,`, 2*maxParts)+`1]}`)
	if last := r.Parts[maxParts-1]; len(r.Parts) != maxParts || last.Most < maxParts {
		t.Errorf("%d parts, the last %+v", len(r.Parts), last)
	}
	for body, want := range map[string]bool{`{"model":"m","system":[{"cache_control":{"type":"ephemeral","ttl":"1h"}}]}`: true, `{"model":"m","system":[{"cache_control":{"ttl":"\u0031h"}}]}`: true, `{"model":"m","system":[{"cache_control":{"ttl":"5m"}}]}`: false} {
		if r := weighed(t, messages, body); r.Hour != want {
			t.Errorf("%s: %v", body, r.Hour)
		}
	}
}

// What is counted of a picture that lies elsewhere is not what it takes the next time.
func TestPicturesElsewhereAreNewEachTime(t *testing.T) {
	for content, same := range map[string]bool{
		`{"type":"text","text":"x"}`:                                                                     true,
		`{"type":"image","source":{"type":"base64","data":"xx"}}`:                                        true,
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,xx"}}`:                            true,
		`{"type":"input_image","image_url":"data:image/png;base64,xx","file_id":null}`:                   true,
		`{"type":"image","source":{"type":"url","url":"http://x"}}`:                                      false,
		`{"type":"image","source":{"type":"file","file_id":"f"}}`:                                        false,
		`{"type":"image","source":{"type":"base64","data":"xx"},"source":{"type":"url","url":"u"}}`:      false,
		`{"type":"image_url","image_url":{"url":"http://x"}}`:                                            false,
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,xx","url":"http://x"}}`:           false,
		`{"type":"input_image","image_url":"https://x"}`:                                                 false,
		`{"type":"input_image","file_id":"f"}`:                                                           false,
		`{"type":"input_image","image_url":"data:image/png;base64,xx","file_id":"f"}`:                    false,
		`{"type":"tool_result","content":[{"type":"image","source":{"type":"url","url":"u"}}]}`:          false,
		`{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"http://x"}}`: false,
	} {
		body := `{"model":"m","messages":[{"role":"user","content":[` + content + `]}]}`
		a, b := weighed(t, messages, body).Parts, weighed(t, messages, body).Parts
		if last := len(a) - 1; a[0] != b[0] || (a[last] == b[last]) != same || a[last].Most != b[last].Most {
			t.Errorf("%s: %v %v", content, a, b)
		}
	}
}

func TestHoursAndTiersAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		call call
		text string
		want Usage
	}{
		"an hour":        {messages, `{"model":"m","usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"service_tier":"standard","inference_geo":"global"}}`, Usage{Input: 1, Output: 2, CacheWrite: 30, CacheHour: 20, Model: "m"}},
		"more than all":  {messages, `{"usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":3,"cache_creation":{"ephemeral_1h_input_tokens":20}}}`, Usage{Input: 1, Output: 2, CacheWrite: 3, CacheHour: 3}},
		"another place":  {messages, `{"usage":{"input_tokens":1,"output_tokens":2,"inference_geo":"us"}}`, Usage{Input: 1, Output: 2, Dear: true}},
		"a fast answer":  {messages, `{"usage":{"input_tokens":1,"output_tokens":2,"speed":"fast"}}`, Usage{Input: 1, Output: 2, Dear: true}},
		"another tier":   {responses, `{"service_tier":"priority","usage":{"input_tokens":1,"output_tokens":2}}`, Usage{Input: 1, Output: 2, Dear: true}},
		"the usual tier": {chat, `{"service_tier":"default","usage":{"prompt_tokens":1,"completion_tokens":2}}`, Usage{Input: 1, Output: 2}},
	} {
		a := &answer{call: c.call}
		_, _ = a.Write([]byte(c.text))
		if got := a.took(&Question{}); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	a := &answer{call: responses, stream: true}
	_, _ = a.Write([]byte("data: {\"type\":\"response.completed\",\"response\":{\"service_tier\":\"priority\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}\n\n"))
	if got := a.took(&Question{}); !got.Dear || got.Output != 2 {
		t.Errorf("%+v", got)
	}
}

// The scanner finds what the decoder of encoding/json finds.
func FuzzScan(f *testing.F) {
	f.Add(`{"a" : [1, "x\"]", {"b":null}] , "c\u0041":-1.5e3,"":{}}`)
	f.Add(` [ [], {}, [[1]], true ] `)
	f.Fuzz(func(t *testing.T, text string) {
		b := []byte(text)
		if !json.Valid(b) {
			return
		}
		all := field{0, len(b)}
		var list []json.RawMessage
		if json.Unmarshal(b, &list) == nil {
			n := 0
			for e := range elements(b, all) {
				if n >= len(list) || !bytes.Equal(e.of(b), list[n]) {
					t.Fatalf("%s: element %d is %s", b, n, e.of(b))
				}
				n++
			}
			if n != len(list) {
				t.Fatalf("%s: %d of %d", b, n, len(list))
			}
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(b, &object) == nil {
			found := map[string]string{}
			for name, v := range members(b, all) {
				found[name] = string(v.of(b))
			}
			if len(found) != len(object) {
				t.Fatalf("%s: %v", b, found)
			}
			for name, v := range object {
				if found[name] != string(v) {
					t.Fatalf("%s: %s is %s", b, name, found[name])
				}
			}
		}
	})
}

// Many small requests that unpack to large ones do not take more memory than is held for requests.
func TestRequestsTakeBoundedMemory(t *testing.T) {
	g, _ := vendor(t, Anthropic, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "x"} })
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"`)
	size := soak.Pick(t, "MiB of a request", 3, 63)
	for range size {
		_, _ = z.Write(bytes.Repeat([]byte("x"), 1<<20))
	}
	_ = z.Flush() // it is cut off, so that the test need not wait for 63 MiB to be looked at
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-stop:
				most <- peak
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			resp, text := g.do("POST", "/v1/messages", packed.String(), func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") })
			if full := resp.StatusCode == 503 && strings.Contains(text, "too many large requests"); !full && (resp.StatusCode != 400 || !strings.Contains(text, "cut off")) {
				t.Errorf("%d %.200s", resp.StatusCode, text)
			}
		})
	}
	all.Wait()
	close(stop)
	if peak := <-most; peak > 4*ownBodies {
		t.Errorf("%d MiB", peak>>20)
	} else {
		t.Logf("12 requests of %d KiB that unpack to %d MiB: %d MiB at most", packed.Len()>>10, size, peak>>20)
	}
}

// A request that does not come does not hold others up for ever, and what it holds is given back.
func TestARequestThatDoesNotComeIsGivenUp(t *testing.T) {
	g, _ := vendor(t, Anthropic, nil)
	c, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: 60000000\r\n\r\n{", placeholder)
	_ = c.Close()
	if resp, text := g.do("POST", "/v1/messages", fmt.Sprintf(asks[0].body, false)); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// control is an answer whose reading has deadlines.
type control struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (c *control) SetReadDeadline(at time.Time) error {
	c.deadlines = append(c.deadlines, at)
	return nil
}

func TestEachPartOfARequestHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, all := semaphore.NewWeighted(ownBodies), semaphore.NewWeighted(maxBodies)
		read := func(body io.Reader) (*control, int, error) {
			w := &control{ResponseRecorder: httptest.NewRecorder()}
			h := &hold{own: own, all: all}
			defer h.end()
			b, err := h.read(w, httptest.NewRequestWithContext(t.Context(), "POST", "/", body))
			return w, len(b), err
		}
		slow := &slowly{parts: 100, part: 64 << 10, wait: 20 * time.Second}
		w, n, err := read(slow) // within the time of a part each, in all far longer
		if err != nil || n != 100*(64<<10) || len(w.deadlines) < 3 || !w.deadlines[len(w.deadlines)-1].IsZero() {
			t.Errorf("%d %v %v", n, err, w.deadlines)
		}
		for i, at := range w.deadlines[1 : len(w.deadlines)-1] {
			if !at.After(w.deadlines[i]) {
				t.Errorf("it was not renewed: %v", w.deadlines)
			}
		}
		if _, _, err := read(io.MultiReader(strings.NewReader("{"), iotest.ErrReader(os.ErrDeadlineExceeded))); err == nil || !strings.Contains(err.Error(), "does not come") {
			t.Errorf("%v", err)
		}
		for _, full := range []*semaphore.Weighted{own, all} {
			_ = full.Acquire(t.Context(), maxBody)
			rest := int64(0)
			for full.TryAcquire(1 << 20) {
				rest += 1 << 20
			}
			begun := time.Now()
			if _, n, err := read(strings.NewReader("{}")); err != nil || n != 2 {
				t.Errorf("a small one: %v", err)
			}
			_, _, err := read(strings.NewReader(strings.Repeat("x", 3<<20)))
			no, ok := err.(*refusal)
			if !ok || no.status != 503 || !no.again || time.Since(begun) != partTime {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			full.Release(maxBody + rest)
		}
		if !own.TryAcquire(ownBodies) || !all.TryAcquire(maxBodies) {
			t.Error("something is held still")
		}
	})
}

// slowly is a body that comes in parts.
type slowly struct {
	parts, part int
	wait        time.Duration
}

func (s *slowly) Read(p []byte) (int, error) {
	if s.parts == 0 {
		return 0, io.EOF
	}
	s.parts--
	<-time.After(s.wait)
	return copy(p, bytes.Repeat([]byte("x"), s.part)), nil
}
