package types

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of labels.
const (
	MaxLabels     = 32
	maxLabelKey   = 63  // bytes
	maxLabelValue = 255 // bytes
)

// Labels are marks that a person gives a process at its start, to find it by: keys with values. Rnix itself reads no meaning into them. Once a
// process has them, they never change.
type Labels map[string]string

// String returns the labels on one line, ordered by key: `env=prod ticket=12 title="a b"`. Whoever shows it to a person sanitizes it first.
func (l Labels) String() string {
	words := make([]string, 0, len(l))
	for _, key := range slices.Sorted(maps.Keys(l)) {
		value := l[key]
		if strings.ContainsAny(value, ` "`) {
			value = strconv.Quote(value)
		}
		words = append(words, key+"="+value)
	}
	return strings.Join(words, " ")
}

// Check reports what of the labels a process cannot have.
func (l Labels) Check() error {
	if len(l) > MaxLabels {
		return Errorf(ErrInvalid, "", "", "a process has at most %d labels, and %d are given", MaxLabels, len(l))
	}
	if len(l) == 0 {
		return nil // the usual case costs no memory
	}
	for _, key := range slices.Sorted(maps.Keys(l)) {
		if err := checkLabel(key, l[key]); err != nil {
			return err
		}
	}
	return nil
}

// Set adds the label that a text says as KEY=VALUE. The value may be empty and may hold further equals signs.
func (l Labels) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return Errorf(ErrInvalid, "", "", "want KEY=VALUE, or KEY= for an empty value")
	}
	if err := checkLabel(key, value); err != nil {
		return err
	}
	if _, twice := l[key]; twice {
		return Errorf(ErrInvalid, "", "", "the label %s is given twice; give it once", key)
	}
	if len(l) == MaxLabels {
		return Errorf(ErrInvalid, "", "", "a process has at most %d labels", MaxLabels)
	}
	l[key] = value
	return nil
}

// CheckSelectors reports which of the selectors, each KEY or KEY=VALUE, no label can match.
func CheckSelectors(selectors []string) error {
	for _, s := range selectors {
		key, value, _ := strings.Cut(s, "=")
		if err := checkLabel(key, value); err != nil {
			return err
		}
	}
	return nil
}

// Match reports whether the labels match all selectors: KEY is there with any value, KEY=VALUE with this one.
func (l Labels) Match(selectors []string) bool {
	for _, s := range selectors {
		key, want, exact := strings.Cut(s, "=")
		if value, ok := l[key]; !ok || exact && value != want {
			return false
		}
	}
	return true
}

// Each returns labels with the same keys, whose values change returns. The labels themselves stay as they are.
func (l Labels) Each(change func(value string) string) Labels {
	out := maps.Clone(l)
	for key, value := range out {
		out[key] = change(value)
	}
	return out
}

func checkLabel(key, value string) error {
	other := func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("._/-", r) }
	switch {
	case key == "" || len(key) > maxLabelKey || !alphanumeric(rune(key[0])) || strings.ContainsFunc(key, other):
		return Errorf(ErrInvalid, "", "", "invalid label key %.80q: want 1 to %d of A-Z a-z 0-9 . _ / -, beginning with a letter or digit", key, maxLabelKey)
	case len(value) > maxLabelValue:
		return Errorf(ErrInvalid, "", "", "the value of the label %s has %d bytes; want at most %d", key, len(value), maxLabelValue)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }):
		return Errorf(ErrInvalid, "", "", "invalid value %.80q of the label %s: want printable text on one line", value, key)
	}
	return nil
}

func alphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
}
