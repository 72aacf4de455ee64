package mcpserve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// place names the line and column of an error in a file of JSON, where it has one.
func place(path string, data []byte, err error) string {
	var offset int64
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	default:
		return path
	}
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	return fmt.Sprintf("%s:%d:%d", path, bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

// shape says what is wrong with JSON without showing a value of it.
func shape(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return "a JSON object is wanted"
	case errors.As(err, &kind):
		return fmt.Sprintf("its %q is no %s", kind.Field, kind.Type)
	}
	return "no JSON"
}
