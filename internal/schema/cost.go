package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxChecks bounds how often parts of a schema are held against parts of a result: the library that does it can be stopped by nothing, and
// a schema of a few lines can ask for more of it than any machine does. A schema that people write takes a few for each value.
const maxChecks = 1_000_000

// maxDepth bounds how deep the values of a result are in each other.
const maxDepth = 200

// depth is how deep a value is, at most maxDepth+1.
func depth(v any) int {
	deepest := 0
	var walk func(any, int)
	walk = func(v any, n int) {
		if deepest = max(deepest, n); n > maxDepth {
			return
		}
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x, n+1)
			}
		case map[string]any:
			for _, x := range v {
				walk(x, n+1)
			}
		}
	}
	walk(v, 1)
	return deepest
}

// errCostly says that it would be more.
var errCostly = errors.New("it cannot be checked: the schema holds too many of its parts against the same value")

// Keywords by what they hold: schemas for the value itself, and schemas for what is in it.
var (
	sameOne  = []string{"not", "if", "then", "else"}
	sameList = []string{"allOf", "anyOf", "oneOf"}
	sameMap  = []string{"dependentSchemas", "dependencies"}
	allOne   = []string{"additionalProperties", "unevaluatedProperties", "items", "contains", "unevaluatedItems", "additionalItems", "propertyNames"}
	allList  = []string{"prefixItems", "items"}
	allMap   = []string{"patternProperties"}
)

// walker counts over one schema.
type walker struct {
	root any
	memo map[string]int // by value and place in the schema; 0 = under way
}

// checkRefs reports what refers to anything but a place in the schema, and what refers to itself for the same value: that has no end.
func checkRefs(doc any) error {
	w := &walker{doc, map[string]int{}}
	return w.refs(doc, "")
}

// refs looks at a schema and all that is in it.
func (w *walker) refs(x any, at string) error {
	switch v := x.(type) {
	case []any:
		for i, y := range v {
			if err := w.refs(y, at+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
			if _, ok := v[key].(string); ok {
				return fmt.Errorf("%s is not supported: refer to a part of the schema with $ref, such as \"#/$defs/item\"", key)
			}
		}
		if _, ok := v["$id"].(string); ok && at != "" { // references below it would begin there
			return fmt.Errorf("$id at %q: only the whole schema can have one; remove it, and refer to the part with its path, such as \"#/$defs/item\"", "#"+at)
		}
		if _, err := w.same(v, at, nil); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains([]string{"const", "default", "enum", "examples"}, key) {
				continue
			}
			if err := w.refs(v[key], at+"/"+escape(key)); err != nil {
				return err
			}
		}
	}
	return nil
}

func escape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// place returns what a reference refers to.
func (w *walker) place(ref string) (x any, at string, err error) {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok || rest != "" && rest[0] != '/' {
		return nil, "", fmt.Errorf("$ref %q: a schema refers to itself only, with a path such as \"#/$defs/item\"", cut(ref, 100))
	}
	x = w.root
	for part := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if rest == "" {
			break
		}
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		at += "/" + escape(part)
		switch v := x.(type) {
		case map[string]any:
			x = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil, "", fmt.Errorf("$ref %q: there is no such place in the schema", cut(ref, 100))
			}
			x = v[i]
		default:
			x = nil
		}
		if x == nil {
			return nil, "", fmt.Errorf("$ref %q: there is no such place in the schema", cut(ref, 100))
		}
	}
	return x, at, nil
}

// edge is a schema within another one.
type edge struct {
	x  any
	at string
}

// edges returns the schemas that v has for its own value, and those that it has for what is in it.
func (w *walker) edges(v map[string]any, at string) (same, inner []edge, err error) {
	if ref, ok := v["$ref"].(string); ok {
		x, to, err := w.place(ref)
		if err != nil {
			return nil, nil, err
		}
		same = append(same, edge{x, to})
	}
	one := func(out *[]edge, keys []string) {
		for _, k := range keys {
			if m, ok := v[k].(map[string]any); ok {
				*out = append(*out, edge{m, at + "/" + k})
			}
		}
	}
	list := func(out *[]edge, keys []string) {
		for _, k := range keys {
			l, _ := v[k].([]any)
			for i, x := range l {
				*out = append(*out, edge{x, at + "/" + k + "/" + strconv.Itoa(i)})
			}
		}
	}
	each := func(out *[]edge, keys []string) {
		for _, k := range keys {
			m, _ := v[k].(map[string]any)
			for name, x := range m {
				*out = append(*out, edge{x, at + "/" + k + "/" + escape(name)})
			}
		}
	}
	one(&same, sameOne)
	list(&same, sameList)
	each(&same, sameMap)
	one(&inner, allOne)
	list(&inner, allList)
	each(&inner, allMap)
	return same, inner, nil
}

// same counts the schemas that are held against one value by a schema; way are those that lead to it.
func (w *walker) same(x any, at string, way []string) (int, error) {
	v, ok := x.(map[string]any)
	if !ok {
		return 1, nil
	}
	if slices.Contains(way, at) {
		return 0, fmt.Errorf("the schema at %q refers to itself for the same value, which has no end", "#"+at)
	}
	if n := w.memo[at]; n > 0 {
		return n, nil
	}
	same, _, err := w.edges(v, at)
	if err != nil {
		return 0, err
	}
	n := 1
	for _, e := range same {
		m, err := w.same(e.x, e.at, append(way[:len(way):len(way)], at))
		if err != nil {
			return 0, err
		}
		if n += m; n > maxChecks {
			return 0, errCostly
		}
	}
	w.memo[at] = n
	return n, nil
}

// cost counts how often parts of a schema are held against parts of a value, at most; it is errCostly beyond maxChecks. The schema must have passed
// checkRefs.
func cost(doc, value any) error {
	w := &walker{doc, map[string]int{}}
	_, err := w.cost(doc, "", value, "")
	return err
}

func (w *walker) cost(x any, at string, value any, where string) (int, error) {
	v, ok := x.(map[string]any)
	if !ok {
		return 1, nil
	}
	key := where + "\x00" + at
	if n := w.memo[key]; n > 0 {
		return n, nil
	}
	if len(w.memo) > maxChecks {
		return 0, errCostly
	}
	same, inner, err := w.edges(v, at)
	if err != nil {
		return 0, err
	}
	n := 1
	add := func(e edge, value any, where string) error {
		m, err := w.cost(e.x, e.at, value, where)
		if n += m; err == nil && n > maxChecks {
			err = errCostly
		}
		return err
	}
	for _, e := range same {
		if err := add(e, value, where); err != nil {
			return 0, err
		}
	}
	kids := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		kids = value
	case []any:
		for i, y := range value {
			kids[strconv.Itoa(i)] = y
		}
	}
	props, _ := v["properties"].(map[string]any)
	for name, kid := range kids {
		to := where + "/" + escape(name)
		if p, ok := props[name]; ok {
			if err := add(edge{p, at + "/properties/" + escape(name)}, kid, to); err != nil {
				return 0, err
			}
		}
		for _, e := range inner {
			if err := add(e, kid, to); err != nil {
				return 0, err
			}
		}
	}
	w.memo[key] = n
	return n, nil
}
