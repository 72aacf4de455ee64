package ipc

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"rnix/types"
)

func TestTargetIsNamedByItsPIDToo(t *testing.T) {
	var r StepsRequest
	if err := decodeRequest("list_steps", []byte(`{"pid":4,"limit":3}`), &r); err != nil || r.Target != "4" || r.Limit != 3 {
		t.Errorf("%+v %v", r, err)
	}
	var own ResumeRequest
	for _, body := range []string{`{"pid":-4}`, `{"pid":"x"}`, `{"pid":4,"target":"night"}`} {
		if err := decodeRequest("list_steps", []byte(body), &r); err == nil {
			t.Errorf("%s is accepted", body)
		}
	}
	if err := decodeRequest("resume", []byte(`{"pid":18446744073709551615}`), &own); err != nil || own.Target != "18446744073709551615" {
		t.Errorf("%+v %v", own, err)
	}
}

// A field is named as its author wrote it, whatever struct of ours it stands in.
func TestAFieldOfTheWrongTypeIsNamedAsItWasWritten(t *testing.T) {
	for body, want := range map[string]string{
		`{"intent":3}`:                            `field "intent" must be string`,
		`{"max_steps":"many"}`:                    `field "max_steps" must be int`,
		`{"allow":"/dev/fs"}`:                     `field "allow" must be []string`,
		`{"inputs":[{"name":"a"},{"name":true}]}`: `field "inputs.name" must be string`,
	} {
		if err := decodeRequest("spawn", []byte(body), new(SpawnRequest)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", body, err, want)
		}
	}
}

func TestEachFieldOfARequestHasAType(t *testing.T) {
	type within struct {
		Deep bool `json:"deep"`
	}
	got := fieldTypes(reflect.TypeFor[struct {
		within
		Text   string            `json:"text,omitempty"`
		N      *int              `json:"n"`
		Cost   float64           `json:"cost"`
		At     time.Time         `json:"at"`
		UUID   types.UUID        `json:"uuid"`
		Raw    json.RawMessage   `json:"raw"`
		Bytes  []byte            `json:"bytes"`
		Parts  []within          `json:"parts"`
		Env    map[string]string `json:"env"`
		One    within            `json:"one"`
		Any    any               `json:"any"`
		Hidden int               `json:"-"`
		Bare   uint8
	}]())
	want := map[string]string{"deep": "boolean", "text": "string", "n": "integer", "cost": "number", "at": "string (RFC 3339)", "uuid": "string", "raw": "any", "bytes": "string",
		"parts": "list of object", "env": "object of string", "one": "object", "any": "any", "Bare": "integer"}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// What clients are told of a real request.
	if got := fieldTypes(reflect.TypeFor[SpawnRequest]()); got["intent"] != "string" || got["timeout_ms"] != "integer" || len(got) != len(fieldNames(reflect.TypeFor[SpawnRequest]())) {
		t.Errorf("%v", got)
	}
}
