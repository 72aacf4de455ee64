package vfs

import (
	"fmt"
	"strconv"
	"strings"

	"rnix/types"
)

// ProcMessage is one line of /proc/<pid>/messages, and a file below it.
type ProcMessage struct {
	Number    uint64
	Kind      string // message, steer, child
	Delivered bool
	From      string // who sent it, for people
	Text      string // all of it
}

func (p *ProcFS) messages(s ProcStatus) (string, error) {
	ms, err := p.source.Messages(s.PID)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, m := range ms {
		state, text := "waits", strings.TrimSpace(m.Text)
		if m.Delivered {
			state = "delivered"
		}
		first, _, _ := strings.Cut(text, "\n")
		fmt.Fprintf(&b, "%d\t%s\t%s\t%s\t%s\n", m.Number, m.Kind, state, oneLine(m.From), oneLine(first))
	}
	return b.String(), nil
}

func (p *ProcFS) message(pid types.PID, number, path string) (string, error) {
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return "", types.Errorf(types.ErrNotFound, "Open", path, "%q is not the number of a message", number)
	}
	ms, err := p.source.Messages(pid)
	if err != nil {
		return "", err
	}
	for _, m := range ms {
		if m.Number == n {
			return m.Text, nil
		}
	}
	return "", types.Errorf(types.ErrNotFound, "Open", path, "no message %d: %d have come", n, len(ms))
}
