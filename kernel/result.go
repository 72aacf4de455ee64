package kernel

import (
	"bytes"
	"encoding/json"

	"rnix/internal/schema"
	"rnix/kernel/internal/loop"
)

// wanted is what a process is told of the result that it must end with; "" = any will do.
func wanted(doc json.RawMessage) string {
	if len(doc) == 0 { // as most have it: nothing is read then
		return ""
	}
	s, err := schema.Parse(doc)
	if err != nil { // it was read when the process was started
		return ""
	}
	return "# Your result\n\n" + schema.Ask(s)
}

// fitting returns what judges the result of a process; nil = any will do.
func fitting(doc json.RawMessage) func(string) (string, error) {
	if len(doc) == 0 {
		return nil
	}
	s, err := schema.Parse(doc)
	if err != nil {
		return nil
	}
	return func(result string) (string, error) { return schema.Fit(s, result) }
}

// bringing is the tool by which a model ends, with the schema of the result in its own: providers hold their models to the schemas of tools. One that
// refers to parts of itself would refer to something else there, and is told in words alone.
func bringing(spec loop.ToolSpec, doc json.RawMessage) loop.ToolSpec {
	if len(doc) == 0 || bytes.Contains(doc, []byte(`"$`)) {
		return spec
	}
	whole, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]json.RawMessage{"result": doc}, "required": []string{"result"}, "additionalProperties": false})
	if err == nil {
		spec.Schema = whole
	}
	return spec
}
