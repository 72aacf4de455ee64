package tui

import (
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/debug"
	"rnix/ipc"
)

// trafficEvery is the least time between two looks at what the providers do.
const trafficEvery = 2 * time.Second

// mostProviders is how many providers stand below the table of top.
const mostProviders = 3

// traffic asks which calls the providers run, and which wait. It belongs to the goroutine of the program.
type traffic struct {
	e   *env
	ver uint64 // of the rows when it was asked
	get *fetch[ipc.Empty, ipc.ProviderCallsResponse]
}

func newTraffic(e *env) *traffic {
	t := &traffic{e: e, get: newFetch(e, ipc.ProviderTraffic)}
	t.get.least = trafficEvery
	return t
}

// show asks if something has changed, or works on.
func (t *traffic) show(ver uint64, runs bool) tea.Cmd {
	if ver == t.ver && (!runs || t.e.now().Sub(t.get.at) < trafficEvery) {
		return nil
	}
	t.ver = ver
	return t.get.ask(ipc.Empty{})
}

// update takes a message in.
func (t *traffic) update(msg tea.Msg) tea.Cmd {
	cmd, _ := t.get.update(msg)
	return cmd
}

// lines are a line for each provider that is in use, the most crowded first.
func (t *traffic) lines() []string { return trafficLines(t.e.t, t.get.got.Providers, t.e.now()) }

// trafficLines says which calls providers run, and which wait.
func trafficLines(t *Theme, list []ipc.ProviderCalls, now time.Time) (out []string) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b ipc.ProviderCalls) int { return b.Waiting - a.Waiting })
	for i := range list {
		c := &list[i]
		s := fmt.Sprintf("%s: %s", t.line(c.Provider), plural(c.Running, "call runs", "calls run"))
		if c.AtOnce > 0 {
			s = fmt.Sprintf("%s: %s of %s calls run", t.line(c.Provider), number(c.Running), number(c.AtOnce))
		}
		if c.Waiting > 0 {
			s += fmt.Sprintf(", %s, the first for %s", plural(c.Waiting, "waits", "wait"), debug.Age(now.Sub(c.Oldest)))
		}
		out = append(out, s)
	}
	if n := len(out) - mostProviders; n > 0 {
		out = append(out[:mostProviders:mostProviders], plural(n, "more provider is", "more providers are")+" in use")
	}
	return out
}
