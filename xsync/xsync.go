// Package xsync holds small concurrent containers: SyncMap, a typed sync.Map; Numbered, a map for PIDs and the
// like; and Registry, names that may be taken only once.
package xsync

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// SyncMap is a typed sync.Map. The zero value is empty and ready for use.
type SyncMap[K comparable, V any] struct {
	m sync.Map
	n atomic.Int64
}

// Load returns the value of key.
func (s *SyncMap[K, V]) Load(key K) (v V, ok bool) {
	if x, found := s.m.Load(key); found {
		return x.(V), true
	}
	return v, false
}

// Store sets the value of key.
func (s *SyncMap[K, V]) Store(key K, v V) {
	if _, had := s.m.Swap(key, v); !had {
		s.n.Add(1)
	}
}

// LoadOrStore returns the value of key if there is one, else stores v and returns it.
func (s *SyncMap[K, V]) LoadOrStore(key K, v V) (actual V, loaded bool) {
	x, loaded := s.m.LoadOrStore(key, v)
	if !loaded {
		s.n.Add(1)
	}
	return x.(V), loaded
}

// LoadAndDelete removes key and returns the value that it had.
func (s *SyncMap[K, V]) LoadAndDelete(key K) (v V, ok bool) {
	x, ok := s.m.LoadAndDelete(key)
	if !ok {
		return v, false
	}
	s.n.Add(-1)
	return x.(V), true
}

// Delete removes key.
func (s *SyncMap[K, V]) Delete(key K) { s.LoadAndDelete(key) }

// Range calls f for each entry until it returns false. It sees no consistent snapshot.
func (s *SyncMap[K, V]) Range(f func(K, V) bool) {
	s.m.Range(func(k, v any) bool { return f(k.(K), v.(V)) })
}

// Len returns the number of entries.
func (s *SyncMap[K, V]) Len() int { return int(s.n.Load()) }

// Registry maps names to values; a name can be taken only once until it is given back. The zero
// value is empty and ready for use.
type Registry[V any] struct{ m SyncMap[string, V] }

// Register takes name. It fails if name is taken.
func (r *Registry[V]) Register(name string, v V) error {
	if _, taken := r.m.LoadOrStore(name, v); taken {
		return fmt.Errorf("%s is already registered", name)
	}
	return nil
}

// Unregister gives name back and reports whether it was taken.
func (r *Registry[V]) Unregister(name string) bool { _, had := r.m.LoadAndDelete(name); return had }

// Lookup returns the value of name.
func (r *Registry[V]) Lookup(name string) (V, bool) { return r.m.Load(name) }

// Range calls f for each entry until it returns false.
func (r *Registry[V]) Range(f func(string, V) bool) { r.m.Range(f) }

// Len returns the number of names taken.
func (r *Registry[V]) Len() int { return r.m.Len() }

// Closed reports whether a channel that nothing is sent on is closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
