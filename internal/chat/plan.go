package chat

import (
	"strconv"
	"strings"

	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

// plan is the plan of the process, as far as the foot shows it.
type plan struct {
	text  string   // what it was read from
	steps int      // in all
	at    int      // the first one that is open, from 1; 0 = there is none
	marks bool     // the agent marks what is done
	open  []string // the first of those that are open, clean
	more  bool     // ... and there are others
	past  string   // the text of a plan of a run that has ended well: it is none for the next run
	stale bool     // the text that is learned next is such a one
}

// How much of a plan may be on the line: terminals are not wider.
const (
	planOpen = 32
	planStep = 400 // bytes
)

// planRoom is how many lines are left to what is under way, at least, where the plan is shown.
const planRoom = 5

// read reads the plan of a process: a line "1. step" for each step; what is behind a first line, or why the plan was made anew, is left out.
func (p *plan) read(t *tui.Theme, text string) {
	*p = plan{text: text, past: p.past, stale: p.stale}
	for l := range strings.SplitSeq(text, "\n") {
		s, ok := strings.CutPrefix(l, strconv.Itoa(p.steps+1)+". ")
		if !ok {
			continue
		}
		p.steps++
		s, marked, done := unmarked(s)
		p.marks = p.marks || marked
		switch {
		case done:
			continue
		case p.at == 0:
			p.at = p.steps
		}
		if p.more = len(p.open) == planOpen; !p.more {
			p.open = append(p.open, tui.Line(t, bounded(s, planStep)))
		}
	}
}

// doneMarks stand before a step that is done, and openMark before one that is not, where an agent marks them in a list.
var doneMarks = [...]string{"[x]", "[X]", "✓", "✔", "✅", "☑"}

const openMark = "[ ]"

// unmarked returns a step without its mark, whether it has one, and whether that says that it is done.
func unmarked(s string) (step string, marked, done bool) {
	s = strings.TrimSpace(s)
	for _, mark := range doneMarks {
		if rest, ok := strings.CutPrefix(s, mark); ok {
			return rest, true, true
		}
	}
	step, marked = strings.CutPrefix(s, openMark)
	return step, marked, false
}

// learnPlan takes in the plan of the process as it stands now. Of a process that is only stored the daemon does not say it: it is what it was.
func learnPlan(m *Model, d *ipc.ProcDetail) {
	p := &m.plan
	if d.Plan == "" && d.State == "suspended" {
		return
	}
	if p.stale {
		p.past, p.stale = d.Plan, false
	}
	if d.Plan != p.text {
		p.read(m.t, d.Plan)
	}
}

// leavePlan notes that a run begins: the plan of one that has ended well is none for the next.
func leavePlan(m *Model) {
	e := m.detail.Exit
	if m.plan.stale = e != nil && e.Code == types.ExitOK; m.plan.stale {
		m.plan.past = m.plan.text
	}
}

// planLine shows the plan while the process has one that is open: the step at which it is, if it marks what is done, or else the steps.
func planLine(m *Model) string {
	p := &m.plan
	runs := m.phase == working || m.phase == starting || m.phase == suspended
	if p.at == 0 || !runs || p.text == p.past || m.next.fork != nil {
		return ""
	}
	line := "plan, " + plural(p.steps, "step", "steps") + ": " + strings.Join(p.open, "; ")
	switch {
	case p.marks:
		line = "plan " + strconv.Itoa(p.at) + "/" + strconv.Itoa(p.steps) + ": " + p.open[0]
	case p.more:
		line += "; " + tui.Pick(m.t, "…", "...")
	}
	return paint(m.t, dim, tui.Cut(m.t, line, m.w-1))
}
