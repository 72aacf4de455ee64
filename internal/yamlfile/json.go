package yamlfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// parseJSON reads JSON into the same tree that YAML makes. It does not use the YAML parser, because
// that knows neither JSON's escapes of characters outside the basic plane nor keys of any length.
func (d *Doc) parseJSON(src []byte) *yaml.Node {
	var whole json.RawMessage
	if err := json.Unmarshal(src, &whole); err != nil {
		at := positionOf(src, len(src))
		text := strings.TrimPrefix(err.Error(), "json: ")
		var se *json.SyntaxError
		if errors.As(err, &se) && !strings.Contains(text, "unexpected end") {
			at = positionOf(src, max(int(se.Offset)-1, 0))
		}
		d.report(at, "", false, "%s", text)
		return nil
	}
	r := &jsonReader{src: src, dec: json.NewDecoder(bytes.NewReader(src))}
	r.dec.UseNumber()
	root, err := r.value(0)
	if err != nil {
		d.report(r.position(), "", false, "%v", err)
		return nil
	}
	return root
}

type jsonReader struct {
	src []byte
	dec *json.Decoder
}

// position returns where the next token begins.
func (r *jsonReader) position() position {
	i := int(r.dec.InputOffset())
	for i < len(r.src) && strings.IndexByte(" \t\r\n,:", r.src[i]) >= 0 {
		i++
	}
	return positionOf(r.src, i)
}

func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", MaxDepth)
	}
	at := r.position()
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: at.line, Column: at.column}
	tok, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		if t == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
		for r.dec.More() {
			c, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		_, err = r.dec.Token()
		return n, err
	case string:
		n.Tag, n.Value = "!!str", t
	case json.Number:
		n.Tag, n.Value = "!!int", t.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", "false"
		if t {
			n.Value = "true"
		}
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}
