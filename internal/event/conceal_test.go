package event

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rnix/internal/redact"
	"rnix/types"
)

// A text that is added to Event later is concealed, or is named here.
func TestNoTextOfAnEventKeepsASecret(t *testing.T) {
	const canary = "sk-canary-4711"
	ours := []string{"Kind", "Code", "From", "To", "Agent", "Provider", "Model"}
	set := new(redact.Set)
	set.Add(redact.Secret{Name: "KEY", Value: canary})
	l := New(0)
	l.Conceal(set)
	e := Event{Exit: &types.ExitStatus{Code: 1, Reason: canary, Err: types.Errorf(types.ErrDriver, "X", "", "no %s", canary)}}
	v := reflect.ValueOf(&e).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String && !slices.Contains(ours, v.Type().Field(i).Name) {
			f.SetString("x " + canary)
		}
	}
	c := l.Cursor(1)
	l.Append(e)
	got, err := c.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(got)
	if err != nil || strings.Contains(string(b), canary) || strings.Count(string(b), "[secret KEY]") < 8 {
		t.Errorf("%v: %s", err, b)
	}
	if e.Text != "x "+canary || e.Exit.Reason != canary {
		t.Error("the event that was handed in is changed")
	}
}
