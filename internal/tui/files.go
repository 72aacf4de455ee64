package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
)

// filesPane shows which files a process has changed: in all, or in one step.
type filesPane struct {
	e    *env
	sub  subject
	diff *fetch[ipc.DiffRequest, ipc.DiffResponse]
	step int // 0 = in all
	long *long
}

func newFilesPane(e *env) *filesPane {
	return &filesPane{e: e, diff: newFetch(e, ipc.DiffFiles), long: newLong(e.t)}
}

func (p *filesPane) title() string  { return "Files" }
func (p *filesPane) text() *long    { return p.long }
func (p *filesPane) shownStep() int { return p.step }

func (p *filesPane) show(proc *ipc.Proc) tea.Cmd {
	other, changed := p.sub.take(proc)
	if other {
		p.step = 0
		p.diff.forget()
		p.long.home()
	}
	if p.sub.none() || !other && p.step > 0 || !changed && p.diff.err == nil { // what a step did changes no more
		return nil
	}
	return p.diff.ask(p.request())
}

func (p *filesPane) request() ipc.DiffRequest {
	req := ipc.DiffRequest{Target: p.sub.target()}
	if n := p.step; n > 0 {
		req.From, req.To = n-1, &n
	}
	return req
}

func (p *filesPane) update(msg tea.Msg) tea.Cmd {
	cmd, fresh := p.diff.update(msg)
	if fresh && p.diff.known {
		p.long.set(orNothing(diffText(p.e.t, &p.diff.got)))
	}
	return cmd
}

func (p *filesPane) view(w, h int) string {
	t := p.e.t
	if p.sub.none() {
		return noProcess
	}
	head := "changed since the beginning"
	if to := &p.diff.got.To; p.diff.known && p.step == 0 {
		switch {
		case to.Now:
			head += ", up to now"
		case to.Broken > 0:
			head += fmt.Sprintf(" up to the end of step %d; step %d did not end, what it changed is not kept", to.Step, to.Broken)
		default:
			head += fmt.Sprintf(", up to its last step, %d", to.Step)
		}
	}
	if p.step > 0 {
		head = fmt.Sprintf("changed by step %d of %d", p.step, p.sub.proc.Step)
	}
	if state := p.diff.state(t); state != "" {
		return headed(t, head, w, h, t.cut(state, w))
	}
	if p.diff.err != nil {
		head += "; as it was known: " + t.line(errorText(p.diff.err))
	} else {
		added, deleted := 0, 0
		for _, f := range p.diff.got.Files {
			added, deleted = added+f.Added, deleted+f.Deleted
		}
		head += fmt.Sprintf(": %s, +%s -%s", plural(len(p.diff.got.Files), "file", "files"), number(added), number(deleted))
	}
	return headed(t, head, w, h, tintDiff(t, p.long.view(w, max(h-1, 0))))
}

func (p *filesPane) keys() []binding {
	to := func(step func() int) func(*Model) tea.Cmd {
		return func(*Model) tea.Cmd {
			if p.sub.none() {
				return nil
			}
			n := max(min(step(), p.sub.proc.Step), 0)
			if n == p.step {
				return nil
			}
			p.step = n
			p.long.home()
			return p.diff.about(p.request())
		}
	}
	return []binding{
		key(inPane, "h left", "the step before that may have changed files", "before", to(p.earlier)),
		key(inPane, "l right", "the next step", "next", to(func() int { return p.step + 1 })),
		key(inPane, "L", "the last step", "", to(func() int { return p.sub.proc.Step })),
		key(inPane, "a", "all that has changed since the beginning", "all", to(func() int { return 0 })),
	}
}

// earlier is the step before under which files were kept; from all, the last one.
func (p *filesPane) earlier() int {
	switch kept := p.diff.got.From.Kept; {
	case p.step == 0:
		return p.sub.proc.Step
	case p.diff.known && kept > 0 && kept < p.step:
		return kept
	}
	return max(p.step-1, 1)
}

// ctxPane shows what fills the context of a process.
type ctxPane struct {
	drawn[ipc.ContextRequest, ipc.ContextResponse]
}

func newCtxPane(e *env) *ctxPane {
	p := &ctxPane{newDrawn(e, ipc.ContextProfile)}
	p.request = func() ipc.ContextRequest { return ipc.ContextRequest{Target: p.sub.target(), Largest: 15} }
	p.content = func(w int) string { return contextText(e.t, &p.get.got, w) }
	return p
}

func (p *ctxPane) title() string   { return "Context" }
func (p *ctxPane) keys() []binding { return nil }

// contextText is a profile as text in w cells.
func contextText(t *Theme, r *ipc.ContextResponse, w int) string {
	var b strings.Builder
	of := ""
	if r.Window.Tokens > 0 {
		of = fmt.Sprintf(" of %s, %s", number(r.Window.Tokens), share(r.Window.Used, 1000))
	}
	fmt.Fprintf(&b, "%s tokens%s, in %s after %s\n", approx(r.Tokens, r.Estimated), of, plural(r.Shown, "message", "messages"), plural(r.Steps, "step", "steps"))
	if r.Window.Tokens > 0 {
		b.WriteString(gauge(t, r.Tokens, r.Window.Tokens, max(min(w, 60), 10)) + "\n")
	}
	fmt.Fprintf(&b, "window: %s\n", orNothing(t.line(r.Window.From)))
	switch left := r.Window.StepsLeft; {
	case left != nil:
		fmt.Fprintf(&b, "about %s until it is compacted, over %s tokens, at %+d a step\n", plural(*left, "step", "steps"), number(r.Window.CompactAt), r.Window.Growth)
	case r.Window.Over > 0:
		fmt.Fprintf(&b, "%+d tokens a step over the last %d\n", r.Window.Growth, r.Window.Over)
	}
	if r.Compactions > 0 {
		fmt.Fprintf(&b, "%s so far, %s removed\n", plural(r.Compactions, "compaction", "compactions"), plural(r.Dropped, "message", "messages"))
	}
	if r.Uncounted != "" {
		b.WriteString("estimates, since " + t.line(r.Uncounted) + "\n")
	}
	b.WriteString("\nSECTIONS\n")
	most, name := 1, 4
	for i := range r.Sections {
		s := &r.Sections[i]
		most, name = max(most, s.Tokens), max(name, t.cells(sectionName(t, s.Section, s.Name)))
	}
	name = min(name, max(w/3, 8))
	for i := range r.Sections {
		s := &r.Sections[i]
		fmt.Fprintf(&b, "%s %s %s %s\n", t.pad(sectionName(t, s.Section, s.Name), name), t.right(approx(s.Tokens, s.Estimated), 9), t.right(share(s.Tokens, r.Tokens), 6),
			gauge(t, s.Tokens, most, min(max(w-name-20, 0), 40)))
	}
	if n := len(r.Prompts); n > 0 {
		sizes := make([]int, n)
		for i := range r.Prompts {
			sizes[i] = r.Prompts[i].Tokens
		}
		first, last := &r.Prompts[0], &r.Prompts[n-1]
		fmt.Fprintf(&b, "\nGROWTH\n%s\nsteps %d to %d: %s to %s tokens\n", spark(t, sizes, max(min(w, 100), 8)), first.Step, last.Step, approx(first.Tokens, first.Estimated), approx(last.Tokens, last.Estimated))
	}
	if len(r.Largest) > 0 {
		b.WriteString("\nLARGEST MESSAGES\n")
	}
	for i := range r.Largest {
		s := &r.Largest[i]
		fmt.Fprintf(&b, "#%-4d %s  %s  %s\n", s.N, t.right(approx(s.Tokens, true), 8), t.pad(sectionName(t, s.Section, s.Name), min(name, 20)), t.cut(t.line(s.Preview), max(w-20-min(name, 20), 10)))
	}
	c := &r.Cache
	if len(r.Prompts) > 1 {
		fmt.Fprintf(&b, "\nCACHE\n%s of what was sent had stood at the beginning of the prompt before\n", share(c.Stable, c.Sent))
		if c.Said {
			fmt.Fprintf(&b, "the provider says: %s tokens read, %s written\n", number(c.Read), number(c.Write))
		} else {
			b.WriteString("the provider has said nothing of a cache\n")
		}
		if c.Breaks > 0 {
			fmt.Fprintf(&b, "%s, before the steps %s\n", plural(c.Breaks, "break", "breaks"), strings.Trim(fmt.Sprint(c.BreakSteps), "[]"))
		}
	}
	for _, what := range r.Missing {
		b.WriteString("not shown: " + t.line(what) + "\n")
	}
	if r.Damage != "" {
		b.WriteString("what is behind is missing: " + t.line(r.Damage) + "\n")
	}
	return b.String()
}

// sectionName is a section of a prompt as people call it.
func sectionName(t *Theme, section, name string) string {
	return strings.ReplaceAll(t.line(section), "_", " ") + with(" ", t.line(name))
}

func share(part, whole int) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// gauge is a share as a bar, of w cells at most.
func gauge(t *Theme, part, whole, w int) string {
	if whole <= 0 || part <= 0 {
		return ""
	}
	n := max(min(int(float64(part)/float64(whole)*float64(w)+0.5), w), min(1, w))
	return strings.Repeat(t.pick("█", "#"), n)
}

// spark draws numbers from zero up in at most w cells: where there are more, the largest of each few.
func spark(t *Theme, numbers []int, w int) string {
	levels := []rune(t.pick("▁▂▃▄▅▆▇█", "_.-:=+*#"))
	most := 1
	for _, n := range numbers {
		most = max(most, n)
	}
	n := min(w, len(numbers))
	var b strings.Builder
	for i := range n {
		v := 0
		for _, x := range numbers[i*len(numbers)/n : (i+1)*len(numbers)/n] {
			v = max(v, x)
		}
		b.WriteRune(levels[int(float64(v)*float64(len(levels)-1)/float64(most))])
	}
	return b.String()
}
