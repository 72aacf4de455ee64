package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

// familyEvery is the least time between two looks at what a process has used with others, for which all histories are looked through.
const familyEvery = 3 * time.Second

// relatives asks what the process that is chosen has used together with its descendants, and with its forks. It belongs to the goroutine of the
// program.
type relatives struct {
	e   *env
	id  types.UUID // the one that is chosen; zero = none
	ver uint64     // of all rows when it was asked about: also a child that is not listed changes the sum
	get *fetch[ipc.FamiliesRequest, ipc.FamiliesResponse]
	n   int // grows with each answer
}

func newRelatives(e *env) *relatives {
	r := &relatives{e: e, get: newFetch(e, ipc.Families)}
	r.get.least = familyEvery
	return r
}

// show says which process is chosen, nil = none, and of which version all rows are.
func (r *relatives) show(p *row, ver uint64) tea.Cmd {
	var id types.UUID
	if p != nil {
		id = p.UUID
	}
	if id != r.id {
		r.get.forget()
		r.n++
	} else if ver == r.ver {
		return nil
	}
	r.id, r.ver = id, ver
	if p == nil {
		return nil
	}
	return r.get.ask(ipc.FamiliesRequest{Targets: []string{id.String()}})
}

// update takes a message in.
func (r *relatives) update(msg tea.Msg) tea.Cmd {
	cmd, fresh := r.get.update(msg)
	if fresh {
		r.n++
	}
	return cmd
}

// sums are what there is to say of the descendants and of the forks, a line each.
func (r *relatives) sums() []string {
	if !r.get.known || len(r.get.got.Families) == 0 || r.get.got.Families[0].UUID != r.id {
		return nil
	}
	var out []string
	f := &r.get.got.Families[0]
	if f.Tree != nil {
		out = append(out, "with descendants: "+sumText(f.Tree))
	}
	if f.Forks != nil {
		out = append(out, "with all forks: "+sumText(f.Forks))
	}
	return out
}

// lines are sums as they stand below a table.
func (r *relatives) lines() (out []string) {
	for _, s := range r.sums() {
		out = append(out, "PID "+r.get.got.Families[0].PID.String()+" "+s)
	}
	return out
}

// relate asks for what stands below the table of top: what the chosen process has used with others, which the dashboard's detail shows, too, and
// what the providers do.
func relate(m *Model) tea.Cmd {
	if _, detail := m.pane().(*detailPane); m.screen != top && !detail {
		return nil
	}
	cmd := m.env.kin.show(m.list.chosen(), m.rows.ver)
	if m.screen == top {
		cmd = tea.Batch(cmd, m.env.traffic.show(m.rows.ver, m.rows.runs()))
	}
	return cmd
}

// sumText is what processes have used together: 3 processes, 4,000 tokens, $0.40, 2 failed calls.
func sumText(l *ipc.CostLine) string {
	usd := 0.0
	if l.CostUSD != nil {
		usd = *l.CostUSD
	}
	s := plural(l.Processes, "process", "processes") + ", " + approx(l.Tokens, l.Estimated) + " tokens" + price.Behind(usd, l.Tokens, l.Unpriced)
	if l.FailedCalls > 0 {
		s += ", " + failedCalls(l.FailedCalls)
	}
	if l.FailedUnknown > 0 {
		s += ", failed calls of " + number(l.FailedUnknown) + " unknown"
	}
	if l.Unpriced > 0 {
		s += ", " + number(l.Unpriced) + " tokens have an unknown price"
	}
	return s
}

// familyRoots are what top prints below a table: the sums of those whose parent is not in it, the forks of one start once.
func familyRoots(rows map[types.UUID]*row, families []ipc.Family) (lines []string) {
	var starts []types.UUID
	told := map[types.UUID][]string{}
	forks := map[types.UUID]*ipc.CostLine{}
	for i := range families {
		f := &families[i]
		p := rows[f.UUID]
		if p == nil {
			continue
		}
		if f.Tree != nil && rows[p.ParentUUID] == nil {
			lines = append(lines, fmt.Sprintf("PID %s with descendants: %s", f.PID, sumText(f.Tree)))
		}
		if f.Forks != nil {
			if forks[f.Start] == nil {
				starts, forks[f.Start] = append(starts, f.Start), f.Forks
			}
			told[f.Start] = append(told[f.Start], f.PID.String())
		}
	}
	for _, id := range starts {
		word := "PID "
		if len(told[id]) > 1 {
			word = "PIDs "
		}
		lines = append(lines, word+strings.Join(told[id], ", ")+" with all forks: "+sumText(forks[id]))
	}
	if n := len(lines) - mostFamilies; n > 0 {
		lines = append(lines[:mostFamilies:mostFamilies], plural(n, "more family", "more families"))
	}
	return lines
}

// mostFamilies is of how many families top prints sums.
const mostFamilies = 8
