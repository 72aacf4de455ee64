package yamlfile

import (
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// forms returns the fields of a struct that stand for the whole value, by their tags ",list", ",table" and
// ",flag", and what else the value may be.
func forms(v reflect.Value) (map[string]reflect.Value, string) {
	var out map[string]reflect.Value
	what := "keys and values"
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("yaml")
		if tag != ",list" && tag != ",table" && tag != ",flag" {
			continue
		}
		if out == nil {
			out = map[string]reflect.Value{}
		}
		switch out[tag] = v.Field(i); tag {
		case ",list":
			what = "a list, or " + what
		case ",flag":
			what = "true, false, or " + what
		}
	}
	return out, what
}

// any reads a value of any kind: a map with texts as keys, a list, a text, an int64, a float64, a
// bool or nil.
func (d *Doc) any(n *yaml.Node, path string) (any, bool) {
	d.at[path] = where(n)
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		d.pairs(n, path, func(key, val *yaml.Node, sub string) {
			if x, ok := d.any(val, sub); ok {
				m[key.Value] = x
			}
		})
		return m, true
	case yaml.SequenceNode:
		l := make([]any, len(n.Content))
		for i, c := range n.Content {
			l[i], _ = d.any(c, path+"["+strconv.Itoa(i)+"]") // what is wrong is reported and leaves nil
		}
		return l, true
	}
	plain := strings.ReplaceAll(n.Value, "_", "")
	switch n.ShortTag() {
	case "!!null":
		return nil, true
	case "!!bool":
		if b, err := strconv.ParseBool(n.Value); err == nil {
			return b, true
		}
	case "!!int":
		if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
			return i, true
		}
		if i, err := strconv.ParseUint(plain, 0, 64); err == nil {
			return i, true
		}
	case "!!float":
		if f, err := strconv.ParseFloat(plain, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f, true
		}
	default:
		return n.Value, true
	}
	return nil, d.want(n, path, "a text, a number, true, false, a list or a map")
}
