package llm

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"rnix/internal/pattern"

	rnixctx "rnix/context"
)

// replayTalk is what one kind of agent says: the responses for every session whose beginning fits.
type replayTalk struct {
	System    string           `yaml:"system"` // a regular expression that the system prompt fits; empty = every one does
	Prompt    string           `yaml:"prompt"` // likewise the first message; its groups are there for the responses
	Responses []replayResponse `yaml:"responses"`

	system, prompt *regexp.Regexp // nil = not said
	filled         bool           // references are replaced in the responses
}

// replayPlace is where a session is.
type replayPlace struct {
	talk *replayTalk
	next int // of its responses
}

// resultWord stands for the result of the last call in a response, and with ".N" behind it for that of the N-th call
// of the conversation, from 1.
const resultWord = "result"

// reference is ${name} or ${result.2}; $${name} is what a response says when it means ${name}.
var reference = pattern.New(`\$?\$\{[A-Za-z0-9_]+(?:\.[0-9]+)?\}`)

// maxFilled bounds what is put in for a reference, in bytes. What is longer is cut.
const maxFilled = 32 << 10

// check reads the expressions and the responses. It returns in which of these a mistake is, from 1; 0 = in none.
func (t *replayTalk) check() (response int, err error) {
	for _, e := range []struct {
		key, expr string
		into      **regexp.Regexp
	}{{"system", t.System, &t.system}, {"prompt", t.Prompt, &t.prompt}} {
		if e.expr == "" {
			continue
		}
		if *e.into, err = regexp.Compile(e.expr); err != nil {
			return 0, fmt.Errorf("%s: %w", e.key, err)
		}
	}
	for i := range t.Responses {
		r := &t.Responses[i]
		if err := r.check(); err != nil {
			return i + 1, fmt.Errorf("response %d: %w", i+1, err)
		}
		if !t.filled {
			continue
		}
		for _, s := range r.texts() {
			if err := t.known(s); err != nil {
				return i + 1, fmt.Errorf("response %d: %w", i+1, err)
			}
		}
	}
	return 0, nil
}

// known finds a reference in a text that stands for nothing.
func (t *replayTalk) known(text string) error {
	for _, ref := range reference().FindAllString(text, -1) {
		name, literal := strings.CutPrefix(ref, "$$")
		if literal {
			continue
		}
		name = strings.Trim(name, "${}")
		word, n, deep := strings.Cut(name, ".")
		switch {
		case word == resultWord && (!deep || n != "0"):
		case !deep && t.group(name) >= 0:
		default:
			return fmt.Errorf("%s stands for nothing: write ${result}, ${result.2} for that of the second call, ${1} for the first group of prompt, and $%s for the text itself", ref, ref)
		}
	}
	return nil
}

// group returns the number of a group of prompt; -1 if there is none.
func (t *replayTalk) group(name string) int {
	if t.prompt == nil {
		return -1
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n > t.prompt.NumSubexp() {
			return -1
		}
		return n
	}
	return t.prompt.SubexpIndex(name)
}

// talkFor returns what is said in a conversation.
func (s *replayScript) talkFor(req LLMRequest) (*replayTalk, error) {
	if len(s.Conversations) == 0 {
		return &s.alone, nil
	}
	first := firstWords(req)
	for i := range s.Conversations {
		t := &s.Conversations[i]
		if (t.system == nil || t.system.MatchString(req.SystemPrompt)) && (t.prompt == nil || t.prompt.MatchString(first)) {
			return t, nil
		}
	}
	return nil, fmt.Errorf("the script %s has no conversation that begins with %q", s.path, brief(first, 80))
}

func firstWords(req LLMRequest) string { return conversation(req)[0].Content }

func brief(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "..."
	}
	return s
}

// replacer returns what replaces the references of a response.
func (t *replayTalk) replacer(req LLMRequest) func(string) (string, error) {
	var groups, results []string
	if t.prompt != nil {
		groups = t.prompt.FindStringSubmatch(firstWords(req)) // nil if the beginning was summed up since
	}
	for _, m := range conversation(req) {
		if m.Role == rnixctx.RoleTool {
			results = append(results, strings.TrimSpace(m.Content))
		}
	}
	return func(text string) (string, error) {
		var wrong error
		out := reference().ReplaceAllStringFunc(text, func(ref string) string {
			if strings.HasPrefix(ref, "$$") {
				return ref[1:]
			}
			word, number, deep := strings.Cut(strings.Trim(ref, "${}"), ".")
			if word == resultWord {
				n := len(results)
				if deep {
					n, _ = strconv.Atoi(number) // digits; what is too large is out of range
				}
				if n >= 1 && n <= len(results) {
					return atMost(results[n-1])
				}
			} else if g := t.group(word); g >= 0 && g < len(groups) {
				return atMost(groups[g])
			}
			wrong = fmt.Errorf("%s stands for nothing here: the conversation has %d results", ref, len(results))
			return ""
		})
		return out, wrong
	}
}

func atMost(s string) string {
	if len(s) > maxFilled {
		return strings.ToValidUTF8(s[:maxFilled], "")
	}
	return s
}

// filled returns a copy of a response in which the references are replaced.
func (r *replayResponse) filled(replace func(string) (string, error)) (*replayResponse, error) {
	out := *r
	var errs []error
	fill := func(s string) string {
		s, err := replace(s)
		errs = append(errs, err)
		return s
	}
	out.Content, out.Reasoning = fill(r.Content), fill(r.Reasoning)
	out.ToolCalls = make([]replayCall, len(r.ToolCalls))
	for i, c := range r.ToolCalls {
		if c.value == nil {
			c.input = fill(c.input)
		} else if b, err := encode(inTexts(c.value, fill)); err == nil { // it could be written before
			c.input = string(b)
		}
		out.ToolCalls[i] = c
	}
	return &out, errors.Join(errs...)
}

// texts returns everything that a response says.
func (r *replayResponse) texts() []string {
	out := []string{r.Content, r.Reasoning}
	for i := range r.ToolCalls {
		out = append(out, r.ToolCalls[i].Name, r.ToolCalls[i].input)
	}
	return out
}

// inTexts returns a copy of a value with its texts changed, but for the keys.
func inTexts(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = inTexts(x, change)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = inTexts(x, change)
		}
		return out
	}
	return v
}
