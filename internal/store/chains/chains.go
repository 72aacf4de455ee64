// Package chains is a second way to keep histories, for tests: what is committed lies in memory, in chains that several nodes share, and each node
// has a copy of what it owns in files, which are the format everywhere. It shows that nobody above internal/store needs files to be where
// something becomes true, and what becomes of a node whose histories another one has taken.
//
// A chain has one tail and one epoch. Both are compared when lines are added, so who lost a history, or knows an old tail, adds nothing.
package chains

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

// Chains are the histories that nodes share. Safe for concurrent use.
type Chains struct {
	mu     sync.Mutex
	chains map[types.UUID]*chain // +checklocks:mu
	// +checklocks:mu
	epoch uint64 // the last that was given out
}

// New returns chains without a history.
func New() *Chains { return &Chains{chains: map[types.UUID]*chain{}} }

// chain is one history. Its lock is taken before that of Chains, and held while the owner's copy is written.
type chain struct {
	mu    sync.Mutex
	known bool   // +checklocks:mu
	lines []byte // +checklocks:mu
	// +checklocks:mu
	next  uint64 // of the next line
	node  *Node  // +checklocks:mu
	owner string // +checklocks:mu
	epoch uint64 // +checklocks:mu
	// +checklocks:mu
	local uint64 // the epoch of the owner's copy
	// +checklocks:mu
	failed error // the copy could not be written: nobody adds to it before it is taken again
}

func (c *Chains) of(id types.UUID) *chain {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chains[id] == nil {
		c.chains[id] = new(chain)
	}
	return c.chains[id]
}

// after returns an epoch that is greater than any before, and than least.
func (c *Chains) after(least uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch = max(c.epoch, least) + 1
	return c.epoch
}

// Node is the Store of one of the machines that share chains.
type Node struct {
	store.Opened
	chains *Chains
	name   string

	mu sync.Mutex
	// +checklocks:mu
	expired bool
}

var _ store.Opened = (*Node)(nil)

// Node returns a store over files, which are of this node alone.
func (c *Chains) Node(name string, files store.Opened) *Node {
	return &Node{Opened: files, chains: c, name: name}
}

// Expire ends the lease of the node: what it owns can be taken by others, and it is not told.
func (n *Node) Expire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.expired = true
}

func (n *Node) over() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.expired
}

// Acquire implements step.Journal.
func (n *Node) Acquire(ctx context.Context, id types.UUID, owner string) (step.Lease, error) {
	return n.take(ctx, "Acquire", id, owner, n.Opened.Acquire)
}

// Open implements step.Journal.
func (n *Node) Open(ctx context.Context, id types.UUID, owner string) (step.Lease, error) {
	return n.take(ctx, "Open", id, owner, n.Opened.Open)
}

func (n *Node) take(ctx context.Context, op string, id types.UUID, owner string, local func(context.Context, types.UUID, string) (step.Lease, error)) (step.Lease, error) {
	c := n.chains.of(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	n.forgetGone(id, c)
	if err := context.Cause(ctx); err != nil {
		return step.Lease{}, types.Errorf(types.ErrCancelled, op, id.String(), "%w", err)
	}
	if was := c.node; was != nil {
		if was == n || !was.over() {
			return step.Lease{}, types.Errorf(types.ErrConflict, op, id.String(), "something else writes to this history at this moment (for %s, on %s)", c.owner, was.name)
		}
		c.node = nil
		_ = was.Opened.Release(context.WithoutCancel(ctx), id, c.local) // its files may be closed
	}
	if c.known {
		local = n.Opened.Acquire // it is there, if not on this node yet
	}
	lease, err := local(ctx, id, owner)
	if err != nil {
		return lease, err
	}
	if err := n.level(ctx, id, c, lease); err != nil {
		return step.Lease{}, errors.Join(err, n.Opened.Release(context.WithoutCancel(ctx), id, lease.Epoch))
	}
	c.node, c.owner, c.local, c.failed = n, owner, lease.Epoch, nil
	c.epoch = n.chains.after(lease.Epoch)
	return step.Lease{Epoch: c.epoch, Next: c.next, Damage: lease.Damage}, nil
}

// level makes the copy of a node and the chain the same. What the node has is the beginning of the chain, or there is no chain yet.
//
// +checklocks:c.mu
func (n *Node) level(ctx context.Context, id types.UUID, c *chain, local step.Lease) error {
	have, err := durable.ReadFile(durable.OS, n.path(id))
	if err != nil {
		return err
	}
	switch {
	case !c.known:
		c.known, c.lines, c.next = true, have, local.Next
		return nil
	case !bytes.HasPrefix(c.lines, have):
		return types.Errorf(types.ErrStorage, "Acquire", id.String(), "the copy of %s is not the beginning of the chain", n.name)
	case len(have) == len(c.lines):
		return nil
	}
	return n.Opened.Commit(ctx, id, local.Epoch, local.Next, c.lines[len(have):])
}

func (n *Node) path(id types.UUID) string { return filepath.Join(n.Dir(id), step.StepsFile) }

// forgetGone forgets a chain whose last owner has removed the history: it is archived or deleted.
//
// +checklocks:c.mu
func (n *Node) forgetGone(id types.UUID, c *chain) {
	if !c.known || c.node != nil {
		return
	}
	if _, err := os.Stat(n.Dir(id)); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if _, listed := n.Index().Get(id); !listed {
		return // another node's
	}
	c.known, c.lines, c.next = false, nil, 0
}

// owned returns an error if epoch is not that of the owner.
//
// +checklocks:c.mu
func (n *Node) owned(op string, id types.UUID, c *chain, epoch uint64) error {
	if c.node == n && c.epoch == epoch {
		return nil
	}
	return types.Errorf(types.ErrConflict, op, id.String(), "epoch %d: %w", epoch, step.ErrFenced)
}

// Renew implements step.Journal.
func (n *Node) Renew(_ context.Context, id types.UUID, epoch uint64) error {
	c := n.chains.of(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	return n.owned("Renew", id, c, epoch)
}

// Release implements step.Journal. Of a history whose files are gone, which its owner has removed, the chain goes too.
func (n *Node) Release(ctx context.Context, id types.UUID, epoch uint64) error {
	c := n.chains.of(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := n.owned("Release", id, c, epoch); err != nil {
		return err
	}
	c.node = nil
	if _, err := os.Stat(n.Dir(id)); errors.Is(err, fs.ErrNotExist) {
		c.known, c.lines, c.next = false, nil, 0
	}
	return n.Opened.Release(ctx, id, c.local)
}

// Commit implements step.Journal.
func (n *Node) Commit(ctx context.Context, id types.UUID, epoch, seq uint64, lines []byte) error {
	c := n.chains.of(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return types.Errorf(types.ErrCancelled, "Commit", id.String(), "%w", err)
	}
	if err := n.owned("Commit", id, c, epoch); err != nil {
		return err
	}
	if c.failed != nil {
		return c.failed
	}
	count, err := step.Follow(id, lines, seq, c.next)
	if err != nil {
		return err
	}
	c.lines, c.next = append(c.lines, lines...), c.next+count // from here on it is true
	c.failed = n.Opened.Commit(context.WithoutCancel(ctx), id, c.local, seq, lines)
	return c.failed
}

// Replay implements step.Journal.
func (n *Node) Replay(ctx context.Context, id types.UUID, from uint64) iter.Seq2[step.Record, error] {
	return func(yield func(step.Record, error) bool) {
		c := n.chains.of(id)
		c.mu.Lock()
		n.forgetGone(id, c)
		lines, known := c.lines[:len(c.lines):len(c.lines)], c.known
		c.mu.Unlock()
		if !known { // nobody has taken it since this program started
			n.Opened.Replay(ctx, id, from)(yield)
			return
		}
		for line := range bytes.Lines(lines) {
			if err := context.Cause(ctx); err != nil {
				yield(step.Record{}, types.Errorf(types.ErrCancelled, "Replay", id.String(), "%w", err))
				return
			}
			r, err := step.Decode(bytes.TrimSuffix(line, []byte{'\n'}))
			if err != nil {
				yield(step.Record{}, err)
				return
			}
			if r.Seq >= from && !yield(*r, nil) {
				return
			}
		}
	}
}

// Discard implements store.Journal.
func (n *Node) Discard(id types.UUID) error {
	c := n.chains.of(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node != nil {
		return types.Errorf(types.ErrConflict, "Discard", id.String(), "something else writes to this history at this moment (for %s, on %s)", c.owner, c.node.name)
	}
	c.known, c.lines, c.next = false, nil, 0
	return n.Opened.Discard(id)
}

// Close implements store.Opened: what the node owns is nobody's then.
func (n *Node) Close() error {
	n.chains.mu.Lock()
	all := make([]*chain, 0, len(n.chains.chains))
	for _, c := range n.chains.chains {
		all = append(all, c)
	}
	n.chains.mu.Unlock()
	for _, c := range all {
		c.mu.Lock()
		if c.node == n {
			c.node = nil
		}
		c.mu.Unlock()
	}
	return n.Opened.Close()
}
