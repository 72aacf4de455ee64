// Package schema says whether a text is JSON that fits a JSON Schema, in words for people and models. Schemas refer to nothing outside of themselves. It
// knows neither processes nor workflows.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Max bounds a schema, in bytes: it stands in each prompt.
const Max = 64 << 10

// Parse reads a schema. It is a JSON object of at most Max bytes.
func Parse(b []byte) (map[string]any, error) {
	if len(b) > Max {
		return nil, fmt.Errorf("the schema has %d bytes, and at most %d are possible", len(b), Max)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("a JSON Schema is a JSON object, such as {\"type\": \"array\"}: %s", OneLine(err.Error()))
	}
	if doc == nil {
		return nil, errors.New("a JSON Schema is a JSON object, such as {\"type\": \"array\"}, not null")
	}
	if _, err := Compile(doc); err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %s", Complaint(err))
	}
	return doc, nil
}

// Fit returns a result as JSON that fits a schema, without a fence around it, or why it does not.
func Fit(doc any, result string) (string, error) {
	text := Bare(result)
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return "", fmt.Errorf("the result is not JSON: %s", OneLine(err.Error()))
	}
	s, err := Compile(doc)
	if err != nil {
		return "", err // it was compiled when it was read
	}
	if depth(v) > maxDepth {
		return "", fmt.Errorf("the result is nested deeper than %d values", maxDepth)
	}
	if err := cost(doc, v); err != nil {
		return "", err
	}
	if err := s.Validate(v); err != nil {
		return "", errors.New("the result does not fit its schema: " + Complaint(err))
	}
	return text, nil
}

// Ask is what who is to bring a result is told of it; empty if the schema cannot be written.
func Ask(doc any) string {
	b, err := json.Marshal(doc)
	if err != nil { // it came from a file
		return ""
	}
	return "Your result must be JSON, without any text around it, that fits this JSON Schema:\n" + string(b)
}

// jsonTypes are the types that JSON has.
var jsonTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// Compile makes a schema of its document. It refers to nothing outside itself: neither files nor addresses
// are read because a file names them.
func Compile(doc any) (*jsonschema.Resolved, error) {
	if err := typed(doc); err != nil {
		return nil, err
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if len(b) > Max {
		return nil, fmt.Errorf("the schema has %d bytes, and at most %d are possible", len(b), Max)
	}
	var plain any // as JSON has it, whatever it was read from
	if err := json.Unmarshal(b, &plain); err != nil {
		return nil, err
	}
	if err := checkKeywords(plain); err != nil {
		return nil, err
	}
	if err := checkRefs(plain); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	return s.Resolve(&jsonschema.ResolveOptions{Loader: func(uri *url.URL) (*jsonschema.Schema, error) {
		return nil, fmt.Errorf("%s: a schema refers to itself only", uri)
	}})
}

// typed reports the first type of a schema that JSON does not have.
func typed(doc any) error {
	switch v := doc.(type) {
	case []any:
		for _, x := range v {
			if err := typed(x); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := named(key, v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// named is typed for one keyword.
func named(key string, x any) error {
	switch key {
	case "const", "default", "enum", "examples": // values, not schemas
		return nil
	case "type":
		names, list := x.([]any)
		if !list {
			names = []any{x}
		}
		for _, n := range names {
			if s, ok := n.(string); ok && !slices.Contains(jsonTypes, s) {
				return fmt.Errorf("there is no type %q; the types are %s", s, strings.Join(jsonTypes, ", "))
			}
		}
	}
	return typed(x)
}

// Complaint is what a validation complains of, in one line and without the value itself.
func Complaint(err error) string {
	text := strings.TrimPrefix(OneLine(err.Error()), "validating root: ")
	if end := strings.LastIndex(text, ` has type "`); end >= 0 {
		if at := strings.Index(text[:end], "type: "); at >= 0 {
			text = text[:at] + "it" + text[end:]
		}
	}
	return cut(strings.ReplaceAll(text, "validating /", "at /"), 1<<10)
}

// OneLine is a text on one line.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Bare is a text without the fence that models put around JSON.
func Bare(s string) string {
	s = strings.TrimSpace(s)
	rest, ok := strings.CutPrefix(s, "```")
	if !ok {
		return s
	}
	_, rest, ok = strings.Cut(rest, "\n")
	if body, closed := strings.CutSuffix(strings.TrimSpace(rest), "```"); ok && closed {
		return strings.TrimSpace(body)
	}
	return s
}

// cut shortens a text to so many bytes, and says so.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf(" [cut: %d of %d bytes; there is more]", most, len(s))
}
