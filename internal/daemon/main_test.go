package daemon_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"rnix/internal/cli"
	"rnix/internal/sandbox"
	"rnix/internal/testenv"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(playVar); what != "" {
		os.Exit(play(what))
	}
	if len(os.Args) > 1 && os.Args[1] != sandbox.Word && !strings.HasPrefix(os.Args[1], "-") { // a checked daemon is this program, which then serves the kernel to agent CLIs
		os.Exit(cli.Main(context.Background(), cli.Host{Name: "rnix", Version: "test"}))
	}
	os.Exit(testenv.Main(m))
}
