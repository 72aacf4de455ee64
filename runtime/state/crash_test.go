package state

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
)

func over(fsys durable.FS) *Store {
	return &Store{fsys: func(string) (durable.FS, error) { return fsys, nil }}
}

// What was acknowledged is there after every crash and every error, and what is there can be read.
func TestStatesSurviveEveryCrashAndError(t *testing.T) {
	const wt = faultfs.DataDir
	count := func(s *Store) (int, error) {
		st, err := s.Read(wt)
		if errors.Is(err, ErrNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		return st.AttemptCount, nil
	}
	faultfs.Test(t, &faultfs.Op{
		Name: "update",
		Run: func(fsys durable.FS, ack func(string)) error {
			for range 3 {
				st, err := over(fsys).Update(wt, func(st *State) error { st.AttemptCount++; return nil })
				if err != nil {
					return err
				}
				ack(strconv.Itoa(st.AttemptCount))
			}
			return nil
		},
		Recover: func(fsys durable.FS) error { // the next session's first write
			_, err := over(fsys).Update(wt, func(*State) error { return nil })
			return err
		},
		Check: func(fsys durable.FS, acked []string) error {
			n, err := count(over(fsys))
			if err != nil {
				return err
			}
			if len(acked) > 0 {
				if last, _ := strconv.Atoi(acked[len(acked)-1]); n < last {
					return fmt.Errorf("%d updates are left of %d", n, last)
				}
			}
			return nil
		},
	})
}
