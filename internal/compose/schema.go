package compose

import (
	"encoding/json"
	"fmt"
	"strings"

	"rnix/internal/schema"
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
	if _, err := schema.Compile(o.Schema); err != nil {
		c.Problemf(key+".schema", "not a JSON Schema: %s", schema.Complaint(err))
	}
}

// Check returns the result of a node as it is passed on, or why it is not what the output must be. A nil
// Output takes every result as it is.
func (o *Output) Check(result string) (string, error) {
	if o == nil {
		return result, nil
	}
	return schema.Fit(o.Schema, result)
}

// Items are the items that the output of a node holds, which must be a JSON array of at most limit.
func Items(node, output string, limit int) ([]any, error) {
	d := json.NewDecoder(strings.NewReader(schema.Bare(output)))
	d.UseNumber()
	var items []any
	if err := d.Decode(&items); err != nil || d.More() {
		return nil, fmt.Errorf("the output of %s is not a JSON array: %s", node, brief(schema.OneLine(output)))
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
	return schema.Ask(o.Schema)
}
