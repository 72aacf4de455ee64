// Package journaltest is the suite that every step.Journal passes. It knows the interface and
// nothing of files.
package journaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"rnix/internal/step"
	"rnix/types"
)

// Run tests a journal. open returns one that keeps what an earlier one of the same test has
// committed, after that one was closed or has been lost with its machine; restart does the latter.
func Run(t *testing.T, open func(t *testing.T) (j step.Journal, restart func() step.Journal)) {
	tests := map[string]func(*testing.T, step.Journal, func() step.Journal){
		"CommittedLinesAreReplayed":              replayed,
		"CommitSurvivesARestart":                 survives,
		"OneOwnerAtATime":                        oneOwner,
		"FormerOwnerIsFenced":                    fenced,
		"EpochsOnlyGrow":                         epochs,
		"SequenceIsCheckedAtCommit":              sequence,
		"BatchIsWholeOrAbsent":                   batch,
		"EndedContextWritesNothing":              cancelled,
		"UnknownHistoryIsNotFound":               unknown,
		"ReplayBeginsWhereItIsTold":              from,
		"ReplayMayStopEarly":                     early,
		"HistoriesDoNotDisturbEachOther":         parallel,
		"ReaderBesideAWriterSeesWholeRecords":    beside,
		"ForeignBytesAreRefused":                 foreign,
		"OnlyOneOfManyRivalsCommitsEachSequence": rivals,
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			j, restart := open(t)
			run(t, j, restart)
		})
	}
}

var ctx = context.Background()

// line returns the line numbered seq.
func line(t *testing.T, seq uint64, text string) []byte {
	t.Helper()
	b, err := step.Encode(nil, &step.Record{V: step.FormatVersion, Kind: step.KindMarker, Seq: seq, Marker: &step.Marker{Name: "pause", Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func acquire(t *testing.T, j step.Journal, id types.UUID) step.Lease {
	t.Helper()
	lease, err := j.Acquire(ctx, id, "test")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func commit(t *testing.T, j step.Journal, id types.UUID, epoch, seq uint64, text string) {
	t.Helper()
	if err := j.Commit(ctx, id, epoch, seq, line(t, seq, text)); err != nil {
		t.Fatal(err)
	}
}

// texts returns what a history holds, as one string.
func texts(t *testing.T, j step.Journal, id types.UUID, from uint64) string {
	t.Helper()
	var out []string
	for r, err := range j.Replay(ctx, id, from) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(r.Seq, r.Marker.Text))
	}
	return strings.Join(out, " ")
}

func wantErr(t *testing.T, what string, err, target error, code types.ErrCode) {
	t.Helper()
	if types.CodeOf(err) != code || target != nil && !errors.Is(err, target) {
		t.Errorf("%s: %v (code %s), want %s", what, err, types.CodeOf(err), code)
	}
}

func replayed(t *testing.T, j step.Journal, _ func() step.Journal) {
	id := types.NewUUID()
	lease := acquire(t, j, id)
	if lease.Next != 1 || lease.Damage != "" || lease.Epoch == 0 {
		t.Errorf("lease of a new history: %+v", lease)
	}
	if got := texts(t, j, id, 1); got != "" {
		t.Errorf("new history: %s", got)
	}
	commit(t, j, id, lease.Epoch, 1, "a")
	commit(t, j, id, lease.Epoch, 2, "b")
	if got := texts(t, j, id, 1); got != "1a 2b" {
		t.Errorf("while owned: %s", got)
	}
	if err := j.Release(ctx, id, lease.Epoch); err != nil {
		t.Error(err)
	}
	if got := texts(t, j, id, 1); got != "1a 2b" {
		t.Errorf("afterwards: %s", got)
	}
	lease = acquire(t, j, id)
	if lease.Next != 3 {
		t.Errorf("second lease: %+v", lease)
	}
	commit(t, j, id, lease.Epoch, 3, "c")
	if got := texts(t, j, id, 1); got != "1a 2b 3c" {
		t.Errorf("after going on: %s", got)
	}
}

func survives(t *testing.T, j step.Journal, restart func() step.Journal) {
	id := types.NewUUID()
	lease := acquire(t, j, id)
	commit(t, j, id, lease.Epoch, 1, "a")
	j = restart()
	if got := texts(t, j, id, 1); got != "1a" {
		t.Errorf("got %q", got)
	}
	if lease := acquire(t, j, id); lease.Next != 2 {
		t.Errorf("lease %+v", lease)
	}
}

func oneOwner(t *testing.T, j step.Journal, _ func() step.Journal) {
	id := types.NewUUID()
	lease := acquire(t, j, id)
	_, err := j.Acquire(ctx, id, "another")
	wantErr(t, "second owner", err, nil, types.ErrConflict)
	if err == nil || !strings.Contains(err.Error(), "test") {
		t.Errorf("the owner is not named: %v", err)
	}
	if err := j.Renew(ctx, id, lease.Epoch); err != nil {
		t.Error(err)
	}
	commit(t, j, id, lease.Epoch, 1, "a")
}

func fenced(t *testing.T, j step.Journal, restart func() step.Journal) {
	id := types.NewUUID()
	old := acquire(t, j, id)
	commit(t, j, id, old.Epoch, 1, "a")
	if err := j.Release(ctx, id, old.Epoch); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		wantErr(t, when+": Commit", j.Commit(ctx, id, old.Epoch, 2, line(t, 2, "zombie")), step.ErrFenced, types.ErrConflict)
		wantErr(t, when+": Renew", j.Renew(ctx, id, old.Epoch), step.ErrFenced, types.ErrConflict)
		wantErr(t, when+": Release", j.Release(ctx, id, old.Epoch), step.ErrFenced, types.ErrConflict)
	}
	check("after Release")
	acquire(t, j, id)
	check("after another Acquire")
	j = restart()
	check("after a restart")
	acquire(t, j, id)
	check("after an Acquire behind it")
	if got := texts(t, j, id, 1); got != "1a" {
		t.Errorf("got %q", got)
	}
}

func epochs(t *testing.T, j step.Journal, restart func() step.Journal) {
	id, last := types.NewUUID(), uint64(0)
	for range 3 {
		for range 3 {
			lease := acquire(t, j, id)
			if lease.Epoch <= last {
				t.Errorf("epoch %d after %d", lease.Epoch, last)
			}
			last = lease.Epoch
			if err := j.Release(ctx, id, lease.Epoch); err != nil {
				t.Fatal(err)
			}
		}
		j = restart()
	}
}

func sequence(t *testing.T, j step.Journal, _ func() step.Journal) {
	id := types.NewUUID()
	e := acquire(t, j, id).Epoch
	wantErr(t, "gap at the start", j.Commit(ctx, id, e, 2, line(t, 2, "x")), step.ErrSeq, types.ErrConflict)
	commit(t, j, id, e, 1, "a")
	wantErr(t, "again", j.Commit(ctx, id, e, 1, line(t, 1, "x")), step.ErrSeq, types.ErrConflict)
	wantErr(t, "gap", j.Commit(ctx, id, e, 3, line(t, 3, "x")), step.ErrSeq, types.ErrConflict)
	wantErr(t, "wrong line", j.Commit(ctx, id, e, 2, line(t, 7, "x")), step.ErrSeq, types.ErrConflict)
	commit(t, j, id, e, 2, "b")
	if got := texts(t, j, id, 1); got != "1a 2b" {
		t.Errorf("got %q", got)
	}
}

func batch(t *testing.T, j step.Journal, restart func() step.Journal) {
	id := types.NewUUID()
	e := acquire(t, j, id).Epoch
	if err := j.Commit(ctx, id, e, 1, append(line(t, 1, "a"), line(t, 2, "b")...)); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "a gap within", j.Commit(ctx, id, e, 3, append(line(t, 3, "c"), line(t, 5, "d")...)), step.ErrSeq, types.ErrConflict)
	j = restart()
	if got := texts(t, j, id, 1); got != "1a 2b" {
		t.Errorf("got %q", got)
	}
}

func cancelled(t *testing.T, j step.Journal, _ func() step.Journal) {
	id := types.NewUUID()
	e := acquire(t, j, id).Epoch
	gone, cancel := context.WithCancel(ctx)
	cancel()
	wantErr(t, "Commit", j.Commit(gone, id, e, 1, line(t, 1, "x")), context.Canceled, types.ErrCancelled)
	_, err := j.Acquire(gone, types.NewUUID(), "x")
	wantErr(t, "Acquire", err, context.Canceled, types.ErrCancelled)
	commit(t, j, id, e, 1, "a")
	if got := texts(t, j, id, 1); got != "1a" {
		t.Errorf("got %q", got)
	}
}

func unknown(t *testing.T, j step.Journal, _ func() step.Journal) {
	n := 0
	for _, err := range j.Replay(ctx, types.NewUUID(), 1) {
		n++
		wantErr(t, "Replay", err, nil, types.ErrNotFound)
	}
	if n != 1 {
		t.Errorf("%d pairs", n)
	}
	id := types.NewUUID()
	for range 2 {
		_, err := j.Open(ctx, id, "x")
		wantErr(t, "Open", err, nil, types.ErrNotFound)
	}
	e := acquire(t, j, id).Epoch // nobody has it, and nothing was made
	commit(t, j, id, e, 1, "a")
	if _, err := j.Open(ctx, id, "y"); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("Open of one that has an owner: %v", err)
	}
	wantErr(t, "Commit", j.Commit(ctx, types.NewUUID(), 1, 1, line(t, 1, "x")), step.ErrFenced, types.ErrConflict)
}

func from(t *testing.T, j step.Journal, _ func() step.Journal) {
	id := types.NewUUID()
	e := acquire(t, j, id).Epoch
	for seq := uint64(1); seq <= 5; seq++ {
		commit(t, j, id, e, seq, "x")
	}
	for n, want := range map[uint64]string{0: "1x 2x 3x 4x 5x", 4: "4x 5x", 6: ""} {
		if got := texts(t, j, id, n); got != want {
			t.Errorf("from %d: %q", n, got)
		}
	}
}

func early(t *testing.T, j step.Journal, _ func() step.Journal) {
	id := types.NewUUID()
	e := acquire(t, j, id).Epoch
	commit(t, j, id, e, 1, "a")
	commit(t, j, id, e, 2, "b")
	for r, err := range j.Replay(ctx, id, 1) {
		if err != nil || r.Seq != 1 {
			t.Errorf("got %d, %v", r.Seq, err)
		}
		break
	}
	commit(t, j, id, e, 3, "c")
}

func parallel(t *testing.T, j step.Journal, _ func() step.Journal) {
	var wg sync.WaitGroup
	for range 8 {
		id := types.NewUUID()
		lease := acquire(t, j, id)
		wg.Go(func() { // ends by itself; Wait below
			for seq := uint64(1); seq <= 20; seq++ {
				b, err := step.Encode(nil, &step.Record{V: 1, Kind: step.KindMarker, Seq: seq, Marker: &step.Marker{Text: id.String()}})
				if err == nil {
					err = j.Commit(ctx, id, lease.Epoch, seq, b)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
			n := 0
			for r, err := range j.Replay(ctx, id, 1) {
				if n++; err != nil || r.Marker.Text != id.String() {
					t.Errorf("%v, %v", r, err)
				}
			}
			if n != 20 {
				t.Errorf("%d records", n)
			}
		})
	}
	wg.Wait()
}

func beside(t *testing.T, j step.Journal, _ func() step.Journal) {
	id := types.NewUUID()
	e := acquire(t, j, id).Epoch
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // ends when the writer has ended; Wait below
		last := 0
		for stop := false; !stop; {
			select {
			case <-done:
				stop = true
			default:
			}
			n := 0
			for _, err := range j.Replay(ctx, id, 1) {
				if err != nil {
					t.Error(err)
					return
				}
				n++
			}
			if n < last {
				t.Errorf("%d records after %d", n, last)
			}
			last = n
		}
		if last != 50 {
			t.Errorf("%d records at the end", last)
		}
	})
	long := strings.Repeat("long ", 20_000)
	for seq := uint64(1); seq <= 50; seq++ {
		commit(t, j, id, e, seq, long)
	}
	close(done)
	wg.Wait()
}

func foreign(t *testing.T, j step.Journal, _ func() step.Journal) {
	id := types.NewUUID()
	e := acquire(t, j, id).Epoch
	good := line(t, 1, "a")
	for name, b := range map[string][]byte{"nothing": {}, "no newline": good[:len(good)-1], "no record": []byte("hello\n"), "an empty line": append([]byte("\n"), good...)} {
		if err := j.Commit(ctx, id, e, 1, b); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	commit(t, j, id, e, 1, "a")
}

func rivals(t *testing.T, j step.Journal, _ func() step.Journal) {
	id := types.NewUUID()
	e := acquire(t, j, id).Epoch
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := map[uint64]int{}
	for range 4 {
		wg.Go(func() { // ends by itself; Wait below
			for seq := uint64(1); seq <= 30; {
				b, _ := step.Encode(nil, &step.Record{V: 1, Kind: step.KindMarker, Seq: seq, Marker: &step.Marker{}})
				err := j.Commit(ctx, id, e, seq, b)
				if err == nil {
					mu.Lock()
					won[seq]++
					mu.Unlock()
				} else if !errors.Is(err, step.ErrSeq) {
					t.Error(err)
					return
				}
				seq++
			}
		})
	}
	wg.Wait()
	for seq, n := range won {
		if n != 1 {
			t.Errorf("sequence %d was committed %d times", seq, n)
		}
	}
}
