package llm

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"rnix/internal/pattern"
	"rnix/internal/yamlfile"
)

// The messages of the parser that speak of types of this program.
var (
	unknownField = pattern.New(`^field (.+) not found in type (?:llm\.)?(\w+)$`)
	wrongKind    = pattern.New("^cannot construct !!(\\w+)(?: `(.*)`)? into (?:llm\\.)?(.+)$")
)

// replayParts are the maps of a script, by the names of their types, with what each one is.
var replayParts = map[string]struct {
	what string
	of   any
}{
	"replayScript":   {`the script, a map that begins with version: "1"`, replayScript{}},
	"replayTalk":     {"a conversation, a map with responses", replayTalk{}},
	"replayResponse": {"a response, a map such as {content: Done.}", replayResponse{}},
	"replayCall":     {"a tool call, a map such as {name: read_file, input: {path: go.mod}}", replayCall{}},
	"replayUsage":    {"usage, a map such as {input_tokens: 120, output_tokens: 15}", replayUsage{}},
	"replayError":    {"an error, a map such as {code: RATE_LIMITED, message: slow down}", replayError{}},
}

// scriptText says a message of the parser without the types of this program, and with what is wanted; empty = it is another message.
func scriptText(text string) string {
	if m := unknownField().FindStringSubmatch(text); m != nil {
		part, ok := replayParts[m[2]]
		if !ok {
			return fmt.Sprintf("unknown key %q", m[1])
		}
		keys := keysOf(reflect.TypeOf(part.of))
		if near := yamlfile.Nearest(m[1], keys); near != "" {
			return fmt.Sprintf("unknown key %q; did you mean %q? known are %s", m[1], near, strings.Join(keys, ", "))
		}
		return fmt.Sprintf("unknown key %q; known are %s", m[1], strings.Join(keys, ", "))
	}
	m := wrongKind().FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("this is %s, but must be %s", kindWords(m[1], m[2]), wantedWords(m[3]))
}

// keysOf are the keys of a map of a script, sorted.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// kindWords names a value by its tag.
func kindWords(tag, value string) string {
	switch tag {
	case "seq":
		return "a list"
	case "map":
		return "a map"
	case "str":
		return fmt.Sprintf("the text %q", value)
	case "null":
		return "empty"
	}
	return value
}

// wantedWords says what a value of a type is.
func wantedWords(of string) string {
	if part, ok := replayParts[of]; ok {
		return part.what
	}
	switch {
	case strings.HasPrefix(of, "[]"):
		return "a list"
	case of == "int":
		return "a whole number"
	}
	return "a text; write it in quotes"
}
