package testenv

import (
	"strings"

	"rnix/runtime/statehome"
)

// socketOf is where the daemon of a system listens.
func socketOf(s *System) (string, error) {
	return statehome.Socket(func(name string) (string, bool) {
		for _, kv := range s.Env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v, true
			}
		}
		return "", false
	}, s.Data)
}
