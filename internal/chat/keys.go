package chat

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// twice is within what time a second Ctrl+C leaves.
const twice = 2 * time.Second

// keyLine is a line of the table of keys, for the help.
type keyLine struct{ keys, what string }

// keyTable are the keys, as the help shows them. What they do stands in press and in editor.key.
var keyTable = []keyLine{
	{"Enter", "send; an agent that works gets it before its next prompt"},
	{"Alt+Enter, \\ Enter", "a new line (also Shift+Enter)"},
	{"Esc", "interrupt the agent; what it did stays"},
	{"Ctrl+C", "clear the line; twice, or Ctrl+D: leave (agent works on)"},
	{"Up, Down, Ctrl+R", "earlier messages; Ctrl+R searches them"},
	{"Ctrl+O", "the whole output of the last call; again: the one before"},
	{"Tab, Ctrl+V", "complete a command or @FILE; put in a copied image"},
}

// pressKey does what a key means.
func pressKey(m *Model, k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	m.note = ""
	if m.ask != nil && !m.ask.shown {
		m.ask.since = m.now()
	}
	switch name {
	case "ctrl+c":
		return ctrlC(m)
	case "ctrl+o":
		unfoldNext(m)
		return nil
	}
	switch {
	case m.ask != nil && m.ask.shown:
		return m.ask.press(m, name, k.Text)
	case m.choice != nil:
		return m.choice.press(m, k)
	case m.find != nil && m.find.press(m, name, k.Text):
		return nil
	}
	switch name {
	case "ctrl+r":
		m.comp = completion{}
		m.find = &finding{at: len(m.ed.history)}
		return nil
	case "ctrl+v":
		m.comp = completion{}
		return pasteImage(m)
	case "ctrl+d":
		if m.ed.empty() {
			return tea.Quit
		}
		m.ed.key("delete")
		return nil
	case "esc":
		switch {
		case m.comp.shown():
			m.comp = completion{}
		case m.own != nil:
			m.own.stop()
		case m.phase == working:
			return interruptRun(m)
		}
		return nil
	case "tab":
		completeWord(m)
		return nil
	case "enter":
		if n := m.ed.at; n > 0 && m.ed.text[n-1] == '\\' {
			m.ed.cut(n-1, n)
			m.ed.insert("\n")
			return nil
		}
		return enterText(m)
	}
	m.comp = completion{}
	if !m.ed.key(name) && k.Text != "" {
		m.ed.insert(k.Text)
	}
	return nil
}

// ctrlC clears the line, and leaves when it comes twice.
func ctrlC(m *Model) tea.Cmd {
	now := m.now()
	if now.Sub(m.quit) < twice {
		return tea.Quit
	}
	m.quit, m.find = now, nil
	m.ed.remember(m.ed.value())
	m.ed.set("")
	if m.choice != nil {
		m.choice = nil
	}
	what := "Ctrl+C again leaves"
	if m.phase == working {
		what += "; the agent works on. Esc interrupts it"
	}
	m.say(what)
	return nil
}

// pasteText takes pasted text in: it is text and nothing else, whatever is in it. Paths of images and PDFs become names of what goes along.
func pasteText(m *Model, s string) tea.Cmd {
	m.note = ""
	switch {
	case m.ask != nil && m.ask.shown:
		m.ask.paste(m, s)
		return nil
	case m.choice != nil:
		return nil
	case m.find != nil:
		m.find.look(m, m.find.query+tidy(s))
		return nil
	}
	if names := dropped(m, s); names != "" {
		putNames(m, names)
		return nil
	}
	if why := m.ed.paste(s); why != "" {
		m.note, m.bad = why, true
	}
	return nil
}

// enterText sends what was typed, or does what it commands.
func enterText(m *Model) tea.Cmd {
	m.comp = completion{}
	text := m.ed.value()
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return nil
	case len(text) > maxText:
		m.note, m.bad = "the message is longer than 1 MiB: put it into a file, and name that with @", true
		return nil
	}
	m.ed.take()
	if m.o.Remember != nil {
		m.o.Remember(text)
	}
	switch {
	case trimmed == "?", trimmed == "/":
		return runCommand(m, "/help")
	case text[0] == '!':
		return runOwn(m, strings.TrimSpace(text[1:]))
	case text[0] == '/' && isCommand(trimmed):
		return runCommand(m, trimmed)
	}
	return m.send(strings.TrimSpace(text))
}
