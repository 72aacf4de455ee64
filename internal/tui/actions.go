package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rnix/debug"
	"rnix/internal/compose"
	"rnix/ipc"
	"rnix/types"
)

// actionKeys are those that act upon the process that is chosen, wherever one is in sight.
func actionKeys() []binding {
	var out []binding
	for _, p := range []place{inList, inText} {
		out = append(out,
			key(p, "p", "pause the process and all below it, or resume them", "pause", pause),
			key(p, "R", "resume a suspended or ended process", "resume", resume),
			key(p, "s", "say something to the agent", "steer", askSteer),
			key(p, "F", "fork: a copy resumes from the shown step", "", askFork),
			key(p, "b", "add to the budget: tokens as 50k, dollars as $2", "", askBudget),
			key(p, "A", "answer what it asks, or go to the next one that asks", "", openAsks),
			key(p, "K", "end the process, after a question", "kill", askKill))
	}
	return out
}

// doneMsg is how an action ended.
type doneMsg struct {
	what string // clean
	err  error
	then types.UUID // a process to choose; zero = none
}

func actionDone(m *Model, d doneMsg) tea.Cmd {
	if d.err != nil {
		m.fail(d.err)
		return nil
	}
	m.say(d.what)
	if d.then != (types.UUID{}) {
		chooseID(m, d.then)
	}
	return nil
}

// who is a process as messages name it.
func (m *Model) who(p *row) string {
	s := "PID " + p.PID.String()
	if p.Name != "" {
		s += " (" + m.env.t.cut(m.env.t.line(p.Name), 24) + ")"
	}
	return s
}

// target returns the process that is chosen, or says that there is none.
func target(m *Model) *row {
	p := m.chosen()
	if p == nil {
		m.say("no process is chosen")
	}
	return p
}

// sendSignal sends a signal to a process, or to it and all below it.
func sendSignal(m *Model, p *row, sig types.Signal, tree bool, done string) tea.Cmd {
	method, who := ipc.Signal, m.who(p)
	if tree {
		method = ipc.SignalTree
	}
	m.say(who + " ...")
	return ask(m.env, method, ipc.SignalRequest{Target: p.UUID.String(), Signal: sig}, func(r ipc.SignalResponse, err error) tea.Msg {
		what := who + " " + done
		if r.Affected > 1 {
			what += ", with " + strconv.Itoa(r.Affected-1) + " below it"
		}
		switch {
		case r.Blocked:
			what += "; it blocks " + sig.String() + " and works on"
		case r.Handled:
			what += "; it is told on_interrupt and works on"
		}
		return doneMsg{what: what, err: err}
	})
}

func pause(m *Model) tea.Cmd {
	p := target(m)
	switch {
	case p == nil:
	case p.paused():
		return goOn(m, ipc.ResumeRequest{Target: p.UUID.String(), Tree: true}, m.who(p)) // with those below it
	case p.ended():
		m.say(m.who(p) + " has ended; R resumes it")
	case p.State == stateSuspended:
		m.say(m.who(p) + " is suspended; R resumes it")
	default:
		return sendSignal(m, p, types.SIGPAUSE, true, "is paused")
	}
	return nil
}

func resume(m *Model) tea.Cmd {
	p := target(m)
	switch {
	case p == nil:
		return nil
	case p.State == stateRunning && !p.paused():
		m.say(m.who(p) + " runs")
		return nil
	case p.paused():
		return goOn(m, ipc.ResumeRequest{Target: p.UUID.String(), Tree: true}, m.who(p)) // with those below it
	}
	return goOn(m, ipc.ResumeRequest{Target: p.UUID.String()}, m.who(p))
}

// goOn resumes or forks.
func goOn(m *Model, req ipc.ResumeRequest, who string) tea.Cmd {
	req.Env = m.env.environ
	m.say(who + " ...")
	t := m.env.t
	return ask(m.env, ipc.Resume, req, func(r ipc.ResumeResponse, err error) tea.Msg {
		what := fmt.Sprintf("%s resumed as PID %s, after step %d", who, r.PID, r.Step)
		if req.Fork {
			what = fmt.Sprintf("PID %s is a copy of %s, from step %d", r.PID, who, r.Step)
		}
		if n := len(r.InDoubt); n > 0 {
			what += "; " + plural(n, "call", "calls") + " in doubt"
		}
		if len(r.Warnings) > 0 {
			what += "; " + t.line(r.Warnings[0])
		}
		return doneMsg{what: what, err: err, then: r.UUID}
	})
}

func askKill(m *Model) tea.Cmd {
	p := target(m)
	if p == nil {
		return nil
	}
	if p.ended() {
		m.say(m.who(p) + " has ended already")
		return nil
	}
	below := below(m, p)
	text := "end " + m.who(p) + "?"
	answers := []binding{key(inQuestion, "y", "end it before its next action (SIGTERM)", "yes", func(m *Model) tea.Cmd {
		return sendSignal(m, p, types.SIGTERM, false, "was told to end")
	})}
	if below > 0 {
		text = fmt.Sprintf("end %s, which has %d below it?", m.who(p), below)
		answers = append(answers, key(inQuestion, "t", "end it and all below it", "with all below it", func(m *Model) tea.Cmd {
			return sendSignal(m, p, types.SIGTERM, true, "was told to end")
		}))
	}
	answers = append(answers, key(inQuestion, "K", "end it and all below it at once (SIGKILL)", "at once", func(m *Model) tea.Cmd {
		return sendSignal(m, p, types.SIGKILL, true, "was killed")
	}))
	putQuestion(m, text, answers...)
	return nil
}

// below returns how many living processes have p above them.
func below(m *Model, p *row) int {
	n := 0
	for _, q := range m.rows.by {
		if q.ended() {
			continue
		}
		for up, hops := m.rows.by[q.ParentUUID], 0; up != nil && hops < len(m.rows.by); up, hops = m.rows.by[up.ParentUUID], hops+1 {
			if up.UUID == p.UUID {
				n++
				break
			}
		}
	}
	return n
}

func askSteer(m *Model) tea.Cmd {
	p := target(m)
	if p == nil {
		return nil
	}
	if why := deaf(&p.Proc); why != "" {
		m.say(m.who(p) + " " + why)
		return nil
	}
	if p.ended() {
		return askNewInput(m, p)
	}
	who, id := m.who(p), p.UUID.String()
	m.input = &input{label: "say to " + who + ":", enter: func(m *Model, text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		m.say("...")
		return ask(m.env, ipc.Steer, ipc.SendRequest{Target: id, Text: text}, func(_ ipc.SendResponse, err error) tea.Msg {
			return doneMsg{what: who + " gets it before its next prompt", err: err}
		})
	}}
	return nil
}

// askNewInput says something to an ended process, which goes on with it.
func askNewInput(m *Model, p *row) tea.Cmd {
	who, id := m.who(p), p.UUID.String()
	m.input = &input{label: who + " has ended; say to it, and resume it:", enter: func(m *Model, text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return goOn(m, ipc.ResumeRequest{Target: id, NewInput: text}, who)
	}}
	return nil
}

func askFork(m *Model) tea.Cmd {
	p := target(m)
	if p == nil {
		return nil
	}
	if why := whole(&p.Proc); why != "" {
		m.say(m.who(p) + " " + why)
		return nil
	}
	step := p.Step
	if s, ok := m.pane().(stepper); ok && m.screen == dashboard && s.shownStep() > 0 {
		step = s.shownStep()
	}
	who, id := m.who(p), p.UUID.String()
	in := &input{label: "a copy of " + who + " resumes after step:", enter: func(m *Model, text string) tea.Cmd {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 0 {
			m.fail(types.Errorf(types.ErrInvalid, "", "", "%q is no step", text))
			return nil
		}
		return goOn(m, ipc.ResumeRequest{Target: id, Fork: true, FromStep: &n}, who)
	}}
	in.insert(m.env.t, strconv.Itoa(step))
	m.input = in
	return nil
}

// deaf says why nobody can say anything to a process; empty = it listens.
func deaf(p *ipc.Proc) string {
	switch p.Kind {
	case "":
		return ""
	case compose.ProcessKind:
		return "is a workflow, which has no model to listen; choose one of the agents below it"
	}
	return "is a " + debug.Sanitize(p.Kind) + ", which has no model to listen"
}

// whole says why a process cannot be forked; empty = it can.
func whole(p *ipc.Proc) string {
	switch {
	case p.Kind == compose.ProcessKind:
		return "is a workflow, which has no steps to fork from; choose one of the agents below it"
	case p.Kind != "":
		return "is a " + debug.Sanitize(p.Kind) + ", which has no steps to fork from"
	case p.Step == 0 || p.Step == 1 && p.State == stateRunning && p.Doing != nil:
		return "has no ended step to fork from yet"
	}
	return ""
}

func askBudget(m *Model) tea.Cmd {
	p := target(m)
	if p == nil {
		return nil
	}
	who, id, environ := m.who(p), p.UUID.String(), m.env.environ
	m.input = &input{label: "add to the budget of " + who + " (50k, $2):", enter: func(m *Model, text string) tea.Cmd {
		req := ipc.AddBudgetRequest{Target: id, Env: environ}
		var err error
		if req.Tokens, req.USD, err = amount(text); err != nil {
			m.fail(err)
			return nil
		}
		m.say("...")
		return ask(m.env, ipc.AddBudget, req, func(r ipc.AddBudgetResponse, err error) tea.Msg {
			what := who + " has more"
			if len(r.Resumed) > 0 {
				what += ", and " + plural(len(r.Resumed), "process goes", "processes go") + " on"
			}
			return doneMsg{what: what, err: err}
		})
	}}
	return nil
}

// amount reads tokens as "50k" or "1.5m", dollars as "$2".
func amount(text string) (tokens int, usd float64, err error) {
	s := strings.ToLower(strings.TrimSpace(text))
	bad := types.Errorf(types.ErrInvalid, "", "", "%q is no amount; write tokens as 50k, dollars as $2", text)
	if d, ok := strings.CutPrefix(s, "$"); ok {
		usd, err = strconv.ParseFloat(d, 64)
		if err != nil || !(usd > 0) || usd > 1e9 {
			return 0, 0, bad
		}
		return 0, usd, nil
	}
	unit := 1.0
	switch {
	case strings.HasSuffix(s, "k"):
		unit = 1e3
	case strings.HasSuffix(s, "m"):
		unit = 1e6
	}
	n, err := strconv.ParseFloat(strings.TrimRight(s, "km"), 64)
	if err != nil || !(n*unit >= 1) || n*unit > 1e12 {
		return 0, 0, bad
	}
	return int(n * unit), 0, nil
}
