package compose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

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

// compile makes a schema of its document. It refers to nothing outside itself.
func compile(doc any) (*jsonschema.Schema, error) {
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	const at = "mem:///output.json"
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource(at, v); err != nil {
		return nil, err
	}
	return c.Compile(at)
}

// nothing loads no schema: neither files nor addresses are read because a file names them.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: a schema refers to itself only", url)
}

// Check returns the result of a node as it is passed on, or why it is not what the output must be. A nil
// Output takes every result as it is.
func (o *Output) Check(result string) (string, error) {
	if o == nil {
		return result, nil
	}
	text := Bare(result)
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
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

// complaint is what a validation complains of, without the names of schemas.
func complaint(err error) string {
	text := err.Error()
	var sve *jsonschema.SchemaValidationError
	var ve *jsonschema.ValidationError
	if errors.As(err, &sve) {
		errors.As(sve.Err, &ve)
	} else {
		errors.As(err, &ve)
	}
	if ve != nil {
		if _, rest, ok := strings.Cut(ve.Error(), "\n"); ok {
			text = strings.TrimPrefix(strings.ReplaceAll(rest, "\n", ";"), "- ")
		}
	}
	return cut(strings.ReplaceAll(oneLine(text), "; - ", "; "), 1<<10, "there is more")
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
