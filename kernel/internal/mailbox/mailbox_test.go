package mailbox

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

func TestOrderBoundAndClose(t *testing.T) { // against a slice
	rapid.Check(t, func(t *rapid.T) {
		b := Box[int]{Max: 4}
		var model []int
		done, cancel := context.WithCancelCause(context.Background())
		cancel(errors.New("empty"))
		closed := false
		for i := range rapid.IntRange(1, 80).Draw(t, "n") {
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0, 1, 2, 3, 4:
				err := b.Put(i)
				switch {
				case closed && err != ErrClosed, !closed && (err == ErrFull) != (len(model) == 4):
					t.Fatalf("put: %v with %d", err, len(model))
				case err == nil:
					model = append(model, i)
				}
			case 5, 6, 7, 8:
				v, err := b.Get(done)
				if len(model) == 0 {
					if err == nil {
						t.Fatal("got something from an empty box")
					}
					continue
				}
				if err != nil || v != model[0] {
					t.Fatalf("got %d %v, want %d", v, err, model[0])
				}
				model = model[1:]
			case 9:
				if rapid.IntRange(0, 5).Draw(t, "close") == 0 {
					b.Close()
					closed = true
				}
			}
			if b.Len() != len(model) {
				t.Fatalf("len %d, want %d", b.Len(), len(model))
			}
		}
	})
}

func TestCloseWakesReceiverAndSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var empty Box[int]
		full := Box[int]{Max: 1}
		if err := full.Put(1); err != nil {
			t.Fatal(err)
		}
		errs := make(chan error, 2)
		go func() { _, err := empty.Get(t.Context()); errs <- err }()
		go func() { errs <- full.PutWait(t.Context(), 2) }()
		synctest.Wait()
		empty.Close()
		full.Close()
		for range 2 {
			if err := <-errs; err != ErrClosed {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestRoomWakesTheWaitingSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Box[int]{Max: 1}
		_ = b.Put(1)
		sent := make(chan error, 1)
		go func() { sent <- b.PutWait(t.Context(), 2) }()
		synctest.Wait()
		if v, err := b.Get(t.Context()); v != 1 || err != nil {
			t.Fatal(v, err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if v, _ := b.Get(t.Context()); v != 2 {
			t.Fatal(v)
		}
	})
}

func TestWhoGivesUpDoesNotSwallowTheWakeOfAnother(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			b := Box[int]{Max: 1}
			if err := b.Put(0); err != nil {
				t.Fatal(err)
			}
			first, giveUp := context.WithCancelCause(t.Context())
			tired := errors.New("tired")
			sent := make(chan error, 2)
			go func() { sent <- b.PutWait(first, 1) }()
			synctest.Wait() // it is the first in the queue
			go func() { sent <- b.PutWait(t.Context(), 2) }()
			synctest.Wait()
			go giveUp(tired) // at the same moment as there is room
			if v, err := b.Get(t.Context()); v != 0 || err != nil {
				t.Fatal(v, err)
			}
			for n := range 2 {
				v, err := b.Get(t.Context())
				if n == 0 && err != nil || v != 1 && v != 2 {
					t.Fatal(v, err)
				}
				if v == 2 { // whatever became of the first, the second came
					break
				}
			}
			synctest.Wait()
			for range 2 {
				if err := <-sent; err != nil && err != tired {
					t.Error(err)
				}
			}
		})
	}
}

func TestAThousandWaitingSendersLoseNothing(t *testing.T) {
	const senders, each = 1000, 5
	b := Box[[2]int]{Max: 16}
	for i := range senders {
		go func() { // ends with its last message
			for n := range each {
				if err := b.PutWait(t.Context(), [2]int{i, n}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	var next [senders]int
	for range senders * each {
		v, err := b.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if next[v[0]] != v[1] {
			t.Fatalf("sender %d: message %d, want %d", v[0], v[1], next[v[0]])
		}
		next[v[0]]++
	}
	if b.Len() != 0 {
		t.Errorf("%d are left", b.Len())
	}
}
