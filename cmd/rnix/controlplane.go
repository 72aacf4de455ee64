package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"rnix/internal/cli"
	"rnix/runtime/controlplane"
)

// runControlPlane serves the session API until SIGTERM or SIGINT; the second one ends the process at once.
func runControlPlane(ctx context.Context, o cli.ControlPlane) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	l, err := controlplane.Listen(o.Listen)
	if err != nil {
		return err
	}
	defer l.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := controlplane.Open(controlplane.Options{Dir: o.DataDir, TTL: o.TTL, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	_, err = os.Lstat(o.TokenFile)
	fresh := errors.Is(err, fs.ErrNotExist)
	token, err := controlplane.TokenFile(o.TokenFile)
	if err != nil {
		return err
	}
	if err := server.AddToken(token); err != nil {
		return err
	}
	// Connections wait in the listener's queue until Serve takes them, so it answers from now on.
	o.Ready(cli.ControlPlaneReady{URL: l.URL, DataDir: o.DataDir, TokenFile: o.TokenFile, NewToken: fresh, Local: l.Local})
	return server.Serve(ctx, l)
}
