package kernel

import (
	"context"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	rnixctx "rnix/context"
	"rnix/debug"
	"rnix/internal/event"
	"rnix/internal/redact"
	"rnix/types"
	"rnix/vfs"
)

// mayOpen refuses paths that a process may not open. A process reaches only its own MCP servers,
// whatever its rights say.
func mayOpen(p *Process, path string) error {
	deny := func(format string, args ...any) error {
		e := types.Errorf(types.ErrPermission, "Open", path, format, args...)
		e.PID = p.PID
		return e
	}
	second := fallbackIn(path) // a model of which another one is the fallback is asked too
	if !p.Rights.Permits(path) || p.Rights.refuses(p, path) || second != "" && !p.Rights.Permits(second) {
		return deny("this process may not open it; it may open: %s", strings.Join(p.Rights.list(), " "))
	}
	if vfs.Below(path, mcpRoot) && path != mcpRoot {
		for _, m := range p.MCPMounts {
			if vfs.Below(path, m) {
				return nil
			}
		}
		return deny("the server is not one of this process's")
	}
	return nil
}

// list describes rights in words.
func (r Rights) list() []string {
	out := r.Allowed
	switch {
	case r.Allowed == nil:
		out = []string{"everything"}
	case len(r.Allowed) == 0:
		out = []string{"nothing"}
	}
	for _, d := range r.Denied {
		out = append(out[:len(out):len(out)], "not "+d)
	}
	return out
}

// descriptors makes the calls of processes on their descriptors, as strace shows them.
type descriptors struct {
	vfs     *vfs.VFS
	tracer  *tracer
	secrets *redact.Set
	events  *event.Log
	doing   *activity
	ears    *ears
}

func (c *descriptors) open(p *Process, path string, flags vfs.OpenFlag) (types.FD, error) {
	call := c.tracer.call(p, "Open", path)
	err := mayOpen(p, path)
	var fd types.FD
	if err == nil {
		fd, err = c.vfs.Open(p.PID, path, flags)
	}
	err = c.secrets.Error(err)
	call.ends("", fdName(fd), err)
	return fd, err
}

func (c *descriptors) write(ctx context.Context, p *Process, fd types.FD, path string, data []byte) error {
	call := c.tracer.call(p, "Write", path)
	if debug.Long(call.name, path) {
		call.begins(excerpt(data))
	}
	err := c.secrets.Error(c.vfs.Write(ctx, p.PID, fd, data))
	call.ends(excerpt(data), "", err)
	return err
}

// read returns all that is there.
func (c *descriptors) read(p *Process, fd types.FD, path string) ([]byte, error) {
	call := c.tracer.call(p, "Read", path)
	data, err := c.take(p, fd, path)
	call.ends("", excerpt(data), err)
	return data, err
}

// rest is read after a write that has failed: what there is of an answer all the same. Most often there is none, which is no
// second failure.
func (c *descriptors) rest(p *Process, fd types.FD, path string) []byte {
	call := c.tracer.call(p, "Read", path)
	data, err := c.take(p, fd, path)
	if err != nil || len(data) == 0 {
		return nil
	}
	call.ends("", excerpt(data), nil)
	return data
}

func (c *descriptors) take(p *Process, fd types.FD, path string) ([]byte, error) {
	data, err := c.vfs.Read(p.PID, fd, 0)
	if err == io.EOF {
		err = nil
	}
	return c.conceal(p, path, data, err)
}

func (c *descriptors) close(p *Process, fd types.FD, path string) {
	call := c.tracer.call(p, "Close", path)
	call.ends("", "", c.vfs.Close(p.PID, fd))
}

// traceMax bounds arguments and results in events, in bytes.
const traceMax = 400

func fdName(fd types.FD) string { return "fd " + types.PID(fd).String() }

// excerpt is the beginning and the end of data, as text. What is left out is not looked at.
func excerpt(data []byte) string {
	if len(data) <= traceMax+rnixctx.Slack {
		return valid(string(data))
	}
	head, tail := traceMax*2/3, len(data)-traceMax/3
	for head > 0 && !utf8.RuneStart(data[head]) {
		head--
	}
	for tail < len(data) && !utf8.RuneStart(data[tail]) {
		tail++
	}
	var b strings.Builder
	b.Grow(traceMax + 64)
	b.Write(data[:head])
	b.WriteString("\n[... ")
	b.WriteString(strconv.Itoa(tail - head))
	b.WriteString(" bytes left out ...]\n")
	b.Write(data[tail:])
	return valid(b.String())
}

// valid is strings.ToValidUTF8 with a question mark, quick for what is valid already.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "?")
}

// What one answer may bring into the event log and its file, in bytes, an event's own size included.
// What a program prints without end must fill neither; the device keeps what it keeps.
const (
	listenMax  = 1 << 20
	listenLine = 256 // of each line, besides its text
)

// output is the category of what a model says.
const output = "output"

// hear makes what a model says lines of the log, as they are complete and as long as there is room for them, what it says beside that something to listen to, and
// its waits wait reasons. It returns what ends that.
func (c *descriptors) hear(p *Process, f vfs.VFSFile) (done func()) {
	n, ok := f.(vfs.StreamNotifier)
	if !ok {
		return func() {}
	}
	s := newSpeech(p, c.events, c.secrets, c.ears)
	n.NotifyStream(func(part vfs.StreamPart) {
		c.doing.pulse.lives(p)
		switch part.Kind {
		case "wait":
			c.doing.waitOutside(p, part)
		case "warning":
			s.note("warning", part.Text)
		case "reasoning":
			s.say(0, part.Text)
		default:
			s.say(1, part.Text)
			tell(p, note{piece, part.Text})
		}
	})
	return func() {
		n.NotifyStream(nil)
		s.end()
	}
}

// listen makes what a tool prints lines of the log, as they are complete and as long as there is room for them, and its waits wait reasons. It returns what ends
// that.
func (c *descriptors) listen(p *Process, f vfs.VFSFile) (done func()) {
	n, ok := f.(vfs.StreamNotifier)
	if !ok {
		return func() {}
	}
	room := listenMax
	line := func(cat, text string) {
		if room <= 0 {
			return
		}
		text = rnixctx.Elide(text, 4*maxLine)
		if room -= listenLine + len(text); room <= 0 {
			text = "[what follows is too much for the log]"
		}
		c.events.Append(event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: cat, Text: text})
	}
	lines := &lineBuffer{emit: func(s string) { line(toolLine, s) }}
	n.NotifyStream(func(part vfs.StreamPart) {
		c.doing.pulse.lives(p)
		switch part.Kind {
		case "wait":
			c.doing.waitOutside(p, part)
		case "warning":
			line("warning", part.Text)
		default:
			lines.add(part.Text)
		}
	})
	return func() {
		n.NotifyStream(nil)
		lines.flush()
	}
}

// lineBuffer turns a stream of pieces into lines. A line without end is passed on in parts.
type lineBuffer struct {
	emit func(string)
	buf  strings.Builder
}

// maxLine is when a line without end is passed on, in bytes.
const maxLine = 2000

func (b *lineBuffer) add(s string) {
	for s != "" {
		i := strings.IndexByte(s, '\n')
		if i < 0 {
			b.buf.WriteString(s)
			// A character may lie on both sides of the cut: then the next piece completes it.
			if n := b.buf.Len(); n > maxLine && (n > 2*maxLine || utf8.ValidString(b.buf.String())) {
				b.flush()
			}
			return
		}
		b.buf.WriteString(s[:i])
		b.emit(strings.ToValidUTF8(b.buf.String(), "\uFFFD"))
		b.buf.Reset()
		s = s[i+1:]
	}
}

func (b *lineBuffer) flush() {
	if b.buf.Len() > 0 {
		b.emit(strings.ToValidUTF8(b.buf.String(), "\uFFFD"))
		b.buf.Reset()
	}
}

// OpenAs opens a path on behalf of a living process, with its rights and without giving it a
// descriptor. The caller closes the file. It is no call of the process, and not in its trace. Nobody asks a model so: what that costs would be in no budget and no record.
func (k *KernelImpl) OpenAs(pid types.PID, path string, flags vfs.OpenFlag) (vfs.VFSFile, error) {
	p, err := k.table.lookup("Open", pid)
	if err != nil {
		return nil, err
	}
	if err := mayOpen(p, path); err != nil {
		return nil, err
	}
	if flags != vfs.OpenRead && vfs.Below(collapsed(path), modelRoot) {
		e := types.Errorf(types.ErrPermission, "Open", path, "cannot ask a model for process %d: only the steps of an agent ask one, which its budget counts; start an agent that does", pid)
		e.PID = pid
		return nil, e
	}
	return k.vfs.OpenFile(pid, path, flags)
}
