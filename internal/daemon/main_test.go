package daemon_test

import (
	"os"
	"testing"

	"rnix/internal/testenv"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(playVar); what != "" {
		os.Exit(play(what))
	}
	os.Exit(testenv.Main(m))
}
