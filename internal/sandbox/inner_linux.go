package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// socketPair returns the two ends of a connection, of which the second can send descriptors to the first.
func socketPair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "box"), os.NewFile(uintptr(pair[1]), "box"), nil
}

// hear reads what the helper says until it has executed the command or given up, and takes the listeners that come with it.
func (b *Box) hear() (text []byte, err error) {
	const most = 4 << 10
	if len(b.ports) == 0 {
		return io.ReadAll(io.LimitReader(b.says, most))
	}
	fc, err := net.FileConn(b.says)
	if err != nil {
		return nil, err
	}
	defer fc.Close() // nothing is written to it
	conn, ok := fc.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("it is a %T", fc)
	}
	buf, oob := make([]byte, most), make([]byte, unix.CmsgSpace(4*mostInside))
	for len(text) < most {
		n, oobn, _, _, err := conn.ReadMsgUnix(buf[:most-len(text)], oob)
		text = append(text, buf[:n]...)
		if e := b.take(oob[:oobn]); e != nil {
			return nil, e
		}
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// take makes listeners of descriptors that have come.
func (b *Box) take(oob []byte) error {
	if len(oob) == 0 {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return err
		}
		for _, fd := range fds {
			f := os.NewFile(uintptr(fd), "listener")
			l, e := net.FileListener(f)
			_ = f.Close() // l has another
			if e != nil {
				err = e
				continue
			}
			at, ok := l.Addr().(*net.TCPAddr)
			if !ok || len(b.inner) == len(b.ports) || !at.IP.Equal(inside) || at.Port != int(b.ports[len(b.inner)]) {
				_, err = l.Close(), fmt.Errorf("a listener at %s came, which was not asked for", l.Addr())
				continue
			}
			b.inner = append(b.inner, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inside is where listeners of a box are.
var inside = net.IPv4(127, 0, 0, 1)
