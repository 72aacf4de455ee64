package daemon

import (
	"strings"

	"rnix/types"
)

// leftBehind tells a fork which processes that its conversation has started in the background are not its own.
func (d resumer) leftBehind(children []types.UUID) string {
	var names []string
	for _, id := range children {
		name := id.String()
		if info, ok := d.stored(id); ok && info.PID != 0 {
			if name = "PID " + info.PID.String(); info.Name != "" {
				name += " (" + info.Name + ")"
			}
		}
		names = append(names, name)
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return " [The child that was started in the background before, " + names[0] + ", belongs to the process that you are a copy of. It does not report to you, and you cannot wait for it. Start another one if you need what it does.]"
	}
	return " [The children that were started in the background before, " + strings.Join(names, ", ") + ", belong to the process that you are a copy of. They do not report to you, and you cannot wait for them. Start others if you need what they do.]"
}
