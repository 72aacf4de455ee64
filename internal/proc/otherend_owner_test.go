package proc

import (
	"errors"
	"testing"

	"rnix/types"
)

func TestAllWhoHaveAConnectionWorkForOneProcess(t *testing.T) {
	many := make([]int, maxHolders+1)
	for i := range many {
		many[i] = i + 1
	}
	for name, c := range map[string]struct {
		has, still []int
		owners     map[int]types.PID
		reused     int // a PID that becomes another's while it is looked
		want       types.PID
		err        error
	}{
		"one":                        {has: []int{1}, still: []int{1}, owners: map[int]types.PID{1: 7}, want: 7},
		"two of it":                  {has: []int{1, 2}, still: []int{1, 2}, owners: map[int]types.PID{1: 7, 2: 7}, want: 7},
		"none":                       {err: ErrUnseen},
		"another's":                  {has: []int{1, 2}, still: []int{1, 2}, owners: map[int]types.PID{1: 7, 2: 8}, err: ErrShared},
		"one that has left":          {has: []int{1, 2}, still: []int{1, 2}, owners: map[int]types.PID{1: 0, 2: 7}, err: ErrAdrift},
		"one that has ended":         {has: []int{1, 2}, still: []int{2}, owners: map[int]types.PID{1: 7, 2: 7}, err: ErrUnseen},
		"one that is no agent's":     {has: []int{1, 2}, still: []int{1, 2}, owners: map[int]types.PID{1: 7}, err: ErrOutside},
		"one that is another by now": {has: []int{1, 2}, still: []int{1, 2}, owners: map[int]types.PID{1: 7, 2: 7}, reused: 2, err: ErrUnseen},
		"one that was never seen":    {has: []int{0}, still: []int{0}, owners: map[int]types.PID{0: 7}, err: ErrUnseen},
		"a crowd":                    {has: many, still: many, err: ErrShared},
	} {
		seen := map[int]bool{}
		who, err := ownerOfAll(func(among []int) []int {
			if among != nil {
				return c.still
			}
			return c.has
		}, func(pid int) identity {
			again := seen[pid]
			seen[pid] = true
			if again && pid == c.reused {
				return identity{PID: pid, Start: 99}
			}
			return identity{PID: pid, Start: uint64(pid)}
		}, func(pid int) (types.PID, bool) { who, ok := c.owners[pid]; return who, ok })
		if !errors.Is(err, c.err) || who != c.want {
			t.Errorf("%s: %d %v", name, who, err)
		}
	}
}
