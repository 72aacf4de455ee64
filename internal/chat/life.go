package chat

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/debug"
	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

// findTarget looks for the process that is talked to, before anything is drawn.
func findTarget(m *Model, ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := m.src.Call(ctx, ipc.GetProcDetail.Name, ipc.TargetRequest{Target: target}, &m.detail); err != nil {
		return err
	}
	m.id, m.fresh = m.detail.UUID, true
	m.phase = ended // until it is looked at
	return nil
}

func spawnWith(m *Model, said message) tea.Cmd {
	text := said.text
	req := m.o.Spawn
	req.Intent, req.Env = text, m.o.Environ
	if m.next.model != "" {
		req.Model, req.Provider = m.next.model, ""
	}
	if m.next.agent != "" {
		req.Agent = m.next.agent
	}
	inputs, err := inputsOf(m, text)
	if err != nil {
		m.keep(text)
		return m.fail(err)
	}
	own := takeBeside(m)
	req.Inputs, req.Intent = append(append(req.Inputs[:len(req.Inputs):len(req.Inputs)], inputs...), ranInputs(own.ran)...), text
	req.Attachments = own.with(said.shown)
	startsRun(m, text)
	return callOr(m, ipc.Spawn, req, func(m *Model, r ipc.SpawnResponse, err error) tea.Cmd {
		if err != nil {
			giveBeside(m, own)
			return refusedRun(m, text, none, err)
		}
		m.o.Spawn.Parent = "" // the next conversation is not below the process that this one was
		m.detail = ipc.ProcDetail{}
		return startedRun(m, &r)
	}, func(m *Model, r ipc.SpawnResponse, err error) { lateRun(m, r.UUID, text, err) })
}

// resumeWith says something to a process that does not work.
func resumeWith(m *Model, said message) tea.Cmd {
	text := said.text
	whole, err := inlinedText(m, text)
	if err != nil {
		m.keep(text)
		return m.fail(err)
	}
	own := takeBeside(m)
	req := ipc.ResumeRequest{Target: m.id.String(), NewInput: whole + ranText(own.ran), Attachments: own.with(said.shown), Env: m.o.Environ, Model: m.next.model}
	if m.next.fork != nil {
		req.Fork, req.FromStep, req.Cwd = true, m.next.fork, m.next.cwd
	}
	was := m.phase
	startsRun(m, text)
	return callOr(m, ipc.Resume, req, func(m *Model, r ipc.ResumeResponse, err error) tea.Cmd {
		again := m.clashed
		m.clashed = false
		if types.CodeOf(err) == types.ErrConflict && !again { // another person has resumed it just now
			m.clashed = true // if it does not run, that was not the reason
			giveBeside(m, own)
			unqueue(m, text)
			m.phase = working
			m.queue = append(m.queue, queued{message: said})
			return tea.Batch(m.steer(), m.settle())
		}
		if err != nil {
			giveBeside(m, own)
			return refusedRun(m, text, was, err)
		}
		if r.Mode == "fork" {
			m.script = script{next: m.next.from, step: r.Step} // it has the numbers of its origin up to there
			m.print(paint(m.t, dim, tui.Cut(m.t, fmt.Sprintf("a fork from the end of step %d; it works in %s", r.Step, tui.Line(m.t, r.WorkDir)), m.w-1)))
			m.detail.TokensUsed, m.detail.CostUSD, m.detail.Unpriced, m.used = 0, 0, 0, 0 // those were its origin's
			m.detail.WorkDir, m.detail.Step = r.WorkDir, r.Step
			m.plan.read(m.t, "")
		}
		for _, d := range r.InDoubt {
			m.print(paint(m.t, yellow, tui.Cut(m.t, tui.Pick(m.t, "⚠ ", "! ")+"it is not known whether "+tui.Line(m.t, d.Tool+" "+d.Input)+" has run; the model is told to check", m.w-1)))
		}
		return tea.Batch(startedRun(m, &r.SpawnResponse), m.settle()) // what is known of it is what another run or process has left
	}, func(m *Model, r ipc.ResumeResponse, err error) { lateRun(m, r.UUID, text, err) })
}

// lateRun takes in how the start of a run of another conversation has ended.
func lateRun(m *Model, id types.UUID, text string, err error) {
	if err != nil {
		m.keep(text)
		m.complain(err)
		return
	}
	m.say("the agent that you left works on: /resume " + id.String())
}

// startsRun notes that a run begins.
func startsRun(m *Model, text string) {
	m.runs++
	leavePlan(m)
	m.phase, m.doing, m.since, m.began = starting, "starts", m.now(), m.now()
	m.queue = append(m.queue, queued{message: message{text: text}, sent: true})
}

// refusedRun takes back what could not be started.
func refusedRun(m *Model, text string, was phase, err error) tea.Cmd {
	m.phase = was
	unqueue(m, text)
	m.keep(strings.Join(append([]string{text}, textsOf(m.unsent())...), "\n"))
	return m.fail(err)
}

// startedRun takes in that a run has begun.
func startedRun(m *Model, r *ipc.SpawnResponse) tea.Cmd {
	m.id, m.next = r.UUID, start{}
	m.phase, m.doing, m.since = working, "asks the model", m.now()
	m.detail.PID, m.detail.UUID, m.detail.Name = r.PID, r.UUID, r.Name
	m.detail.Provider, m.detail.Model, m.detail.Sandbox, m.detail.Net, m.detail.Exit = r.Provider, r.Model, r.Sandbox, r.Net, nil
	m.said, m.script.over = speech{}, false
	for _, w := range r.Warnings {
		m.print(paint(m.t, yellow, tui.Cut(m.t, tui.Pick(m.t, "⚠ ", "! ")+tui.Line(m.t, w), m.w-1)))
	}
	if t := r.Worktree; t != nil {
		m.print(paint(m.t, dim, tui.Cut(m.t, "works in "+tui.Line(m.t, t.Dir)+", on branch "+tui.Line(m.t, t.Branch), m.w-1)))
	}
	return tea.Batch(listenFrom(m, r.Seq+1), m.fetch(), m.steer())
}

// settle looks how it stands with the process.
func (m *Model) settle() tea.Cmd {
	if m.idle || m.phase == starting || m.id == (types.UUID{}) {
		return nil
	}
	m.idle = true
	runs := m.runs
	return call(m, ipc.GetProcDetail, ipc.TargetRequest{Target: m.id.String()}, func(m *Model, d ipc.ProcDetail, err error) tea.Cmd {
		late := m.late
		m.idle, m.late = false, false
		switch {
		case err != nil:
			return m.fail(err)
		case runs != m.runs:
			return m.settle()
		case d.UUID != m.id:
			return nil
		case late:
			return tea.Batch(m.learn(&d), m.settle())
		}
		return m.learn(&d)
	})
}

// resumeTime is how long a new daemon is given to resume what the one before has left.
const resumeTime = 10 * time.Second

// learn takes in how it stands.
func (m *Model) learn(d *ipc.ProcDetail) tea.Cmd {
	was, changed := m.phase, !d.UpdatedAt.Equal(m.detail.UpdatedAt)
	if was == ended && (d.State == "created" || d.State == "running") { // another person has resumed it
		leavePlan(m)
	}
	m.detail = *d
	learnPlan(m, d)
	var cmds []tea.Cmd
	switch d.State {
	case "created", "running":
		m.phase = working
		if was != working {
			m.doing, m.since, m.began = "works", m.now(), m.now()
		}
	case "suspended":
		if why := d.Why(); (why == types.SuspendBroken || why == types.SuspendStopped) && m.now().Sub(m.back) < resumeTime {
			return m.after(tickEvery, doneMsg((*Model).settle)) // the new daemon resumes it
		}
		m.phase = suspended
	default:
		m.phase = ended
	}
	if wait := m.ev.since.Add(reopenAfter).Sub(m.now()); m.phase == working && !m.ev.open && wait > 0 {
		cmds = append(cmds, m.after(wait, doneMsg((*Model).settle)))
	} else if m.phase == working && !m.ev.open {
		cmds = append(cmds, listenFrom(m, 0), m.fetch(), readAsks(m))
	}
	fresh := m.fresh
	m.fresh = false
	switch {
	case m.phase != working && (was == working || fresh):
		m.script.over = true
		cmds = append(cmds, m.fetch(), readAsks(m), askContext(m))
	case m.phase != working && changed:
		cmds = append(cmds, m.fetch())
	}
	return tea.Batch(append(cmds, m.sendQueued())...)
}

// finishRun says how a run has ended, when all that it said stands above.
func finishRun(m *Model) {
	m.script.over, m.printed = false, nil
	if m.note == stopping {
		m.note = ""
	}
	printSaid(m, m.md.end())
	m.said = speech{}
	printRemarks(m)
	if m.phase != suspended { // which is told later what they brought
		for _, c := range m.script.open {
			m.block("call")
			m.print(tui.Cut(m.t, paint(m.t, yellow, tui.Pick(m.t, "● ", "* "))+callHead(m, &c)+paint(m.t, yellow, "  no result"), m.w-1))
		}
		m.script.open = nil
	}
	m.kids = nil
	d := &m.detail
	if res := strings.TrimSpace(d.Result); res != "" && d.Exit != nil && d.Exit.Answered() && res != strings.TrimSpace(m.script.answer) {
		m.block("answer")
		m.script.answer = res
		m.print(m.md.write(res)...)
		m.print(m.md.end()...)
	}
	took := ""
	if !m.began.IsZero() {
		took = " after " + debug.Age(m.now().Sub(m.began))
	}
	switch {
	case m.phase == suspended:
		m.block("end")
		m.print(wrap(m.t, []span{{suspensionText(m), yellow}}, "", "", m.md.w)...)
	case d.Exit == nil || d.Exit.Code == types.ExitOK:
	case d.Exit.Code == types.ExitRefused:
		m.block("end")
		m.print(paint(m.t, yellow, "ended"+took+": a call was refused; say what to do instead"))
	case d.Exit.Code == types.ExitCancelled:
		m.block("end")
		m.print(paint(m.t, yellow, "interrupted"+took+"; say what to do instead"))
	default:
		m.block("end")
		m.print(wrap(m.t, []span{{"failed" + took + ": " + tui.Line(m.t, d.Exit.Reason), red}}, "", "", m.md.w)...)
	}
}

// suspensionText says why the process does not run, and what to do.
func suspensionText(m *Model) string {
	why := tui.Line(m.t, m.detail.Wait)
	switch m.detail.Why() {
	case types.SuspendBudget:
		return "suspended: " + why + "; give it more with /budget, e.g. /budget 100k"
	case types.SuspendAsk:
		return "suspended: " + why
	case types.SuspendContext:
		return "suspended: " + why + "; choose a model with a larger window with /model, and say something"
	}
	if why == "" {
		why = "paused"
	}
	return "suspended: " + why + "; it is resumed with your next message"
}

// stopping is said until an interrupted agent has ended.
const stopping = "stopping..."

// interruptRun asks the agent and those below it to end before their next action. What is recorded stays.
func interruptRun(m *Model) tea.Cmd {
	m.say(stopping)
	return call(m, ipc.SignalTree, ipc.SignalRequest{Target: m.id.String(), Signal: types.SIGINT}, func(m *Model, r ipc.SignalResponse, err error) tea.Cmd {
		switch {
		case err != nil && types.CodeOf(err) != types.ErrNotFound:
			return m.fail(err)
		case r.Handled:
			m.say("the agent is told of the interrupt (on_interrupt) and works on")
		case r.Blocked:
			m.say("the agent blocks the interrupt; end it with: rnix kill -KILL " + r.PID.String())
		}
		return nil
	})
}

// askContext asks how full the context is.
func askContext(m *Model) tea.Cmd {
	return call(m, ipc.ContextProfile, ipc.ContextRequest{Target: m.id.String(), Largest: 1}, func(m *Model, r ipc.ContextResponse, err error) tea.Cmd {
		if err == nil {
			m.used = r.Window.Used
		}
		return nil
	})
}

// elapsedSince is how long something lasts.
func elapsedSince(m *Model, since time.Time) string { return debug.Age(max(m.now().Sub(since), 0)) }
