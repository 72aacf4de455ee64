//go:build !linux

package sandbox

import (
	"io"
	"os"
)

func landlockABI() int { return 0 }

func identity(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	return info.ModTime().String()
}

// IsHeld reports whether what is at a path only holds the name, for a box.
func IsHeld(string) bool { return false }

// GiveBack removes what held names for boxes that have ended without Close.
func GiveBack([]string) error { return nil }

type holding struct{ path string }

func hold(string) (*holding, error) { return nil, errNoBoxes }

func (*holding) release() error { return nil }

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, errNoBoxes }

func (b *Box) hear() ([]byte, error) { return io.ReadAll(b.says) }

func pin([]string) ([]string, []*os.File, error) { return nil, nil, errNoBoxes }

func ruleset([]Rule, bool) (*os.File, error) { return nil, errNoBoxes }
