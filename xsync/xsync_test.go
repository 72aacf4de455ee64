package xsync

import (
	"sync"
	"testing"
)

func TestLenCountsWhatIsThere(t *testing.T) {
	var m SyncMap[string, int]
	m.Store("a", 1)
	m.Store("a", 2)
	m.LoadOrStore("b", 3)
	m.LoadOrStore("b", 4)
	m.Delete("nobody")
	if v, ok := m.Load("a"); v != 2 || !ok || m.Len() != 2 {
		t.Error(v, ok, m.Len())
	}
	if v, had := m.LoadAndDelete("b"); v != 3 || !had || m.Len() != 1 {
		t.Error(v, had, m.Len())
	}
}

func TestNameIsTakenByExactlyOne(t *testing.T) {
	var r Registry[int]
	var wg sync.WaitGroup
	won := make(chan int, 50)
	for i := range 50 {
		wg.Go(func() {
			if r.Register("/dev/x", i) == nil {
				won <- i
			}
		})
	}
	wg.Wait()
	close(won)
	winner, n := -1, 0
	for i := range won {
		winner, n = i, n+1
	}
	if v, ok := r.Lookup("/dev/x"); n != 1 || !ok || v != winner || r.Len() != 1 {
		t.Errorf("%d winners, %d there", n, v)
	}
	if !r.Unregister("/dev/x") || r.Unregister("/dev/x") || r.Register("/dev/x", 9) != nil {
		t.Error("a name that was given back cannot be taken")
	}
}
