package journal

import (
	"slices"
	"sync"
)

// memory keeps events of a journal without a directory, the newest that there is room for.
type memory struct {
	session   string
	source    string
	maxEvents int
	maxBytes  int64

	mu     sync.Mutex // a leaf
	events []Event    // +checklocks:mu
	// Bytes of data.
	bytes int64 // +checklocks:mu
	// The number of the oldest event.
	begin uint64 // +checklocks:mu
}

func (m *memory) write(events []Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		m.events, m.bytes = append(m.events, e), m.bytes+int64(len(e.Data))
	}
	for len(m.events) > m.maxEvents || m.bytes > m.maxBytes && len(m.events) > 1 {
		m.dropLocked(1)
	}
	return nil
}

// +checklocks:m.mu
func (m *memory) dropLocked(n int) {
	for _, e := range m.events[:n] {
		m.bytes -= int64(len(e.Data))
	}
	m.begin += uint64(n)
	m.events = slices.Delete(m.events, 0, n)
}

func (m *memory) read(_ *place, from, to uint64, max, bytes int, want func(string) bool) (out []Event, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := 0
	for _, e := range m.events {
		if e.Seq < from || e.Seq > to || !want(e.Kind) {
			continue
		}
		size += len(e.Data)
		if len(out) == max || len(out) > 0 && size > bytes {
			break
		}
		out = append(out, e)
	}
	return out, nil
}

func (m *memory) first() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begin
}

func (m *memory) releases(upTo uint64) bool { return upTo >= m.first() }

func (m *memory) release(upTo uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if upTo >= m.begin {
		m.dropLocked(min(len(m.events), int(upTo-m.begin+1)))
	}
	return nil
}

func (m *memory) saveCursor(string, uint64) error { return nil }
func (m *memory) forget(string) error             { return nil }
func (m *memory) close() error                    { return nil }
