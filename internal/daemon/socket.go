package daemon

import (
	"context"
	"net"
	"time"

	"rnix/ipc"
)

// socketLook is how often the daemon looks whether its socket is still where clients look for it.
const socketLook = time.Second

// watchSocket takes the place of the daemon's socket back when that was removed or replaced, and says so: who replaces it is asked in its
// stead, and whoever removes it leaves agents that nobody can reach.
func watchSocket(ctx context.Context, d *Daemon, l net.Listener) {
	tick := time.NewTicker(socketLook)
	defer tick.Stop()
	failed := ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		again, err := ipc.Relisten(l)
		switch {
		case err != nil && err.Error() != failed:
			failed = err.Error()
			d.log.Error("the socket was removed or replaced, and cannot be made again", "socket", d.places.Socket, "err", err)
		case again != nil:
			failed = ""
			d.log.Warn("the socket was removed or replaced; the daemon has made it again", "socket", d.places.Socket)
			d.background.Go(func() { _ = d.server.Serve(again) }) // ends with Shutdown, which closes it
		}
	}
}
