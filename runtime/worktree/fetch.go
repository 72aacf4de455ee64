package worktree

import (
	"context"
	"errors"
	"strings"
	"time"

	"rnix/internal/plumbing"
	"rnix/types"
)

// flightKey names a fetch: who wants the same one waits for it.
type flightKey struct{ repo, ref string }

// flight is one fetch under way.
type flight struct {
	done chan struct{} // closed when err and took are set
	err  error
	took time.Duration

	until time.Time   // the latest moment until which somebody waits for it; guarded by shared.mu
	stop  *time.Timer // ends it then
}

// fetch brings a branch of the remote up to date in a repository. Those who want the same one at the
// same time share one fetch, which goes on when the one who began it gives up. Each waits for it as long as it said, and
// it lasts as long as the most patient of them waits.
func (m *Manager) fetch(ctx context.Context, repo string, ref string, set []plumbing.Setting, where []string, timeout time.Duration) (time.Duration, error) {
	key := flightKey{plumbing.Resolved(repo), ref}
	until := time.Now().Add(timeout)
	shared.mu.Lock()
	f := shared.flights[key]
	switch {
	case f == nil:
		apart, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight{done: make(chan struct{}), until: until, stop: time.AfterFunc(timeout, cancel)}
		shared.flights[key] = f
		go func() { // begun by the first who asks; ends by itself when stop does; those who wait see done
			began := time.Now()
			f.err = m.fetchAlone(apart, repo, ref, set, where)
			f.took = time.Since(began)
			shared.mu.Lock()
			delete(shared.flights, key)
			shared.mu.Unlock()
			f.stop.Stop()
			cancel()
			close(f.done)
		}()
	case until.After(f.until) && f.stop.Stop(): // it has not been ended yet
		f.until = until
		f.stop.Reset(timeout)
	}
	shared.mu.Unlock()
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case <-f.done:
		return f.took, f.err
	case <-late.C:
	case <-ctx.Done():
		return 0, types.Errorf(types.ErrCancelled, "Fetch", ref, "%w", context.Cause(ctx))
	}
	shared.mu.Lock()
	goesOn := f.until.After(until)
	shared.mu.Unlock()
	if !goesOn { // it is ending now, and says why
		select {
		case <-f.done:
			return f.took, f.err
		case <-ctx.Done():
			return 0, types.Errorf(types.ErrCancelled, "Fetch", ref, "%w", context.Cause(ctx))
		}
	}
	return 0, types.Errorf(types.ErrTimeout, "Fetch", ref, "%w: the remote has not answered in time", ErrBaseFetch)
}

// fetchAlone fetches, and once more if that failed at a work tree that somebody added or removed meanwhile: git fails where it finds one half made.
func (m *Manager) fetchAlone(ctx context.Context, repo, ref string, set []plumbing.Setting, where []string) error {
	try := func(what entry) (out []byte, changed bool, err error) {
		leave, err := shared.enter(ctx, repo, what)
		if err != nil {
			return nil, false, types.Errorf(types.ErrTimeout, "Fetch", ref, "%w: %w", ErrBaseFetch, err)
		}
		out, err = m.git.git(ctx, set, append(where, "fetch", "--no-auto-maintenance", "origin", "--", "+refs/heads/"+ref+":refs/remotes/origin/"+ref)...)
		return out, leave(), err
	}
	out, changed, err := try(toFetch)
	if err != nil && changed && ctx.Err() == nil && strings.Contains(string(out)+err.Error(), "worktrees/") {
		first := err
		if out, _, err = try(toRead); errors.Is(err, ErrBaseFetch) {
			return types.Errorf(types.ErrTimeout, "Fetch", ref, "%w; before that: %w", err, first)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrBaseFetch): // it could not begin
		return err
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
