package vfstest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"rnix/vfs"
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// testTools checks what the device offers to models, and that the samples are legal inputs.
func (d Device) testTools(t *testing.T) {
	seen := make(map[string]bool)
	for _, tool := range d.Tools {
		if seen[tool.Name] {
			t.Errorf("tool %s is offered twice", tool.Name)
		}
		seen[tool.Name] = true
		if !toolName.MatchString(tool.Name) {
			t.Errorf("tool name %q is not [a-zA-Z0-9_-]{1,64}", tool.Name)
		}
		if tool.Description == "" {
			t.Errorf("tool %s has no description", tool.Name)
		}
		if !vfs.Below(tool.Path, d.Path) {
			t.Errorf("tool %s has path %s, which is not below %s", tool.Name, tool.Path, d.Path)
		}
		switch tool.Effect {
		case vfs.EffectNone, vfs.EffectIdempotent, vfs.EffectReversible, vfs.EffectExternal:
		default:
			t.Errorf("tool %s has the unknown effect %q", tool.Name, tool.Effect)
		}
		schema := compile(t, tool)
		if schema == nil {
			continue
		}
		samples := 0
		for _, s := range d.Samples {
			if s.Tool != tool.Name {
				continue
			}
			samples++
			input, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(s.Input)))
			if s.Input == "" {
				input, err = map[string]any{}, nil
			}
			if err == nil {
				err = schema.Validate(input)
			}
			if err != nil && s.WantCode == "" {
				t.Errorf("tool %s: a sample that should succeed breaks the schema: %v", tool.Name, err)
			}
		}
		if samples == 0 {
			t.Errorf("tool %s has no sample", tool.Name)
		}
	}
}

// compile checks that a tool's schema is a valid JSON Schema of an object with described
// properties, and returns it; nil after an error.
func compile(t *testing.T, tool vfs.Tool) *jsonschema.Schema {
	t.Helper()
	var shape struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(tool.Schema, &shape); err != nil || shape.Type != "object" {
		t.Errorf("tool %s: the schema is not that of an object (%v): %.200s", tool.Name, err, tool.Schema)
		return nil
	}
	for _, name := range shape.Required {
		if _, ok := shape.Properties[name]; !ok {
			t.Errorf("tool %s: required property %q is not described", tool.Name, name)
		}
	}
	if _, ok := shape.Properties["op"]; ok && tool.Op != "" {
		t.Errorf("tool %s: the property %q is taken by the operation", tool.Name, "op")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tool.Schema))
	if err == nil {
		c := jsonschema.NewCompiler()
		if err = c.AddResource("tool.json", doc); err == nil {
			var s *jsonschema.Schema
			if s, err = c.Compile("tool.json"); err == nil {
				return s
			}
		}
	}
	t.Errorf("tool %s: bad schema: %v", tool.Name, err)
	return nil
}
