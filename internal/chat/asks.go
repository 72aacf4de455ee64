package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/permit"
	"rnix/internal/tui"
	"rnix/ipc"
)

// asking is a call about which the person is asked, of the process or of one below it. It takes keys only when it is shown, which it is when nothing is being
// typed and for a moment nothing was: a key that was meant for a message answers nothing.
type asking struct {
	ipc.Ask
	shown bool
	since time.Time // when it came, or the last key
	mode  askMode
	ed    editor // of the reason, or of what runs instead
	sent  bool
}

type askMode int

const (
	askKeys askMode = iota
	askWhy
	askEdit
	askAnswer // of a question of an agent
)

// askAfter is how long nothing must be typed before a question takes the keys.
const askAfter = 400 * time.Millisecond

// whyRows is how many lines of the reason of a refusal are shown while it is typed.
const whyRows = 3

// readAsks reads what the person is asked.
func readAsks(m *Model) tea.Cmd {
	if m.id == (ipc.Ask{}.UUID) || m.away {
		return nil
	}
	return call(m, ipc.ListAsks, ipc.AsksRequest{}, func(m *Model, r ipc.AsksResponse, err error) tea.Cmd {
		if err != nil {
			return m.fail(err)
		}
		mine := slices.DeleteFunc(r.Asks, func(k ipc.Ask) bool {
			return k.UUID != m.id && !slices.ContainsFunc(k.Lineage, func(p ipc.Kin) bool { return p.UUID == m.id })
		})
		if m.ask != nil {
			if i := slices.IndexFunc(mine, func(k ipc.Ask) bool { return k.Number == m.ask.Number }); i >= 0 {
				return nil
			}
			if !m.ask.sent {
				remark(m, dim, "answered elsewhere, or not waited for any more: "+m.ask.Text)
			}
			m.ask = nil
		}
		if len(mine) > 0 {
			m.ask = &asking{Ask: mine[0], since: m.now()}
		}
		return nil
	})
}

// showDue shows a question when it may take the keys.
func showDue(m *Model) {
	if a := m.ask; a != nil && !a.shown && m.ed.empty() && m.choice == nil && m.now().Sub(a.since) >= askAfter {
		if a.shown = true; a.Question != nil {
			a.mode = askAnswer
		}
	}
}

// press does what a key means while a question is shown.
func (a *asking) press(m *Model, name, text string) tea.Cmd {
	if a.sent {
		return nil
	}
	if a.mode != askKeys {
		switch name {
		case "esc":
			if a.mode == askAnswer {
				if m.phase == working {
					return interruptRun(m)
				}
				return nil
			}
			a.mode = askKeys
		case "ctrl+d":
			if a.ed.empty() {
				return tea.Quit
			}
			a.ed.key("delete")
		case "enter":
			return a.typed(m)
		default:
			if !a.ed.key(name) && text != "" {
				a.ed.insert(text)
			}
		}
		return nil
	}
	switch name {
	case "y":
		return a.answer(m, func(r *ipc.AnswerRequest) { r.Allow = true })
	case "a":
		return a.answer(m, func(r *ipc.AnswerRequest) { r.Allow, r.For = true, permit.ForProcess })
	case "f":
		return a.answer(m, func(r *ipc.AnswerRequest) { r.Allow, r.For = true, permit.ForFamily })
	case "n":
		a.mode, a.ed = askWhy, editor{}
	case "e":
		text, _ := a.runs()
		var ed editor
		if ed.insert(text); ed.value() != text { // what is not shown would be cut off
			m.say("this is too long to be changed here, or has characters that are not shown; use: rnix allow " + strconv.FormatUint(a.Number, 10) + " --edit COMMAND")
			return nil
		}
		a.mode, a.ed = askEdit, ed
	case "esc":
		if m.phase == working {
			return interruptRun(m)
		}
	case "ctrl+d":
		return tea.Quit
	default:
		m.say("answer with y, n, a, f or e; the agent waits as long as it takes")
	}
	return nil
}

func (a *asking) paste(m *Model, s string) {
	if a.mode == askKeys {
		m.say("answer with y, n, a, f or e")
		return
	}
	a.ed.insert(s)
}

// typed answers with what was typed.
func (a *asking) typed(m *Model) tea.Cmd {
	text := strings.TrimSpace(a.ed.value())
	if a.mode == askAnswer {
		if text == "" && a.Question.Default == "" {
			m.say("type an answer, or the number of a choice")
			return nil
		}
		if text == "" {
			text = a.Question.Default
		}
		return a.answer(m, func(r *ipc.AnswerRequest) { r.Allow, r.Text = true, text })
	}
	if a.mode == askWhy {
		return a.answer(m, func(r *ipc.AnswerRequest) { r.Because = text })
	}
	input, err := a.changed(text)
	if err != nil {
		m.note, m.bad = tui.Line(m.t, err.Error()), true
		return nil
	}
	return a.answer(m, func(r *ipc.AnswerRequest) { r.Allow, r.Input = true, input })
}

// runs returns what the call runs: its command, or its input.
func (a *asking) runs() (text string, shell bool) {
	var in struct{ Command *string }
	if a.Path == permit.ShellPath && json.Unmarshal(a.Input, &in) == nil && in.Command != nil {
		return *in.Command, true
	}
	return string(a.Input), false
}

// changed returns the input that runs instead.
func (a *asking) changed(text string) (json.RawMessage, error) {
	var in map[string]json.RawMessage
	if _, shell := a.runs(); !shell {
		if json.Unmarshal([]byte(text), &in) != nil || in == nil {
			return nil, errors.New("this is no JSON object; nothing was answered")
		}
		return json.RawMessage(text), nil
	}
	if text == "" {
		return nil, errors.New("the command is empty; to run nothing, press Esc and n")
	}
	if err := json.Unmarshal(a.Input, &in); err != nil {
		return nil, fmt.Errorf("its input cannot be read: %w", err)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	in["command"] = raw
	return json.Marshal(in)
}

// answer gives an answer. The first one counts, whoever gives it.
func (a *asking) answer(m *Model, fill func(*ipc.AnswerRequest)) tea.Cmd {
	a.sent = true
	req := ipc.AnswerRequest{Number: a.Number}
	fill(&req)
	k := a.Ask
	return call(m, ipc.AnswerAsk, req, func(m *Model, r ipc.AnswerResponse, err error) tea.Cmd {
		if err != nil {
			if m.ask != nil && m.ask.Number == k.Number {
				m.ask = nil
			}
			return tea.Batch(m.fail(err), readAsks(m))
		}
		what, st := "allowed: ", green
		switch {
		case r.Ask.Question != nil:
			what = "answered " + tui.Line(m.t, r.Text) + ": "
		case !r.Allowed:
			what, st = "denied: ", yellow
		case r.Grant != nil:
			what = "allowed, and not asked about again: "
		}
		m.block("call")
		m.print(tui.Cut(m.t, paint(m.t, st, tui.Pick(m.t, "  ⎿ ", "  - ")+what)+tui.Line(m.t, k.Text), m.md.w))
		if why := strings.TrimSpace(req.Because); why != "" {
			m.print(wrap(m.t, []span{{tui.Line(m.t, why), 0}}, paint(m.t, dim, "    because: "), "    ", m.md.w)...)
		}
		if m.ask != nil && m.ask.Number == k.Number {
			m.ask = nil
		}
		return readAsks(m)
	})
}

// view draws a question in at most n lines, and says where the cursor is; y is -1 if there is none.
func (a *asking) view(m *Model, n int) (box []string, x, y int) {
	t := m.t
	if a.Question != nil {
		return a.question(m, n)
	}
	who := "it wants to call "
	if a.UUID != m.id {
		who = "PID " + a.PID.String() + with(" ", tui.Line(t, a.Name)) + ", below it, wants to call "
	}
	box = append(box, paint(t, yellow|bold, tui.Pick(t, "? ", "? ")+who+tui.Line(t, a.Tool))+paint(t, dim, "  (ask "+strconv.FormatUint(a.Number, 10)+", "+tui.Line(t, a.Rule)+")"))
	if a.mode == askEdit {
		rows, x, y := a.ed.rows(t, m.w-4)
		rows = rows[:min(len(rows), max(n-2, 1))]
		for _, r := range rows {
			box = append(box, "  "+r)
		}
		return append(box, paint(t, dim, "Enter allows this instead, Esc leads back")), x + 2, min(y, len(rows)-1) + 1
	}
	text, shell := a.runs()
	if !shell && a.Text != "" && len(text) < 3 {
		text = a.Text
	}
	flat := strings.ReplaceAll(text, "\t", " ")
	clean := tui.Clean(t, bounded(flat, 16<<10))
	lines := hardWrap(t, nil, m.w-4)[:0]
	for l := range strings.SplitSeq(clean, "\n") {
		lines = append(lines, hardWrap(t, []span{{l, 0}}, m.w-4)...)
	}
	room := max(n-3, 1)
	if a.mode == askWhy {
		room = max(n-2-whyRows, 1)
	}
	if len(lines) > room {
		cut := len(lines) - room + 1
		lines = append(lines[:room-1], paint(t, dim, "... "+strconv.Itoa(cut)+" lines more; see all of it with: rnix asks"))
	}
	for _, l := range lines {
		box = append(box, "  "+l)
	}
	if clean != flat {
		box = append(box, "  "+tui.Cut(t, paint(t, red, "written, with what is not shown: ")+strconv.QuoteToASCII(bounded(text, 2<<10)), m.w-4))
	}
	if a.mode == askWhy {
		lead := "deny; why (may be empty): "
		rows, x, y := a.ed.rows(t, max(m.w-len(lead)-2, 8))
		from := max(min(y, len(rows)-whyRows), 0)
		at := len(box) + y - from
		for i, r := range rows[from:min(from+whyRows, len(rows))] {
			head := strings.Repeat(" ", len(lead))
			if i == 0 {
				head = paint(t, bold, lead)
			}
			box = append(box, head+r)
		}
		return box, len(lead) + x, at
	}
	key := func(k, what string) string { return paint(t, cyan, k) + " " + what + "  " }
	if a.sent {
		return append(box, paint(t, dim, "...")), 0, -1
	}
	return append(box, key("y", "allow")+key("n", "deny")+key("a", "always for this process")+key("f", "always for its family")+key("e", "edit")), 0, -1
}

// question draws a question of an agent, with what it proposes.
func (a *asking) question(m *Model, n int) (box []string, x, y int) {
	t, q := m.t, a.Question
	who := "? "
	if a.UUID != m.id {
		who += "PID " + a.PID.String() + with(" ", tui.Line(t, a.Name)) + ": "
	}
	for i, l := range wrap(t, []span{{tui.Clean(t, bounded(q.Text, 8<<10)), bold}}, paint(t, yellow|bold, who), "  ", m.w-1) {
		if i < max(n/2, 1) {
			box = append(box, l)
		}
	}
	for i, c := range q.Choices {
		if len(box) >= n-1 {
			break
		}
		box = append(box, tui.Cut(t, paint(t, cyan, fmt.Sprintf("  %d ", i+1))+tui.Line(t, c), m.w-1))
	}
	lead := "answer: "
	if q.Default != "" {
		lead = tui.Cut(t, "answer (Enter: "+tui.Line(t, q.Default)+"): ", m.w/2)
	}
	if a.sent {
		return append(box, paint(t, dim, "...")), 0, -1
	}
	rows, x, at := a.ed.rows(t, max(m.w-tui.Cells(t, lead)-2, 8))
	return append(box, paint(t, bold, lead)+rows[at]), tui.Cells(t, lead) + x, len(box)
}
