package initfile

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"rnix/agent"
)

// Shutdown is how long a child has from SIGTERM to SIGKILL. The zero value means "not said".
type Shutdown time.Duration

// Values of Shutdown that are no durations.
const (
	Kill     Shutdown = -1 // it is killed at once
	Infinity Shutdown = -2 // it is never killed
)

// UnmarshalText reads "5s", "kill" or "infinity".
func (s *Shutdown) UnmarshalText(text []byte) error {
	switch string(text) {
	case "kill":
		*s = Kill
		return nil
	case "infinity":
		*s = Infinity
		return nil
	}
	var d agent.Duration
	if err := d.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w; or kill, or infinity", err)
	}
	if d == agent.Off {
		*s = Kill
		return nil
	}
	*s = Shutdown(d)
	return nil
}

// MarshalText returns the form that UnmarshalText reads; "" if it was not said.
func (s Shutdown) MarshalText() ([]byte, error) {
	switch s {
	case Kill:
		return []byte("kill"), nil
	case Infinity:
		return []byte("infinity"), nil
	}
	return agent.Duration(s).MarshalText()
}

// place returns an absolute path.
func place(path, otherwise, base, home string) string {
	rest, atHome := strings.CutPrefix(path, "~/")
	switch {
	case path == "":
		return otherwise
	case path == "~":
		return home
	case atHome:
		return filepath.Join(home, rest)
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}
