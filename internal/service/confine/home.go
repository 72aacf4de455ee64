package confine

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnix/internal/permit"
	"rnix/internal/sandbox"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// Kernel knows the rights of processes. *kernel.KernelImpl is one.
type Kernel interface {
	Info(pid types.PID) (kernel.Info, error)
	AskFor(ctx context.Context, of types.UUID, id string, c permit.Call) (kernel.Permission, error)
}

func homes(data string) string { return filepath.Join(data, "homes") }

// used ends the name of the directory beside a home that has a file for each history which has used it. What runs in the home cannot write there.
const used = ".used"

// homeOf returns the home of its own that a program has: one for all processes of a project that may do the same. What one of them leaves there,
// such as a hook or what it has read, comes to none that may do more, or less.
func homeOf(s *Service, c *vfs.Caller, place sandbox.Place, settings sandbox.Settings, made bool, program string) string {
	return filepath.Join(homes(s.Data), short(program+"\x00"+project(place)+"\x00"+may(s, c, place, settings, made)))
}

// may names what a process may do: by its rights, and by the policy of its commands but for what is of the one process, and for programs that its
// environment names. A resume has the same.
func may(s *Service, c *vfs.Caller, place sandbox.Place, settings sandbox.Settings, made bool) string {
	info, err := s.Kernel().Info(c.PID)
	if err != nil {
		info = kernel.Info{} // a person: all rights
	}
	place.Temp, place.Cache, place.Tools = "", "", nil
	for _, dir := range c.ReadRoots {
		place.Tools = append(place.Tools, filepath.Clean(dir))
	}
	text, err := json.Marshal([]any{settings.Policy(place, made), info.Rights.Allowed == nil, servers(info.Rights.Allowed), servers(info.Rights.Denied), servers(info.MCPMounts)})
	if err != nil { // it holds texts and numbers
		return ""
	}
	return string(text)
}

// servers returns paths in order, with those of MCP servers named as every run of a process names them: without its PID.
func servers(paths []string) (out []string) {
	for _, path := range paths {
		if rest, ok := strings.CutPrefix(path, "/mnt/mcp/"); ok {
			if pid, name, ok := strings.Cut(rest, "-"); ok && strings.Trim(pid, "0123456789") == "" {
				path = "/mnt/mcp/" + name
			}
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// takeHome makes a home, and notes that a history uses it. It is called with s.home held.
func takeHome(s *Own, home string, id types.UUID) error {
	if err := s.makeDirs(home, home+used); err != nil {
		return err
	}
	if id != (types.UUID{}) {
		f, err := os.OpenFile(filepath.Join(home+used, id.String()), os.O_CREATE|os.O_RDONLY, 0o600)
		if err != nil {
			return types.Errorf(types.ErrStorage, "Start", home+used, "%w", err)
		}
		_ = f.Close() // nothing was written
	}
	now := time.Now()
	_ = os.Chtimes(home, now, now) // see sweepHomes
	return nil
}

// sweepHomes removes the homes that no program has used for long, unless a history that can go on has: its program's conversation is there.
func sweepHomes(s *Own, now time.Time) {
	entries, _ := os.ReadDir(homes(s.Data)) // where there is none nothing is to be removed
	for _, e := range entries {
		home := filepath.Join(homes(s.Data), strings.TrimSuffix(e.Name(), used))
		if err := sweepHome(s, home, now); err != nil {
			s.Log.Warn("a home of programs in the sandbox cannot be removed", "path", home, "err", err)
		}
	}
}

func sweepHome(s *Own, home string, now time.Time) error {
	s.home.Lock()
	defer s.home.Unlock()
	info, err := os.Lstat(home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && now.Sub(info.ModTime()) < cacheAge {
		return nil // what cannot be looked at stays
	}
	by, _ := os.ReadDir(home + used) // homes of earlier versions have none
	for _, e := range by {
		var id types.UUID
		if id.UnmarshalText([]byte(e.Name())) == nil && !s.Over(id) {
			return nil
		}
	}
	return errors.Join(removeAll(home), removeAll(home+used))
}
