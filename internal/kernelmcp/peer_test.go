package kernelmcp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestTheOtherEndOfAConnectionIsFound(t *testing.T) {
	for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", host)
		if err != nil {
			t.Skip("needs " + host)
		}
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		inode, err := OtherEnd(s)
		if err != nil || len(Holders(inode, []int{os.Getpid()})) != 1 || !slices.Contains(Holders(inode, nil), os.Getpid()) {
			t.Errorf("%s: the inode %q, %v", host, inode, err)
		}
		_ = c.Close()
		if inode, err := OtherEnd(s); !errors.Is(err, ErrHidden) {
			t.Errorf("%s: when it is closed: %q %v", host, inode, err)
		}
		_, _ = s.Close(), l.Close()
	}
	if got := tableAddr(netip.MustParseAddrPort("127.0.0.1:8137"), false); !strings.HasSuffix(got, ":"+strings.ToUpper(strconv.FormatInt(8137, 16))) || len(got) != 13 {
		t.Errorf("an address in the table: %q", got)
	}
}
