package mcp

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"rnix/internal/proc"
	"rnix/types"
	"rnix/vfs"
)

// How much of what a server says for people is passed on: lines of so many bytes, so many at once, then so many a second, and so many in all.
const (
	saidLine  = 2 << 10
	saidBurst = 400
	saidRate  = 20
	saidMost  = 5000
)

// said passes on what a server says for people: its standard error, and the messages of its protocol.
type said struct {
	tell    func(vfs.MCPNews) // nil = nobody hears
	conceal func(string) string
	limiter *rate.Limiter

	mu      sync.Mutex
	lines   int // +checklocks:mu
	dropped int // +checklocks:mu
}

func newSaid(tell func(vfs.MCPNews), secrets []string) *said {
	return &said{tell: tell, limiter: rate.NewLimiter(saidRate, saidBurst), conceal: func(text string) string {
		for _, s := range secrets {
			text = strings.ReplaceAll(text, s, "***")
		}
		return text
	}}
}

// line passes a line on, or counts it.
func (s *said) line(stream, text string) {
	if s.tell == nil || strings.TrimSpace(text) == "" {
		return
	}
	s.mu.Lock()
	if s.lines >= saidMost || !s.limiter.Allow() {
		s.dropped++
		s.mu.Unlock()
		return
	}
	left := s.dropped
	s.dropped = 0
	if s.lines++; s.lines == saidMost {
		text += " [this server says no more here: it has said 5000 lines]"
	}
	s.mu.Unlock()
	if left > 0 {
		s.tell(vfs.MCPNews{Kind: vfs.NewsLine, Stream: stream, Line: "[" + types.Counted(left, "line was", "lines were") + " left out: too many at once]"})
	}
	text = strings.ToValidUTF8(s.conceal(text), "\uFFFD")
	if len(text) > saidLine {
		text = strings.ToValidUTF8(text[:saidLine], "") + fmt.Sprintf(" [%d bytes in all]", len(text))
	}
	s.tell(vfs.MCPNews{Kind: vfs.NewsLine, Stream: stream, Line: text})
}

// ears hears the standard error of one child: its end is kept for errors, and its lines are passed on.
type ears struct {
	ring *proc.Ring
	said *said

	mu   sync.Mutex
	rest []byte // +checklocks:mu
}

// Write never fails.
func (e *ears) Write(p []byte) (int, error) {
	n, _ := e.ring.Write(p) // it never fails
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		line, after, whole := bytes.Cut(p, []byte{'\n'})
		if e.rest = append(e.rest, line[:min(len(line), max(16<<10-len(e.rest), 0))]...); !whole {
			return n, nil
		}
		e.said.line("stderr", strings.TrimRight(string(e.rest), "\r"))
		e.rest, p = e.rest[:0], after
	}
}

// end passes on what has no line end.
func (e *ears) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.rest) > 0 {
		e.said.line("stderr", string(e.rest))
		e.rest = nil
	}
}
