package yamlfile

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// Words is a list that may also be written as one text, with spaces or commas between the words.
type Words []string

// value reads n into v and reports whether v was set.
func (d *Doc) value(n *yaml.Node, path string, v reflect.Value) bool {
	d.at[path] = where(n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		d.empty(n, path, v.Type())
		return false
	}
	if v.Kind() == reflect.Pointer {
		e := reflect.New(v.Type().Elem())
		if !d.value(n, path, e.Elem()) {
			return false
		}
		v.Set(e)
		return true
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return d.text(n, path, t)
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.mapping(n, path, v)
	case reflect.Map:
		return d.table(n, path, v)
	case reflect.Slice:
		return d.list(n, path, v)
	case reflect.Interface:
		x, ok := d.any(n, path)
		if ok && x != nil {
			v.Set(reflect.ValueOf(x))
		}
		return ok
	case reflect.String:
		return d.str(n, path, v)
	case reflect.Bool:
		if b, err := strconv.ParseBool(n.Value); err == nil && n.ShortTag() == "!!bool" {
			v.SetBool(b)
			return true
		}
		return d.want(n, path, "true or false")
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, v.Type().Bits())
		if err == nil && n.ShortTag() == "!!int" {
			v.SetInt(i)
			return true
		}
		return d.want(n, path, "a whole number")
	case reflect.Float64:
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if tag := n.ShortTag(); err == nil && (tag == "!!float" || tag == "!!int") {
			v.SetFloat(f)
			return true
		}
		return d.want(n, path, "a number")
	}
	panic("yamlfile: no rule for fields of type " + v.Type().String())
}

// empty reports a key without a value where that could be meant as a value: as none, or as no limit. A section without keys says nothing, and
// other programs' files may have keys that say nothing.
func (d *Doc) empty(n *yaml.Node, path string, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch kind := t.Kind(); {
	case kind == reflect.Slice:
		d.report(where(n), path, false, "no value; write [] for none, or leave the key out")
	case d.unknown != Refuse:
	case kind == reflect.String:
		d.report(where(n), path, false, "no value; write \"\" for an empty text, or leave the key out")
	case kind != reflect.Struct && kind != reflect.Map && kind != reflect.Interface, reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		d.report(where(n), path, false, "no value; write one, or leave the key out")
	}
}

func (d *Doc) text(n *yaml.Node, path string, t encoding.TextUnmarshaler) bool {
	if n.Kind != yaml.ScalarNode {
		return d.want(n, path, "one value")
	}
	if err := t.UnmarshalText([]byte(n.Value)); err != nil {
		d.report(where(n), path, false, "%v", err)
		return false
	}
	return true
}

func (d *Doc) str(n *yaml.Node, path string, v reflect.Value) bool {
	if n.Kind != yaml.ScalarNode {
		return d.want(n, path, "a text")
	}
	if n.ShortTag() != "!!str" {
		return d.want(n, path, "a text; write it in quotes: "+strconv.Quote(n.Value))
	}
	v.SetString(n.Value)
	return true
}

// mapping reads the keys of a struct.
func (d *Doc) mapping(n *yaml.Node, path string, v reflect.Value) bool {
	switch form, other := forms(v); {
	case n.Kind == yaml.SequenceNode && form[",list"].IsValid():
		return d.list(n, path, form[",list"])
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && form[",flag"].IsValid():
		return d.value(n, path, form[",flag"])
	case n.Kind == yaml.MappingNode && form[",table"].IsValid():
		return d.table(n, path, form[",table"])
	case n.Kind != yaml.MappingNode:
		return d.want(n, path, other)
	}
	fields := fieldsOf(v.Type())
	d.pairs(n, path, func(key, val *yaml.Node, sub string) {
		i, ok := fields[key.Value]
		if !ok {
			d.unknownKey(key, sub, fields)
			return
		}
		d.value(val, sub, v.Field(i))
	})
	return true
}

func (d *Doc) unknownKey(key *yaml.Node, path string, fields map[string]int) {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	near := Nearest(key.Value, names)
	switch {
	case near != "":
		d.report(where(key), path, d.unknown != Refuse, "unknown key; did you mean %q?", near)
	case d.unknown != Ignore:
		d.report(where(key), path, d.unknown == Warn, "unknown key; known are %s", strings.Join(names, ", "))
	}
}

// table reads a map with string keys.
func (d *Doc) table(n *yaml.Node, path string, v reflect.Value) bool {
	if n.Kind != yaml.MappingNode {
		return d.want(n, path, "names and values")
	}
	m := reflect.MakeMap(v.Type())
	texts := v.Type().Elem().Kind() == reflect.String && !reflect.PointerTo(v.Type().Elem()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	d.pairs(n, path, func(key, val *yaml.Node, sub string) {
		e := reflect.New(v.Type().Elem()).Elem()
		if texts && val.Kind == yaml.ScalarNode {
			d.at[sub] = where(val)
			e.SetString(val.Value) // a port or a switch is written as it stands
		} else if !d.value(val, sub, e) {
			return
		}
		m.SetMapIndex(reflect.ValueOf(key.Value), e)
	})
	v.Set(m)
	return true
}

// list reads a list. The items that are right are kept; a list is never nil after it.
func (d *Doc) list(n *yaml.Node, path string, v reflect.Value) bool {
	if n.Kind == yaml.ScalarNode && v.Type() == reflect.TypeFor[Words]() {
		v.Set(reflect.ValueOf(Words(strings.FieldsFunc(n.Value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }))))
		return true
	}
	if n.Kind == yaml.ScalarNode {
		return d.want(n, path, fmt.Sprintf("a list; write [%s] for a list of one", n.Value))
	}
	if n.Kind != yaml.SequenceNode {
		return d.want(n, path, "a list")
	}
	s := reflect.MakeSlice(v.Type(), 0, len(n.Content))
	for i, c := range n.Content {
		sub := fmt.Sprintf("%s[%d]", path, i)
		e := reflect.New(v.Type().Elem()).Elem()
		if c.Kind == yaml.ScalarNode && c.ShortTag() == "!!null" {
			d.at[sub] = where(c)
			d.report(where(c), sub, false, "empty item")
		} else {
			d.value(c, sub, e) // a wrong item keeps its place, so that indices are those of the file
		}
		s = reflect.Append(s, e)
	}
	v.Set(s)
	return true
}

// pairs calls f for each key once; a repeated one is reported and its value not used.
func (d *Doc) pairs(n *yaml.Node, path string, f func(key, val *yaml.Node, sub string)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		sub := key.Value
		if path != "" {
			sub = path + "." + key.Value
		}
		if key.Kind != yaml.ScalarNode {
			d.report(where(key), path, false, "a key must be a text")
			continue
		}
		if key.ShortTag() == "!!merge" {
			d.report(where(key), path, false, "merge keys (<<) are not supported; write the keys out")
			continue
		}
		if line, twice := seen[key.Value]; twice {
			d.report(where(key), sub, false, "the key stands here a second time; the first is in line %d", line+d.first)
			continue
		}
		seen[key.Value] = key.Line
		f(key, val, sub)
	}
}

func (d *Doc) want(n *yaml.Node, path, what string) bool {
	d.report(where(n), path, false, "this is %s, but must be %s", describe(n), what)
	return false
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!str":
		return "a text"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	}
	return "a value of type " + n.ShortTag()
}

// fieldsOf returns the fields of a struct by the names in their yaml tags.
func fieldsOf(t reflect.Type) map[string]int {
	out := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			out[name] = i
		}
	}
	return out
}
