package gateway

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"

	"rnix/internal/weigh"
)

// A token stands for one byte at least, so a text has no more tokens than bytes. A picture counts by its size and not by its bytes: vendors make it smaller, the largest
// that is left has some 10,000 tokens with OpenAI ("original") and 4,800 with Anthropic, and ones that are counted by tiles 50,000 with OpenAI's 4o-mini.
const (
	mostPicture      = 12_000
	mostTiledPicture = 50_000
)

// stored are members by which a vendor reads what is not in the request.
var stored = []string{"previous_response_id", "conversation", "prompt", "container", "mcp_servers"}

// dear are members by which a request costs something else than the price of its model says: another speed or place, other models, services of OpenRouter, searches, and
// kinds of answers that have prices of their own.
var dear = []string{"speed", "inference_geo", "models", "plugins", "provider", "route", "transforms", "web_search_options", "prediction", "modalities", "audio", "fallbacks"}

// usual are values of these that change nothing.
var usual = map[string][]string{"speed": {`"standard"`}, "inference_geo": {`"global"`}, "modalities": {`["text"]`}, "transforms": {`[]`}, "models": {`[]`}, "plugins": {`[]`}, "fallbacks": {`[]`}}

// tiers are those that cost no more than the usual one.
var tiers = []string{"", "auto", "default", "standard", "standard_only", "flex"}

// clientTools are how the types of tools begin that the program runs which asks.
var clientTools = []string{"function", "custom", "bash_", "text_editor_", "computer_", "memory_", "apply_patch", "local_shell", "namespace"}

// inline are the kinds of items and of their content that hold all that a vendor reads of them. Beside these there are those of tool results and pictures, and some
// that hold it in another form (whole).
var inline = []string{"text", "tool_use", "tool_result", "thinking", "redacted_thinking", "search_result", "server_tool_use", "tool_reference", "web_search_result", "refusal", "message", "input_text",
	"output_text", "summary_text", "reasoning_text", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "local_shell_call", "local_shell_call_output", "shell_call",
	"shell_call_output", "apply_patch_call", "apply_patch_call_output", "web_search_call", "computer_call", "computer_call_output", "tool_search_call", "tool_search_output", "additional_tools"}

// pictured are the kinds that are a picture, wherever it lies.
var pictured = []string{"image", "image_url", "input_image", "computer_screenshot"}

// weigher looks at a request.
type weigher struct{ *request }

// weigh finds out what a request takes at most whose price matters: its parts, and what of it cannot be bounded or has no price.
func (r *request) weigh() { weigher{r}.all() }

func (r weigher) all() {
	r.Weighed, r.Hour = true, r.call == messages && hours(r.body)
	for _, name := range stored {
		if r.has(name) {
			r.open(name, "the vendor would read what is not in the request; send the whole conversation")
		}
	}
	for _, name := range dear {
		if r.has(name) && !slices.Contains(usual[name], r.compact(name)) {
			r.odd(name, "with it a request has another price; leave it out")
		}
	}
	var tier string
	if r.value("service_tier", &tier) != nil || !slices.Contains(tiers, tier) {
		r.odd("service_tier", "another tier has another price; leave it out")
	}
	r.managed()
	picture := mostPicture
	if strings.Contains(r.Model, "4o-mini") {
		picture = mostTiledPicture
	}
	for name, at := range members(r.body, field{0, len(r.body)}) {
		switch name {
		case "tools":
			r.tools(at)
		case "messages", "input", "system":
			text := true
			for e := range elements(r.body, at) {
				text = false
				saved, remote := 0, false
				if name == "input" && !r.isSelf(e) {
					r.open(name, "an item that does not say what it is stands for one that the vendor keeps; send it whole, with its type")
				}
				r.content(name, e, 0, func(p field) {
					saved += p.to - p.from - picture
					remote = remote || !r.holds(p)
				})
				r.part(e, saved, remote)
			}
			if text {
				r.part(at, 0, false)
			}
		default:
			r.part(at, 0, false)
		}
	}
}

// maxParts bounds the parts of a prompt, of which those beyond are one.
const maxParts = 4096

// part adds a part whose tokens are so many fewer than its bytes. What is remote can be another thing each time, so that no count of it is one of the next.
func (r weigher) part(at field, saved int, remote bool) {
	raw := at.of(r.body)
	p := weigh.Of(raw)
	p.Most = max(len(raw)-saved, 0)
	if remote {
		p.Sum = rand.Uint64()
	}
	if n := len(r.Parts); n == maxParts {
		last := &r.Parts[n-1]
		*last = weigh.Both(*last, p)
		return
	}
	r.Parts = append(r.Parts, p)
}

func (r weigher) open(what, why string) {
	if r.Open == "" {
		r.Open = what + ": " + why
	}
}

func (r weigher) odd(what, why string) {
	if r.Odd == "" {
		r.Odd = what + ": " + why
	}
}

// compact returns the value of a member without blanks.
func (r *request) compact(name string) string {
	var out bytes.Buffer
	_ = json.Compact(&out, []byte(r.text(name))) // it is valid
	return out.String()
}

// hours reports whether a request may ask to keep a part of the prompt for an hour.
func hours(body []byte) bool {
	for _, escaped := range []string{`\u003`, `\u004`, `\u005`, `\u006`, `\u007`} { // a letter or a digit, as no program writes them
		if bytes.Contains(body, []byte(escaped)) {
			return true
		}
	}
	return bytes.Contains(body, []byte(`"1h"`)) && bytes.Contains(body, []byte(`"ttl"`))
}

// managed finds what has the vendor ask the model more often.
func (r weigher) managed() {
	at, ok := r.fields["context_management"]
	if !ok {
		return
	}
	for e := range elements(r.body, at) {
		r.managedBy(e)
	}
	for name, list := range members(r.body, at) {
		if name == "edits" {
			for e := range elements(r.body, list) {
				r.managedBy(e)
			}
		}
	}
}

func (r weigher) managedBy(at field) {
	for _, kind := range kinds(r.body, at) {
		if !strings.HasPrefix(kind, "clear_") {
			r.open("context_management", kind+" has the vendor ask the model more often; leave it out")
		}
	}
}

// tools looks at the tools of a request. Those that the vendor runs are left out where the model has others to choose from: CLIs offer them without being asked.
func (r weigher) tools(at field) {
	var kept [][]byte
	vendors := ""
	for e := range elements(r.body, at) {
		if kind := r.vendorTool(e); kind != "" {
			vendors = kind
			continue
		}
		if r.part(e, 0, false); len(kept) <= maxParts {
			kept = append(kept, e.of(r.body))
		}
	}
	if vendors == "" {
		return
	}
	if choice := r.compact("tool_choice"); len(kept) > 0 && len(kept) <= maxParts && slices.Contains([]string{"", "null", `"auto"`, `{"type":"auto"}`}, choice) {
		r.less = "[" + string(bytes.Join(kept, []byte(","))) + "]"
		return
	}
	r.vendorRuns(vendors)
}

func (r weigher) vendorRuns(tool string) {
	r.open("tools", "the vendor runs "+tool+" itself, and reads for it as much as it likes; use a tool that runs here")
}

// vendorTool returns the kind of a tool that the vendor runs, perhaps one in a list of tools; "" = it is none.
func (r weigher) vendorTool(at field) string {
	for _, kind := range kinds(r.body, at) {
		if !slices.ContainsFunc(clientTools, func(own string) bool { return strings.HasPrefix(kind, own) }) {
			return kind
		}
	}
	for name, list := range members(r.body, at) {
		if name == "tools" {
			for e := range elements(r.body, list) {
				for _, kind := range kinds(r.body, e) {
					if kind != "function" && kind != "custom" {
						return kind
					}
				}
			}
		}
	}
	return ""
}

// kinds returns what an object says that it is, which is one thing; "" is not among them.
func kinds(b []byte, at field) (kinds []string) {
	for name, v := range members(b, at) {
		var kind string
		if name == "type" && json.Unmarshal(v.of(b), &kind) == nil && kind != "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// maxWithin bounds how deep the content of a message is looked at.
const maxWithin = 8

// content looks at an item of a request, or at a part of its content. It calls picture for each picture.
func (r weigher) content(where string, at field, depth int, picture func(field)) {
	is := kinds(r.body, at)
	for _, kind := range is {
		switch {
		case slices.Contains(inline, kind), slices.Contains(pictured, kind), strings.HasSuffix(kind, "_tool_result"), strings.HasSuffix(kind, "_tool_result_error"), r.whole(kind, at):
		default:
			r.open(where, "what "+kind+" stands for is not in the request, or has another price; send it as text")
		}
	}
	if depth == maxWithin || len(is) > 1 {
		r.open(where, "its content is too deep, or says twice what it is")
		return
	}
	if len(is) == 1 && slices.Contains(pictured, is[0]) {
		picture(at)
		return
	}
	for name, v := range members(r.body, at) {
		switch name {
		case "content", "output", "summary":
			for e := range elements(r.body, v) {
				r.content(where, e, depth+1, picture)
			}
			if r.body[v.from] == '{' && len(kinds(r.body, v)) > 0 { // as a screenshot
				r.content(where, v, depth+1, picture)
			}
		case "source":
			if len(is) == 1 && is[0] == "document" {
				r.source(where, v, depth+1, picture)
			}
		case "tools":
			for e := range elements(r.body, v) {
				if kind := r.vendorTool(e); kind != "" {
					r.vendorRuns(kind)
				}
			}
		}
	}
}

// source looks at what a document consists of that is made of parts.
func (r weigher) source(where string, at field, depth int, picture func(field)) {
	for name, v := range members(r.body, at) {
		if name == "content" {
			for e := range elements(r.body, v) {
				r.content(where, e, depth, picture)
			}
		}
	}
}

// whole reports whether an item holds all that a vendor reads of it: a document that is a text, and what was thought, which can also be kept by the vendor.
func (r weigher) whole(kind string, at field) bool {
	var source []string
	id, text := false, false
	for name, v := range members(r.body, at) {
		switch value := v.of(r.body); name {
		case "source":
			source = append(source, kinds(r.body, v)...)
		case "id":
			id = id || string(value) != "null"
		case "encrypted_content":
			text = text || len(value) > len("null")
		}
	}
	switch kind {
	case "document":
		return len(source) == 1 && (source[0] == "text" || source[0] == "content")
	case "reasoning", "compaction":
		return text || !id
	}
	return false
}
