package service

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"rnix/types"
)

// InTheirWords returns err with the name that the caller used in the place of the UUID that we know the process
// by: who typed 3 is told of 3. err goes through as it is where it names no UUID, or that was what was typed.
func InTheirWords(resolve func(text string) (Target, error), req any, err error) error {
	if err == nil || !strings.Contains(err.Error(), "-") {
		return err
	}
	for _, said := range namesIn(req) {
		t, unknown := resolve(said)
		if unknown != nil || t.UUID == (types.UUID{}) {
			continue
		}
		err = reworded(err, t.UUID.String(), strings.TrimSpace(said))
	}
	return err
}

// namesIn returns what a request names processes by.
func namesIn(req any) []string {
	v := reflect.ValueOf(req)
	if v.Kind() != reflect.Struct {
		return nil
	}
	var out []string
	for _, field := range []string{"Target", "Under"} {
		if f := v.FieldByName(field); f.IsValid() && f.Kind() == reflect.String && f.String() != "" {
			out = append(out, f.String())
		}
	}
	if f := v.FieldByName("Targets"); f.IsValid() {
		if names, ok := f.Interface().([]string); ok {
			out = append(out, names...)
		}
	}
	return slices.Compact(out)
}

// reworded returns err with said wherever its text has id. Its code and its causes stay.
func reworded(err error, id, said string) error {
	if strings.EqualFold(id, said) || !strings.Contains(err.Error(), id) {
		return err
	}
	var e *types.SyscallError
	if !errors.As(err, &e) {
		return &rewordedError{inWords(err.Error(), id, said), err}
	}
	out := *e
	out.Device = inWords(e.Device, id, said)
	if e.Err != nil {
		out.Err = &rewordedError{inWords(e.Err.Error(), id, said), e.Err}
	}
	return &out
}

// inWords puts said in the place of id, but not within paths, branches and longer words.
func inWords(text, id, said string) string {
	const ends = " \n\t\"'`():;,."
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, id)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		last, next := b.String(), after
		if (last == "" || strings.ContainsAny(last[len(last)-1:], ends)) && (next == "" || strings.ContainsAny(next[:1], ends)) {
			b.WriteString(said)
		} else {
			b.WriteString(id)
		}
		text = after
	}
}

// rewordedError is an error in other words.
type rewordedError struct {
	text  string
	cause error
}

func (e *rewordedError) Error() string { return e.text }
func (e *rewordedError) Unwrap() error { return e.cause }
