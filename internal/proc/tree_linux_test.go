package proc

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

func TestMembersAreTheFamilyAndNobodyElse(t *testing.T) {
	p := func(pid, parent, group, session int, start uint64) stat {
		return stat{identity: identity{pid, start}, parent: parent, group: group, session: session, state: 'S'}
	}
	zombie := func(s stat) stat { s.state = 'Z'; return s }
	leader := p(100, 10, 100, 100, 50)
	tokens := map[int]string{103: "T", 200: "other", 104: "T"}
	for _, test := range []struct {
		name   string
		table  []stat
		leader identity
		known  map[identity]int
		want   []int
	}{
		{"Descendants", []stat{leader, p(101, 100, 101, 101, 51), p(102, 101, 102, 102, 52), p(300, 1, 300, 300, 60)}, leader.identity, nil, []int{100, 101, 102}},
		{"GroupAndSession", []stat{leader, p(101, 1, 100, 100, 51), p(102, 1, 102, 100, 51)}, leader.identity, nil, []int{100, 101, 102}},
		{"DeadLeaderHoldsItsPid", []stat{zombie(leader), p(101, 1, 100, 100, 51)}, leader.identity, nil, []int{101}},
		{"RecycledLeader", []stat{leader, p(101, 100, 100, 100, 51)}, identity{100, 49}, nil, nil},
		{"Token", []stat{p(103, 1, 103, 103, 70), p(104, 1, 1, 1, 2), p(200, 1, 200, 200, 70), p(105, 103, 9, 9, 71)}, leader.identity, nil, []int{103, 105}},
		{"Known", []stat{p(110, 1, 110, 110, 70), p(111, 110, 111, 111, 71), p(112, 1, 112, 112, 9)}, leader.identity, map[identity]int{{110, 70}: 0, {112, 70}: 0}, []int{110, 111}},
		{"SparedAbove", []stat{leader, p(12, 100, 12, 12, 60), p(13, 12, 13, 13, 61)}, leader.identity, nil, []int{100}},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := members(test.table, []root{{test.leader, "T"}}, test.known, map[int]bool{1: true, 12: true}, func(pid int) string { return tokens[pid] })
			var got []int
			for id := range maps.Keys(found) {
				got = append(got, id.PID)
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestWhoAsksIsNeverAMember(t *testing.T) {
	table := []stat{{identity: identity{5, 1}, parent: 4}, {identity: identity{4, 1}, parent: 3}, {identity: identity{3, 1}, parent: 0}, {identity: identity{9, 1}, parent: 3}}
	if got := ancestors(table, 5); !maps.Equal(got, map[int]bool{5: true, 4: true, 3: true}) {
		t.Errorf("got %v", got)
	}
	if got := ancestors([]stat{{identity: identity{5, 1}, parent: 6}, {identity: identity{6, 1}, parent: 5}}, 5); len(got) != 2 {
		t.Errorf("a circle gives %v", got)
	}
}

func TestOnlyOrphansAreSurelyAdopted(t *testing.T) {
	for _, test := range []struct {
		pid, session int
		want         bool
	}{{100, 100, false}, {100, 7, false}, {100, 55, true}} {
		if got := adopted(stat{identity: identity{PID: test.pid}, session: test.session}, 7); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) b) S 1 12 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2"))
	f.Add([]byte("12 ()"))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, err := parseStat(line)
		if err != nil {
			return
		}
		again, err := parseStat(fmt.Appendf(nil, "%d (x) %c %d %d %d 0 0 0 0 0 0 0 0 0 0 0 0 0 %d 0 %d 0 %d", s.PID, s.state, s.parent, s.group, s.session, s.threads, s.Start, s.resident/pageSize))
		if err != nil || again != s {
			t.Errorf("%+v became %+v, %v", s, again, err)
		}
	})
}
