package mailbox

// Take takes all messages for which pick is true, in order. pick runs under the lock: it must only look
// at its message.
func (b *Box[T]) Take(pick func(T) bool) (taken []T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.in)+len(b.out) == 0 {
		return nil
	}
	b.out, b.in = append(b.out, b.in...), nil
	left := make([]T, 0, len(b.out))
	for _, v := range b.out {
		if pick(v) {
			taken = append(taken, v)
		} else {
			left = append(left, v)
		}
	}
	b.out = left
	if len(taken) > 0 && b.shrunk != nil {
		close(b.shrunk)
		b.shrunk = nil
	}
	return taken
}

// Has reports whether there is a message for which pick is true. pick runs under the lock.
func (b *Box[T]) Has(pick func(T) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range [2][]T{b.out, b.in} {
		for _, v := range list {
			if pick(v) {
				return true
			}
		}
	}
	return false
}

// Grown returns a channel that is closed when the next message comes, or the box is closed.
func (b *Box[T]) Grown() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wait(&b.grown)
}

// Shrunk returns a channel that is closed when the next message is taken, or the box is closed.
func (b *Box[T]) Shrunk() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wait(&b.shrunk)
}

// wait returns one of the channels for who waits.
//
// +checklocks:b.mu
func (b *Box[T]) wait(ch *chan struct{}) <-chan struct{} {
	if b.closed {
		return closed
	}
	if *ch == nil {
		*ch = make(chan struct{})
	}
	return *ch
}

// closed is what who waits for a closed box gets.
var closed = func() chan struct{} { ch := make(chan struct{}); close(ch); return ch }()

// Closed reports whether the box is closed.
func (b *Box[T]) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// CloseEmpty closes the box if nothing is in it, and reports whether it is closed.
func (b *Box[T]) CloseEmpty() bool {
	b.mu.Lock()
	empty := b.closed || len(b.in)+len(b.out) == 0
	b.closed = b.closed || empty
	b.mu.Unlock()
	if empty {
		b.Close() // wakes everybody
	}
	return empty
}
