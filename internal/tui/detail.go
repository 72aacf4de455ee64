package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/debug"
	"rnix/internal/sandbox"
	"rnix/ipc"
	"rnix/types"
)

// detailPane shows what is known of a process, as text. It is the model of the other panes.
type detailPane struct {
	e     *env
	long  *long
	id    types.UUID // the process that is shown
	known bool       // there was an answer for it
	r     *ipc.ProcDetail
	at    time.Time // when it came; its process works on
	drawn time.Time // when its text was made
	kin   int       // as of which answer about its family
	busy  bool      // a question is under way
	again bool      // ... and what it asks for has changed since
}

func newDetailPane(e *env) pane { return &detailPane{e: e, long: newLong(e.t)} }

func (d *detailPane) title() string   { return "Detail" }
func (d *detailPane) text() *long     { return d.long }
func (d *detailPane) keys() []binding { return nil }

// detailMsg is the answer for one process.
type detailMsg struct {
	id  types.UUID
	r   ipc.ProcDetail
	err error
}

func (d *detailPane) show(p *ipc.Proc) tea.Cmd {
	if p == nil {
		d.id, d.known = types.UUID{}, false
		return nil
	}
	if p.UUID != d.id {
		d.id, d.known, d.busy, d.r = p.UUID, false, false, nil
		d.long.home()
	}
	return d.ask()
}

// ask asks for the process, but never twice at the same time: one that changes all the time is asked for as often as the
// answers come.
func (d *detailPane) ask() tea.Cmd {
	if d.again = d.busy; d.busy {
		return nil
	}
	d.busy = true
	id := d.id
	return ask(d.e, ipc.GetProcDetail, ipc.TargetRequest{Target: id.String()}, func(r ipc.ProcDetail, err error) tea.Msg {
		return detailMsg{id, r, err}
	})
}

func (d *detailPane) update(msg tea.Msg) tea.Cmd {
	m, ok := msg.(detailMsg)
	if !ok || m.id != d.id {
		return nil
	}
	d.busy = false
	switch {
	case m.err == nil:
		d.known = true
		d.r, d.at = &m.r, d.e.now()
		d.make(d.at)
	case !d.known: // else the last answer stays, and the status line says that the daemon is gone
		d.known, d.r = true, nil
		d.long.set(errorText(m.err))
	}
	if d.again {
		return d.ask()
	}
	return nil
}

func (d *detailPane) view(w, h int) string {
	switch {
	case d.id == types.UUID{}:
		return "no process is chosen"
	case !d.known:
		return "..."
	}
	if d.r != nil {
		if now := d.e.now(); now.Sub(d.drawn) >= time.Second || d.kin != d.e.kin.n { // as the table beside it
			d.make(now)
		}
	}
	return d.long.view(w, h)
}

// make makes the text as of now.
func (d *detailPane) make(now time.Time) {
	d.drawn, d.kin = now, d.e.kin.n
	var family []string
	if d.e.kin.id == d.id {
		family = d.e.kin.sums()
	}
	d.long.set(detailText(d.e.t, d.r, d.at, now, family...))
}

// detailText renders what was known of a process at a time, now, and what it has used with others. Everything in it is cleaned where it is shown.
func detailText(t *Theme, d *ipc.ProcDetail, at, now time.Time, family ...string) string {
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, value)
		}
	}
	r := &row{Proc: d.Proc, at: at}
	field("pid", d.PID.String())
	field("uuid", d.UUID.String())
	field("name", t.line(d.Name))
	field("state", stateLong(t, r, now))
	if d.PPID != 0 {
		field("parent", d.PPID.String())
	}
	field("agent", t.line(d.Agent))
	field("model", t.modelName(&d.Proc))
	field("step", stepText(&d.Proc))
	failed := failedCalls(d.FailedCalls)
	if d.FailedUnknown {
		failed = "unknown: an earlier version, which did not count failed calls, has written its end"
	}
	field("failed", failed)
	field("tokens", tokensText(&d.Proc)+limit(d.ContextBudget > 0, " of "+number(d.ContextBudget)))
	field("cost", costText(&d.Proc)+limit(d.BudgetUSD > 0, fmt.Sprintf(" of $%.2f", d.BudgetUSD)))
	if why := noPrices(t, []entry{{row: r}}); why != "" {
		b.WriteString(why + "\n")
	}
	for _, text := range family {
		b.WriteString(text + "\n")
	}
	field("began", d.CreatedAt.Local().Format("2006-01-02 15:04:05"))
	field("elapsed", debug.Age(r.elapsed(now)))
	field("in", t.line(d.WorkDir))
	field("labels", t.line(d.Labels.String()))
	field("groups", t.line(strings.Join(d.Groups, ", ")))
	field("record", t.line(d.Dir))
	field("damage", t.line(d.Damage))
	section(&b, "mcp servers that are away", downText(t, &d.Proc))
	section(&b, "intent", d.Intent)
	section(&b, "plan", d.Plan)
	section(&b, "result", d.Result)
	var calls []string
	for i := range d.Interrupted {
		c := &d.Interrupted[i]
		calls = append(calls, fmt.Sprintf("step %d: %s %s", c.Step, t.line(c.Tool), t.line(c.Path)))
	}
	section(&b, "calls without a result", strings.Join(calls, "\n"))
	var children []string
	for i := range d.Children {
		c := &d.Children[i]
		children = append(children, fmt.Sprintf("%d %s %s  %s", c.PID, t.line(c.Kind), sizeText(c.RSSBytes), t.line(c.Command)))
	}
	section(&b, "operating system", strings.Join(children, "\n"))
	rights := "all devices"
	if d.AllowedDevices != nil {
		rights = strings.Join(d.AllowedDevices, " ")
	}
	section(&b, "may use", rights+with("\nnot ", strings.Join(d.DeniedDevices, " ")))
	section(&b, "sandbox", sandbox.Settings{Level: sandbox.Level(d.Sandbox), Net: sandbox.Net(d.Net)}.Text())
	section(&b, "reads below", strings.Join(d.ReadRoots, "\n"))
	section(&b, "tools", strings.Join(d.Tools, "  "))
	section(&b, "skills", strings.Join(d.Skills, "  "))
	section(&b, "signals", signalsText(t, &d.Proc))
	section(&b, "mounted", strings.Join(d.MCPMounts, "\n"))
	return b.String()
}

// downText says which MCP servers of a process that lives cannot be reached, why, and what starts them again.
func downText(t *Theme, p *ipc.Proc) string {
	var lines []string
	for _, text := range p.MCPDown {
		if p.Exit == nil {
			lines = append(lines, t.line(text), "start it again: "+t.line(types.MCPDown(text).Reload(p.PID)))
		}
	}
	return strings.Join(lines, "\n")
}

// signalsText says which signals a process does not get, and what it is told of SIGINT.
func signalsText(t *Theme, p *ipc.Proc) string {
	names := func(what string, sigs []types.Signal) string {
		var out []string
		for _, sig := range sigs {
			out = append(out, sig.String())
		}
		return with(what, strings.Join(out, ", "))
	}
	lines := []string{names("blocks ", p.BlockedSignals), names("waiting: ", p.PendingSignals), with("is told at SIGINT: ", t.line(p.OnInterrupt))}
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
}

// section writes a text under a heading, if there is any.
func section(b *strings.Builder, name, text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		fmt.Fprintf(b, "\n%s\n  %s\n", strings.ToUpper(name), strings.ReplaceAll(text, "\n", "\n  "))
	}
}

func limit(has bool, text string) string {
	if has {
		return text
	}
	return ""
}
