package worktree

import (
	"context"
	"strings"
	"time"

	"rnix/types"
)

// flightKey names a fetch: who wants the same one waits for it.
type flightKey struct{ repo, ref string }

// flight is one fetch under way.
type flight struct {
	done chan struct{} // closed when err and took are set
	err  error
	took time.Duration
}

// fetch brings a branch of the remote up to date in a repository. Those who want the same one at the
// same time share one fetch, which goes on when the one who began it gives up.
func (m *Manager) fetch(ctx context.Context, repo string, ref string, set []pair, where []string, timeout time.Duration) (time.Duration, error) {
	key := flightKey{repo, ref}
	shared.mu.Lock()
	f := shared.flights[key]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		shared.flights[key] = f
		apart, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		go func() { // begun by the first who asks; ends by itself after timeout; those who wait see done
			defer cancel()
			began := time.Now()
			f.err = m.fetchAlone(apart, repo, ref, set, where)
			f.took = time.Since(began)
			shared.mu.Lock()
			delete(shared.flights, key)
			shared.mu.Unlock()
			close(f.done)
		}()
	}
	shared.mu.Unlock()
	select {
	case <-f.done:
		return f.took, f.err
	case <-ctx.Done():
		return 0, types.Errorf(types.ErrCancelled, "Fetch", ref, "%w", context.Cause(ctx))
	}
}

func (m *Manager) fetchAlone(ctx context.Context, repo, ref string, set []pair, where []string) error {
	leave, err := shared.enter(ctx, repo, false)
	if err != nil {
		return types.Errorf(types.ErrTimeout, "Fetch", ref, "%w: %w", ErrBaseFetch, err)
	}
	defer leave()
	out, err := m.git.git(ctx, set, append(where, "fetch", "--no-auto-maintenance", "origin", "--", "+refs/heads/"+ref+":refs/remotes/origin/"+ref)...)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return types.Errorf(types.ErrTimeout, "Fetch", ref, "%w: the remote has not answered in time: %w", ErrBaseFetch, err)
	case absentRef(string(out) + err.Error()):
		return types.Errorf(types.ErrNotFound, "Fetch", ref, "%w: %w: the remote has no branch %s: name one that it has as BaseRef", ErrBaseFetch, ErrInvalidBaseRef, ref)
	}
	return types.Errorf(types.ErrDriver, "Fetch", ref, "%w: %w", ErrBaseFetch, err)
}

// absentRef reads in git's words, for which there is no exit status, that the remote lacks a branch.
func absentRef(said string) bool {
	said = strings.ToLower(said)
	for _, words := range []string{"couldn't find remote ref", "could not find remote ref", "no such ref"} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}
