package loop

import rnixctx "rnix/context"

// lastStep reports whether the step in hand is the last one that the process may do: nothing can be delivered
// after it.
func lastStep(l *Loop) bool { return l.cfg.MaxSteps > 0 && l.progress.Step >= l.cfg.MaxSteps }

// tooEarly returns why an action must not end the process yet; "" if it may, or is none that does.
func tooEarly(l *Loop, a *Action) string {
	if a.Kind != Complete || a.Problem != nil || a.Settled != nil || l.after || lastStep(l) {
		return ""
	}
	mail, note := l.host.Leave(false)
	if mail {
		return "messages have come meanwhile, which you get now; read them, then call complete again with the whole result"
	}
	return note
}

// stays reports whether the process goes on although its answer ends it. asked says that tooEarly was asked
// before. The error is of the record.
func stays(l *Loop, asked bool) (bool, error) {
	if l.after || lastStep(l) {
		return false, nil
	}
	if !asked {
		if mail, note := l.host.Leave(false); !mail && note != "" {
			return true, l.host.Append(rnixctx.Message{Role: rnixctx.RoleUser, Content: "[Not finished: " + note + "]"})
		}
	}
	mail, _ := l.host.Leave(true)
	return mail, nil
}
