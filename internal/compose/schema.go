package compose

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"rnix/internal/yamlfile"
)

// output checks the schema of a node's output, and puts it in place of the file that has it.
func (c *checker) output(key string, o *Output) {
	if o.Schema == nil {
		c.Problemf(key, "there is no schema; write schema: and a JSON Schema, or the path of a file with one")
		return
	}
	if file, ok := o.Schema.(string); ok {
		if c.src.ReadFile == nil {
			c.Problemf(key+".schema", "the schema must stand in this file here")
			return
		}
		b, err := c.src.ReadFile(file)
		if err != nil {
			c.Problemf(key+".schema", "%s: %v", file, yamlfile.Cause(err))
			return
		}
		var x any
		if ps := yamlfile.Decode(b, &x, yamlfile.Options{File: file, JSON: json.Valid(b)}).Problems(); len(ps.Errors()) > 0 {
			c.Problemf(key+".schema", "%s", strings.Join(ps.Errors().Strings(), "; "))
			return
		}
		o.Schema = x
	}
	if _, ok := o.Schema.(map[string]any); !ok {
		c.Problemf(key+".schema", "a JSON Schema is a map, such as {type: array}")
		return
	}
	if _, err := compile(o.Schema); err != nil {
		c.Problemf(key+".schema", "not a JSON Schema: %s", complaint(err))
	}
}

// compile makes a schema of its document. It refers to nothing outside itself: neither files nor addresses
// are read because a file names them.
func compile(doc any) (*jsonschema.Resolved, error) {
	if err := typed(doc); err != nil {
		return nil, err
	}
	b, err := json.Marshal(doc)
	if err != nil {
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

// Check returns the result of a node as it is passed on, or why it is not what the output must be. A nil
// Output takes every result as it is.
func (o *Output) Check(result string) (string, error) {
	if o == nil {
		return result, nil
	}
	text := Bare(result)
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return "", fmt.Errorf("the result is not JSON: %s", oneLine(err.Error()))
	}
	s, err := compile(o.Schema)
	if err != nil {
		return "", err // it was compiled when the file was read
	}
	if err := s.Validate(v); err != nil {
		return "", errors.New("the result does not fit its schema: " + complaint(err))
	}
	return text, nil
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

var jsonTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

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

// complaint is what a validation complains of, in one line and without the value itself.
func complaint(err error) string {
	text := strings.TrimPrefix(oneLine(err.Error()), "validating root: ")
	if end := strings.LastIndex(text, ` has type "`); end >= 0 {
		if at := strings.Index(text[:end], "type: "); at >= 0 {
			text = text[:at] + "it" + text[end:]
		}
	}
	return cut(strings.ReplaceAll(text, "validating /", "at /"), 1<<10, "there is more")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

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

// Items are the items that the output of a node holds, which must be a JSON array of at most limit.
func Items(node, output string, limit int) ([]any, error) {
	d := json.NewDecoder(strings.NewReader(Bare(output)))
	d.UseNumber()
	var items []any
	if err := d.Decode(&items); err != nil || d.More() {
		return nil, fmt.Errorf("the output of %s is not a JSON array: %s", node, brief(oneLine(output)))
	}
	if len(items) > limit {
		return nil, fmt.Errorf("the output of %s has %d items, and foreach takes at most %d; raise its max", node, len(items), limit)
	}
	if items == nil {
		items = []any{}
	}
	return items, nil
}

// Ask is what a node is told of the result that it must end with; empty if any will do.
func (o *Output) Ask() string {
	if o == nil {
		return ""
	}
	b, err := json.Marshal(o.Schema)
	if err != nil { // it came from a file
		return ""
	}
	return "Your result must be JSON, without any text around it, that fits this JSON Schema:\n" + string(b)
}
