// Package wiretest checks conversions of records to what stands for them on the wire.
package wiretest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Same checks that a record and what a conversion makes of it have the same JSON, byte for byte: with every field set, and with none. It
// also checks that neither type has a field in JSON that the other one lacks.
func Same[A, B any](t *testing.T, convert func(*A) B) {
	t.Helper()
	var a A
	compare(t, &a, convert(&a))
	n := 0
	fill(t, reflect.ValueOf(&a).Elem(), &n)
	compare(t, &a, convert(&a))
	record, wire := shape(bare[A]()), shape(bare[B]())
	if record != wire {
		t.Errorf("%T has the fields\n%s\nand on the wire\n%s", a, record, wire)
	}
}

// bare is a type, or what it points to.
func bare[T any]() reflect.Type {
	typ := reflect.TypeFor[T]()
	if typ.Kind() == reflect.Pointer {
		return typ.Elem()
	}
	return typ
}

func compare(t *testing.T, a, b any) {
	t.Helper()
	want, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%T is on the wire\n%s\nwant\n%s", a, got, want)
	}
}

// fill gives every field that JSON has a value of its own.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(int64(*n), 0).UTC()))
		return
	case json.RawMessage:
		v.SetBytes(fmt.Appendf(nil, `{"n":%d}`, *n))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Interface:
		if v.NumMethod() == 0 { // an error is not in JSON
			v.Set(reflect.ValueOf(fmt.Sprint("any ", *n)))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), n)
		fill(t, v.Index(1), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, n)
		fill(t, value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.IsExported() && len(f.Index) == 1 && f.Tag.Get("json") != "-" {
				fill(t, v.FieldByIndex(f.Index), n)
			}
		}
	default:
		t.Fatalf("no value for a %s", v.Type())
	}
}

// shape describes what a type is in JSON: its fields with their tags, in their order, and those of what is below it.
func shape(typ reflect.Type) string {
	var b strings.Builder
	var walk func(typ reflect.Type, indent string)
	walk = func(typ reflect.Type, indent string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			b.WriteString(typ.Kind().String() + " ")
			typ = typ.Elem()
		}
		b.WriteString(typ.Kind().String() + "\n")
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
			return
		}
		for _, f := range reflect.VisibleFields(typ) {
			if tag := f.Tag.Get("json"); f.IsExported() && len(f.Index) == 1 && tag != "-" {
				b.WriteString(indent + tag + " ")
				walk(f.Type, indent+"  ")
			}
		}
	}
	walk(typ, "")
	return b.String()
}
