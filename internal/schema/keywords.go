package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// namedIn and valuedIn are the keywords whose members have names of their own, and those that hold values, not schemas.
var (
	namedIn  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies", "dependentRequired", "$vocabulary"}
	valuedIn = []string{"const", "default", "enum", "examples"}
)

// keywords are those that the library knows.
func keywords() []string {
	out := slices.Concat(namedIn, valuedIn, []string{"type", "items"})
	for _, f := range reflect.VisibleFields(reflect.TypeFor[jsonschema.Schema]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			out = append(out, name)
		}
	}
	return out
}

// checkKeywords reports a keyword that is written in other letters, such as "$REF": the library takes it for the keyword, and nothing else here does.
func checkKeywords(doc any) error { return oddKeyword(doc, "#", keywords()) }

func oddKeyword(x any, at string, known []string) error {
	switch v := x.(type) {
	case []any:
		for i, y := range v {
			if err := oddKeyword(y, at+"/"+strconv.Itoa(i), known); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains(known, key) {
				continue
			}
			if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, key) }); i >= 0 {
				return fmt.Errorf("%q at %q: write the keyword as %q", cut(key, 100), cut(at, 200), known[i])
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inner, to := v[key], at+"/"+escape(key)
			if slices.Contains(valuedIn, key) {
				continue
			}
			members, names := inner.(map[string]any)
			if names = names && slices.Contains(namedIn, key); !names {
				if err := oddKeyword(inner, to, known); err != nil {
					return err
				}
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(members)) {
				if err := oddKeyword(members[name], to+"/"+escape(name), known); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
