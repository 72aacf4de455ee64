package hosts

import (
	"strings"
	"testing"

	"rnix/types"
)

func TestURLsLeadToTheHostThatRulesSee(t *testing.T) {
	for text, want := range map[string][2]string{
		"https://example.com":                    {"https://example.com", "example.com:443"},
		" https://Example.COM./a?b=c#d ":         {"https://example.com/a?b=c", "example.com:443"},
		"http://example.com:80/":                 {"http://example.com/", "example.com:80"},
		"HTTPS://example.com:8443/x":             {"https://example.com:8443/x", "example.com:8443"},
		"http://0x7f.1/":                         {"http://127.0.0.1/", "127.0.0.1:80"},
		"http://2130706433":                      {"http://127.0.0.1", "127.0.0.1:80"},
		"http://[::ffff:127.0.0.1]:8080/":        {"http://127.0.0.1:8080/", "127.0.0.1:8080"},
		"https://[2001:DB8::1]/":                 {"https://[2001:db8::1]/", "[2001:db8::1]:443"},
		"https://example.com/a?to=http://b@c.d/": {"https://example.com/a?to=http://b@c.d/", "example.com:443"},
	} {
		u, to, err := ParseURL(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if u.String() != want[0] || to.String() != want[1] {
			t.Errorf("%q: %s at %s, want %s at %s", text, u, to, want[0], want[1])
		}
	}
}

func TestOtherURLsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                         "must begin with",
		"example.com":                              "must begin with",
		"ftp://example.com":                        "must begin with",
		"file:///etc/passwd":                       "must begin with",
		"https:example.com":                        "names no host",
		"https:///x":                               "names no host",
		"https://me:sesame@example.com/":           "credentials are never sent",
		"https://me@example.com/":                  "credentials are never sent",
		"https://me:pa/sesame@example.com/":        "cannot be read",
		"https://a b/":                             "cannot be read",
		"https://exa\nmple.com/":                   "cannot be read",
		"https://example.com\\@evil.com":           "cannot be read",
		"https://bücher.example/":                  "xn--",
		"https://[fe80::1%25eth0]/":                "no zone",
		"https://example.com:0/":                   "from 1 to 65535",
		"https://1.2.3.4.5/":                       "is none",
		"https://e/" + strings.Repeat("x", MaxURL): "8 kB",
	} {
		u, _, err := ParseURL(text)
		if err == nil {
			t.Errorf("%q is taken for %s", text, u)
			continue
		}
		if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
