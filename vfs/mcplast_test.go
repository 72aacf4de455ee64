package vfs

import (
	"errors"
	"strings"
	"testing"

	"rnix/types"
)

func TestLastResultsAreReplacedAndTheOldestGoWhenThereIsNoRoom(t *testing.T) {
	l := newLastResults(1000)
	l.set("a", []byte("first"), nil)
	l.set("b", nil, errors.New("failed"))
	l.set("a", []byte("second"), nil)
	if text, err := l.of("a"); string(text) != "second" || err != nil {
		t.Errorf("%s %v", text, err)
	}
	if _, err := l.of("b"); err == nil || err.Error() != "failed" {
		t.Error(err)
	}
	l.set("c", []byte(strings.Repeat("x", 700)), nil)
	if _, err := l.of("b"); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("the oldest is there: %v", err)
	}
	if text, err := l.of("a"); string(text) != "second" || err != nil {
		t.Errorf("%s %v", text, err)
	}
	l.set("d", make([]byte, 2000), nil)
	if _, err := l.of("d"); err == nil {
		t.Error("more is kept than there is room for")
	}
}
