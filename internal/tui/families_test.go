package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
	"rnix/types"
)

// kin is what the daemon says of a process of the tests.
func kin(n int, tree, forks *ipc.CostLine) ipc.Family {
	f := ipc.Family{PID: types.PID(n), UUID: uuid(n), Tree: tree, Forks: forks}
	if forks != nil {
		f.Start = uuid(1)
	}
	return f
}

func TestAParentHasTheSumsOfItsFamilyInTopAndInTheDetail(t *testing.T) {
	usd := 1.25
	tree := &ipc.CostLine{Processes: 3, Tokens: 12345, CostUSD: &usd, Unpriced: 300, FailedCalls: 2}
	for _, onTop := range []bool{true, false} {
		b := newBench(t, onTop, proc(1, 0, "lead"), proc(2, 1, "review"))
		b.src.answers["families"] = func(req any) (any, error) {
			r := ipc.FamiliesResponse{}
			switch req.(ipc.FamiliesRequest).Targets[0] {
			case uuid(1).String():
				r.Families = []ipc.Family{kin(1, tree, &ipc.CostLine{Processes: 5, Tokens: 20000, Estimated: true, FailedUnknown: 1})}
			case uuid(2).String():
				r.Families = []ipc.Family{kin(2, nil, nil)}
			}
			return r, nil
		}
		b.send(tea.WindowSizeMsg{Width: 200, Height: 50})
		b.run()
		b.tickAll()
		b.sees("with descendants: 3 processes, 12,345 tokens, $1.25+?, 2 failed calls")
		b.sees("with all forks: 5 processes, ~20,000 tokens, failed calls of 1 unknown")
		if onTop { // 80x24: what matters is in sight, and the list has room for the rest
			b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
			b.sees("PID 1 with descendants: 3 processes, 12,345 tokens, $1.25+?, 2 failed calls")
			if lines := strings.Split(b.screenText(), "\n"); len(lines) != 24 || !strings.HasPrefix(lines[21], "PID 1 with descendants") || !strings.HasPrefix(lines[22], "PID 1 with all forks") || b.boxes().list.h != 19 {
				t.Errorf("%q", lines)
			}
			b.send(tea.WindowSizeMsg{Width: 80, Height: 8})
			b.seesNot("with descendants")
			b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
		}
		b.press("down")
		b.run()
		b.tickAll()
		b.seesNot("with descendants")
		tree = &ipc.CostLine{Processes: 4, Tokens: 13000, CostUSD: &usd} // a child that is not listed has ended
		b.press("up")
		b.run()
		b.tickAll()
		b.sees("with descendants: 4 processes, 13,000 tokens, $1.25")
		tree = &ipc.CostLine{Processes: 3, Tokens: 12345, CostUSD: &usd, Unpriced: 300, FailedCalls: 2}
	}
}

// tickAll lets the time pass that questions wait for.
func (b *bench) tickAll() {
	for range 4 {
		waits := b.waits
		b.waits = nil
		b.now = b.now.Add(time.Minute)
		for _, w := range waits {
			if _, second := w.msg.(tickMsg); !second {
				b.send(w.msg)
			}
		}
		b.run()
	}
}

func TestAPrintedTableHasTheSumsOfTheUppermostAndOfForksOnce(t *testing.T) {
	rows := map[types.UUID]*row{}
	for n, parent := range []int{0, 1, 2, 0} {
		rows[uuid(n+1)] = &row{Proc: proc(n+1, parent, "n")}
	}
	two, three := &ipc.CostLine{Processes: 2, Tokens: 10}, &ipc.CostLine{Processes: 3, Tokens: 20, Unpriced: 20}
	got := familyRoots(rows, []ipc.Family{kin(1, three, two), kin(2, two, nil), kin(4, nil, two), kin(9, two, nil)})
	want := []string{"PID 1 with descendants: 3 processes, 20 tokens, cost ?, 20 tokens have an unknown price", "PIDs 1, 4 with all forks: 2 processes, 10 tokens"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	clear(rows)
	var families []ipc.Family
	for n := range 12 {
		rows[uuid(n+1)] = &row{Proc: proc(n+1, 0, "n")}
		families = append(families, kin(n+1, two, nil))
	}
	if got := familyRoots(rows, families); len(got) != mostFamilies+1 || got[mostFamilies] != "4 more families" {
		t.Errorf("%q", got)
	}
}

func TestDetailSaysThatFailedCallsAreUnknown(t *testing.T) {
	d := &ipc.ProcDetail{Proc: ipc.Proc{ProcStatus: types.ProcStatus{PID: 3}, FailedUnknown: true}}
	if text := detailText(&Theme{}, d, begin, begin); !strings.Contains(text, "failed     unknown: an earlier version") {
		t.Error(text)
	}
}
