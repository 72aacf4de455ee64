package daemon

import "errors"

// undo is what takes back what was opened, last first.
type undo []func() error

func (u *undo) add(f ...func() error) { *u = append(*u, f...) }

func (u undo) run() error {
	var errs []error
	for i := len(u) - 1; i >= 0; i-- {
		errs = append(errs, u[i]())
	}
	return errors.Join(errs...)
}
