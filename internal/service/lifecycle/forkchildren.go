package lifecycle

import (
	"fmt"
	"strings"

	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/types"
)

// leftBehind tells a fork which processes that its conversation has started in the background are not its own.
func (d *forks) leftBehind(children []types.UUID) string {
	var names []string
	for _, id := range children {
		name, called := id.String(), ""
		if t, ok := d.Names.ByUUID(id); ok && t.PID != 0 {
			switch name = "PID " + t.PID.String(); {
			case t.Live != nil: // the index may not have it yet
				called = t.Live.Name
			case t.Info != nil:
				called = t.Info.Name
			}
		}
		if called != "" {
			name += " (" + called + ")"
		}
		names = append(names, name)
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return step.ForkChild + names[0] + ", belongs to the process that you are a copy of. It does not report to you, and you cannot wait for it." + step.ForkChildEnd
	}
	return step.ForkChildren + strings.Join(names, ", ") + ", belong to the process that you are a copy of. They do not report to you, and you cannot wait for them." + step.ForkOthers
}

// How many calls that are left out a fork is told of, and how much of each, in characters.
const (
	mostLeftOut = 20
	eachLeftOut = 300
)

// leftOut tells a fork of the calls of the step that had not ended when it was made: they are not in its conversation, and what they have
// done is not in its files. letters is how many messages of others it had got in that step; shared says that it works in a directory as that is.
func leftOut(whole *recovery.State, at, letters int, shared bool) string {
	calls := whole.BegunCalls()
	var b strings.Builder
	fmt.Fprintf(&b, step.ForkLeftOut+"the earlier process was in its step %d, which had not ended. It had called:", at+1)
	for i, c := range calls {
		if i == mostLeftOut {
			fmt.Fprintf(&b, "\n- and %d more", len(calls)-i)
			break
		}
		fmt.Fprintf(&b, "\n- %s %s", c.Name, service.FirstLine(string(whole.InputOf(c.ID)), eachLeftOut))
	}
	if shared {
		b.WriteString("\nWhat these calls have done may be in your files, or not: look before you rely on it. ")
	} else {
		b.WriteString("\nWhat these calls have done is not in your files. ")
	}
	if letters > 0 {
		b.WriteString("What others had sent to the earlier process in that step is not in your conversation. ")
	}
	b.WriteString("Processes that they have started belong to the earlier process." + step.ForkAgain)
	return b.String()
}
