package flows

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"rnix/ipc"
	"rnix/types"
)

// Boot is how far the daemon has come with what init.yaml says. Its lock is a leaf.
type Boot struct {
	// Tell notes for clients why the daemon does not start.
	Tell func(why string)

	done chan struct{} // closed when what is required runs, or cannot

	mu sync.Mutex
	// +checklocks:mu
	err   error                // something that is required cannot be started
	items []ipc.InitSupervisor // +checklocks:mu
}

// NewBoot makes one that waits for Init.Run.
func NewBoot() *Boot { return &Boot{done: make(chan struct{})} }

// put notes what has become of a supervisor.
func (b *Boot) put(i ipc.InitSupervisor) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, i)
}

// All returns what has become of the supervisors, in the order of the file.
func (b *Boot) All() []ipc.InitSupervisor {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.items)
}

// Failed is why the daemon cannot start; nil = it can, as far as it is known.
func (b *Boot) Failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Starting reports whether something that is required is still being started.
func (b *Boot) Starting() bool {
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}

// Wait waits until everything runs that the daemon must not be without. It fails if that cannot be.
func (b *Boot) Wait(ctx context.Context) error {
	select {
	case <-b.done:
	case <-ctx.Done():
		return types.Errorf(types.ErrUnavailable, "Ensure", "", "the daemon is still starting what init.yaml requires; try again in a moment")
	}
	if err := b.Failed(); err != nil {
		return types.Errorf(types.ErrUnavailable, "Ensure", "", "the daemon does not start: %s", FailureText(err))
	}
	return nil
}

// fail ends the start of the daemon.
func (b *Boot) fail(err error, log *slog.Logger) {
	log.Error("start", "err", err)
	b.mu.Lock()
	first := b.err == nil
	if first {
		b.err = err
	}
	b.mu.Unlock()
	if first {
		b.Tell(FailureText(err))
	}
}

// FailureText says why a daemon does not start, without the operation: it names the place or the thing first.
func FailureText(err error) string {
	text := err.Error()
	if s := new(types.SyscallError); errors.As(err, &s) {
		text = strings.TrimPrefix(strings.TrimPrefix(text, s.Syscall), ": ")
	}
	return strings.TrimSpace(text)
}
