// Package early has a program enter a box before nearly all of its other packages are initialized: see package enter. Programs that are the helper of boxes import it
// for that; without it their main does the same, in sandbox.Helper.
package early

import "rnix/internal/sandbox/enter"

// While packages are initialized, nothing else runs on the main thread.
func init() { enter.Now() }
