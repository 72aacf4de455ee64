package kernelmcp

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Loopback reports whether a host, perhaps with a port, is a name that this machine alone has.
func Loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// OwnOrigin reports whether a page may call: one of this machine, or what is no page.
func OwnOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && Loopback(u.Host)
}
