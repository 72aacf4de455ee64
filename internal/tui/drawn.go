package tui

import (
	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
)

// drawn is what panes have in common that ask one question of the daemon about a process, and draw the answer as a long text for a
// width: where it is asked, what stays on the screen meanwhile, and what is said if there is no answer. It belongs to the goroutine of the
// program.
type drawn[Req, Resp any] struct {
	e       *env
	sub     subject
	get     *fetch[Req, Resp]
	wide    int // the width that the text was made for; 0 = it has to be made
	long    *long
	request func() Req
	content func(w int) string // of get.got, in w cells
}

func newDrawn[Req, Resp any](e *env, m ipc.Method[Req, Resp]) drawn[Req, Resp] {
	return drawn[Req, Resp]{e: e, get: newFetch(e, m), long: newLong(e.t)}
}

func (d *drawn[Req, Resp]) text() *long { return d.long }

func (d *drawn[Req, Resp]) show(proc *ipc.Proc) tea.Cmd {
	other, changed := d.sub.take(proc)
	if other {
		d.get.forget()
		d.long.home()
	}
	if d.sub.none() || !changed && d.get.err == nil {
		return nil
	}
	return d.get.ask(d.request())
}

func (d *drawn[Req, Resp]) update(msg tea.Msg) tea.Cmd {
	cmd, fresh := d.get.update(msg)
	if fresh {
		d.wide = 0
	}
	return cmd
}

func (d *drawn[Req, Resp]) view(w, h int) string {
	t := d.e.t
	if d.sub.none() {
		return noProcess
	}
	if state := d.get.state(t); state != "" {
		return t.cut(state, w)
	}
	if d.wide != w {
		d.wide = w
		d.long.set(d.content(w))
	}
	if d.get.err != nil {
		return headed(t, "as it was known; "+t.line(errorText(d.get.err)), w, h, d.long.view(w, max(h-1, 0)))
	}
	return d.long.view(w, h)
}
