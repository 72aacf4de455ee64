package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// call is what a path asks for.
type call int

const (
	free      call = iota // it costs nothing
	messages              // Anthropic's
	chat                  // OpenAI's Chat Completions
	responses             // OpenAI's
)

// openAnswer is how long an answer may be of a request that does not say so, in tokens. Under a budget it is then asked for no longer.
const openAnswer = 32_768

// request is what was asked for, as far as we look.
type request struct {
	Question
	call   call
	body   []byte
	fields map[string]field // of the body that matter
	choice int              // answers that are asked for at once
	shape  string           // where the bound of the answer stands, or is put
	stream bool
	less   string // tools in place of those of the request; empty = these
}

// looked are the members that are looked at. Each is said once.
var looked = []string{"model", "max_tokens", "max_completion_tokens", "max_output_tokens", "stream", "stream_options", "n", "thinking", "tools", "tool_choice", "background", "messages", "input", "system",
	"service_tier", "context_management", "previous_response_id", "conversation", "prompt", "container", "mcp_servers", "speed", "inference_geo", "models", "plugins", "provider", "route", "transforms",
	"web_search_options", "prediction", "modalities", "audio", "fallbacks", "instructions"}

// maxModel bounds the name of a model, in bytes.
const maxModel = 1000

// read reads a request. What is no JSON object, or says twice or wrongly what matters, is refused: what the vendor would make of it cannot be known.
func read(c call, body []byte, up *Upstream) (*request, error) {
	r := &request{call: c, body: body, choice: 1}
	if err := r.find(); err != nil {
		return nil, err
	}
	if err := r.value("model", &r.Model); err != nil {
		return nil, err
	}
	switch {
	case r.Model == "":
		return nil, invalid("model: missing")
	case len(r.Model) > maxModel:
		return nil, invalid("model: longer than %d bytes", maxModel)
	}
	var background bool
	if err := firstOf(r.value("stream", &r.stream), r.value("n", &r.choice), r.value("background", &background)); err != nil {
		return nil, err
	}
	if background {
		return nil, invalid("background: an answer that is fetched later is not counted, and not served here")
	}
	if r.choice < 1 || r.choice > 128 {
		return nil, invalid("n: %d is not between 1 and 128", r.choice)
	}
	if err := r.bound(up); err != nil {
		return nil, err
	}
	r.Bytes, r.Extra = measure(body)
	r.Extra += r.toolRoom()
	return r, nil
}

func invalid(format string, args ...any) *refusal {
	return refused(http.StatusBadRequest, "invalid_request_error", "rnix gateway: "+fmt.Sprintf(format, args...))
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// find finds the members of the body that matter.
func (r *request) find() error {
	if at := blank(r.body, 0); at == len(r.body) || r.body[at] != '{' {
		return invalid("the body is not a JSON object")
	}
	all := field{0, skip(r.body, blank(r.body, 0))}
	if blank(r.body, all.to) < len(r.body) && json.Valid(all.of(r.body)) {
		return invalid("the body has something behind its end")
	}
	if !json.Valid(r.body) {
		return invalid("the body is not valid JSON")
	}
	r.fields = map[string]field{}
	for name, at := range members(r.body, all) {
		if !slices.Contains(looked, name) { // there may be any number of them
			continue
		}
		if _, twice := r.fields[name]; twice {
			return invalid("%s: said twice", name)
		}
		r.fields[name] = at
	}
	return nil
}

// value decodes a member; null and none leave into as it is.
func (r *request) value(name string, into any) error {
	f, ok := r.fields[name]
	if !ok {
		return nil
	}
	if json.Unmarshal(r.body[f.from:f.to], into) != nil {
		return invalid("%s: has a value of the wrong kind", name)
	}
	return nil
}

// bound finds out how long the answer may be.
func (r *request) bound(up *Upstream) error {
	names := map[call][]string{messages: {"max_tokens"}, chat: {"max_completion_tokens", "max_tokens"}, responses: {"max_output_tokens"}}[r.call]
	r.shape = names[len(names)-1]
	if r.call == chat && strings.HasPrefix(up.Base, "https://api.openai.com/") { // whose newer models refuse the other
		r.shape = names[0]
	}
	if r.call == chat && r.has("max_tokens") && r.has("max_completion_tokens") && r.text("max_tokens") != r.text("max_completion_tokens") {
		return invalid("max_tokens and max_completion_tokens differ, and servers differ in which of them counts; say one")
	}
	for _, name := range names {
		var n *int
		if err := r.value(name, &n); err != nil {
			return err
		}
		if n == nil {
			continue
		}
		if *n < 1 || *n > 1<<24 {
			return invalid("%s: %d is not between 1 and %d", name, *n, 1<<24)
		}
		if r.shape = name; r.Answer == 0 || *n < r.Answer {
			r.Answer = *n
		}
	}
	if r.Answer == 0 && !up.Unbounded {
		r.Answer = openAnswer
	}
	r.Answer *= r.choice
	return nil
}

// leastThinking is the smallest budget of thinking that Anthropic takes, in tokens.
const leastThinking = 1024

// shorten has the body say a bound of the answer of so many tokens in all.
func (r *request) shorten(answer int, changes map[string]string) {
	each := max(answer/r.choice, 1)
	changes[r.shape] = strconv.Itoa(each)
	if r.call == chat && r.shape == "max_completion_tokens" && r.has("max_tokens") {
		changes["max_tokens"] = changes[r.shape]
	}
	var thinking struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	}
	if r.call == messages && r.value("thinking", &thinking) == nil && thinking.Type == "enabled" && thinking.Budget >= each {
		changes["thinking"] = `{"type":"disabled"}`
		if each >= 2*leastThinking {
			changes["thinking"] = fmt.Sprintf(`{"type":"enabled","budget_tokens":%d}`, each/2)
		}
	}
}

// has reports whether the body has a member other than null.
func (r *request) has(name string) bool {
	text := r.text(name)
	return text != "" && text != "null"
}

// text is the value of a member as it stands in the body; empty = it is not there.
func (r *request) text(name string) string {
	f, ok := r.fields[name]
	if !ok {
		return ""
	}
	return string(r.body[f.from:f.to])
}

// priced has a request cost what the price of its model says, where that is up to us.
func (r *request) priced(up *Upstream, changes map[string]string) {
	if r.less != "" {
		changes["tools"] = r.less
	}
	if r.call != messages && strings.HasPrefix(up.Base, "https://api.openai.com/") && slices.Contains([]string{"", "null", `"auto"`}, r.text("service_tier")) {
		changes["service_tier"] = `"default"` // else a project's settings choose
	}
}

// counting has a streamed chat say its usage, which some servers do only if they are asked to.
func (r *request) counting(changes map[string]string) {
	if r.call == chat && r.stream { // whatever it says itself: an answer that does not say its usage is not counted
		changes["stream_options"] = `{"include_usage":true}`
	}
}

// with returns the body with other values of members, in pieces, of which those that are the body's are not copied.
func (r *request) with(changes map[string]string) pieces {
	type edit struct {
		field
		text string
	}
	var edits []edit
	for name, text := range changes {
		if f, ok := r.fields[name]; ok {
			edits = append(edits, edit{f, text})
			continue
		}
		at := bytes.IndexByte(r.body, '{') + 1
		comma := ","
		if next := blank(r.body, at); next < len(r.body) && r.body[next] == '}' {
			comma = ""
		}
		edits = append(edits, edit{field{at, at}, strconv.Quote(name) + ":" + text + comma})
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(a.from-b.from, strings.Compare(a.text, b.text)) })
	var out pieces
	done := 0
	for _, e := range edits {
		out = append(out, r.body[done:e.from], []byte(e.text))
		done = e.to
	}
	return append(out, r.body[done:])
}

// pieces are a body.
type pieces [][]byte

func (p pieces) size() (n int64) {
	for _, b := range p {
		n += int64(len(b))
	}
	return n
}

// reader returns the body anew.
func (p pieces) reader() io.ReadCloser {
	all := make([]io.Reader, len(p))
	for i, b := range p {
		all[i] = bytes.NewReader(b)
	}
	return io.NopCloser(io.MultiReader(all...))
}

// What stands for what cannot be seen in a request, in tokens: a picture at its largest, and what a tool of the vendor's own reads.
const (
	pictureTokens = 6_000
	vendorTool    = 16_000
)

// vendorTools are how the types of tools begin that the vendor runs itself.
var vendorTools = []string{"web_search", "web_fetch", "code_execution", "code_interpreter", "file_search", "image_generation", "computer_use_preview", "mcp"}

// toolRoom is what the vendor's own tools may add to a prompt.
func (r *request) toolRoom() (n int) {
	at, ok := r.fields["tools"]
	if !ok {
		return 0
	}
	for e := range elements(r.body, at) {
		for _, kind := range kinds(r.body, e) {
			if slices.ContainsFunc(vendorTools, func(own string) bool { return strings.HasPrefix(kind, own) }) {
				n += vendorTool
			}
		}
	}
	return n
}

// pictures are how pictures begin, in base64: PNG, JPEG, GIF, WebP.
var pictures = []string{"iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR"}

// leastPicture is how long a text is at least that is taken for a picture, in bytes.
const leastPicture = 512

// measure returns how many bytes of a body are text, and the tokens of its pictures, at most.
func measure(body []byte) (text, extra int) {
	text = len(body)
	for rest := body; ; {
		i := bytes.IndexByte(rest, '"')
		if i < 0 {
			return text, extra
		}
		rest = rest[i+1:]
		n := literal(rest)
		if n >= leastPicture && picture(rest[:n]) {
			text, extra = text-n, extra+pictureTokens
		}
		rest = rest[min(n+1, len(rest)):]
	}
}

// literal returns how long the rest of a text in JSON is, up to its closing quote.
func literal(s []byte) int {
	for i := 0; i < len(s); i++ {
		j := bytes.IndexAny(s[i:], `"\`)
		if j < 0 {
			return len(s)
		}
		if i += j; s[i] == '"' {
			return i
		}
		i++ // what is escaped
	}
	return len(s)
}

// picture reports whether a text is a picture in base64, as it is or as a data URL.
func picture(s []byte) bool {
	if rest, ok := bytes.CutPrefix(s, []byte("data:image/")); ok {
		_, data, found := bytes.Cut(rest, []byte(","))
		return found && base64Only(data)
	}
	for _, p := range pictures {
		if bytes.HasPrefix(s, []byte(p)) {
			return base64Only(s)
		}
	}
	return false
}

// base64Only reports whether a text has nothing but the letters of base64, so that no words hide behind the beginning of a picture.
func base64Only(s []byte) bool {
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+/=-_\\", c) >= 0) {
			return false
		}
	}
	return true
}
