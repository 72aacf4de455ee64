package kernel

import (
	"errors"
	"time"

	rnixctx "rnix/context"
	"rnix/debug"
	"rnix/internal/event"
	"rnix/internal/redact"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// tracer puts the syscalls of a kernel into the event log. Each syscall passes through its call and put.
type tracer struct {
	log     *event.Log
	secrets *redact.Set
}

// sysCall is a syscall under way. It is small: it is on the stack of a process for as long as its call lasts.
type sysCall struct {
	t          *tracer
	p          *Process // who calls; nil = PID 0, which is a person or the kernel
	name, path string
	start      time.Time
	begun      uint64 // the event that says that it has begun; 0 = none does
}

// call begins a syscall of a process; nil = of a person or the kernel. Those that can take long say that they begin, all say
// how they end.
func (t *tracer) call(p *Process, name, path string) sysCall {
	return sysCall{t: t, p: p, name: name, path: path, start: time.Now()}
}

// begins says that a call has begun that may take long, so that whoever looks sees it before it ends, and that it did not
// if the daemon is killed meanwhile.
func (c *sysCall) begins(args string) { c.begun = c.put(true, args, "", nil) }

// ends says how a call has ended.
func (c *sysCall) ends(args, result string, err error) { c.put(false, args, result, err) }

// does makes a syscall that says what it has brought.
func (c *sysCall) does(long bool, args string, do func() (string, error)) (string, error) {
	if long {
		c.begins(args)
	}
	out, err := do()
	c.ends(args, c.t.brief(out), err)
	return out, err
}

// put is the only place where a syscall comes into the event log: that it begins, or how it has ended.
func (c *sysCall) put(begins bool, args, result string, err error) uint64 {
	now := c.start
	if !begins {
		now = time.Now()
	}
	var id types.UUID
	var pid types.PID
	if c.p != nil && !c.p.reaped.Load() { // else its trace is closed
		pid, id = c.p.PID, c.p.UUID
	}
	var e types.SyscallEvent
	var code types.ErrCode
	if w, waits := err.(*loop.Waiting); waits { //nolint:errorlint // given by the kernel, as it is
		result, err = c.t.brief(w.Error()), nil // it has not failed: it is left open, since what it waits for may take days
	}
	switch {
	case begins:
		e = debug.NewBegin(pid, c.name, args)
	case err != nil:
		code = types.CodeOf(err)
		e = debug.NewEvent(pid, c.name, args, "", errors.New(rnixctx.Elide(c.t.secrets.String(err.Error()), traceMax)), now.Sub(c.start))
	default:
		e = debug.NewEvent(pid, c.name, args, result, nil, now.Sub(c.start))
	}
	e.Time, e.Begin = now, c.begun
	var ev event.Event
	debug.Fill(&ev, &e)
	ev.UUID, ev.Path, ev.Code = id, c.path, code
	return c.t.log.Put(&ev)
}

// brief is a text as the trace has it: cut after its secrets were taken out, as half of one is not known for a secret.
func (t *tracer) brief(text string) string { return excerpt([]byte(t.secrets.String(text))) }
