package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"rnix/internal/pattern"
	"rnix/internal/schema"
)

// namePattern is what a node or a variable can be called. A node's name is a part of names of processes,
// of paths and of references.
var namePattern = pattern.New(`^[A-Za-z][A-Za-z0-9_-]{0,47}$`)

// ValidName reports whether a node or a run can have this name.
func ValidName(name string) bool { return namePattern().MatchString(name) }

// reference is ${name} or ${name.field}.
var reference = pattern.New(`^[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)

// itemNames are the references that only a node with foreach has.
var itemNames = []string{"item", "index"}

// piece is a part of a text: plain, or a reference.
type piece struct {
	text string
	ref  bool
}

// pieces takes a text apart. ${...} is a reference, and $${ stands for ${.
func pieces(s string) ([]piece, error) {
	var out []piece
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			return append(out, piece{text: s}), nil
		}
		if i > 0 && s[i-1] == '$' {
			out, s = append(out, piece{text: s[:i-1] + "${"}), s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			return nil, fmt.Errorf("%q has no closing brace; write $${ for a plain ${", brief(s[i:]))
		}
		name := s[i+2 : i+end]
		if !reference().MatchString(name) {
			return nil, fmt.Errorf("${%s} is not a reference; write ${name}, ${item}, ${item.field} or ${index}, and $${ for a plain ${", brief(name))
		}
		out, s = append(out, piece{s[:i], false}, piece{name, true}), s[i+end+1:]
	}
}

// brief is the beginning of a text for an error.
func brief(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "..."
	}
	return s
}

// refs returns the first parts of the references in a text; none if it cannot be read.
func refs(s string) []string {
	ps, _ := pieces(s)
	var out []string
	for _, p := range ps {
		if p.ref {
			name, _, _ := strings.Cut(p.text, ".")
			out = append(out, name)
		}
	}
	return out
}

// Scope is what references in texts stand for.
type Scope struct {
	Vars  map[string]string
	Item  any // of a node with foreach
	Index int // of it, from 0; -1 = there is none
}

// maxItemText bounds what an item puts into a text, in bytes. Items may come from an agent.
const maxItemText = 4 << 10

// Long reports whether an item does not go whole into a text.
func Long(item any) bool { return len(Text(item)) > maxItemText }

// cut returns a text of at most limit bytes and a note that says where the rest is.
func cut(s string, limit int, where string) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + fmt.Sprintf(" [cut: %d of %d bytes; %s]", limit, len(s), where)
}

// expand replaces the references of a text.
func (sc *Scope) expand(s string) (string, error) {
	ps, err := pieces(s)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range ps {
		if !p.ref {
			b.WriteString(p.text)
			continue
		}
		v, err := sc.value(p.text)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
	}
	return b.String(), nil
}

func (sc *Scope) value(ref string) (string, error) {
	name, path, deep := strings.Cut(ref, ".")
	switch {
	case name == "index" && !deep && sc.Index >= 0:
		return fmt.Sprint(sc.Index), nil
	case name == "item" && sc.Index >= 0:
		v, err := inside(sc.Item, path)
		if err != nil {
			return "", fmt.Errorf("${%s}: %w", ref, err)
		}
		return cut(v, maxItemText, "the whole item is the input \"item\""), nil
	}
	if v, ok := sc.Vars[name]; ok && !deep {
		return v, nil
	}
	return "", fmt.Errorf("${%s} has no value", ref)
}

// inside returns a part of an item as text: a text as it is, all else as JSON.
func inside(item any, path string) (string, error) {
	for path != "" {
		var field string
		field, path, _ = strings.Cut(path, ".")
		m, ok := item.(map[string]any)
		if !ok {
			return "", fmt.Errorf("the item has no field %q: it is %s", field, Text(item))
		}
		if item, ok = m[field]; !ok {
			return "", fmt.Errorf("the item has no field %q, only %s", field, strings.Join(sorted(m), ", "))
		}
	}
	return Text(item), nil
}

// Text is an item as text: a text as it is, all else as JSON.
func Text(item any) string {
	if s, ok := item.(string); ok {
		return s
	}
	b, err := json.Marshal(item)
	if err != nil { // cannot happen: it came from YAML or JSON
		return fmt.Sprint(item)
	}
	return string(b)
}

// maxLabel bounds a label, in bytes.
const maxLabel = 200

// Label is an item as people are shown which one it is: one line, cut if it is long.
func Label(item any) string {
	s := schema.OneLine(Text(item))
	if len(s) > maxLabel {
		s = strings.ToValidUTF8(s[:maxLabel], "") + "..."
	}
	return s
}

// Unmarshal is json.Unmarshal, but for the numbers in items: they stay as they were written, whatever their size.
func Unmarshal(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// texts are the texts of a node in which references are replaced, by their keys.
func (n *Node) texts() map[string]*string {
	t := map[string]*string{"intent": &n.Intent, "agent": &n.Agent, "provider": &n.Provider, "model": &n.Model,
		"fallback_provider": &n.FallbackProvider, "fallback_model": &n.FallbackModel, "system_prompt": &n.SystemPrompt, "cwd": &n.Cwd}
	if w := n.Worktree; w != nil {
		t["worktree.branch"], t["worktree.base"] = &w.Branch, &w.Base
	}
	return t
}

// HasReferences reports whether what a node is can only be known when it starts.
func (n *Node) HasReferences() bool {
	for key, s := range n.texts() {
		if key != "intent" && key != "system_prompt" && len(refs(*s)) > 0 {
			return true
		}
	}
	return false
}

// Render returns a node with its references replaced. The error names the key.
func (n *Node) Render(sc *Scope) (*Node, error) {
	out := *n
	if n.Worktree != nil {
		w := *n.Worktree
		out.Worktree = &w
	}
	for key, s := range out.texts() {
		v, err := sc.expand(*s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		*s = v
	}
	return &out, nil
}

// Pattern returns the pattern of the files for which a node runs, with its references replaced.
func (f *ForEach) Pattern(vars map[string]string) (string, error) {
	return (&Scope{Vars: vars, Index: -1}).expand(f.Files)
}

// List returns the items that the file names, with the references in texts replaced.
func (f *ForEach) List(vars map[string]string) ([]any, error) {
	out := make([]any, len(f.Items))
	for i, x := range f.Items {
		out[i] = x
		if s, ok := x.(string); ok {
			v, err := (&Scope{Vars: vars, Index: -1}).expand(s)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
	}
	return out, nil
}
