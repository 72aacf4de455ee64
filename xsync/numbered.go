package xsync

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// pageSize is how many neighbouring numbers share a page of a Numbered: 2 KiB of memory, which are there as long
// as one of them is.
const pageSize = 256

// Numbered is a map for keys that are given away in ascending order, such as PIDs. It takes no memory for each
// entry but a pointer, and a lookup takes no lock. The zero value is empty and ready for use; safe for
// concurrent use.
type Numbered[K ~uint64, V any] struct {
	pages atomic.Pointer[map[uint64]*page[V]] // replaced, never changed; nil = none

	mu sync.Mutex // held by who stores and deletes
	// Page with the highest numbers so far, which stays when it is empty.
	newest uint64 // +checklocks:mu
	n      atomic.Int64
}

type page[V any] struct {
	at   [pageSize]atomic.Pointer[V]
	used int // guarded by Numbered.mu
}

func (m *Numbered[K, V]) find(key K) *page[V] {
	if pages := m.pages.Load(); pages != nil {
		return (*pages)[uint64(key)/pageSize]
	}
	return nil
}

// Load returns the value of key, or nil.
func (m *Numbered[K, V]) Load(key K) *V {
	if p := m.find(key); p != nil {
		return p.at[uint64(key)%pageSize].Load()
	}
	return nil
}

// Store sets the value of key unless there is one, and returns the value that is there then. v is not nil.
func (m *Numbered[K, V]) Store(key K, v *V) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.find(key)
	if p == nil {
		p = m.growLocked(uint64(key) / pageSize)
	}
	at := &p.at[uint64(key)%pageSize]
	if old := at.Load(); old != nil {
		return old
	}
	at.Store(v)
	p.used++
	m.n.Add(1)
	return v
}

// growLocked adds a page, and takes away those that are empty.
//
// +checklocks:m.mu
func (m *Numbered[K, V]) growLocked(no uint64) *page[V] {
	pages := map[uint64]*page[V]{}
	if old := m.pages.Load(); old != nil {
		for i, p := range *old {
			if p.used > 0 {
				pages[i] = p
			}
		}
	}
	p := new(page[V])
	pages[no] = p
	m.newest = max(m.newest, no)
	m.pages.Store(&pages)
	return p
}

// Delete removes key and returns the value that it had, or nil.
func (m *Numbered[K, V]) Delete(key K) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.find(key)
	if p == nil {
		return nil
	}
	v := p.at[uint64(key)%pageSize].Swap(nil)
	if v == nil {
		return nil
	}
	m.n.Add(-1)
	if p.used--; p.used == 0 && uint64(key)/pageSize != m.newest {
		pages := maps.Clone(*m.pages.Load())
		delete(pages, uint64(key)/pageSize)
		m.pages.Store(&pages)
	}
	return v
}

// Len returns the number of entries.
func (m *Numbered[K, V]) Len() int { return int(m.n.Load()) }

// All returns the values in order of their keys. It is no consistent snapshot.
func (m *Numbered[K, V]) All() []*V {
	pages := m.pages.Load()
	if pages == nil {
		return nil
	}
	out := make([]*V, 0, m.Len())
	for _, no := range slices.Sorted(maps.Keys(*pages)) {
		p := (*pages)[no]
		for i := range p.at {
			if v := p.at[i].Load(); v != nil {
				out = append(out, v)
			}
		}
	}
	return out
}
