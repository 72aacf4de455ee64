package xsync

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// pagesOf counts the pages that a map holds on to.
func pagesOf[K ~uint64, V any](m *Numbered[K, V]) int {
	if pages := m.pages.Load(); pages != nil {
		return len(*pages)
	}
	return 0
}

func TestNumberedIsAMap(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var m Numbered[uint64, int]
	model := map[uint64]*int{}
	for range 20_000 {
		key := r.Uint64N(2000)
		if key%7 == 0 {
			key = ^key // anything is a key
		}
		switch v := new(int); r.IntN(3) {
		case 0:
			want := model[key]
			if want == nil {
				want, model[key] = v, v
			}
			if got := m.Store(key, v); got != want {
				t.Fatalf("stored %d: %p, want %p", key, got, want)
			}
		case 1:
			if got := m.Delete(key); got != model[key] {
				t.Fatalf("deleted %d: %p, want %p", key, got, model[key])
			}
			delete(model, key)
		default:
			if got := m.Load(key); got != model[key] {
				t.Fatalf("loaded %d: %p, want %p", key, got, model[key])
			}
		}
	}
	var want []*int
	for _, key := range slices.Sorted(maps.Keys(model)) {
		want = append(want, model[key])
	}
	if got := m.All(); !slices.Equal(got, want) || m.Len() != len(want) {
		t.Errorf("%d values, Len %d, want %d in order of their keys", len(got), m.Len(), len(want))
	}
}

func TestNumbersThatAreGoneTakeNoMemory(t *testing.T) {
	var m Numbered[uint64, int]
	if m.Load(1) != nil || m.Delete(1) != nil || m.All() != nil {
		t.Error("an empty map has something")
	}
	for key := range uint64(100 * pageSize) { // one at a time, as with one agent after the other
		m.Store(key, new(int))
		m.Delete(key)
		if n := pagesOf(&m); n > 1 {
			t.Fatalf("%d pages for nothing", n)
		}
	}
	for key := range uint64(10 * pageSize) {
		m.Store(key, new(int))
	}
	for key := range uint64(10 * pageSize) {
		m.Delete(key)
	}
	if n := pagesOf(&m); n > 1 {
		t.Errorf("%d pages for nothing", n)
	}
}

func TestNumberIsGivenToExactlyOne(t *testing.T) {
	var m Numbered[uint64, int]
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for key := range uint64(3 * pageSize) {
				v := new(int)
				got := m.Store(key, v)
				if there := m.Load(key); there != nil && got == v {
					if had := m.Delete(key); had != v {
						t.Errorf("%d: somebody else has taken it away", key)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if m.Len() != 0 || len(m.All()) != 0 {
		t.Errorf("%d are left", m.Len())
	}
}
