package confine

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
)

// errUnknown is the cause of the refusal to start what nobody says how to confine.
var errUnknown = errors.New("it is not known how the commands of this process are confined: it has ended")

// errUnsaid is the cause of the refusal to start an MCP server or an agent CLI that does not say how it is confined.
var errUnsaid = errors.New("it is not known how this MCP server or agent CLI is confined")

// probeTime bounds the test of each mechanism.
const probeTime = 20 * time.Second

// Host returns with what this host can confine commands. It finds out by confining one, the first time, and whenever the machine, the user or
// the programs are others.
func (s *Service) Host() sandbox.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, _ := s.Lookup("PATH")
	bwrap := sandbox.FindBwrap(path)
	if h := s.host; h.Key != sandbox.HostKey(s.Self, bwrap) || h.Bwrap.Untried || h.Landlock.Untried || h.Best() == sandbox.RungNone {
		s.host = sandbox.Probe(context.Background(), s.try, s.Self, bwrap)
		s.Log.Info("sandbox", "by", string(s.host.Best()), "bwrap", s.host.Bwrap.Reason, "landlock", s.host.Landlock.Reason)
	}
	return s.host
}

// try runs a command by a plan, for Probe.
func (s *Service) try(ctx context.Context, plan sandbox.Plan, c sandbox.Command) (int, string, error) {
	errs := proc.NewRing(4 << 10)
	child, err := s.Start(ctx, proc.Spec{Kind: proc.KindShell, Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Stderr: errs, Timeout: probeTime,
		Shown: "test of the sandbox", Box: &proc.Box{Plan: plan, Self: s.Self}})
	if err != nil {
		return 0, "", err
	}
	exit := child.Wait()
	return exit.Code, errs.String(), exit.Err
}

// Begin finds out what this host can enforce, unless the user has switched the sandbox off, and removes the temporary files that an earlier daemon has left and nobody needs any more.
func (s *Service) Begin(user sandbox.Settings) {
	if !user.Off() {
		s.Host()
	}
	entries, err := os.ReadDir(temps(s.Data))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Log.Warn("temporary files of commands", "err", err)
	}
	for _, e := range entries {
		var id types.UUID
		name, _, _ := strings.Cut(e.Name(), ".") // behind it, which MCP server
		if id.UnmarshalText([]byte(name)) == nil && s.Over(id) {
			clearTemps(s.Data, s.Log, id)
		}
	}
	sweepCaches(s.Data, s.Log, time.Now())
}

// cacheAge is after how long without a command that used it a cache goes.
const cacheAge = 30 * 24 * time.Hour

// sweepCaches removes the caches that no command has used for long: they are made again.
func sweepCaches(data string, log *slog.Logger, now time.Time) {
	entries, _ := os.ReadDir(caches(data)) // where there is none nothing is to be removed
	for _, e := range entries {
		if info, err := e.Info(); err != nil || !e.IsDir() || now.Sub(info.ModTime()) < cacheAge {
			continue
		}
		if err := removeAll(filepath.Join(caches(data), e.Name())); err != nil {
			log.Warn("a cache of commands cannot be removed", "err", err)
		}
	}
}

// Ended removes the temporary files of a history, beside the caller, if it has ended for good.
func (s *Service) Ended(id types.UUID) {
	if s.Over(id) {
		s.work.Go(func() { clearTemps(s.Data, s.Log, id) }) // ends with the files; waited for by Close
	}
}

// Close waits for what Ended has begun.
func (s *Service) Close() error {
	s.work.Wait()
	return nil
}

func clearTemps(data string, log *slog.Logger, id types.UUID) {
	entries, _ := os.ReadDir(temps(data)) // where there is none nothing is to be removed
	for _, e := range entries {
		if name, _, _ := strings.Cut(e.Name(), "."); name != id.String() {
			continue
		}
		if err := removeAll(filepath.Join(temps(data), e.Name())); err != nil {
			log.Warn("temporary files of commands cannot be removed", "uuid", id, "err", err)
		}
	}
}

// removeAll removes a directory, also where a program has taken the right to write from parts of it, as that of Go does.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) // RemoveAll says what is left
		}
		return nil
	})
	return os.RemoveAll(dir)
}
