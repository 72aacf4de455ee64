package hosts

import (
	"net/url"
	"strings"

	"rnix/types"
)

// MaxURL bounds a URL, in bytes.
const MaxURL = 8 << 10

// ParseURL reads the URL of what is to be fetched over HTTP or HTTPS, and says to which host and port it leads. The host of the URL that it returns is
// written as rules see it, and its fragment is left out, which no server is told. INVALID says what is wrong, such as a name and a password before the host.
func ParseURL(text string) (*url.URL, Target, error) {
	bad := func(why string) (*url.URL, Target, error) {
		return nil, Target{}, types.Errorf(types.ErrInvalid, "URL", "", "%q is no URL that can be fetched: %s", cut(shownURL(text)), why)
	}
	if len(text) > MaxURL {
		return bad("it is longer than 8 kB")
	}
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return bad("it cannot be read; write it as in https://example.com/page?q=a%20b")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("it must begin with https:// or http://")
	case u.User != nil:
		return bad("a name or a password stands before its host; credentials are never sent, so leave them out")
	case u.Host == "":
		return bad("it names no host")
	}
	usual := uint16(443)
	if u.Scheme == "http" {
		usual = 80
	}
	t, err := ParseTarget(u.Host, usual)
	if err != nil {
		return bad(reason(err))
	}
	if u.Host = t.String(); t.Port == usual {
		u.Host = u.Host[:strings.LastIndexByte(u.Host, ':')]
	}
	u.Fragment, u.RawFragment = "", ""
	return u, t, nil
}

// shownURL returns what may be a URL without what may be a name and a password in it, in which there may be slashes.
func shownURL(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	at := strings.LastIndexByte(rest, '@')
	if at >= 0 && (strings.IndexByte(rest[:at], ':') >= 0 || strings.IndexByte(rest[:at], '/') < 0) {
		rest = "..." + rest[at:]
	}
	return scheme + "://" + rest
}

// reason is what a SyscallError says, without what was called.
func reason(err error) string {
	if e, ok := err.(*types.SyscallError); ok {
		return e.Err.Error()
	}
	return err.Error()
}
