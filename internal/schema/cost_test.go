package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

func TestASchemaWithoutEndIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"$ref":"#"}`:             "refers to itself for the same value",
		`{"allOf":[{"$ref":"#"}]}`: "refers to itself for the same value",
		`{"properties":{"a":{"anyOf":[{"not":{"$ref":"#/properties/a"}}]}}}`:                      "refers to itself for the same value",
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"if":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`: "refers to itself for the same value",
		`{"$ref":"#/$defs/none"}`: "no such place",
		`{"$ref":"#/$defs/x","$defs":{"y":{},"x":{"$id":"http://h/x","$ref":"#/$defs/y","$defs":{"y":{"$ref":"#"}}}}}`: "only the whole schema can have one",
		`{"$ref":"#item"}`:                             "refers to itself only",
		`{"$dynamicRef":"#x"}`:                         "not supported",
		`{"$ref":"file:///etc/passwd"}`:                "refers to itself only",
		`{"title":"` + strings.Repeat("x", Max) + `"}`: "at most 65536",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
	// Doubled forty times, for the same value and by what is in it.
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/a0","$defs":{"a40":{}`)
	for i := range 40 {
		fmt.Fprintf(&b, `,"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i+1, i+1)
	}
	if _, err := Parse([]byte(b.String() + "}}")); err == nil || !strings.Contains(err.Error(), "too many of its parts") {
		t.Errorf("doubled: %v", err)
	}
	doc, err := Parse([]byte(`{"allOf":[{"properties":{"c":{"$ref":"#"}}},{"properties":{"c":{"$ref":"#"}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	deep := func(n int) string { return strings.Repeat(`{"c":`, n) + "{}" + strings.Repeat("}", n) }
	if _, err := Fit(doc, deep(8)); err != nil {
		t.Error(err)
	}
	if _, err := Fit(doc, deep(60)); err == nil || !strings.Contains(err.Error(), "too many of its parts") {
		t.Errorf("doubled by what is in it: %v", err)
	}
	if _, err := Fit(doc, deep(1000)); err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("deep: %v", err)
	}
}

func TestASchemaOfATreeIsFine(t *testing.T) {
	doc, err := Parse([]byte(`{"$defs":{"node":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}},"additionalProperties":false}},"$ref":"#/$defs/node"}`))
	if err != nil {
		t.Fatal(err)
	}
	tree := `{"name":"root","kids":[` + strings.Repeat(`{"name":"a","kids":[{"name":"b"}]},`, 2000) + `{"name":"c"}]}`
	if _, err := Fit(doc, tree); err != nil {
		t.Error(err)
	}
	if _, err := Fit(doc, `{"name":"root","kids":[{"name":1}]}`); err == nil {
		t.Error("a name that is a number fits")
	}
}

// The library takes keywords in any letters; what counts their cost does not, and so they are refused.
func TestKeywordsInOtherLettersAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"type":"object","$REF":"#"}`, `{"properties":{"a":{"allof":[{"$ref":"#"}]}}}`, `{"$DEFS":{"x":{}}}`, `{"anyOf":[{"NOT":{}}]}`, `{"itemſ":{}}`, `{"unknown":{"Items":{}}}`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "write the keyword as") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		`{"properties":{"Type":{"type":"string"},"$REF":{}},"required":["Type"]}`, `{"$defs":{"Items":{}},"enum":[{"TYPE":1}]}`, `{"title":"x","x-Type":1,"default":{"Not":1}}`,
	} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(`{"$REF":"#/x"}`), &s); err != nil || s.Ref == "" {
		t.Errorf("%q, %v: the library minds the letters by now; this can go", s.Ref, err)
	}
}
