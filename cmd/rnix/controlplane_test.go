package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"rnix/runtime/heartbeat"
)

// claim takes a session of a control plane that may still be starting, and checks the fencing token:
// claim URL token-file session worker 1
func claim(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: claim URL token-file session worker fencing-token")
	}
	token, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	want, err := strconv.ParseUint(args[4], 10, 64)
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cfg := heartbeat.Config{SessionID: args[2], WorkerID: args[3], BaseURL: args[0], AuthToken: strings.TrimSpace(string(token))}
	lease, err := heartbeat.Claim(ctx, cfg) // which asks again while nobody answers
	for err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "connect") {
		lease, err = heartbeat.Claim(ctx, cfg)
	}
	ts.Check(err)
	if lease.FencingToken != want {
		ts.Fatalf("the fencing token is %d, want %d", lease.FencingToken, want)
	}
}
