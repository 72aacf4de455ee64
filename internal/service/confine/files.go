package confine

import (
	"path/filepath"
	"strings"

	"rnix/internal/profile"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"
)

// Writes is what fs.Own asks for: an agent changes by its file tools what its commands may write, and nothing else. What other programs run or
// obey, such as hooks of git, would be planted by a tool else. It returns nil where nothing is refused.
func (s *Service) Writes(c vfs.Caller) func(abs string, whole bool) error {
	p, ok := c.Profile.(*profile.Profile)
	if !ok || c.PID == 0 || p.Sandbox.Off() {
		return nil
	}
	bound := p.Sandbox.Within != nil || len(p.Sandbox.Protect) > 0 || len(p.Sandbox.Hide) > 0 || len(p.Sandbox.Also) > 0
	return func(abs string, whole bool) error {
		if !bound && !hidden(c.WorkDir, abs) {
			return nil // all that is protected there has such a name
		}
		place, settings, made, err := s.ofCaller(&c)
		if err != nil {
			return err
		}
		policy := settings.Policy(place, made)
		refused := !policy.Allows(abs, sandbox.AccessWrite)
		for _, path := range policy.Protect {
			refused = refused || whole && strings.HasPrefix(path, abs+"/")
		}
		if refused {
			return types.Errorf(types.ErrPermission, "Open", abs, "the sandbox of this process protects it: other programs run or obey what is there, or it is outside of what the process may write; trying again does not help, a person can allow it with --sandbox off")
		}
		return nil
	}
}

// hidden reports whether an element of a path below a directory, or outside of it, begins with a dot.
func hidden(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err != nil || strings.HasPrefix(rel, ".") && rel != "." || strings.Contains(rel, "/.")
}
