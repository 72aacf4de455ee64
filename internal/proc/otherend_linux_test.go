package proc

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rnix/types"
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
		if inode, err := OtherEnd(s); !errors.Is(err, ErrUnseen) {
			t.Errorf("%s: when it is closed: %q %v", host, inode, err)
		}
		_, _ = s.Close(), l.Close()
	}
	if got := tableAddr(netip.MustParseAddrPort("127.0.0.1:8137"), false); !strings.HasSuffix(got, ":"+strings.ToUpper(strconv.FormatInt(8137, 16))) || len(got) != 13 {
		t.Errorf("an address in the table: %q", got)
	}
}

// A program starts another while it is looked who has its connection: it is looked again. Who is outside of all agents is not.
func TestACallerIsLookedAtAgain(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the test ends
	mine, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close() // the test ends
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close() // the test ends
	for _, c := range []struct {
		settled int // the look that says whose it is
		inside  bool
		asked   int
		err     error
	}{{looks, true, looks, nil}, {looks + 1, true, looks, ErrAdrift}, {1, true, 1, nil}, {1, false, 1, ErrOutside}} {
		asked := 0
		owner, err := OwnerOfOther(theirs, func(pid int) (types.PID, bool) {
			if pid != os.Getpid() {
				t.Errorf("asked for %d", pid)
			}
			if asked++; asked < c.settled {
				return 0, true
			}
			return 7, c.inside
		})
		if !errors.Is(err, c.err) || asked != c.asked || (owner == 7) != (c.err == nil) {
			t.Errorf("%+v: %d %v, asked %d times", c, owner, err, asked)
		}
	}
}

func TestWhoListensIsChecked(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	if err := CheckListener(at); err != nil {
		t.Error(err)
	}
	if err := CheckListener(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), at.Port())); !errors.Is(err, ErrUnseen) {
		t.Error("another address:", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := CheckListener(at); !errors.Is(err, ErrUnseen) {
		t.Error("when it is closed:", err)
	}
}
