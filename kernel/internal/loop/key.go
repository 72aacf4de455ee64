package loop

import "errors"

// keyMissing reports whether the model could not be asked since nobody has the key of its provider.
func keyMissing(err error) bool {
	var e interface{ KeyMissing() bool }
	return errors.As(err, &e) && e.KeyMissing()
}
