//go:build !linux

package prelude

import (
	"errors"
	"os"
)

// Open fails: the calls are those of Linux.
func (p *Program) Open(int) (*os.File, error) { return nil, errors.ErrUnsupported }

// Become does nothing: see Open.
func (p *Program) Become(string, []string, []string) {}

// File fails as Open does.
func File([]byte) (*os.File, error) { return nil, errors.ErrUnsupported }
