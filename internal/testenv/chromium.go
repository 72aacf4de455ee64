package testenv

import (
	"os"
	"testing"

	"rnix/internal/proc"
)

// Chromium returns the path of a Chromium without a window, and skips a test where there is none. The one that is built for that takes a quarter less of a processor than
// the whole browser, which draws its own window too.
func Chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := proc.LookPath(name, os.Environ()); err == nil {
			return path
		}
	}
	t.Skip("needs chromium")
	return ""
}
