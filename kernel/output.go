package kernel

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/types"
	"rnix/vfs"
)

// PipeOutput makes a pipe that carries what the model of one process says, as it says it, and returns the
// descriptor of its reading end in the table of the other. It begins with the answers that are in the
// conversation, and gives each answer whole and once; one that a pause or a failure has cut off and that
// is not repeated word for word is begun anew behind a line that says so. Behind the last answer comes the
// result, if that is something else, and then the end. A reader that is slow holds the writer back between
// two steps and at its end, as long as both live; one that is gone does not. A writer that has no model is
// INVALID, one that has ended NOT_FOUND or CANCELLED.
func (k *KernelImpl) PipeOutput(writer, reader types.PID) (readFD types.FD, err error) {
	p, err := k.outputs.speaker(writer)
	if err != nil {
		return 0, err
	}
	writeFD, readFD, err := k.Pipe(writer, reader)
	if err != nil {
		return 0, err
	}
	o := new(outlet)
	if err := k.outputs.carry(p, o, reader, writeFD); err != nil {
		o.cut()
		_, _ = k.vfs.Close(writer, writeFD), k.vfs.Close(reader, readFD) // they carry nothing
		return 0, err
	}
	return readFD, nil
}

// carry hands what the model of a process says to an outlet, and from there through a descriptor of it to a reader.
func (s *outputs) carry(p *Process, o *outlet, reader types.PID, fd types.FD) error {
	co, err := p.SpawnCoroutine("what the model says", func(co *Coroutine) {
		transcript(func() (note, bool) { return o.next(co.Context()) }, func(text string) { co.Yield(text) })
	})
	if err != nil {
		return err
	}
	if err := s.connect(p, o); err != nil {
		return err
	}
	_, err = p.SpawnThread("output to PID "+reader.String(), func(t *Thread) {
		defer s.disconnect(p, o, fd)
		for {
			text, err := p.ResumeCoroutine(co)
			if err != nil {
				return // it has ended, or the process has
			}
			if err := s.vfs.Write(t.Context(), p.PID, fd, []byte(text.(string))); types.CodeOf(err) == types.ErrBrokenPipe {
				say(s.events, p, "warning", "PID "+reader.String()+" does not read the output any more")
				return
			} else if err != nil {
				return
			}
		}
	})
	return err
}

// speaker returns a process that has a model, which could say something.
func (s *outputs) speaker(pid types.PID) (*Process, error) {
	p, err := s.table.lookup("PipeOutput", pid)
	if err == nil && p.opts.Body != nil {
		return nil, &types.SyscallError{Syscall: "PipeOutput", PID: pid, Code: types.ErrInvalid, Err: errors.New("it has no model that could say something")}
	}
	return p, err
}

// note is what an outlet is told.
type note struct {
	kind noteKind
	text string
}

type noteKind int

const (
	asked  noteKind = iota // the model is asked, perhaps again
	piece                  // it has said so much more
	said                   // that is the whole answer
	result                 // of the process
)

// begunAnew stands in an output where an answer was cut off and another one came in its place.
const begunAnew = "\n[the answer was cut off here, and begun anew]\n"

// transcript turns notes into the text of an output.
func transcript(next func() (note, bool), yield func(string)) {
	var sent []byte // of the answer under way
	again := 0      // how much of it has come again
	live := false   // pieces count: they began at the beginning of an answer
	last := ""
	for {
		n, ok := next()
		if !ok {
			return
		}
		switch n.kind {
		case asked:
			again, live = 0, true
		case piece:
			same := min(len(n.text), len(sent)-again)
			if live = live && bytes.HasPrefix(sent[again:], []byte(n.text[:same])); !live {
				continue // the whole answer will be compared
			}
			again += same
			if rest := n.text[same:]; rest != "" {
				sent, again = append(sent, rest...), again+len(rest)
				yield(rest)
			}
		case said:
			rest, begun := strings.CutPrefix(n.text, string(sent))
			if !begun {
				rest = begunAnew + n.text
			}
			if n.text != "" && !strings.HasSuffix(n.text, "\n") {
				rest += "\n"
			}
			if rest != "" {
				yield(rest)
			}
			sent, again, live, last = nil, 0, false, n.text
		case result:
			if n.text != "" && n.text != last {
				yield(n.text + "\n")
			}
		}
	}
}

// outlet holds notes until they are read. Its lock is a leaf.
type outlet struct {
	mu    sync.Mutex
	notes []note // +checklocks:mu
	// No more notes come.
	ended bool // +checklocks:mu
	// The reader is gone.
	broken bool // +checklocks:mu
	// The last note that was read is still being worked on.
	inHand bool // +checklocks:mu
	// Closed at the next change; nil when nobody waits.
	changed chan struct{} // +checklocks:mu
}

// put adds a note. It does not wait: an answer is in memory anyway.
func (o *outlet) put(n note) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended && !o.broken {
		o.notes = append(o.notes, n)
		o.wakeLocked()
	}
}

// end says that no more notes come.
func (o *outlet) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.wakeLocked()
}

// cut says that nobody reads any more.
func (o *outlet) cut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = true
	o.wakeLocked()
}

// +checklocks:o.mu
func (o *outlet) wakeLocked() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// next waits for a note; false = there are no more.
func (o *outlet) next(ctx context.Context) (n note, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inHand = false
	o.wakeLocked()
	for len(o.notes) == 0 {
		if o.ended || o.broken || o.waitLocked(ctx) != nil {
			return note{}, false
		}
	}
	n, o.notes, o.inHand = o.notes[0], o.notes[1:], true
	return n, true
}

// drained waits until everything has been handed over, or nobody reads.
func (o *outlet) drained(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.behindLocked() {
		if err := o.waitLocked(ctx); err != nil {
			return err
		}
	}
	return nil
}

// behind reports whether something has not been handed over.
func (o *outlet) behind() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.behindLocked()
}

// +checklocks:o.mu
func (o *outlet) behindLocked() bool { return !o.broken && (len(o.notes) > 0 || o.inHand) }

// waitLocked waits for the next change, without the lock, and returns nil, or the cause of ctx's end.
//
// +checklocks:o.mu
func (o *outlet) waitLocked(ctx context.Context) error {
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	changed := o.changed
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// outputs hands what models say to those who read it.
type outputs struct {
	table    *table
	contexts *rnixctx.Manager
	vfs      *vfs.VFS
	doing    *activity
	events   *event.Log
}

// connect gives an outlet to a process, with what its model has said before. No answer comes between the
// two: said holds the same lock.
func (s *outputs) connect(p *Process, o *outlet) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent {
		return hasEnded("PipeOutput", p)
	}
	prompt, err := s.contexts.BuildPrompt(p.CtxID)
	if err != nil {
		return err
	}
	for i := range prompt.Messages {
		if m := &prompt.Messages[i]; m.Role == rnixctx.RoleAssistant && m.Content != "" {
			o.put(note{said, m.Content})
		}
	}
	outs := []*outlet{o}
	if old := p.outlets.Load(); old != nil {
		outs = append(outs, *old...)
	}
	p.outlets.Store(&outs)
	return nil
}

// disconnect takes an outlet away again and closes the writing end.
func (s *outputs) disconnect(p *Process, o *outlet, fd types.FD) {
	o.cut()
	_ = s.vfs.Close(p.PID, fd) // it is closed if the process has ended
	p.mu.Lock()
	defer p.mu.Unlock()
	var outs []*outlet
	for _, other := range *p.outlets.Load() {
		if other != o {
			outs = append(outs, other)
		}
	}
	p.outlets.Store(&outs)
}

// tell gives a note to the outlets of a process.
func tell(p *Process, n note) {
	if outs := p.outlets.Load(); outs != nil {
		for _, o := range *outs {
			o.put(n)
		}
	}
}

// answered puts an answer into the conversation of a process and tells its outlets.
func (s *outputs) answered(p *Process, m rnixctx.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := s.contexts.Append(p.CtxID, m); err != nil {
		return err
	}
	tell(p, note{said, m.Content})
	return nil
}

// handedOver waits until those who read the output of a process have taken what it said.
func (s *outputs) handedOver(ctx context.Context, p *Process) error {
	outs := p.outlets.Load()
	if outs == nil || !slices.ContainsFunc(*outs, (*outlet).behind) {
		return nil
	}
	s.doing.setWait(p, waiting{reason: "for the reader of its output", since: time.Now()})
	defer s.doing.setWait(p, waiting{})
	for _, o := range *outs {
		if err := o.drained(ctx); err != nil {
			return err
		}
	}
	return nil
}

// endOutput ends the outlets of a process whose loop has ended.
func (s *outputs) endOutput(p *Process, end *End) {
	p.mu.Lock()
	p.silent = true
	outs := p.outlets.Load()
	p.mu.Unlock()
	if outs == nil {
		return
	}
	for _, o := range *outs {
		if end.Cause == nil && !end.Wait.Waits() {
			o.put(note{result, end.Result})
		}
		o.end()
	}
	_ = s.handedOver(p.ctx, p) // what a process says that is killed meanwhile is lost
}
