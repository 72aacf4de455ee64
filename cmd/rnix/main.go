// Command rnix runs AI agents the way Unix runs processes. Everything but the daemon itself is in
// internal/cli, which talks to the daemon over its socket; this package puts the two into one program.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"rnix/internal/cli"
	"rnix/internal/daemon"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "dev"

func main() {
	os.Exit(cli.Main(context.Background(), cli.Host{
		Name: filepath.Base(os.Args[0]), Version: version, Foreground: runDaemon,
	}))
}

// runDaemon runs the daemon until it is told to stop, by a client or by a signal. The first SIGTERM
// or SIGINT stops it gracefully, the second at once. A closed terminal does not concern it.
func runDaemon(ctx context.Context) error {
	signal.Ignore(syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // from now on the signals end the process, as they do by default
	return daemon.Run(ctx, daemon.Options{Version: version})
}
