// Package parallel makes tests parallel from within their helpers, which do not know what else a test uses.
package parallel

import (
	"sync"
	"testing"
)

// begun are the tests that Test was called for, until they end.
var begun sync.Map // of testing.TB

// Test is t.Parallel for the first call of each test: the test waits there until those before it that are not parallel
// have ended. It does nothing for benchmarks. A parent whose subtests call it gives back what they share by Cleanup,
// since they run after its body.
func Test(t testing.TB) {
	t.Helper()
	p, ok := t.(interface{ Parallel() })
	if _, already := begun.LoadOrStore(t, nil); !ok || already {
		return
	}
	t.Cleanup(func() { begun.Delete(t) })
	p.Parallel()
}
