package harness

import (
	"strings"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
)

// goOn is what a command line is told that goes on where it was interrupted: how the calls ended that it may
// still wait for, and what was said since, behind what it may have missed before.
func goOn(missed, ms []rnixctx.Message, calls []rnixctx.ToolCall) string {
	var b strings.Builder
	b.WriteString("[You were interrupted and go on now, in the same directory. A command that was running then has ended; look at what it has left before you run it again.]\n")
	var said []string
	for i := range missed {
		said = append(said, missed[i].Content)
	}
	for i := range ms {
		m := &ms[i]
		switch m.Role {
		case rnixctx.RoleTool:
			for _, c := range calls {
				if c.ID == m.ToolCallID {
					b.WriteString("\n" + llm.Continuation(ms[i:i+1], calls) + "\n")
				}
			}
		case rnixctx.RoleUser:
			said = append(said, m.Content)
		}
	}
	if len(said) > 0 {
		b.WriteString("\n" + strings.Join(said, "\n\n"))
	} else {
		b.WriteString("\nGo on with your task.")
	}
	return b.String()
}
