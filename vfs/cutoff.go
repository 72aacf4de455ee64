package vfs

// CutOff is in the error chain of a model's Write when the request was sent and the answer did not come to its end: its
// vendor may bill it all the same. A device that tells by itself later what such a request took does not use it.
type CutOff struct {
	Err      error
	Provider string // who was asked
	Model    string // as it was asked for; may be empty
	Answer   int    // an estimate of what had come of the answer, in tokens
}

// Error is that of Err.
func (c *CutOff) Error() string { return c.Err.Error() }

// Unwrap returns Err.
func (c *CutOff) Unwrap() error { return c.Err }
