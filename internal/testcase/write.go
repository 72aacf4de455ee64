package testcase

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"rnix/internal/pattern"
)

// Talk is what the model answers one process.
type Talk struct {
	First   string // the first message, by which the process is known; it counts where there are several talks
	Answers []Answer
}

// Answer is one answer of the model.
type Answer struct {
	Content    string
	Calls      []AnswerCall
	StopReason string
	Input      int // tokens, with those of the cache
	Cached     int
	Output     int
}

// AnswerCall is a call in an answer.
type AnswerCall struct {
	ID    string
	Name  string
	Input string // as the model wrote it, valid or not
}

// stops are the reasons to stop that a script can give.
var stops = []string{"end_turn", "tool_use", "max_tokens", "refusal", "stop_sequence", "task_failed"}

// Script writes talks as a script of the driver replay.
func Script(talks []Talk) []byte {
	var b bytes.Buffer
	b.WriteString("# What the model answered. The driver \"replay\" reads it.\nversion: \"1\"\n")
	if len(talks) == 1 {
		b.WriteString("responses:\n")
		answers(&b, "  ", talks[0].Answers, func(s string) string { return s })
		return b.Bytes()
	}
	b.WriteString("conversations:\n")
	for i := range talks {
		fmt.Fprintf(&b, "  - prompt: %s\n    responses:\n", inline(prompt(talks[i].First)))
		answers(&b, "      ", talks[i].Answers, literally)
	}
	return b.Bytes()
}

// promptBytes is how much of a first message has to fit.
const promptBytes = 400

// prompt is the regular expression that a first message fits.
func prompt(first string) string {
	end := `\z`
	if len(first) > promptBytes {
		first, end = strings.ToValidUTF8(first[:promptBytes], ""), ""
	}
	return `\A` + regexp.QuoteMeta(first) + end
}

var reference = pattern.New(`\$\{[A-Za-z0-9_]+(?:\.[0-9]+)?\}`)

// literally keeps what looks like a reference of a script as it is.
func literally(s string) string { return reference().ReplaceAllString(s, "$$$0") }

func answers(b *bytes.Buffer, indent string, list []Answer, keep func(string) string) {
	if len(list) == 0 {
		b.Truncate(b.Len() - 1)
		b.WriteString(" []\n")
	}
	for i := range list {
		a := &list[i]
		lead := indent + "- "
		key := func(name, value string) {
			fmt.Fprintf(b, "%s%s: %s\n", lead, name, value)
			lead = indent + "  "
		}
		if a.Content != "" || len(a.Calls) == 0 {
			key("content", text(keep(a.Content), indent+"    "))
		}
		if len(a.Calls) > 0 {
			key("tool_calls", "")
			b.Truncate(b.Len() - 2)
			b.WriteByte('\n')
			for _, c := range a.Calls {
				input := inline(keep(c.Input))
				if v := argsOf(c.Input); isObject(v) {
					input = keep(flow(c.Input))
				}
				fmt.Fprintf(b, "%s    - {name: %s, input: %s", indent, inline(c.Name), input)
				if c.ID != "" {
					fmt.Fprintf(b, ", id: %s", inline(c.ID))
				}
				b.WriteString("}\n")
			}
		}
		if a.Input+a.Output > 0 {
			cached := ""
			if a.Cached > 0 {
				cached = ", cached_input_tokens: " + strconv.Itoa(a.Cached)
			}
			key("usage", fmt.Sprintf("{input_tokens: %d, output_tokens: %d%s}", a.Input, a.Output, cached))
		}
		if slices.Contains(stops, a.StopReason) {
			key("stop_reason", a.StopReason)
		}
	}
}

func isObject(v any) bool { _, ok := v.(map[string]any); return ok }

// flow writes JSON as YAML in one line: what YAML does not print is escaped.
func flow(input string) string {
	var b bytes.Buffer
	d := json.NewDecoder(strings.NewReader(input))
	d.UseNumber()
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	var v any
	if d.Decode(&v) != nil || e.Encode(v) != nil {
		return inline(input)
	}
	return spaced(escaped(strings.TrimSuffix(b.String(), "\n")))
}

// spaced puts a blank behind colons and commas that stand outside of texts.
func spaced(s string) string {
	var b strings.Builder
	inside, skip := false, false
	for _, r := range s {
		b.WriteRune(r)
		switch {
		case skip:
			skip = false
		case inside && r == '\\':
			skip = true
		case r == '"':
			inside = !inside
		case !inside && (r == ':' || r == ','):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// inline writes a text in one line.
func inline(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(strings.ToValidUTF8(s, "\uFFFD")) // a text can be encoded
	return escaped(strings.TrimSuffix(b.String(), "\n"))
}

// escaped writes the characters that YAML does not print as escapes. s is JSON.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case printable(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// printable reports whether a character may stand in YAML as it is, and is seen there as it is.
func printable(r rune) bool {
	return r >= 0x20 && r < 0x7f || r >= 0xa0 && r != 0xfeff && r != 0xfffe && r != 0xffff && r != 0x2028 && r != 0x2029 && !unicode.Is(unicode.Cf, r)
}

// text writes a text, in a block of lines where that can be.
func text(s, indent string) string {
	if !strings.Contains(s, "\n") || !utf8.ValidString(s) {
		return inline(s)
	}
	body := strings.TrimRight(s, "\n")
	more := len(s) - len(body)
	if body == "" || more > 1 || strings.HasPrefix(body, " ") || strings.HasPrefix(body, "\n") {
		return inline(s)
	}
	for _, r := range body {
		if r != '\n' && r != '\t' && !printable(r) {
			return inline(s)
		}
	}
	chomp := "|-"
	if more == 1 {
		chomp = "|"
	}
	var b strings.Builder
	b.WriteString(chomp)
	for line := range strings.SplitSeq(body, "\n") {
		b.WriteByte('\n')
		if line != "" {
			b.WriteString(indent + line)
		}
	}
	return b.String()
}

// Head is what a new case.yaml says before its expectations.
type Head struct {
	Name     string
	Source   string
	Notes    []string // for people, as comments
	Intent   string
	Agent    string
	Git      bool
	Settings Settings
	Inputs   map[string]string
}

// Text writes the head.
func (h *Head) Text() string {
	var b strings.Builder
	b.WriteString("# A regression case: rnix test run DIRECTORY. " + Workspace + " stands for the directory in which it runs.\n")
	for _, n := range h.Notes {
		b.WriteString("# " + strings.ReplaceAll(oneLine(n), "\n", " ") + "\n")
	}
	key := func(name, value string) { fmt.Fprintf(&b, "%s: %s\n", name, value) }
	key("version", `"1"`)
	key("name", inline(h.Name))
	if h.Source != "" {
		key("source", inline(h.Source))
	}
	key("intent", text(h.Intent, "  "))
	if h.Agent != "" {
		key("agent", inline(h.Agent))
	}
	if h.Git {
		key("git", "true")
	}
	s := &h.Settings
	var settings []string
	if s.MaxSteps != nil {
		settings = append(settings, "max_steps: "+strconv.Itoa(*s.MaxSteps))
	}
	for _, l := range []struct {
		name string
		list []string
	}{{"skills", s.Skills}, {"allow", s.Allow}, {"deny", s.Deny}} {
		if l.list != nil {
			settings = append(settings, l.name+": "+inlineList(l.list))
		}
	}
	if s.Window > 0 {
		settings = append(settings, "context_window: "+strconv.Itoa(s.Window))
	}
	if len(settings) > 0 {
		b.WriteString("settings:\n  " + strings.Join(settings, "\n  ") + "\n")
	}
	if len(h.Inputs) > 0 {
		b.WriteString("inputs:\n")
		for _, name := range slices.Sorted(maps.Keys(h.Inputs)) {
			fmt.Fprintf(&b, "  %s: %s\n", inline(name), inline(h.Inputs[name]))
		}
	}
	return b.String()
}

func inlineList(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = inline(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}
