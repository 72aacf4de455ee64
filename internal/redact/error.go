package redact

import (
	"errors"

	"rnix/types"
)

// Error returns err, or if its text holds a secret, an error with the same code and the text without it.
func (s *Set) Error(err error) error {
	if s.Empty() || err == nil {
		return err
	}
	text := err.Error()
	clean := s.String(text)
	if clean == text {
		return err
	}
	var e *types.SyscallError
	if !errors.As(err, &e) || e.Err == nil {
		return errors.New(clean)
	}
	without := *e
	without.Device, without.Err = s.String(e.Device), errors.New(s.String(e.Err.Error()))
	return &without
}

// Exit returns how a process ended, without secrets.
func (s *Set) Exit(e types.ExitStatus) types.ExitStatus {
	e.Reason, e.Err = s.String(e.Reason), s.Error(e.Err)
	return e
}
