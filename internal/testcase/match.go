package testcase

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// value brings what YAML and JSON say of the same thing into one form: numbers are rationals, maps have texts for keys.
func value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = value(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = value(x)
		}
		return out
	case nil, bool, string:
		return v
	}
	text := fmt.Sprint(v)
	if len(text) >= 64 || huge(text) {
		return text
	}
	if r, ok := new(big.Rat).SetString(text); ok {
		return number(r.RatString())
	}
	return text
}

// huge reports whether a number has an exponent with which its digits would fill memory.
func huge(text string) bool {
	i := strings.LastIndexAny(text, "eE")
	return i >= 0 && len(text)-i > len("e+308")
}

// number is a number as a fraction.
type number string

// argsOf reads the arguments of a call as the model wrote them. What is no JSON is a text.
func argsOf(input string) any {
	d := json.NewDecoder(strings.NewReader(input))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return input
	}
	return value(v)
}

func (x *CallExpect) wanted() any {
	if x.want == nil {
		x.want = value(x.Args)
	}
	return x.want
}

func (c *Call) arguments() any {
	if c.args == nil {
		c.args = argsOf(c.Input)
	}
	return c.args
}

// matchArgs says why arguments do not match, "" if they do. path is where want stands, for people.
func matchArgs(mode, path string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %s, and should be an object", path, show(got))
		}
		for _, k := range sortedKeys(want) {
			x, there := m[k]
			if !there {
				return fmt.Sprintf("%s is missing, and should be %s", join(path, k), show(want[k]))
			}
			if why := matchArgs(mode, join(path, k), want[k], x); why != "" {
				return why
			}
		}
		if mode == ArgsExact {
			for _, k := range sortedKeys(m) {
				if _, there := want[k]; !there {
					return fmt.Sprintf("%s is %s, and should not be there", join(path, k), show(m[k]))
				}
			}
		}
		return ""
	case []any:
		l, ok := got.([]any)
		if !ok || len(l) != len(want) {
			return fmt.Sprintf("%s is %s, and should have %d values", path, show(got), len(want))
		}
		for i := range want {
			if why := matchArgs(mode, fmt.Sprintf("%s[%d]", path, i), want[i], l[i]); why != "" {
				return why
			}
		}
		return ""
	case string:
		if mode != ArgsRegexp {
			break
		}
		text, ok := got.(string)
		if !ok {
			text = show(got)
		}
		if re, err := regexp.Compile(want); err != nil || !re.MatchString(text) {
			return fmt.Sprintf("%s is %s, and does not match %s", path, show(got), want)
		}
		return ""
	}
	if want != got { // no map and no list: those are compared above, and got is none if want is not
		return fmt.Sprintf("%s is %s, and should be %s", path, show(got), show(want))
	}
	return ""
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// shown is how many bytes of a value are shown.
const shown = 200

func show(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(plain(v)) != nil {
		return fmt.Sprint(v)
	}
	return brief(strings.TrimSpace(b.String()), shown)
}

// plain makes numbers JSON again.
func plain(v any) any {
	switch v := v.(type) {
	case number:
		if strings.Contains(string(v), "/") {
			r, _ := new(big.Rat).SetString(string(v))
			f, _ := r.Float64()
			return f
		}
		return json.Number(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = plain(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = plain(x)
		}
		return out
	}
	return v
}

// brief cuts a text for one line.
func brief(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// matchText says why a text is not as expected, "" if it is.
func matchText(x *TextExpect, got string) string {
	if x.Equals != nil && strings.TrimRight(*x.Equals, "\n") != strings.TrimRight(got, "\n") {
		return "is not as expected"
	}
	return matchParts(x.Contains, x.Lacks, x.Matches, got)
}

func matchParts(contains, lacks []string, matches, got string) string {
	for _, s := range contains {
		if !strings.Contains(got, s) {
			return "does not contain " + show(s)
		}
	}
	for _, s := range lacks {
		if strings.Contains(got, s) {
			return "contains " + show(s)
		}
	}
	if matches != "" {
		if re, err := regexp.Compile(matches); err != nil || !re.MatchString(got) {
			return "does not match " + matches
		}
	}
	return ""
}

// matchCall says why a call is not the expected one, "" if it is.
func matchCall(x *CallExpect, got *Call) string {
	switch {
	case x.Tool != got.Tool:
		return fmt.Sprintf("it is a call of %s, and should be one of %s", got.Tool, x.Tool)
	case x.Process != got.Process:
		return fmt.Sprintf("process %d makes it, and process %d should", got.Process, x.Process)
	}
	if x.Args != nil {
		mode := x.Match
		if mode == "" {
			mode = ArgsSubset
		}
		if why := matchArgs(mode, "", x.wanted(), got.arguments()); why != "" {
			return strings.TrimSpace(why)
		}
	}
	if x.Error != nil && !strings.EqualFold(*x.Error, got.Error) {
		if *x.Error == "" {
			return fmt.Sprintf("it fails with %s: %s", got.Error, brief(got.Output, shown))
		}
		if got.Error == "" {
			return fmt.Sprintf("it succeeds, and should fail with %s", *x.Error)
		}
		return fmt.Sprintf("it fails with %s, and should with %s", got.Error, *x.Error)
	}
	if x.Output != nil {
		if why := matchText(x.Output, got.Output); why != "" {
			return "its output " + why + ": " + show(got.Output)
		}
	}
	return ""
}
