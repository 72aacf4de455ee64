package proc

import (
	"context"
	"os"
	ossignal "os/signal"
	"syscall"
	"time"
)

// sameStop is for how long signals that stop the daemon are one: what is sent to all of a process group, of a
// service or of a name reaches the daemon itself, and once more through its warden.
const sameStop = time.Second

// Stoppable returns a context that ends with the first SIGTERM or SIGINT. A second one, a second later or more, ends the
// program as it does by default. stop gives the signals back.
func Stoppable(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = ossignal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	release := stop
	context.AfterFunc(ctx, func() { time.AfterFunc(sameStop, release) })
	return ctx, stop
}
