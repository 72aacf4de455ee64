package tui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/debug"
	"rnix/internal/permit"
	"rnix/ipc"
	"rnix/types"
)

// asking shows what a person is asked about one process, one call at a time, over the whole screen. What is shown changes only when the person
// wants another one: a key never answers what came into sight just now. It belongs to the goroutine of the program.
type asking struct {
	e    *env
	of   types.UUID
	who  string // clean
	list *fetch[ipc.AsksRequest, ipc.AsksResponse]
	cur  *ipc.Ask // what is shown; nil = nothing yet
	over string   // why it cannot be answered any more; empty = it can
	sent bool     // an answer is under way
	ver  uint64   // of the row when it was asked for last
	long *long
}

// waitsForAnswer reports whether a process waits for the answer of a person.
func (p *row) waitsForAnswer() bool {
	return !p.ended() && !p.gone && p.Why() == types.SuspendAsk
}

// asksText says how many processes wait for an answer; empty = none.
func (r *rows) asksText() string {
	n := 0
	for _, p := range r.by {
		if p.waitsForAnswer() {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return plural(n, "asks you (A)", "ask you (A)")
}

// openAsks shows what is asked about the process that is chosen. If it asks nothing, the next one that does is chosen.
func openAsks(m *Model) tea.Cmd {
	p := m.chosen()
	if p != nil && (p.waitsForAnswer() || p.State == stateSuspended) {
		a := &asking{e: m.env, of: p.UUID, who: m.who(p), ver: p.ver, list: newFetch(m.env, ipc.ListAsks), long: newLong(m.env.t)}
		m.asking = a
		return a.list.about(ipc.AsksRequest{Target: p.UUID.String()})
	}
	n := len(m.list.entries)
	for k := range n {
		if q := m.list.entries[(m.list.at+k)%n]; q.waitsForAnswer() {
			m.list.choose((m.list.at + k) % n)
			m.say(m.who(q.row) + " asks you; A shows what")
			return nil
		}
	}
	m.say("no process in this list asks you anything")
	return nil
}

// update takes a message in.
func (a *asking) update(m *Model, msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	cmd, fresh := a.list.update(msg)
	cmds = append(cmds, cmd)
	if p := m.rows.by[a.of]; p != nil && p.ver != a.ver {
		a.ver, a.who = p.ver, m.who(p) // a run of another daemon has another PID
		cmds = append(cmds, a.again())
	} else if _, second := msg.(tickMsg); second { // an answer to what is only on disk changes no row
		cmds = append(cmds, a.again())
	}
	if fresh && a.list.err == nil {
		a.settle(m)
	}
	return tea.Batch(cmds...)
}

func (a *asking) again() tea.Cmd { return a.list.ask(ipc.AsksRequest{Target: a.of.String()}) }

// settle takes over what is asked now.
func (a *asking) settle(m *Model) {
	open := a.list.got.Asks
	switch {
	case a.cur == nil && len(open) == 0:
		m.asking = nil
		m.say("nothing is asked about " + a.who)
	case a.cur == nil:
		a.show(&open[0])
	default:
		i := slices.IndexFunc(open, func(k ipc.Ask) bool { return k.Number == a.cur.Number })
		if a.over = ""; i >= 0 {
			a.cur.Suspended, a.cur.Since = open[i].Suspended, open[i].Since
			return
		}
		a.over = "it was answered elsewhere"
		if p := m.rows.by[a.of]; p == nil || p.gone || p.ended() {
			a.over = "its process has ended"
		}
	}
}

func (a *asking) show(k *ipc.Ask) {
	one := *k
	a.cur, a.over = &one, ""
	a.long = newLong(a.e.t)
	a.long.set(askText(a.e.t, k))
}

// askText is what would run, so that all of it can be seen.
func askText(t *Theme, k *ipc.Ask) string {
	var b strings.Builder
	if k.Question != nil {
		return questionText(t, k.Question)
	}
	if text, is := command(k); is {
		b.WriteString(t.clean(text) + "\n")
		if flat := strings.ReplaceAll(text, "\t", " "); t.clean(flat) != flat {
			section(&b, "this is how it is written, with what is not shown above", strconv.QuoteToASCII(text))
		}
		return b.String()
	}
	b.WriteString(t.line(k.Text) + "\n")
	var in any
	if json.Unmarshal(k.Input, &in) == nil {
		if pretty, err := json.MarshalIndent(in, "", "  "); err == nil {
			section(&b, "input", asciiJSON(string(pretty)))
		}
	}
	return b.String()
}

// asciiJSON writes characters beyond ASCII that are shown as something else, or as nothing, as JSON can write them.
func asciiJSON(text string) string {
	t := &Theme{}
	var b strings.Builder
	for _, r := range text {
		if s := string(r); r == '\n' || t.clean(s) == s {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// command returns the command line that a call runs.
func command(k *ipc.Ask) (text string, is bool) {
	var in struct{ Command *string }
	if k.Path != permit.ShellPath || json.Unmarshal(k.Input, &in) != nil || in.Command == nil {
		return "", false
	}
	return *in.Command, true
}

// view renders h lines of at most w cells.
func (a *asking) view(w, h int) []string {
	t := a.e.t
	if a.cur == nil {
		return []string{t.cut(a.list.state(t), w)}
	}
	k := a.cur
	wants := " wants to call " + t.line(k.Tool)
	if k.Question != nil {
		wants = " asks you"
	}
	head := []string{t.paint(bold, t.cut(a.who+wants, w))}
	if len(k.Lineage) > 0 {
		var up []string
		for _, kin := range k.Lineage {
			up = append(up, "PID "+kin.PID.String()+with(" ", t.line(kin.Name)))
		}
		head = append(head, t.paint(dim, t.cut("below "+strings.Join(up, " > "), w)))
	}
	state := ""
	switch {
	case k.Suspended:
		state = "it is suspended: your answer counts when it is resumed"
	case !k.Since.IsZero():
		state = "for " + debug.Age(max(a.e.now().Sub(k.Since), 0))
	}
	parts := []string{"ask " + strconv.FormatUint(k.Number, 10) + a.place()}
	if k.Question == nil {
		parts = append(parts, "rule "+t.line(k.Rule))
	}
	if state != "" {
		parts = append(parts, state)
	}
	head = append(head, t.paint(dim, t.cut(strings.Join(parts, t.dot()), w)))
	switch {
	case a.over != "":
		head = append(head, t.paint(yellow, t.cut(a.over+"; n shows the next one, Esc leads back", w)))
	case a.list.err != nil:
		head = append(head, t.paint(red, t.cut("as it was known; "+t.line(errorText(a.list.err)), w)))
	default:
		head = append(head, "")
	}
	head = head[:min(len(head), max(h-1, 1))]
	return append(head, strings.Split(a.long.view(w, max(h-len(head), 1)), "\n")...)
}

// place says which of several it is.
func (a *asking) place() string {
	open := a.list.got.Asks
	for i := range open {
		if open[i].Number == a.cur.Number && len(open) > 1 {
			return fmt.Sprintf(" (%d of %d)", i+1, len(open))
		}
	}
	return ""
}

// next shows the next one of the process.
func (a *asking) next(m *Model) {
	open := a.list.got.Asks
	if a.cur == nil || len(open) == 0 {
		m.say("nothing else is asked about " + a.who)
		return
	}
	i := slices.IndexFunc(open, func(k ipc.Ask) bool { return k.Number > a.cur.Number })
	if k := &open[max(i, 0)]; k.Number != a.cur.Number {
		a.show(k)
		return
	}
	m.say("nothing else is asked about " + a.who)
}

// answeredMsg is what became of an answer.
type answeredMsg struct {
	number uint64
	r      ipc.AnswerResponse
	err    error
}

// answer gives an answer to what is shown.
func (a *asking) answer(m *Model, fill func(*ipc.AnswerRequest)) tea.Cmd {
	switch {
	case a.cur == nil:
		m.say("it is still asked for")
		return nil
	case a.over != "":
		m.say(a.over)
		return nil
	case a.sent:
		return nil
	}
	a.sent = true
	req := ipc.AnswerRequest{Number: a.cur.Number}
	fill(&req)
	m.say("...")
	return ask(a.e, ipc.AnswerAsk, req, func(r ipc.AnswerResponse, err error) tea.Msg { return answeredMsg{req.Number, r, err} })
}

// answered takes in what became of an answer, and leads back.
func answered(m *Model, d answeredMsg) tea.Cmd {
	a := m.asking
	mine := a != nil && a.cur != nil && a.cur.Number == d.number
	if d.err != nil {
		m.fail(d.err)
		if mine {
			a.sent = false
			return a.again()
		}
		return nil
	}
	k := &d.r.Ask
	what := fmt.Sprintf("PID %s: %s is ", k.PID, m.env.t.line(cmp.Or(k.Text, k.Tool)))
	switch {
	case d.r.Text != "":
		what += "answered: " + m.env.t.line(d.r.Text)
	case d.r.Allowed:
		what += "allowed"
	default:
		what += "refused"
	}
	if g := d.r.Grant; g != nil {
		whom := "PID "
		if g.Scope == permit.ForFamily {
			whom = "the family of PID "
		}
		what = fmt.Sprintf("allowed; %s passes without asking for %s%s", m.env.t.line(g.Text), whom, g.PID)
	}
	if k.Suspended {
		what += "; it counts when it is resumed (R)"
	}
	if mine {
		if n := len(a.list.got.Asks) - 1; n > 0 {
			what += "; " + number(n) + " more: A"
		}
		m.asking = nil
	}
	m.say(what)
	return nil
}

// askDeny asks for the reason of a refusal.
func askDeny(m *Model) tea.Cmd {
	a := m.asking
	if a.cur == nil || a.over != "" {
		return a.answer(m, nil) // which says why not
	}
	m.input = &input{label: "deny; why (may be empty):", enter: func(m *Model, text string) tea.Cmd {
		return a.answer(m, func(r *ipc.AnswerRequest) { r.Because = strings.TrimSpace(text) })
	}}
	return nil
}

// askChange asks for what is run instead.
func askChange(m *Model) tea.Cmd {
	a := m.asking
	if a.cur == nil || a.over != "" {
		return a.answer(m, nil)
	}
	if a.cur.Question != nil {
		return askReply(m)
	}
	text, shell := command(a.cur)
	label := "run instead:"
	if !shell {
		text, label = string(a.cur.Input), "with this input (JSON):"
	}
	in := &input{label: label, enter: func(m *Model, text string) tea.Cmd {
		input, err := changedInput(a.cur, text, shell)
		if err != nil {
			m.fail(err)
			return nil
		}
		return a.answer(m, func(r *ipc.AnswerRequest) { r.Allow, r.Input = true, input })
	}}
	in.insert(m.env.t, text)
	m.input = in
	return nil
}

// changedInput returns the input that runs instead of that which is asked about.
func changedInput(k *ipc.Ask, text string, shell bool) (json.RawMessage, error) {
	var in map[string]json.RawMessage
	if !shell {
		if json.Unmarshal([]byte(text), &in) != nil || in == nil {
			return nil, types.Errorf(types.ErrInvalid, "", "", "this is no JSON object; nothing was answered")
		}
		return json.RawMessage(text), nil
	}
	if strings.TrimSpace(text) == "" {
		return nil, types.Errorf(types.ErrInvalid, "", "", "the command is empty; to run nothing, deny it (d)")
	}
	if err := json.Unmarshal(k.Input, &in); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "", "", "its input cannot be read: %w", err)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "", "", "%w", err)
	}
	in["command"] = raw
	return json.Marshal(in)
}

// grantTime is how long what is allowed for a time counts.
const grantTime = time.Hour

// askKeys are those that answer what is asked.
func askKeys() []binding {
	allow := func(fill func(*ipc.AnswerRequest)) func(*Model) tea.Cmd {
		return func(m *Model) tea.Cmd {
			if a := m.asking; a.cur != nil && a.cur.Question != nil {
				return askReply(m)
			}
			return m.asking.answer(m, func(r *ipc.AnswerRequest) { r.Allow = true; fill(r) })
		}
	}
	scroll := func(f func(*long)) func(*Model) tea.Cmd { return act(func(m *Model) { f(m.asking.long) }) }
	return []binding{
		key(inAsk, "y", "allow this call, or answer a question", "allow, answer", allow(func(*ipc.AnswerRequest) {})),
		key(inAsk, "d", "deny it, with a reason or without", "deny", askDeny),
		key(inAsk, "p", "allow it, and the same again by this process", "allow process", allow(func(r *ipc.AnswerRequest) { r.For = permit.ForProcess })),
		key(inAsk, "f", "allow it, and the same again by its family", "allow family", allow(func(r *ipc.AnswerRequest) { r.For = permit.ForFamily })),
		key(inAsk, "t", "allow it, and the same again by its family for an hour", "", allow(func(r *ipc.AnswerRequest) { r.ForMs = grantTime.Milliseconds() })),
		key(inAsk, "e", "change what runs, and allow that", "edit", askChange),
		key(inAsk, "n", "the next call of this process that waits", "", act(func(m *Model) { m.asking.next(m) })),
		key(inAsk, "esc q left h", "back, without an answer", "back", act(func(m *Model) { m.asking = nil })),
		key(inAsk, "down j", "a line down", "", scroll(func(l *long) { l.move(1) })),
		key(inAsk, "up k", "a line up", "", scroll(func(l *long) { l.move(-1) })),
		key(inAsk, "pgdown space", "a page down", "", scroll(func(l *long) { l.page(1) })),
		key(inAsk, "pgup", "a page up", "", scroll(func(l *long) { l.page(-1) })),
		key(inAsk, "home g", "the beginning", "", scroll((*long).home)),
		key(inAsk, "end G", "the end", "", scroll((*long).end)),
	}
}
