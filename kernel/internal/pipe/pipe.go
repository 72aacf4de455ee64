// Package pipe is a ring of bytes from one writer to one reader, with back-pressure: the writer waits
// when the ring is full, the reader when it is empty. It knows no process and no descriptor.
package pipe

import (
	"context"
	"errors"
	"io"
	"sync"
)

// Size is the capacity of a Pipe in bytes, that of a pipe of Linux.
const Size = 64 << 10

// ErrBroken is the error of a write that nobody will read.
var ErrBroken = errors.New("broken pipe: the reading end is closed")

// Pipe is open and empty as a zero value; its buffer is made at the first write. Its lock is a leaf.
type Pipe struct {
	mu sync.Mutex
	// The ring.
	buf []byte // +checklocks:mu
	// Where the next byte is read.
	from int // +checklocks:mu
	// Bytes in the ring.
	n int // +checklocks:mu
	// Nothing more will be written.
	eof bool // +checklocks:mu
	// Nothing more will be read.
	broken bool // +checklocks:mu
	// Closed when there is something to read; nil when nobody waits.
	filled chan struct{} // +checklocks:mu
	// Closed when there is room; nil when nobody waits.
	freed chan struct{} // +checklocks:mu
}

// Write writes all of p, waiting for room as often as it takes. It returns how much the ring took, and
// ErrBroken when the reading end is closed or io.ErrClosedPipe when the writing end is, or the cause
// of ctx.
func (p *Pipe) Write(ctx context.Context, data []byte) (int, error) {
	done := 0
	for {
		p.mu.Lock()
		switch {
		case p.eof:
			p.mu.Unlock()
			return done, io.ErrClosedPipe
		case p.broken:
			p.mu.Unlock()
			return done, ErrBroken
		}
		done += p.putLocked(data[done:])
		if done == len(data) {
			p.mu.Unlock()
			return done, nil
		}
		room := wait(&p.freed)
		p.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return done, context.Cause(ctx)
		}
	}
}

// putLocked copies what fits and wakes the reader.
//
// +checklocks:p.mu
func (p *Pipe) putLocked(data []byte) int {
	if p.buf == nil && len(data) > 0 {
		p.buf = make([]byte, Size)
	}
	done := 0
	for done < len(data) && p.n < len(p.buf) {
		at := (p.from + p.n) % len(p.buf)
		end := len(p.buf)
		if at < p.from {
			end = p.from
		}
		k := copy(p.buf[at:end], data[done:])
		p.n += k
		done += k
	}
	if done > 0 {
		wake(&p.filled)
	}
	return done
}

// TryRead reads what is there, without waiting: nothing and nil if there is nothing yet, io.EOF at the
// end.
func (p *Pipe) TryRead(buf []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked(buf)
}

// Read waits until there is something, and reads it. It returns io.EOF at the end, and the cause of ctx.
func (p *Pipe) Read(ctx context.Context, buf []byte) (int, error) {
	for {
		p.mu.Lock()
		n, err := p.takeLocked(buf)
		if n > 0 || err != nil || len(buf) == 0 {
			p.mu.Unlock()
			return n, err
		}
		come := wait(&p.filled)
		p.mu.Unlock()
		select {
		case <-come:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// takeLocked copies out what there is. The writer is woken when half of the ring is free, so that two
// sides that take turns do not meet at every byte.
//
// +checklocks:p.mu
func (p *Pipe) takeLocked(buf []byte) (int, error) {
	if p.broken {
		return 0, io.ErrClosedPipe
	}
	done := 0
	for done < len(buf) && p.n > 0 {
		k := copy(buf[done:], p.buf[p.from:min(p.from+p.n, len(p.buf))])
		p.from = (p.from + k) % len(p.buf)
		p.n -= k
		done += k
	}
	if p.n <= Size/2 {
		wake(&p.freed)
	}
	if done == 0 && p.n == 0 && p.eof {
		return 0, io.EOF
	}
	return done, nil
}

// Len returns how many bytes can be read.
func (p *Pipe) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// CloseWrite says that nothing more will be written. The reader gets what is left, then io.EOF.
func (p *Pipe) CloseWrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.eof = true
	wake(&p.filled)
	wake(&p.freed)
}

// CloseRead says that nothing more will be read. What is left is dropped, and writes are ErrBroken.
func (p *Pipe) CloseRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken, p.buf, p.n = true, nil, 0
	wake(&p.filled)
	wake(&p.freed)
}

func wait(ch *chan struct{}) <-chan struct{} {
	if *ch == nil {
		*ch = make(chan struct{})
	}
	return *ch
}

func wake(ch *chan struct{}) {
	if *ch != nil {
		close(*ch)
		*ch = nil
	}
}
