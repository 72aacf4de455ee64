package hosts

import (
	"net/netip"
	"strconv"
	"strings"

	"rnix/types"
)

// maxName bounds a name, in bytes.
const maxName = 253

// Target is what a program wants to connect to: a name or an address, and a port, in the one form that all ways to write it have.
type Target struct {
	Name string     // in lower case, without a dot at its end; of an address its text
	Addr netip.Addr // valid if it is an address; one of IPv4 that is written as IPv6 is one of IPv4
	Port uint16
}

// String returns the target as host:port.
func (t Target) String() string {
	name := t.Name
	if t.Addr.Is6() {
		name = "[" + name + "]"
	}
	return name + ":" + strconv.Itoa(int(t.Port))
}

// ParseTarget reads host:port, as it stands in a CONNECT request or a URL; port is that of a host without one, 0 if it must have one. Addresses that are
// written as a number, in octal or hexadecimal, as programs take them, are addresses. INVALID says what is wrong.
func ParseTarget(text string, port uint16) (Target, error) {
	bad := func(why string) (Target, error) {
		return Target{}, types.Errorf(types.ErrInvalid, "Connect", "", "%q is no host and port: %s", cut(text), why)
	}
	name, tail, err := split(text)
	if err != nil {
		return bad(err.Error())
	}
	if tail != "" {
		if port, err = portOf(tail); err != nil {
			return bad(err.Error())
		}
	}
	if port == 0 {
		return bad("it has no port")
	}
	t := Target{Port: port}
	if t.Name, t.Addr, err = nameOf(name); err != nil {
		return bad(err.Error())
	}
	return t, nil
}

// split divides a host from its port, which may be missing. An address of IPv6 without a port may be written without brackets.
func split(text string) (name, port string, err error) {
	if rest, ok := strings.CutPrefix(text, "["); ok {
		name, port, ok = strings.Cut(rest, "]")
		if !ok || port != "" && !strings.HasPrefix(port, ":") || port == ":" || !strings.Contains(name, ":") {
			return "", "", wrong("the brackets of an address of IPv6 are not right")
		}
		return name, strings.TrimPrefix(port, ":"), nil
	}
	if strings.Count(text, ":") > 1 {
		return text, "", nil
	}
	name, port, colon := strings.Cut(text, ":")
	if colon && port == "" {
		return "", "", wrong("the port is missing behind the colon")
	}
	return name, port, nil
}

// wrong is why a text is no host.
type wrong string

func (w wrong) Error() string { return string(w) }

func portOf(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != text {
		return 0, wrong("a port is a number from 1 to 65535")
	}
	return uint16(n), nil
}

// nameOf returns a name as it is compared, and the address if it is one.
func nameOf(text string) (string, netip.Addr, error) {
	name := strings.ToLower(text)
	if strings.Contains(name, ":") {
		ip, err := netip.ParseAddr(name)
		if err != nil || ip.Zone() != "" {
			return "", netip.Addr{}, wrong("the address of IPv6 cannot be read; it has no zone")
		}
		ip = ip.Unmap()
		return ip.String(), ip, nil
	}
	if len(name) > 1 {
		name = strings.TrimSuffix(name, ".")
	}
	if err := checkName(name); err != nil {
		return "", netip.Addr{}, err
	}
	if !numeric(name[strings.LastIndexByte(name, '.')+1:]) {
		return name, netip.Addr{}, nil
	}
	ip, ok := ipv4(name)
	if !ok {
		return "", netip.Addr{}, wrong("it ends like an address of IPv4, and is none")
	}
	return ip.String(), ip, nil
}

// checkName refuses what is no name of a host.
func checkName(name string) error {
	if len(name) > maxName {
		return wrong("the name is too long")
	}
	for label := range strings.SplitSeq(name, ".") {
		for _, r := range label {
			switch {
			case r >= 0x80:
				return wrong("a name has letters of ASCII; write the form of it that begins with xn--")
			case (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_':
				return wrong("a name has letters, digits, - and _ between its dots")
			}
		}
		if label == "" || len(label) > 63 {
			return wrong("between the dots of a name stand 1 to 63 characters")
		}
	}
	return nil
}

// numeric reports whether the last part of a name makes it an address of IPv4.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// ipv4 reads an address of IPv4 as programs do (inet_aton): one to four numbers, decimal, octal or hexadecimal, of which the last fills the rest.
func ipv4(text string) (netip.Addr, bool) {
	parts := strings.Split(text, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var all uint64
	for i, part := range parts {
		base := 10
		if hex, ok := strings.CutPrefix(part, "0x"); ok {
			if base, part = 16, hex; part == "" {
				part = "0"
			}
		} else if len(part) > 1 && part[0] == '0' {
			base = 8
		}
		n, err := strconv.ParseUint(part, base, 32)
		last := i == len(parts)-1
		if err != nil || !last && n > 255 || last && n >= 1<<(8*(4-i)) {
			return netip.Addr{}, false
		}
		if last {
			all = all<<(8*(4-i)) | n
		} else {
			all = all<<8 | n
		}
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}

func cut(text string) string {
	if len(text) > 100 {
		return strings.ToValidUTF8(text[:100], "") + "..."
	}
	return text
}
