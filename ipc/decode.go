package ipc

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/types"
)

// maxDrain is how many bytes of a body that is too large are read and thrown away, so that the client
// finishes writing and reads why it was refused.
const maxDrain = 16 * MaxBody

func tooLarge(name string) error {
	return types.Errorf(types.ErrInvalid, name, "", "the request is larger than %d bytes (%d MiB); send less, or put the text in a file and name it", MaxBody, MaxBody>>20)
}

// readBody reads the body of r, MaxBody bytes at most. A client that does not send it in time, or not
// before the server stops, is refused, and its connection is read no more.
func readBody(w http.ResponseWriter, r *http.Request, name string) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if r.ContentLength > MaxBody && r.Header.Get("Expect") != "" {
		w.Header().Set("Connection", "close")
		return nil, tooLarge(name) // the client waits for our word and sends nothing
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	giveUp := context.AfterFunc(r.Context(), func() { _ = rc.SetReadDeadline(time.Unix(1, 0)) })
	if r.ContentLength > MaxBody {
		defer giveUp()
		return nil, drain(w, r, name)
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(min(r.ContentLength, 64<<10)) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(io.LimitReader(r.Body, MaxBody+1)); err != nil {
		giveUp()
		w.Header().Set("Connection", "close") // the deadline stays: net/http would read on
		return nil, types.Errorf(types.ErrInvalid, name, "", "the body ended early: %w", err)
	}
	defer giveUp()
	if buf.Len() > MaxBody {
		return nil, drain(w, r, name)
	}
	_ = rc.SetReadDeadline(time.Time{})
	return buf.Bytes(), nil
}

func drain(w http.ResponseWriter, r *http.Request, name string) error {
	w.Header().Set("Connection", "close")
	_, _ = io.CopyN(io.Discard, r.Body, maxDrain) // whatever is wrong with the rest, the answer is the same
	return tooLarge(name)
}

// decodeRequest decodes body into dst, a pointer. An empty body is the zero request. Unknown fields
// and anything after the first value are refused.
func decodeRequest(name string, body []byte, dst any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	body = byPID(body, reflect.TypeOf(dst).Elem())
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		return explain(name, err, reflect.TypeOf(dst).Elem())
	}
	if rest := bytes.TrimSpace(body[d.InputOffset():]); len(rest) > 0 {
		return types.Errorf(types.ErrInvalid, name, "", "there is more after the request, from byte %d on; send one JSON object", d.InputOffset())
	}
	return nil
}

// byPID returns a request for a target that names it by "pid", as the answers do, as one that names it by "target".
func byPID(body []byte, t reflect.Type) []byte {
	fields := fieldNames(t)
	if !bytes.Contains(body, []byte(`"pid"`)) || !slices.Contains(fields, "target") || slices.Contains(fields, "pid") {
		return body
	}
	var given map[string]json.RawMessage
	var pid uint64
	if json.Unmarshal(body, &given) != nil || given["target"] != nil || json.Unmarshal(given["pid"], &pid) != nil {
		return body
	}
	delete(given, "pid")
	given["target"] = strconv.AppendQuote(nil, strconv.FormatUint(pid, 10))
	named, err := json.Marshal(given)
	if err != nil {
		return body
	}
	return named
}

// explain says in our words what encoding/json did not like.
func explain(name string, err error, t reflect.Type) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch field, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); {
	case unknown:
		field = strings.Trim(field, `"`)
		return types.Errorf(types.ErrInvalid, name, "", "unknown field %q; %s", field, known(field, fieldNames(t)))
	case errors.As(err, &syntax):
		return types.Errorf(types.ErrInvalid, name, "", "the request is not JSON: %s at byte %d", strings.TrimPrefix(syntax.Error(), "json: "), syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return types.Errorf(types.ErrInvalid, name, "", "the request ends in the middle")
	case errors.As(err, &kind) && kind.Field == "":
		return types.Errorf(types.ErrInvalid, name, "", "the request must be a JSON object, not %s", kind.Value)
	case errors.As(err, &kind):
		return types.Errorf(types.ErrInvalid, name, "", "field %q must be %s, not %s", placeOf(kind.Field, t), kind.Type, kind.Value)
	}
	return types.Errorf(types.ErrInvalid, name, "", "%w", err)
}

func known(field string, fields []string) string {
	if len(fields) == 0 {
		return "this method takes none"
	}
	if len(fields) > 8 {
		return "nearest: " + strings.Join(nearest(field, fields), ", ")
	}
	return "known: " + strings.Join(fields, ", ")
}

// placeOf returns where a value stands in a request of type t, by the names that its author has written. encoding/json names the structs that are
// embedded in others too.
func placeOf(path string, t reflect.Type) string {
	var out []string
	for name := range strings.SplitSeq(path, ".") {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct {
			fields := reflect.VisibleFields(t)
			i := slices.IndexFunc(fields, func(f reflect.StructField) bool { return name == cmp.Or(tagOf(f), f.Name) })
			if i >= 0 {
				if t = fields[i].Type; fields[i].Anonymous && tagOf(fields[i]) == "" {
					continue
				}
			}
		}
		out = append(out, name)
	}
	return strings.Join(out, ".")
}

// tagOf is the name that a field has in JSON; empty = its own.
func tagOf(f reflect.StructField) string {
	tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return tag
}

// fieldNames returns the names that the fields of t have in JSON.
func fieldNames(t reflect.Type) []string {
	names := []string{}
	if t.Kind() != reflect.Struct {
		return names
	}
	for _, f := range reflect.VisibleFields(t) {
		tag := tagOf(f)
		switch {
		case !f.IsExported() || tag == "-", f.Anonymous && tag == "":
		case tag != "":
			names = append(names, tag)
		default:
			names = append(names, f.Name)
		}
	}
	return names
}

// fieldTypes returns of which JSON type each field of t is.
func fieldTypes(t reflect.Type) map[string]string {
	out := map[string]string{}
	if t.Kind() != reflect.Struct {
		return out
	}
	for _, f := range reflect.VisibleFields(t) {
		if tag := tagOf(f); f.IsExported() && tag != "-" && (!f.Anonymous || tag != "") {
			out[cmp.Or(tag, f.Name)] = jsonType(f.Type)
		}
	}
	return out
}

// jsonType says how JSON writes a value of type t.
func jsonType(t reflect.Type) string {
	switch is := t.Implements; {
	case t == reflect.TypeFor[time.Time]():
		return "string (RFC 3339)"
	case t == reflect.TypeFor[json.RawMessage]():
		return "any"
	case is(reflect.TypeFor[json.Marshaler]()):
		return "any"
	case is(reflect.TypeFor[encoding.TextMarshaler]()), t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "list of " + jsonType(t.Elem())
	case reflect.Map:
		return "object of " + jsonType(t.Elem())
	case reflect.Struct:
		return "object"
	case reflect.Interface:
		return "any"
	}
	return "integer"
}

// nearest returns the up to three names that are most like name, the nearest first.
func nearest(name string, names []string) []string {
	near := slices.Clone(names)
	dist := make(map[string]int, len(near))
	for _, n := range near {
		dist[n] = distance(name, n)
	}
	slices.SortStableFunc(near, func(a, b string) int { return dist[a] - dist[b] })
	return near[:min(3, len(near))]
}

// distance returns how many bytes must be added, removed or changed to make b of a. Only the first 64
// bytes of a count.
func distance(a, b string) int {
	a = a[:min(len(a), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
