package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

// runCommand is a line of the table of commands.
type command struct {
	name, args, what string
	do               func(m *Model, arg string) tea.Cmd
}

// commands returns the table, in the order of the help.
func commands() []command {
	return []command{
		{"help", "", "show the keys and commands", func(m *Model, _ string) tea.Cmd { showHelp(m); return nil }},
		{"model", "MODEL", "the model of your next message, or provider/model", setModel},
		{"agent", "AGENT", "begin a new conversation with this agent", setAgent},
		{"new", "", "begin a new conversation; this one stays as it is", func(m *Model, _ string) tea.Cmd { return beginAnew(m, "a new conversation") }},
		{"budget", "[100k|$2]", "show the budget, or raise it by tokens or dollars", budget},
		{"compact", "[WORDS]", "have the model sum up; WORDS say what to keep above all", compact},
		{"diff", "", "show which files the agent has changed, and how", diff},
		{"undo", "", "go back to before your last message, files too; asks", undo},
		{"fork", "", "your next message goes to a copy with its own directory", fork},
		{"resume", "[PROCESS]", "go to another conversation, or choose one", switchTo},
		{"export", "[FILE]", "write the conversation to a file, as Markdown", export},
		{"quit", "", "leave; the agent works on", func(*Model, string) tea.Cmd { return tea.Quit }},
	}
}

// elsewhere are commands of other programs, with what does here what they do there.
var elsewhere = map[string]string{"clear": "new", "rewind": "undo", "cost": "budget", "usage": "budget", "branch": "fork", "sessions": "resume", "summarize": "compact"}

// isCommand reports whether a line is meant as a command and not as a path.
func isCommand(line string) bool {
	word, _, _ := strings.Cut(line[1:], " ")
	return word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == ""
}

// runCommand does what a line commands.
func runCommand(m *Model, line string) tea.Cmd {
	word, arg, _ := strings.Cut(line[1:], " ")
	if word == "exit" {
		word = "quit"
	}
	for _, c := range commands() {
		if c.name == word {
			quoteTyped(m, line)
			return c.do(m, strings.TrimSpace(arg))
		}
	}
	var near []string
	for _, c := range commands() {
		if strings.HasPrefix(c.name, word[:1]) {
			near = append(near, "/"+c.name)
		}
	}
	if name, ok := elsewhere[word]; ok {
		near = []string{"/" + name}
	}
	m.note, m.bad = "unknown command /"+tui.Line(m.t, word)+with("; did you mean ", strings.Join(near, " or "))+" (see /help); to say it to the agent, Up brings it back: put a space before it", true
	return nil
}

func isBusy(m *Model) bool {
	if m.phase == working || m.phase == starting {
		m.note, m.bad = "the agent works; interrupt it first with Esc", true
		return true
	}
	return false
}

// noneYet reports whether there is no process yet, and says so.
func noneYet(m *Model) bool {
	if m.id == (types.UUID{}) {
		m.note, m.bad = "there is no conversation yet: say what is to be done", true
		return true
	}
	return false
}

func setModel(m *Model, arg string) tea.Cmd {
	if name := modelName(m.t, &m.detail); arg == "" && name == "" {
		m.reply("no model is chosen yet; choose one with /model MODEL (see: rnix models)")
		return nil
	}
	if arg == "" {
		m.reply("the model is " + modelName(m.t, &m.detail) + "; change it with /model MODEL (see: rnix models)")
		return nil
	}
	return chooseModel(m, arg)
}

func setAgent(m *Model, arg string) tea.Cmd {
	if arg == "" && m.detail.Agent == "" {
		m.reply("no agent is named; begin with one with /agent AGENT (see: rnix agents)")
		return nil
	}
	if arg == "" {
		m.reply("the agent is " + tui.Line(m.t, m.detail.Agent) + "; begin with another one with /agent AGENT (see: rnix agents)")
		return nil
	}
	cmd := beginAnew(m, "a new conversation with the agent "+tui.Line(m.t, arg))
	m.next.agent = arg
	return cmd
}

// beginAnew leaves the conversation and begins another one.
func beginAnew(m *Model, what string) tea.Cmd {
	if m.id != (types.UUID{}) {
		what += "; the one before is found with: rnix attach " + addressOf(m)
	}
	model := m.next.model
	m.ev.close()
	printSaid(m, m.md.end())
	printRemarks(m)
	if left := m.unsent(); len(left) > 0 {
		m.keep(strings.Join(textsOf(left), "\n"))
	}
	m.conv++
	m.id, m.phase, m.detail, m.next = types.UUID{}, none, ipc.ProcDetail{}, start{model: model}
	m.script, m.said, m.kids, m.queue, m.ask, m.used, m.hold, m.held, m.shown = script{}, speech{}, nil, nil, nil, 0, false, nil, nil
	m.idle, m.late, m.clashed, m.fresh, m.plan, m.results = false, false, false, false, plan{}, results{}
	m.block("note")
	m.print(paint(m.t, dim, tui.Cut(m.t, what, m.w-1)))
	return nil
}

// switchTo goes to another conversation.
func switchTo(m *Model, arg string) tea.Cmd {
	if arg == "" {
		return call(m, ipc.ListProcs, ipc.ListRequest{All: true, Limit: 200}, func(m *Model, r ipc.ListResponse, err error) tea.Cmd {
			if err != nil {
				return m.fail(err)
			}
			list := Conversations(r.Procs)
			if len(list) == 0 {
				m.reply("there is no other conversation")
				return nil
			}
			m.choice = pickFrom(list, func(m *Model, p *ipc.Proc) tea.Cmd { return goTo(m, p.UUID.String()) })
			return nil
		})
	}
	return goTo(m, arg)
}

func goTo(m *Model, target string) tea.Cmd {
	return call(m, ipc.GetProcDetail, ipc.TargetRequest{Target: target}, func(m *Model, d ipc.ProcDetail, err error) tea.Cmd {
		if err != nil {
			return m.fail(err)
		}
		_ = beginAnew(m, "another conversation")
		m.id, m.detail, m.phase, m.fresh = d.UUID, d, ended, true
		m.print(titleOf(m)...)
		return tea.Batch(m.settle(), m.fetch())
	})
}

func budget(m *Model, arg string) tea.Cmd {
	if noneYet(m) {
		return nil
	}
	if arg == "" {
		return call(m, ipc.ShowBudget, ipc.BudgetRequest{Target: m.id.String()}, func(m *Model, r ipc.BudgetResponse, err error) tea.Cmd {
			if err != nil {
				return m.fail(err)
			}
			m.block("budget")
			for _, b := range r.Budgets {
				limit := "unlimited tokens"
				if b.Tokens.Limit != nil {
					limit = tui.Number(*b.Tokens.Limit) + " tokens"
				}
				if b.USD.Limit != nil {
					limit += fmt.Sprintf(" and $%.2f", *b.USD.Limit)
				}
				m.print(tui.Cut(m.t, fmt.Sprintf("  PID %s  %s; used %s tokens, $%.4f", b.PID, limit, tui.Number(b.Tokens.Used), b.USD.Used), m.w-1))
			}
			if len(r.Budgets) == 0 {
				m.print("  no limit")
			}
			return nil
		})
	}
	req := ipc.AddBudgetRequest{Target: m.id.String(), Env: m.o.Environ}
	n, ok := amount(strings.TrimPrefix(strings.TrimPrefix(arg, "+"), "$"))
	switch {
	case ok && !strings.Contains(arg, "$") && n < 1:
		m.note, m.bad = tui.Line(m.t, arg)+" of a token is nothing: want tokens such as 100k, or dollars such as $"+tui.Line(m.t, arg), true
		return nil
	case !ok:
		m.note, m.bad = "invalid amount "+tui.Line(m.t, arg)+": want tokens such as 100k, or dollars such as $2", true
		return nil
	case strings.Contains(arg, "$"):
		req.USD = n
	default:
		req.Tokens = int(n)
	}
	return call(m, ipc.AddBudget, req, func(m *Model, r ipc.AddBudgetResponse, err error) tea.Cmd {
		if err != nil {
			return m.fail(err)
		}
		m.reply("the budget is raised")
		for _, w := range r.Warnings {
			m.note, m.bad = tui.Line(m.t, w), true
		}
		return m.settle()
	})
}

func compact(m *Model, words string) tea.Cmd {
	if noneYet(m) {
		return nil
	}
	return call(m, ipc.Compact, ipc.CompactRequest{Target: m.id.String(), Focus: words}, func(m *Model, r ipc.CompactResponse, err error) tea.Cmd {
		if err != nil {
			return m.fail(err)
		}
		m.reply("the conversation is summed up before the next answer")
		return nil
	})
}

// amount reads a number with k or M behind it.
func amount(s string) (float64, bool) {
	unit := 1.0
	if n := len(s) - 1; n > 0 {
		switch s[n] {
		case 'k', 'K':
			s, unit = s[:n], 1e3
		case 'm', 'M':
			s, unit = s[:n], 1e6
		}
	}
	x, err := strconv.ParseFloat(s, 64)
	return x * unit, err == nil && x > 0 && x*unit < 1e15
}

// maxDiff is how many lines of a difference are shown.
const maxDiff = 400

func diff(m *Model, _ string) tea.Cmd {
	if noneYet(m) {
		return nil
	}
	return call(m, ipc.DiffFiles, ipc.DiffRequest{Target: m.id.String(), MaxBytes: 256 << 10}, func(m *Model, r ipc.DiffResponse, err error) tea.Cmd {
		if err != nil {
			return m.fail(err)
		}
		m.block("diff")
		if len(r.Files) == 0 {
			m.print(paint(m.t, dim, "the agent has changed no files"))
			return nil
		}
		lines := strings.Split(strings.TrimRight(tui.Clean(m.t, string(r.Text())), "\n"), "\n")
		for _, l := range lines[:min(len(lines), maxDiff)] {
			m.print(tui.Cut(m.t, paint(m.t, diffAttr(l), bounded(l, 1<<10)), m.w-1))
		}
		if n := len(lines) - maxDiff; n > 0 || r.Missing > 0 {
			m.print(paint(m.t, dim, "(there is more; see: rnix diff "+tui.Line(m.t, addressOf(m))+")"))
		}
		m.print(paint(m.t, bold, plural(len(r.Files), "file", "files")+" changed"))
		return nil
	})
}

func fork(m *Model, _ string) tea.Cmd {
	if noneYet(m) {
		return nil
	}
	if isBusy(m) {
		return nil
	}
	m.next.fork, m.next.cwd, m.next.from = new(m.detail.Step), "", m.script.next
	if m.script.step > m.detail.Step { // a step that has not ended is left out
		m.next.from = m.script.at
	}
	m.reply("your next message goes to a fork from the end of step " + strconv.Itoa(m.detail.Step) + ", with the files as they were then; this one stays as it is")
	return nil
}

// undo goes back to before the last message: the files are put back, after a rescue of what is there, and the next message continues in a fork that does
// not know what came behind.
func undo(m *Model, _ string) tea.Cmd {
	if noneYet(m) || isBusy(m) {
		return nil
	}
	n := len(m.script.inputs)
	if n == 0 {
		m.note, m.bad = "none of your messages is shown here; go back with: rnix resume --fork --from-step N "+tui.Line(m.t, addressOf(m)), true
		return nil
	}
	last := m.script.inputs[n-1]
	req := ipc.RestoreRequest{Target: m.id.String(), Step: &last.step, DryRun: true}
	return call(m, ipc.RestoreFiles, req, func(m *Model, r ipc.RestoreResponse, err error) tea.Cmd {
		if gone(err) {
			return m.fail(err)
		}
		lines := []string{fmt.Sprintf("go back to the end of step %d, before you said: %s", last.step, tui.Line(m.t, bounded(last.text, 200)))}
		if err != nil {
			lines = append(lines, "the files stay as they are: "+tui.Line(m.t, tui.ErrorText(err)))
		}
		for i, f := range r.Changes {
			if i == 8 {
				lines = append(lines, fmt.Sprintf("  and %d more", len(r.Changes)-i))
				break
			}
			lines = append(lines, "  "+f.Status+" "+tui.Line(m.t, f.Path))
		}
		if err == nil && len(r.Changes) == 0 {
			lines = append(lines, "  no file is different")
		}
		m.choice = confirm(lines, func(m *Model) tea.Cmd {
			if err != nil || len(r.Changes) == 0 {
				undone(m, last)
				return nil
			}
			req.DryRun = false
			return call(m, ipc.RestoreFiles, req, func(m *Model, r ipc.RestoreResponse, err error) tea.Cmd {
				if err != nil {
					return m.fail(err)
				}
				m.block("note")
				done := fmt.Sprintf("%s written, %d removed", plural(r.Written, "file", "files"), r.Removed)
				if r.Undo == "" {
					m.print(paint(m.t, dim, done))
				} else { // on a line of its own: it holds a UUID, which a line end would break
					m.print(paint(m.t, dim, done+"; take it back with:"), paint(m.t, dim, tui.Line(m.t, r.Undo)))
				}
				undone(m, last)
				return nil
			})
		})
		return nil
	})
}

// undone lets the next message continue before another one.
func undone(m *Model, last input) {
	old := addressOf(m)
	m.ed.remember(last.text) // not where it is typed: an Enter too many would send it again
	if last.first {
		_ = beginAnew(m, "your next message begins anew; Up brings the last one back")
		return
	}
	m.next.fork, m.next.cwd, m.next.from = &last.step, m.detail.WorkDir, last.n
	m.script.inputs = slices.Delete(m.script.inputs, len(m.script.inputs)-1, len(m.script.inputs))
	m.block("note")
	m.print(wrap(m.t, []span{{fmt.Sprintf("your next message continues at the end of step %d, in a fork; Up brings the last one back; what came behind stays in: rnix attach %s", last.step, tui.Line(m.t, old)), dim}}, "", "", m.w-1)...)
}
