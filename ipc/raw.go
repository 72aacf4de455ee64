package ipc

import (
	"context"
	"net"
)

// Dial connects to the daemon that listens on socket, for who passes its HTTP on instead of calling methods. It
// refuses a daemon of another user. If none runs there, the error has the code SERVICE_UNAVAILABLE.
func Dial(ctx context.Context, socket string) (net.Conn, error) {
	cn, err := NewClient(socket).dial(ctx)
	if err != nil {
		return nil, err
	}
	return cn.Conn, nil
}
