package mailbox

// Take takes all messages for which pick is true, in order. pick runs under the lock: it must only look
// at its message.
func (b *Box[T]) Take(pick func(T) bool) (taken []T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lenLocked() == 0 {
		return nil
	}
	var left []T
	for _, list := range [2][]T{b.out[b.taken:], b.in} {
		for _, v := range list {
			if pick(v) {
				taken = append(taken, v)
			} else {
				left = append(left, v)
			}
		}
	}
	b.out, b.in, b.taken = left, nil, 0
	for range taken {
		b.shrunk.wake()
	}
	if len(taken) > 0 {
		b.changedLocked()
	}
	return taken
}

// Has reports whether there is a message for which pick is true. pick runs under the lock.
func (b *Box[T]) Has(pick func(T) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range [2][]T{b.out[b.taken:], b.in} {
		for _, v := range list {
			if pick(v) {
				return true
			}
		}
	}
	return false
}

// Changed returns a channel that is closed when the next message comes or goes, or the box is closed.
func (b *Box[T]) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.change == nil {
		b.change = make(chan struct{})
		if b.closed {
			close(b.change)
		}
	}
	return b.change
}

// +checklocks:b.mu
func (b *Box[T]) changedLocked() {
	if b.change != nil && !b.closed {
		close(b.change)
		b.change = nil
	}
}

// Closed reports whether the box is closed.
func (b *Box[T]) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// CloseEmpty closes the box if nothing is in it, and reports whether it is closed.
func (b *Box[T]) CloseEmpty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && b.lenLocked() > 0 {
		return false
	}
	b.closeLocked()
	return true
}
