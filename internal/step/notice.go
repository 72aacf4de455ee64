package step

import (
	"strings"

	rnixctx "rnix/context"
)

// What the kernel says to a fork, before the words of the person who has made it: each notice is in brackets, and ends with one of these.
const (
	ForkNotice   = "[This process is a fork of an earlier one" // how the first one begins
	ForkGoesOn   = " Go on from here.]"                        // of the first one
	ForkChild    = " [The child that was started in the background before, "
	ForkChildEnd = " Start another one if you need what it does.]"
	ForkChildren = " [The children that were started in the background before, "
	ForkOthers   = " Start others if you need what they do.]"
	ForkLeftOut  = "\n\n[When this copy was made, "
	ForkAgain    = " Do again what you need of it.]"
)

// Notices returns how many bytes of a user message the kernel has written around the words of others: at the beginning, where a fork comes
// from, and at the end, that a compaction has left something out behind it.
func Notices(m *rnixctx.Message) (before, behind int) {
	if m.Role != rnixctx.RoleUser {
		return 0, 0
	}
	behind = m.LeftOut()
	text := m.Content[:len(m.Content)-behind]
	for _, n := range [...]struct{ begins, ends string }{{ForkNotice, ForkGoesOn}, {ForkChild, ForkChildEnd}, {ForkChildren, ForkOthers}, {ForkLeftOut, ForkAgain}} {
		if !strings.HasPrefix(text[before:], n.begins) {
			if before == 0 {
				break // it is no fork's
			}
			continue
		}
		end := strings.Index(text[before:], n.ends)
		if end < 0 {
			break
		}
		before += end + len(n.ends)
	}
	return before, behind
}
