package billing

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// member is a history of a made-up family, with what it has used itself.
type member struct {
	parent, origin int // numbers; 0 = none
	tokens         int
	priced         bool
	failed, taken  int // taken: of a fork, what it has of its origin, besides
	old            bool
}

// lies puts the members into places: where each lies, live ones with an older line of the index.
func lies(members []member, place func(n int) string) (*world, *Service) {
	w := &world{}
	of := func(n int) types.UUID {
		if n == 0 {
			return types.UUID{}
		}
		return id(byte(n))
	}
	for i, m := range members {
		n := i + 1
		p := types.ProcStatus{PID: types.PID(n), UUID: of(n), ParentUUID: of(m.parent), Name: fmt.Sprint("n", n), Provider: "p", Step: 1, TokensUsed: m.tokens, FailedCalls: m.failed + m.taken}
		spent := []step.Spending{{Day: "2026-01-02", Provider: "p", Model: "m", Input: m.tokens, Answers: 1}}
		if m.priced {
			spent[0].CostUSD = float64(m.tokens) / 1000
		} else {
			spent[0].Unpriced = m.tokens
		}
		if m.tokens == 0 {
			spent, p.Step = nil, 0
		}
		info := step.ProcInfo{ProcStatus: p, OriginUUID: of(m.origin), Spending: spent, FailedTaken: m.taken, FailedCounted: !m.old, State: types.StateDead, ActiveTotal: time.Second}
		where := place(n)
		if where == "live" && m.old { // what lives counts
			where = "stored"
		}
		switch where {
		case "live":
			stale := info
			stale.Spending, stale.FailedCalls = nil, m.taken
			w.stored = append(w.stored, stale)
			w.live = append(w.live, kernel.Info{ProcStatus: p, Origin: of(m.origin), Spending: spent, Taken: m.taken, State: types.StateRunning, Elapsed: time.Second})
		case "stored":
			w.stored = append(w.stored, info)
		case "archived":
			w.archive = append(w.archive, step.Archived{ArchiveHead: step.ArchiveHead{Info: info}})
		case "deleted":
			w.tombs = append(w.tombs, step.NewTomb(&info, "test"))
		}
	}
	return w, &Service{Kernel: w, Index: disk{w}, Removed: w, Finder: w, Looks: w, Stored: w}
}

// expected is what some members have used, added up plainly.
func expected(members []member, in func(n int) bool) (l ipc.CostLine) {
	usd, known := 0.0, false
	for i, m := range members {
		if !in(i + 1) {
			continue
		}
		l.Processes++
		l.Tokens, l.Input = l.Tokens+m.tokens, l.Input+m.tokens
		if m.tokens > 0 {
			l.Answers++
		}
		if m.priced && m.tokens > 0 {
			usd, known = usd+float64(m.tokens)/1000, true
		} else {
			l.Unpriced += m.tokens
		}
		switch {
		case !m.old:
			l.FailedCalls += m.failed
		case m.tokens == 0: // it never had a step
		case m.origin == 0:
			l.FailedCalls += m.failed
			l.FailedUnknown++
		default:
			l.FailedUnknown++
		}
	}
	if known {
		l.CostUSD = &usd
	}
	return l
}

// reach says which members one leads to by a link.
func reach(members []member, from map[int]bool, link func(m *member) int) map[int]bool {
	for grew := true; grew; {
		grew = false
		for i := range members {
			if n := i + 1; !from[n] && from[link(&members[i])] {
				from[n], grew = true, true
			}
		}
	}
	return from
}

// Whatever families look like, wherever their members lie, after however many restarts: each member counts once, with what it has used itself.
func TestFamiliesAddUpWhereverTheirMembersLie(t *testing.T) {
	places := []string{"live", "stored", "archived", "deleted"}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		members := make([]member, 2+r.IntN(10))
		for i := range members {
			m := &members[i]
			m.tokens, m.priced, m.failed, m.old = r.IntN(3)*100, r.IntN(3) > 0, r.IntN(3), r.IntN(6) == 0
			if i > 0 && r.IntN(3) > 0 {
				m.parent = 1 + r.IntN(i)
			} else if i > 0 && r.IntN(2) == 0 { // a fork has no parent
				m.origin, m.taken = 1+r.IntN(i), r.IntN(4)
			}
		}
		for _, one := range append(places, "anywhere") { // one is what a restart, an archive and so on makes of all
			where := func(int) string { return one }
			if one == "anywhere" {
				where = func(int) string { return places[r.IntN(len(places))] }
			}
			_, s := lies(members, where)
			k := kinshipOf(s.spenders())
			forked := map[types.UUID]*ipc.CostLine{}
			for i := range members {
				n := i + 1
				at, ok := k.at[id(byte(n))]
				if !ok {
					t.Fatalf("seed %d: %d is not there", seed, n)
				}
				f := k.family(at, forked)
				plain := func(l *ipc.CostLine) *ipc.CostLine {
					if l == nil {
						return nil
					}
					c := *l
					c.ActiveMs = 0 // of deleted ones it is not known
					if c.CostUSD != nil {
						usd := float64(int(*c.CostUSD*1000+.5)) / 1000
						c.CostUSD = &usd
					}
					return &c
				}
				check := func(what string, got *ipc.CostLine, in map[int]bool, alone bool) {
					var want *ipc.CostLine
					if !alone {
						l := expected(members, func(n int) bool { return in[n] })
						want = plain(&l)
					}
					if d := cmp.Diff(want, plain(got)); d != "" {
						t.Fatalf("seed %d, %s, %s of %d: %s\n%+v", seed, one, what, n, d, members)
					}
				}
				check("own", &f.Own, map[int]bool{n: true}, false)
				tree := reach(members, map[int]bool{n: true}, func(m *member) int { return m.parent })
				check("descendants", f.Tree, tree, len(tree) == 1)
				start := n
				for members[start-1].origin != 0 {
					start = members[start-1].origin
				}
				forks := reach(members, map[int]bool{start: true}, func(m *member) int { return m.origin })
				alone := len(forks) == 1
				all := reach(members, forks, func(m *member) int { return m.parent })
				check("forks", f.Forks, all, alone)
				if !alone && f.Start != id(byte(start)) {
					t.Fatalf("seed %d: the forks of %d begin with %v, want %d", seed, n, f.Start, start)
				}
			}
		}
	}
}

func TestFamiliesOfDamagedFilesEnd(t *testing.T) {
	members := []member{{parent: 3, tokens: 1, origin: 2}, {parent: 1, tokens: 1, origin: 1}, {parent: 2, tokens: 1}} // circles
	_, s := lies(members, func(int) string { return "stored" })
	r, err := s.families(t.Context(), nil, ipc.FamiliesRequest{All: true})
	if err != nil || len(r.Families) != 3 || r.Families[0].Tree.Tokens != 3 || r.Families[0].Forks.Tokens != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestFamiliesAreListed(t *testing.T) {
	members := []member{{tokens: 100, priced: true}, {parent: 1, tokens: 10}, {tokens: 5}, {tokens: 7}, {origin: 4, tokens: 8, failed: 1, taken: 2}}
	_, s := lies(members, func(n int) string { return []string{"live", "stored", "live", "stored", "stored"}[n-1] })
	list := func(req ipc.FamiliesRequest) []ipc.Family {
		t.Helper()
		r, err := s.families(t.Context(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		return r.Families
	}
	if got := list(ipc.FamiliesRequest{}); len(got) != 1 || got[0].PID != 1 || got[0].Tree.Tokens != 110 || got[0].Tree.Unpriced != 10 || *got[0].Tree.CostUSD != .1 || got[0].Own.Tokens != 100 || got[0].Forks != nil {
		t.Errorf("those that live: %+v", got)
	}
	if got := list(ipc.FamiliesRequest{All: true}); len(got) != 3 || got[1].PID != 4 || got[2].Forks.Tokens != 15 || got[2].Forks.FailedCalls != 1 || got[2].Tree != nil {
		t.Errorf("all: %+v", got)
	}
	if got := list(ipc.FamiliesRequest{Targets: []string{"n3", "n1"}}); len(got) != 2 || got[0].PID != 3 || got[0].Tree != nil || got[1].Tree == nil {
		t.Errorf("those that are named: %+v", got)
	}
	if _, err := s.families(t.Context(), nil, ipc.FamiliesRequest{Targets: []string{"none"}}); types.CodeOf(err) != types.ErrNotFound {
		t.Error(err)
	}
	sets := ipc.FamiliesRequest{Sets: [][]string{{"n1", "n2"}, {"n4", "n5"}, {}}} // n2 is below n1
	if r, err := s.families(t.Context(), nil, sets); err != nil || len(r.Families) != 0 || len(r.Sums) != 3 || r.Sums[0].Tokens != 110 || r.Sums[0].Processes != 2 || r.Sums[1].Tokens != 15 || r.Sums[2].Processes != 0 {
		t.Errorf("sets: %+v, %v", r, err)
	}
	if _, err := s.families(t.Context(), nil, ipc.FamiliesRequest{Sets: make([][]string, ipc.MaxFamilySets+1)}); types.CodeOf(err) != types.ErrInvalid {
		t.Error(err)
	}
	if own, tree := s.Together(id(1)); own.Tokens != 100 || tree.Tokens != 110 || tree.Processes != 2 {
		t.Errorf("%+v, %+v", own, tree)
	}
	if own, tree := s.Together(id(99)); own.Processes+tree.Processes != 0 {
		t.Errorf("%+v, %+v", own, tree)
	}
	r, err := s.cost(t.Context(), nil, ipc.CostRequest{By: "process", Under: "n5"})
	if err != nil || r.Total.FailedCalls != 1 || len(r.Lines) != 1 || r.Lines[0].FailedCalls != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := s.cost(t.Context(), nil, ipc.CostRequest{By: "day", Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}); err != nil || r.Total.FailedCalls != 0 || r.Total.Tokens != 130 {
		t.Errorf("since a day: %+v, %v", r, err)
	}
}
