package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
)

// TestTheLoopAndTheModelDeviceMeanTheSameFields compares the two ends of a document that neither may
// import from the other: every field that the kernel writes to a model device, or reads from it, is a
// field of the device's own types, with the same name in JSON and the same type.
func TestTheLoopAndTheModelDeviceMeanTheSameFields(t *testing.T) {
	kernel := fields(t, "kernel/internal/loop/wire.go")
	device := fields(t, "drivers/llm/driver.go")
	for _, pair := range []struct{ kernel, device string }{
		{"Head", "LLMRequest"}, {"ToolSpec", "ToolSpec"}, {"Response", "LLMResponse"}, {"Usage", "Usage"}, {"Done", "Done"},
	} {
		mine, theirs := kernel[pair.kernel], device[pair.device]
		if len(mine) == 0 || len(theirs) == 0 {
			t.Errorf("%s has %d fields, %s has %d", pair.kernel, len(mine), pair.device, len(theirs))
		}
		for name, typ := range mine {
			if theirs[name] != typ {
				t.Errorf("loop.%s has %s of type %s; llm.%s has it of type %q", pair.kernel, name, typ, pair.device, theirs[name])
			}
		}
	}
}

// fields returns the JSON fields of the structs in a file: type, name in JSON, Go type as it is written.
func fields(t *testing.T, path string) map[string]map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			out[spec.Name.Name] = map[string]string{}
			for _, f := range s.Fields.List {
				if f.Tag == nil {
					continue
				}
				tag, err := strconv.Unquote(f.Tag.Value)
				if err != nil {
					t.Fatal(err)
				}
				if name := reflect.StructTag(tag).Get("json"); name != "-" {
					out[spec.Name.Name][name] = types.ExprString(f.Type)
				}
			}
		}
		return true
	})
	return out
}
