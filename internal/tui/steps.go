package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rnix/debug"
	"rnix/ipc"
)

// stepsView is what the pane of the steps shows.
type stepsView int

const (
	stepList stepsView = iota
	oneStep
	twoSteps // the difference
)

// stepsPane lists the steps of a process, and opens one: what was sent, what was answered, the calls, what it took.
type stepsPane struct {
	e    *env
	sub  subject
	list *stepBook
	hunt hunt
	one  *fetch[ipc.StepRequest, ipc.StepDetail]           // the step that is shown
	mark *fetch[ipc.StepRequest, ipc.StepDetail]           // the one that is compared with
	sent *fetch[ipc.MessagesRequest, ipc.MessagesResponse] // the prompt of the step that is shown
	diff *fetch[ipc.DiffRequest, ipc.DiffResponse]         // of the files between the steps that are compared
	pick chooser
	mode stepsView
	num  int // the step that is shown
	base int // the step that is compared with; 0 = none is marked
	wide int // how many messages of the prompt are asked for
	long *long
}

// promptMessages is how many messages of a prompt are shown at first, the last ones.
const promptMessages = 20

func newStepsPane(e *env) *stepsPane {
	s := &stepsPane{e: e, list: newStepBook(e), one: newFetch(e, ipc.GetStepDetail), mark: newFetch(e, ipc.GetStepDetail),
		sent: newFetch(e, ipc.ListMessages), diff: newFetch(e, ipc.DiffFiles), long: newLong(e.t)}
	s.hunt.get = newFetch(e, ipc.ListSteps)
	s.pick = chooser{tail: true, above: 1, far: s.search}
	return s
}

// search looks for what the list is searched for, from the chosen step on.
func (s *stepsPane) search(by int) {
	s.hunt.begin(s.pick.find.text, s.list.number(s.pick.at), by)
}

func (s *stepsPane) title() string { return "Steps" }

func (s *stepsPane) text() *long {
	if s.mode == stepList {
		return nil
	}
	return s.long
}

func (s *stepsPane) chooser() *chooser {
	if s.mode != stepList {
		return nil
	}
	return &s.pick
}

// shownStep is the step that F forks from.
func (s *stepsPane) shownStep() int {
	switch {
	case s.mode != stepList:
		return s.num
	case s.pick.at < s.list.len():
		return s.list.number(s.pick.at)
	}
	return 0
}

func (s *stepsPane) show(p *ipc.Proc) tea.Cmd {
	other, changed := s.sub.take(p)
	if other {
		s.mode, s.num, s.base = stepList, 0, 0
		s.pick.tail, s.pick.top, s.pick.find = true, 0, finder{}
		s.list.forget()
		s.hunt.stop()
		s.pick.set(0)
	}
	switch {
	case s.sub.none():
		return nil
	case !changed && s.list.tail.err == nil:
		return nil
	}
	return s.list.refresh(s.sub.target())
}

// load asks for the steps in sight, and goes on searching.
func (s *stepsPane) load() tea.Cmd {
	if s.sub.none() || s.mode != stepList {
		return nil
	}
	if s.pick.find.text == "" {
		s.hunt.stop()
	}
	from, to := s.pick.window(s.pick.h)
	return tea.Batch(s.list.need(s.sub.target(), from, to), s.hunt.next(s.sub.target()))
}

func (s *stepsPane) update(msg tea.Msg) tea.Cmd {
	cmd, fresh := s.list.update(msg)
	if fresh {
		s.pick.set(s.list.len())
	}
	cmd2, fresh2 := s.sent.update(msg)
	cmd3, fresh3 := s.diff.update(msg)
	cmd4, fresh4 := s.one.update(msg)
	cmd5, fresh5 := s.mark.update(msg)
	if (fresh2 || fresh4) && s.mode == oneStep || (fresh3 || fresh4 || fresh5) && s.mode == twoSteps {
		s.render()
	}
	cmd6, found := s.hunt.update(msg)
	if i, ok := s.list.entry(found); ok {
		s.pick.choose(i)
	}
	return tea.Batch(cmd, cmd2, cmd3, cmd4, cmd5, cmd6)
}

// open shows a step.
func (s *stepsPane) open(n int) tea.Cmd {
	i, ok := s.list.entry(n)
	if !ok {
		return nil
	}
	s.pick.choose(i)
	s.mode, s.num, s.wide = oneStep, n, promptMessages
	cmd := tea.Batch(s.one.about(stepAlone(s.sub.target(), n)), s.sent.about(s.promptOf(n)))
	s.long.home()
	s.render()
	return cmd
}

func stepAlone(target string, n int) ipc.StepRequest {
	return ipc.StepRequest{Target: target, Step: n, Alone: true}
}

func (s *stepsPane) promptOf(n int) ipc.MessagesRequest {
	return ipc.MessagesRequest{Target: s.sub.target(), Step: n, From: -s.wide, Limit: s.wide}
}

// turn goes so many steps on, over numbers that no step has.
func (s *stepsPane) turn(by int) tea.Cmd {
	for i := s.pick.at + by; i >= 0 && i < s.pick.n; i += max(min(by, 1), -1) {
		if rec, known := s.list.at(i); rec != nil || !known {
			return s.open(s.list.number(i))
		}
	}
	return nil
}

// compare marks the step that is shown, or shows the difference between it and the marked one.
func (s *stepsPane) compare(m *Model) tea.Cmd {
	n := s.shownStep()
	switch {
	case n == 0:
		m.say("there is no step to compare")
		return nil
	case s.base == 0 || s.base == n:
		s.base = n
		m.say(fmt.Sprintf("step %d is marked; d on another step shows what is different", n))
		return nil
	}
	s.mode, s.num = twoSteps, n
	from, to := min(s.base, n), max(s.base, n)
	cmd := tea.Batch(s.one.about(stepAlone(s.sub.target(), to)), s.mark.about(stepAlone(s.sub.target(), from)),
		s.diff.about(ipc.DiffRequest{Target: s.sub.target(), From: from, To: &to, MaxBytes: shownText}))
	s.long.home()
	s.render()
	return cmd
}

// back leaves what is shown for what it was opened from.
func (s *stepsPane) back(*Model) {
	switch {
	case s.long.find.text != "":
		s.long.find = finder{}
	case s.mode == twoSteps:
		s.mode, s.base = stepList, 0
	default:
		s.mode = stepList
	}
}

func (s *stepsPane) keys() []binding {
	mark := key(inPane, "d", "mark the step, and on another one: what is different between the two", "diff", s.compare)
	if s.mode == stepList {
		return append(chooserKeys(&s.pick, "step"), mark,
			key(inPane, "enter right l", "open the step", "open", func(*Model) tea.Cmd {
				return s.open(s.shownStep())
			}))
	}
	out := []binding{key(inPane, "esc", "back to the list of steps", "back", act(s.back)), mark}
	if s.mode == twoSteps {
		return out
	}
	return append(out,
		key(inPane, "h left", "the step before", "before", func(*Model) tea.Cmd { return s.turn(-1) }),
		key(inPane, "l right", "the next step", "next", func(*Model) tea.Cmd { return s.turn(1) }),
		key(inPane, "H", "the first step", "", func(*Model) tea.Cmd { return s.turn(-s.pick.at) }),
		key(inPane, "L", "the last step", "", func(*Model) tea.Cmd { return s.turn(s.pick.n - 1 - s.pick.at) }),
		key(inPane, "e", "more of the prompt: earlier messages", "earlier", s.earlier))
}

// earlier asks for more of the prompt.
func (s *stepsPane) earlier(m *Model) tea.Cmd {
	if s.sent.known && s.sent.got.Prev == 0 {
		m.say("the whole prompt is shown")
		return nil
	}
	s.wide = min(s.wide*5, ipc.MaxPageMessages)
	return s.sent.ask(s.promptOf(s.num))
}

func (s *stepsPane) view(w, h int) string {
	t := s.e.t
	switch {
	case s.sub.none():
		return noProcess
	case s.mode == twoSteps:
		return tintDiff(t, s.long.view(w, h))
	case s.mode == oneStep:
		return s.long.view(w, h)
	}
	if state := s.list.tail.state(t); state != "" {
		return t.cut(state, w)
	}
	if s.list.len() == 0 {
		what := "no step has ended yet"
		if n := s.sub.proc.Step; n > 0 && s.sub.proc.State == stateRunning {
			what += fmt.Sprintf("; step %d is under way", n)
		}
		return t.cut(what+with(": ", t.line(s.list.damage)), w)
	}
	return headed(t, s.head(), w, h, s.pick.view(t, w, h-1, func(i int) (string, style) {
		rec, known := s.list.at(i)
		switch {
		case !known:
			return fmt.Sprintf("%4d ...", s.list.number(i)), dim
		case rec == nil:
			return fmt.Sprintf("%4d (there is no record of it)", s.list.number(i)), dim
		case rec.Error != "" || rec.ToolError != "":
			return stepLine(t, rec), red
		}
		return stepLine(t, rec), plain
	}))
}

// head is the line above the list.
func (s *stepsPane) head() string {
	t := s.e.t
	head := fmt.Sprintf("%s, %s tokens", plural(s.list.len(), "step", "steps"), number(s.sub.proc.TokensUsed))
	switch state := s.hunt.state(t, s.list.last); {
	case s.list.tail.err != nil:
		return "as it was known; " + t.line(errorText(s.list.tail.err))
	case s.list.near.err != nil:
		return head + "; some cannot be read: " + t.line(errorText(s.list.near.err))
	case state != "" && s.pick.find.text != "":
		return state
	case s.list.damage != "":
		head += "; what is behind is missing: " + t.line(s.list.damage)
	case s.base > 0:
		head += fmt.Sprintf("; step %d is marked", s.base)
	}
	return head
}

// stepLine is a step in a list.
func stepLine(t *Theme, r *ipc.StepRecord) string {
	what := t.line(r.Action) + with(": ", t.line(r.Summary))
	switch {
	case r.Error != "":
		what = "failed: " + t.line(r.Error)
	case r.ToolError != "":
		what += " !" + t.line(r.ToolError)
	}
	if n := len(r.ToolCalls); n > 1 {
		what = fmt.Sprintf("(%d calls) ", n) + what
	}
	return fmt.Sprintf("%4d %s %s  %s", r.StepNumber, t.right(t.clean(debug.Duration(r.Duration)), 7), t.right(approx(r.TokensUsed, r.Estimated), 7), what)
}

// approx is a number of tokens, marked where it is an estimate.
func approx(n int, estimated bool) string {
	if estimated {
		return "~" + number(n)
	}
	return number(n)
}

// render makes the text of the step or of the difference.
func (s *stepsPane) render() {
	t := s.e.t
	if s.mode == twoSteps {
		s.long.set(s.compared())
		return
	}
	if state := s.one.state(t); state != "" {
		s.long.set(fmt.Sprintf("step %d of %d\n%s", s.num, s.list.last, state))
		return
	}
	var b strings.Builder
	writeStep(&b, t, &s.one.got.Step, s.list.last)
	s.prompt(&b)
	s.long.set(b.String())
}

// prompt writes what was sent to the model.
func (s *stepsPane) prompt(b *strings.Builder) {
	if state := s.sent.state(s.e.t); state != "" {
		heading(b, "PROMPT", state)
		return
	}
	r := &s.sent.got
	heading(b, fmt.Sprintf("PROMPT  %s", plural(r.Total, "message", "messages")), "")
	if r.Prev != 0 {
		fmt.Fprintf(b, "(%s before these; e shows more)\n", plural(max(r.Total-len(r.Messages), 0), "message", "messages"))
	}
	for i := range r.Messages {
		messageText(b, s.e.t, &r.Messages[i])
	}
}
