package vfs

import (
	"bytes"
	"slices"
	"sync"

	"rnix/types"
)

// lastResults are the last results of the tools of one server, as many as there is room for. Safe for concurrent use.
type lastResults struct {
	room int // bytes of all texts

	mu   sync.Mutex
	list []lastResult // +checklocks:mu
}

// lastResult is what a tool has answered, or why it did not.
type lastResult struct {
	tool string
	text []byte
	err  error
}

func newLastResults(room int) *lastResults { return &lastResults{room: room} }

// set notes the result of a call, in the place of an earlier one of the tool. What came first goes when there is no room.
func (l *lastResults) set(tool string, text []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(slices.DeleteFunc(l.list, func(r lastResult) bool { return r.tool == tool }), lastResult{tool, bytes.Clone(text), err})
	used := 0
	for i := len(l.list) - 1; i >= 0; i-- {
		const each = 100 // besides the text
		if used += len(l.list[i].text) + each; used > l.room {
			l.list = slices.Delete(l.list, 0, i+1)
			break
		}
	}
}

// of returns the last result of a tool. INVALID if there is none.
func (l *lastResults) of(tool string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.list {
		if r.tool == tool {
			return r.text, r.err
		}
	}
	return nil, types.Errorf(types.ErrInvalid, "Read", "", "there is no result of a call yet: write its input, a JSON object, to call it")
}
