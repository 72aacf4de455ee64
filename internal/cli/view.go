package cli

import (
	"fmt"
	"strings"
	"time"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// view turns the events of a process and its descendants into the lines that a person watches. It
// belongs to one goroutine.
type view struct {
	out      *output
	pid      types.PID
	uuid     types.UUID
	procs    map[types.PID]*seen
	said     map[types.PID]*said
	started  time.Time
	stopping bool
	prompts  bool // what is asked can be answered here
	asking   bool // ... and an answer is being typed
}

// seen is what the view knows of one process.
type seen struct {
	step, total int
	at          time.Time // since when it does what it does
	doing       string
	tokens      int
	waiting     bool
	ended       bool
}

func newView(out *output, s ipc.SpawnResponse) *view {
	return &view{out: out, pid: s.PID, uuid: s.UUID, started: time.Now(), said: map[types.PID]*said{},
		procs: map[types.PID]*seen{s.PID: {total: s.MaxSteps, at: time.Now(), doing: "starts"}}}
}

// kinds are the events that the view wants; nil = all.
func (v *view) kinds() []event.Kind {
	if v.out.format == asStream {
		return nil
	}
	kinds := []event.Kind{event.Spawned, event.StepStarted, event.StepEnded, event.Paused, event.Resumed, event.Waiting, event.Exited,
		event.Compacted, event.Mounted, event.StorageError, event.Refused, event.Asked, event.Answered}
	if !v.out.talks() {
		return []event.Kind{event.Exited}
	}
	return append(kinds, event.LogLine, event.Syscall, event.Signalled, event.Delivered)
}

// event takes note of an event and says what is worth a line.
func (v *view) event(e *ipc.Event) {
	p := v.procs[e.PID]
	if p == nil {
		p = &seen{at: e.Time}
		v.procs[e.PID] = p
	}
	switch e.Kind {
	case event.Spawned:
		v.spawned(e)
	case event.StepStarted:
		p.step, p.total, p.at, p.doing, p.waiting = e.Step, e.Total, e.Time, "asks the model", false
		if v.out.live == nil {
			v.say("%s step %s", v.agent(e.PID), stepOf(e.Step, e.Total))
		}
	case event.StepEnded:
		v.spoke(e.PID)
		if e.UUID != v.uuid || e.Name != "text" && e.Name != "complete" {
			v.release(e.PID)
		}
		v.stepEnded(e, p)
	case event.Syscall:
		p.doing = doing(e, p.doing)
	case event.Piece:
		p.doing = map[string]string{"think": "thinks", "output": "answers"}[e.Name]
		if speaks(v.out) {
			v.says(e)
		}
	case event.LogLine:
		v.logLine(e, p)
	case event.Waiting:
		v.waits(e, p)
	case event.Exited:
		p.ended = true
		if e.UUID == v.uuid || e.Exit == nil {
			break
		}
		v.release(e.PID)
		if e.Result == suspended {
			v.say("[kernel] PID %d suspended: %s | %s tokens | %s", e.PID, oneLine(e.Exit.Reason), number(e.Tokens), debug.Duration(e.Dur))
		} else {
			v.say("[kernel] PID %d %s | %s tokens | %s", e.PID, exitText(e.Exit), number(e.Tokens), debug.Duration(e.Dur))
		}
	case event.Paused:
		p.doing, p.waiting = "paused", true
		v.say("[kernel] PID %d is paused%s; resume it with: rnix resume %d", e.PID, with(": ", oneLine(e.Text)), e.PID)
	case event.Resumed:
		p.doing, p.waiting = "resumed", false
		v.say("[kernel] PID %d resumed after %s", e.PID, debug.Duration(e.Dur))
	case event.Asked:
		if !v.prompts {
			v.say("[ask] PID %d: %s; %s", e.PID, oneLine(e.Text), answerWith(e))
		}
	case event.Answered:
		v.say("[ask] PID %d: %s", e.PID, strings.TrimSuffix(answerWords(e.Result)+": "+oneLine(e.Text), ": "))
	case event.Delivered:
		v.release(e.PID) // what it has said was not the result: it goes on
	case event.Compacted, event.Refused:
		v.say("[kernel] PID %d: %s", e.PID, oneLine(e.Text))
	case event.Mounted:
		v.say("[kernel] mounted %s in %s", oneLine(e.Path), debug.Duration(e.Dur))
	case event.Leased:
		if e.Result != "ours" {
			v.say("[kernel] PID %d: session %s: %s%s", e.PID, oneLine(e.Name), oneLine(e.Result), with(": ", oneLine(e.Text)))
		}
	case event.StorageError:
		v.out.warn(fmt.Sprintf("PID %d: its record cannot be written: %s", e.PID, oneLine(with2(e.Path, e.Err))))
	case event.Signalled:
		v.out.detail("[kernel] PID %d got %s: %s", e.PID, oneLine(e.Name), oneLine(e.Result))
	}
}

// renumber gives the process that is watched another PID.
func (v *view) renumber(pid types.PID) {
	v.release(v.pid)
	v.procs[pid] = v.procs[v.pid]
	delete(v.procs, v.pid)
	v.pid = pid
	v.procs[pid].ended = false
}

func (v *view) say(format string, args ...any) { v.out.talk(format, args...) }

// agent is the beginning of a line of an agent: the first one has no number.
func (v *view) agent(pid types.PID) string {
	if pid == v.pid {
		return "[agent]"
	}
	return fmt.Sprintf("[agent %d]", pid)
}

func (v *view) spawned(e *ipc.Event) {
	if e.UUID == v.uuid {
		return // said when the daemon answered
	}
	v.say("[kernel] spawning PID %d (%s), child of PID %d: %s", e.PID, modelName(e.Provider, e.Model), e.PPID, cut(oneLine(e.Intent), 100))
}

func (v *view) stepEnded(e *ipc.Event, p *seen) {
	p.tokens += e.Tokens
	p.at, p.doing = e.Time, "next step"
	what := oneLine(e.Text)
	if e.Name == "text" && e.Err == "" {
		what = "answers" // the text itself is the result, and is shown once
	}
	unanswered := strings.HasPrefix(what, "no answer")
	if unanswered {
		what = "no answer" // the end of the process follows, and says why
	}
	line := what
	for _, part := range []string{tokensOf(e.Tokens), debug.Duration(e.Dur)} {
		if part != "" {
			line += " | " + part
		}
	}
	if e.Err != "" && !unanswered && !strings.Contains(e.Text, e.Err) {
		line += " | " + v.out.err.paint(red, oneLine(e.Err))
	}
	if v.out.live == nil {
		v.say("%s   %s", v.agent(e.PID), line)
	} else {
		v.say("%s step %s: %s", v.agent(e.PID), stepOf(e.Step, e.Total), line)
	}
}

func tokensOf(n int) string {
	if n == 0 {
		return ""
	}
	return number(n) + " tokens"
}

func (v *view) logLine(e *ipc.Event, p *seen) {
	switch e.Name {
	case "warning":
		if strings.HasPrefix(e.Text, "Token budget exceeded: ") {
			break // so does the end of the run
		}
		v.out.warn(fmt.Sprintf("PID %d: %s", e.PID, e.Text))
	case "think":
		p.doing = "thinks: " + oneLine(e.Text)
		if e.Answer != 0 && speaks(v.out) {
			v.says(e)
			break
		}
		v.out.detail("%s   %s %s", v.agent(e.PID), v.out.err.paint(dim, "[think]"), oneLine(e.Text))
	case "output":
		if p.doing = "answers"; e.Answer != 0 {
			v.says(e)
			break
		}
		v.out.detail("%s   %s %s", v.agent(e.PID), v.out.err.paint(dim, "[output]"), oneLine(e.Text))
	default:
		v.release(e.PID) // it makes a call now
		p.doing = oneLine(e.Text)
		v.out.detail("%s   %s %s", v.agent(e.PID), v.out.err.paint(dim, "["+oneLine(e.Name)+"]"), oneLine(e.Text))
	}
}

func (v *view) waits(e *ipc.Event, p *seen) {
	p.waiting, p.at = e.Text != "", e.Time
	if e.Text == "" {
		p.doing = "continues"
		return
	}
	p.doing = "waits: " + oneLine(e.Text)
	until := ""
	if !e.Until.IsZero() {
		until = ", until " + clock(e.Until, time.Now())
		p.doing += until
	}
	if !strings.HasPrefix(e.Text, "ask: ") { // which has its own line, with what to do
		v.say("[kernel] PID %d waits: %s%s", e.PID, oneLine(e.Text), until)
	}
}

// doing is what a process does after a syscall: that which follows an opened file is usually long.
func doing(e *ipc.Event, before string) string {
	switch {
	case e.Name == "Open" && !strings.HasPrefix(e.Path, "/dev/llm"):
		return "uses " + oneLine(e.Path)
	case e.Name == "Read" && strings.HasPrefix(e.Path, "/dev/llm"):
		return "acts"
	}
	return before
}

// status is the live line.
func (v *view) status(now time.Time) string {
	p := v.procs[v.pid]
	if p.ended || v.asking {
		return ""
	}
	children, total := 0, 0
	for pid, q := range v.procs {
		total += q.tokens
		if pid != v.pid && !q.ended {
			children++
		}
	}
	doing := p.doing
	if v.stopping {
		doing = "stopping; Ctrl+C again leaves at once"
	}
	parts := []string{fmt.Sprintf("PID %d", v.pid)}
	if p.step > 0 {
		parts = append(parts, "step "+stepOf(p.step, p.total))
	}
	parts = append(parts, debug.Age(now.Sub(p.at)), cut(doing, 60))
	if children > 0 {
		parts = append(parts, plural(children, "child", "children"))
	}
	if total > 0 {
		parts = append(parts, number(total)+" tokens")
	}
	sep := " · "
	if v.out.ascii {
		sep = " | "
	}
	return strings.Join(append(parts, debug.Age(now.Sub(v.started))+" in all"), sep)
}

func with(sep, s string) string {
	if s == "" {
		return ""
	}
	return sep + s
}

func with2(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}

func dollars(usd float64) string {
	if usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}
