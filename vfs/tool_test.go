package vfs_test

import (
	"encoding/json"
	"testing"

	"rnix/types"
	"rnix/vfs"
)

func TestInputSetsTheOperationLast(t *testing.T) {
	for _, c := range []struct{ op, input, want string }{
		{"read", `{"path":"a"}`, `{"path":"a","op":"read"}`},
		{"read", ``, `{"op":"read"}`},
		{"read", ` { } `, `{"op":"read"}`},
		{"read", `{"op":"delete","path":"a"}`, `{"op":"delete","path":"a","op":"read"}`},
		{"", `{"path":"a"}`, `{"path":"a"}`},
		{"", ``, `{}`},
	} {
		if got := string(vfs.Tool{Op: c.op}.Input(json.RawMessage(c.input))); got != c.want {
			t.Errorf("Input(%s) = %s, want %s", c.input, got, c.want)
		}
	}
}

func TestInputThatIsNoObjectIsRefusedByDevices(t *testing.T) {
	for _, in := range []string{`[1]`, `"x"`, `null`, `7`, `{`, `{"op":"delete"} , {"x":1}`, `{"a":1,}`, "{}{}", "x"} {
		out := vfs.Tool{Op: "read"}.Input(json.RawMessage(in))
		if op, err := vfs.RequestOp(out); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s became a request of op %q: %s", in, op, out)
		}
	}
}

// FuzzInputNeverChangesTheOperation: whatever a model writes, a device sees the tool's operation or
// refuses the request.
func FuzzInputNeverChangesTheOperation(f *testing.F) {
	for _, s := range []string{`{"op":"x"}`, `{"Op":"x"}`, `{"a":{"op":"x"}}`, `{"op":"x"},{"a":1}`, `{"a":"}"}`, ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		op, err := vfs.RequestOp(vfs.Tool{Op: "read"}.Input(json.RawMessage(in)))
		if err == nil && op != "read" {
			t.Errorf("%q asks for %q", in, op)
		}
	})
}

func TestRequestsSayWhatIsWrongWithThem(t *testing.T) {
	var in struct {
		Op    string   `json:"op"`
		Path  string   `json:"path"`
		Limit int      `json:"limit"`
		All   bool     `json:"all"`
		List  []string `json:"list"`
	}
	for _, c := range []struct{ request, want string }{
		{``, "Write: the request is not a JSON object"},
		{`[]`, "Write: the request is not a JSON object"},
		{`{"paht":"x"}`, `Write: bad request: unknown field "paht"; there are: path, limit, all, list`},
		{`{"limit":"5"}`, `Write: bad request: field "limit" must be of type whole number, not string`},
		{`{"all":1}`, `Write: bad request: field "all" must be of type true or false, not number`},
		{`{"list":"a"}`, `Write: bad request: field "list" must be of type list, not string`},
		{`{} {}`, "Write: bad request: something follows the object"},
	} {
		err := vfs.DecodeRequest([]byte(c.request), &in)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.request, err, c.want)
		}
	}
	if err := vfs.DecodeRequest([]byte(` {"path":"p","limit":3,"op":"x"} `), &in); err != nil || in.Path != "p" || in.Limit != 3 {
		t.Errorf("got %+v, %v", in, err)
	}
}
