// Package yamlfile reads small YAML and JSON files strictly into Go structs. It promises that every
// mistake is reported with its file, line and column, that all mistakes of a file are reported
// together, that a right key beside a wrong one is still read, and that no input costs more than
// its size: files are capped in bytes, depth and nodes, and aliases are refused.
//
// It knows no meaning of any key: ranges and references between keys are checked by its callers,
// who report them through Doc.Problemf, so that they carry a position too.
package yamlfile

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// The caps.
const (
	MaxBytes = 256 << 10 // of a file, unless Options says otherwise
	MaxDepth = 64        // levels of nesting
	MaxNodes = 10_000    // keys, values and items
)

// Unknown says what a key that the struct does not have is.
type Unknown int

// The ways to treat unknown keys.
const (
	Refuse Unknown = iota // an error
	Warn                  // a warning
	Ignore                // nothing, unless it looks like a typing mistake: then a warning
)

// Options say how a file is read. The zero value is strict YAML.
type Options struct {
	File       string  // the name in positions
	MaxBytes   int     // 0 = the constant of that name
	JSON       bool    // the text is JSON, not YAML
	AllowEmpty bool    // a file without any value says nothing, instead of being an error
	Unknown    Unknown // keys that the struct does not have
	FirstLine  int     // lines of the file before src, for a part of a file
}

// Doc is a file that was read: what was wrong with it, and where each key stands.
type Doc struct {
	file     string
	unknown  Unknown
	first    int
	at       map[string]position
	problems Problems
}

type position struct{ line, column int }

// Decode reads src into the struct that into points to. Fields are found by their yaml tags; a
// field whose value is wrong keeps what it had. It never fails: what is wrong is in the Doc.
//
// Fields may be strings, booleans, integers, floats, pointers to these, slices, maps with string
// keys, structs, interfaces without methods, and types that implement encoding.TextUnmarshaler. Values
// of a map of strings may be written as numbers or booleans. A null, which is a key with nothing behind it, means "not said" for a struct
// and a map; for a list and a single value it is refused, because it could be meant as "none" or as "no limit" (single values: only where
// unknown keys are refused, too). A struct may also be written as a list
// or a map with keys of its own: the field with the tag ",list" or ",table" has it then. With ",flag" it may be
// written as true or false.
func Decode(src []byte, into any, o Options) *Doc {
	d := &Doc{file: o.File, unknown: o.Unknown, first: o.FirstLine, at: map[string]position{}}
	limit := o.MaxBytes
	if limit == 0 {
		limit = MaxBytes
	}
	if len(src) > limit {
		d.report(position{}, "", false, "the file is larger than %d KiB; make it smaller", limit>>10)
		return d
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if i := badByte(src); i >= 0 {
		d.report(positionOf(src, i), "", false, "byte 0x%02x is not text; save the file as UTF-8", src[i])
		return d
	}
	root := d.parse(src, o.JSON)
	if len(d.problems) > 0 {
		return d
	}
	if root == nil || root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		if !o.AllowEmpty {
			d.report(position{1, 1}, "", false, "the file is empty")
		}
		return d
	}
	nodes := 0
	if d.bounded(root, 0, &nodes) {
		d.value(root, "", reflect.ValueOf(into).Elem())
	}
	return d
}

// parse returns the root value, or nil if there is none.
func (d *Doc) parse(src []byte, isJSON bool) *yaml.Node {
	if len(bytes.TrimSpace(src)) == 0 {
		return nil
	}
	if isJSON {
		return d.parseJSON(src)
	}
	var n yaml.Node
	if err := yaml.Load(src, &n, yaml.WithUniqueKeys(false)); err != nil {
		d.syntax(err)
		return nil
	}
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		return n.Content[0]
	}
	return nil
}

// bounded reports whether the tree is within the caps and free of aliases.
func (d *Doc) bounded(n *yaml.Node, depth int, nodes *int) bool {
	*nodes++
	switch {
	case depth > MaxDepth:
		d.report(where(n), "", false, "nested deeper than %d levels", MaxDepth)
		return false
	case *nodes > MaxNodes:
		d.report(where(n), "", false, "more than %d values", MaxNodes)
		return false
	case n.Kind == yaml.AliasNode:
		d.report(where(n), "", false, "aliases such as *%s are not supported; write the value again", n.Value)
		return false
	}
	for _, c := range n.Content {
		if !d.bounded(c, depth+1, nodes) {
			return false
		}
	}
	return true
}

// Has reports whether the file has the key, such as "models.provider" or "providers[0].name".
func (d *Doc) Has(path string) bool { _, ok := d.at[path]; return ok }

// Origin returns "file:line" of a key; for a key that the file does not have, of the nearest key
// around it.
func (d *Doc) Origin(path string) string {
	p := d.find(path)
	if p.line == 0 {
		return d.file
	}
	return fmt.Sprintf("%s:%d", d.file, p.line+d.first)
}

// Keys returns the keys directly below a key, in the order of the file, whatever their values are.
func (d *Doc) Keys(path string) []string {
	var out []string
	for p := range d.at {
		if key, below := strings.CutPrefix(p, path+"."); below && !strings.ContainsAny(key, ".[") {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		x, y := d.at[path+"."+a], d.at[path+"."+b]
		return cmp.Or(x.line-y.line, x.column-y.column)
	})
	return out
}

// Line returns the line of a key, from 1; 0 if the file does not have it.
func (d *Doc) Line(path string) int {
	if p, ok := d.at[path]; ok {
		return p.line + d.first
	}
	return 0
}

func (d *Doc) find(path string) position {
	for {
		if p, ok := d.at[path]; ok {
			return p
		}
		up, ok := parent(path)
		if !ok {
			return d.at[""]
		}
		path = up
	}
}

func where(n *yaml.Node) position { return position{n.Line, n.Column} }

// badByte returns the index of the first byte that is not UTF-8 text, or -1.
func badByte(src []byte) int {
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			return i
		}
		i += size
	}
	return -1
}

// positionOf returns the position of a byte.
func positionOf(src []byte, i int) position {
	before := src[:min(i, len(src))]
	return position{bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')}
}
