// Command rnix runs AI agents the way Unix runs processes. Everything but the daemon itself is in
// internal/cli, which talks to the daemon over its socket; this package puts the two into one program.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"rnix/drivers/harness"
	"rnix/internal/cli"
	"rnix/internal/daemon"
	"rnix/internal/mcpserve"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/ipc"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "dev"

// warded is proc.Warded, once.
var warded = sync.OnceValues(proc.Warded)

func main() {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Word { // a test in a box
		os.Exit(sandbox.Helper(os.Args[2:]))
	}
	if len(os.Args) == 3 && os.Args[1] == harness.JudgeWord {
		if err := mcpserve.Judge(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "rnix:", err)
			os.Exit(2)
		}
		return
	}
	if strings.Join(os.Args[1:], " ") == ipc.DaemonCommand { // a warden stays small: it has no need of the commands
		_, _ = warded() // runDaemon says why, if there is none
	}
	// Every command has the keys of the person, and an agent's commands may read what the same user may. The daemon and the page say
	// where it cannot be.
	_, _ = proc.ClearBlock(), proc.HideMemory()
	os.Exit(cli.Main(context.Background(), cli.Host{
		Name: filepath.Base(os.Args[0]), Version: version, Foreground: runDaemon, ControlPlane: runControlPlane,
	}))
}

// runDaemon runs the daemon until it is told to stop, by a client or by a signal. The first SIGTERM
// or SIGINT stops it gracefully, the second at once. A closed terminal does not concern it. It runs under a warden, and
// the process that was started is that one.
// RNIX_IDLE stops it after so long without agents and clients, RNIX_LOG_LEVEL says what it logs.
func runDaemon(ctx context.Context) error {
	guard, err := warded()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rnix:", err)
	}
	signal.Ignore(syscall.SIGHUP)
	ctx, stop := proc.Stoppable(ctx)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this program cannot be found: %w", err)
	}
	opt := daemon.Options{Version: version, Program: self, Guard: guard}
	if text := os.Getenv("RNIX_LOG_LEVEL"); text != "" {
		if err := opt.LogLevel.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("RNIX_LOG_LEVEL: %w; use debug, info, warn or error", err)
		}
	}
	if text := os.Getenv("RNIX_IDLE"); text != "" {
		idle, err := time.ParseDuration(text)
		if err != nil || idle < 0 {
			return fmt.Errorf("RNIX_IDLE: %q is not a duration; write it like 30m, or 0 for never", text)
		}
		opt.Idle = idle
	}
	return daemon.Run(ctx, opt)
}
