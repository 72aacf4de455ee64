package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/types"
)

// Provision makes the checkout of a session and returns its directory. Calls for one session come one
// after the other. A branch that somebody else has checked out, or a lock of git's, is waited for:
// MaxSpawnRetries tries with Options.RetryDelay between them, and before each but the first the prober
// is asked. ErrLostOwnership, ErrWorkareaRootOccupied, ErrWorkareaLeased, ErrInvalidBaseRef and
// ErrBaseFetch end it at once. After an error nothing is there that was not there before, but for what was fetched.
func (m *Manager) Provision(ctx context.Context, spec ProvisionSpec) (path string, err error) {
	s, err := spec.settled()
	if err != nil {
		return "", err
	}
	ctx, unlock, err := m.ledger.lock(ctx, s.SessionID)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := NewLeases(m).ended(ctx, s.SessionID); err != nil {
		return "", err
	}
	old, err := m.ledger.read(s.SessionID)
	if err == nil && old != nil {
		err = m.settleOld(ctx, old)
	}
	if err != nil {
		return "", err
	}
	r := &record{Session: s.SessionID, Path: filepath.Join(m.dir, s.LeafName), Strategy: s.Strategy, Branch: s.Branch}
	if s.Strategy == StrategyWorktreeAdd {
		r.Parent, r.Common = s.ParentRepoPath, plumbing.Repository(s.ParentRepoPath)
	}
	if _, err := os.Lstat(r.Path); err == nil {
		return "", occupied(r.Path)
	}
	p := &attempt{Manager: m, spec: s, rec: r}
	if err := p.try(ctx); err != nil {
		return "", err
	}
	return r.Path, nil
}

func occupied(path string) error {
	return types.Errorf(types.ErrConflict, "Provision", path, "%w: it was not touched; look at it, then move it away or name another leaf", ErrWorkareaRootOccupied)
}

// settleOld takes away what an earlier run has left of a session: one that was ready and whose
// directory is gone, or one that was never ready.
func (m *Manager) settleOld(ctx context.Context, old *record) error {
	if old.State == stateClaimed {
		return m.discard(ctx, old)
	}
	if _, err := os.Lstat(old.Path); err == nil {
		return occupied(old.Path)
	}
	return m.remove(ctx, old)
}

// attempt is a Provision under way, with the lock of its session.
type attempt struct {
	*Manager
	spec  ProvisionSpec
	rec   *record
	ready bool // the base was looked up, or fetched: a further try does not do that again
	auth  remoteURL
	quiet []plumbing.Setting
}

// try makes the checkout, more than once if need be.
func (p *attempt) try(ctx context.Context) error {
	for p.rec.Attempts = 1; ; p.rec.Attempts++ {
		err := p.once(ctx)
		if err == nil {
			return nil
		}
		if !p.retriable(ctx, err) {
			return err
		}
		if p.rec.Attempts == MaxSpawnRetries {
			return types.Errorf(types.CodeOf(err), "Provision", p.spec.SessionID, "after %d attempts: %w", MaxSpawnRetries, err)
		}
		p.log.Warn("a checkout cannot be made yet", "session", p.spec.SessionID, "attempt", p.rec.Attempts, "error", err)
		t := time.NewTimer(p.delay)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return types.Errorf(types.ErrCancelled, "Provision", p.spec.SessionID, "%w; the last try: %w", context.Cause(ctx), err)
		}
		if err := p.owned(ctx); err != nil {
			return err
		}
	}
}

// owned asks whether the session is still ours.
func (p *attempt) owned(ctx context.Context) error {
	if p.probe == nil {
		return nil
	}
	owned, err := p.probe(ctx, p.spec.SessionID)
	if err != nil {
		p.log.Warn("the owner of the session is not known: it is taken for ours", "session", p.spec.SessionID, "error", err)
		return nil
	}
	if !owned {
		return types.Errorf(types.ErrConflict, "Provision", p.spec.SessionID, "%w", ErrLostOwnership)
	}
	return nil
}

// once makes the checkout, or leaves nothing of it.
func (p *attempt) once(ctx context.Context) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	if p.spec.Strategy == StrategyWorktreeAdd {
		if err := p.dropStale(ctx); err != nil {
			return err
		}
	}
	if err := p.claim(); err != nil {
		return err
	}
	err := p.make(ctx)
	if err == nil {
		p.rec.State = stateReady
		if err = p.ledger.write(p.rec); err == nil {
			return nil
		}
	}
	p.rec.State = stateClaimed
	return errors.Join(err, p.discard(context.WithoutCancel(ctx), p.rec))
}

// prepare does what comes before the directory: credentials, and the base of a work tree. A further
// try does not fetch again.
func (p *attempt) prepare(ctx context.Context) (err error) {
	if p.ready || p.spec.Strategy == StrategyEmpty {
		return nil
	}
	if p.spec.Strategy == StrategyClone {
		p.auth, err = p.authenticate(ctx, p.spec.RepoURL)
		p.ready = err == nil
		return err
	}
	if err := p.fetchBase(ctx); err != nil {
		return err
	}
	p.ready = true
	return nil
}

// claim makes the directory and a record that it is ours, so that what a crash leaves of it is known.
func (p *attempt) claim() error {
	p.rec.State = stateClaimed
	return p.ledger.claimDir(p.rec.Session, p.rec.Path, func(dev, ino uint64) error {
		p.rec.Device, p.rec.Inode = dev, ino
		return p.ledger.write(p.rec)
	})
}

// claimDir makes a directory at a place where nothing is. It gets its name only once it is recorded, so
// no moment is left in which it is there and nobody knows whose it is. The caller has the lock of key.
func (l ledger) claimDir(key, path string, note func(dev, ino uint64) error) error {
	aside := l.coming(key)
	if err := os.Remove(aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Provision", aside, "%w", err)
	}
	if err := os.Mkdir(aside, 0o750); err != nil {
		return types.Errorf(types.ErrStorage, "Provision", aside, "%w", err)
	}
	dev, ino, _ := identity(aside)
	err := note(dev, ino)
	if err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
		if err == nil {
			return nil
		}
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) { // a file system that cannot refuse to rename
			if err = os.Mkdir(path, 0o750); err == nil {
				dev, ino, _ = identity(path)
				return errors.Join(note(dev, ino), os.Remove(aside))
			}
		}
		if errors.Is(err, os.ErrExist) {
			err = occupied(path)
		} else {
			err = types.Errorf(types.ErrStorage, "Provision", path, "%w", err)
		}
	}
	return errors.Join(err, os.Remove(aside), l.forget(key))
}

// discard removes a checkout that was never ready: nobody has been told of it, so what is in it is
// git's. A directory that is not the one that was made is not touched.
func (m *Manager) discard(ctx context.Context, r *record) error {
	if err := os.Remove(m.ledger.coming(r.Session)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Remove", m.ledger.coming(r.Session), "%w", err)
	}
	if _, err := os.Lstat(r.Path); err == nil && !r.isThere() {
		return occupied(r.Path)
	} else if err == nil {
		if err := sweepAway(r.Path); err != nil {
			return err
		}
	}
	if r.Strategy == StrategyWorktreeAdd {
		if err := m.unregister(ctx, r); err != nil {
			return err
		}
	}
	return m.ledger.forget(r.Session)
}

// sweepAway removes a directory that holds nothing of worth, if nobody is in it. It loses its name
// first, so that nobody comes to it any more.
func sweepAway(path string) error {
	if pid, _ := Worker(path); pid != 0 {
		return types.Errorf(types.ErrConflict, "Remove", path, "process %d works there", pid)
	}
	return durable.RemoveDir(durable.OS, path)
}

// make runs what fills the directory.
func (p *attempt) make(ctx context.Context) error {
	switch p.spec.Strategy {
	case StrategyClone:
		return p.clone(ctx)
	case StrategyWorktreeAdd:
		return p.addWorktree(ctx)
	}
	return nil
}

// clone clones the repository into the directory.
func (p *attempt) clone(ctx context.Context) error {
	first, then := p.spec.Branch, ""
	if p.spec.BaseRef != "" {
		first, then = p.spec.BaseRef, p.spec.Branch
	}
	args := append([]string{"clone", "--quiet"}, p.seedOptions()...)
	if len(p.spec.Sparse) > 0 {
		args = append(args, "--filter=blob:none", "--sparse")
	}
	if first != "" {
		args = append(args, "--branch", first)
	}
	// What the remote had is read from these files, and so is what was pushed later.
	files := append(slices.Clone(p.auth.set), plumbing.Set("init.defaultRefFormat", "files"))
	if _, err := p.git.git(ctx, files, append(args, "--", p.auth.clean, p.rec.Path)...); err != nil {
		return types.Errorf(types.ErrDriver, "Provision", shown(p.auth.clean), "%w", err)
	}
	p.rec.BaseRef = first
	p.rec.URL = p.auth.clean
	p.rec.Tips, p.rec.Tags = packed(filepath.Join(p.rec.Path, ".git"))
	if then != "" && then != first {
		if _, err := p.git.git(ctx, p.auth.set, "-C", p.rec.Path, "checkout", "--quiet", "--no-track", "-b", then); err != nil {
			return types.Errorf(types.ErrDriver, "Provision", p.rec.Path, "%w", err)
		}
	}
	if err := p.atBase(ctx); err != nil {
		return err
	}
	return p.narrow(ctx)
}

// packed returns what a fresh clone has of its remote: the commits of the branches, and the tags, each as
// its object and its name.
func packed(gitDir string) (tips, tags []string) {
	b, err := os.ReadFile(filepath.Join(gitDir, "packed-refs"))
	if err != nil {
		return nil, nil // none, or kept otherwise: then they count as nobody's, and the clone is kept rather than removed
	}
	for l := range strings.Lines(string(b)) {
		l = strings.TrimSuffix(l, "\n")
		object, name, ok := strings.Cut(l, " ")
		switch {
		case ok && strings.HasPrefix(name, "refs/tags/"):
			tags = append(tags, l)
		case ok && strings.HasPrefix(name, "refs/remotes/") && commitName().MatchString(object):
			tips = append(tips, object)
		}
	}
	slices.Sort(tips)
	return slices.Compact(tips), tags
}
