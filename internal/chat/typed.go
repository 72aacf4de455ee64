package chat

import (
	"strings"

	"rnix/internal/tui"
)

// typedKind is the kind of a part that is a command of the person: what answers it stands right below.
const typedKind = "typed"

// quoteTyped prints a command that was typed, above what answers it.
func quoteTyped(m *Model, line string) {
	m.block("user")
	m.print(tui.Cut(m.t, paint(m.t, cyan|bold, tui.Pick(m.t, "› ", "> "))+paint(m.t, bold, tui.Line(m.t, line)), m.w-1))
	m.out.kind = typedKind
}

// reply prints the answer to a command.
func (m *Model) reply(text string) {
	m.block("note")
	m.print(wrap(m.t, []span{{tui.Line(m.t, text), dim}}, "", "", m.w-1)...)
}

// helpLeft is the width in cells of what is explained in the help.
const helpLeft = 22

// showHelp prints the keys and commands: on a usual terminal of 80 by 24 all of them are seen at once.
func showHelp(m *Model) {
	m.block("help")
	line := func(left, what string) {
		for i, l := range wrap(m.t, []span{{what, 0}}, "", "", max(m.md.w-helpLeft, 20)) {
			if i > 0 {
				left = ""
			}
			m.print("  " + paint(m.t, cyan, left) + strings.Repeat(" ", max(helpLeft-2-len(left), 1)) + l)
		}
	}
	for _, k := range keyTable {
		line(k.keys, k.what)
	}
	for _, c := range commands() {
		if c.name != "help" {
			line("/"+c.name+with(" ", c.args), c.what)
		}
	}
	line("@FILE", "give the agent a file with the message, as data or image")
	line("!COMMAND", "run a command unsandboxed; the agent gets its output")
}
