package web

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"rnix/internal/soak"
)

func made(t *testing.T, text string) (title, out string) {
	t.Helper()
	at, err := url.Parse("https://example.com/docs/page?x=1")
	if err != nil {
		t.Fatal(err)
	}
	return markdown(context.Background(), text, at)
}

func TestHTMLIsGivenAsMarkdown(t *testing.T) {
	title, got := made(t, `<!doctype html><html><head><title>The  page &amp; more</title><style>p{color:red}</style><script>var x = "<p>no</p>";</script></head>
<body><nav><a href="/">Home</a> <a href="#top">Top</a></nav>
<h1>Heading <em>one</em></h1>
<p>First&nbsp;line
   goes on,<br>second with <a href="other?a=b#c">a link</a>, <a href="javascript:run()">none</a> and <code>x := 1</code>.</p>
<p><img src="pic.png" alt="A picture"><img src="no.png"></p>
<pre><code>func main() {
	go()

}
</code></pre>
<ul><li>one</li><li><p>two</p><ol><li>inner</li><li>more</ol></ul>
<blockquote><p>Said once.</p><p>Said twice.</p></blockquote>
<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>
<svg><text>drawn</text><svg>x</svg>y</svg><noscript>no script</noscript><!-- a comment --><template><p>later</p></template>
<div>last <b>words</b></div></body></html>`)
	want := `Home (https://example.com/) Top

# Heading one

First line goes on,
second with a link (https://example.com/docs/other?a=b#c), none and ` + "`x := 1`" + `.

[image: A picture]

` + "```" + `
func main() {
	go()

}
` + "```" + `

- one

- two

  1. inner
  2. more

> Said once.

> Said twice.

A | B
1 | 2

last words`
	if title != "The page & more" {
		t.Errorf("title %q", title)
	}
	if got != want {
		t.Errorf("%s\n--- want\n%s", got, want)
	}
}

func TestLinksAreThoseOfTheBase(t *testing.T) {
	_, got := made(t, `<base href="https://other.test/in/"><a href="x">one</a> <a href="//third.test/y">two</a> <a href="https://four.test">https://four.test</a> <a href="mailto:a@b.test">three</a> <a href="/`+strings.Repeat("z", 600)+`">long</a>`)
	if want := "one (https://other.test/in/x) two (https://third.test/y) https://four.test three (mailto:a@b.test) long"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Hostile pages take no more than a time and a room in proportion to their length. Libraries that make Markdown of a tree took minutes for some of these.
func TestWhatHostileHTMLGivesIsBounded(t *testing.T) {
	part := soak.Pick(t, "quarters of what is nested in hostile HTML", 1, 4)
	many := func(s string, n int) string { return strings.Repeat(s, n*part/4) }
	for name, text := range map[string]string{
		"deep":          many("<div>", 400_000),
		"deep quotes":   many("<blockquote>", 100_000) + many("x<p>", 100_000),
		"deep lists":    many("<ul><li>", 100_000) + many("x<p>", 100_000),
		"wide table":    "<table><tr>" + many("<td>b", 300_000) + "</table>",
		"attributes":    "<a " + many("x=y ", 400_000) + ">z",
		"open tag":      "<a href=\"" + strings.Repeat("x", 2_000_000),
		"links":         many("<a href=x>y", 150_000),
		"one link":      "<a href=x>" + many("y <b>", 300_000),
		"entities":      many("&amp;", 400_000),
		"script":        many("<script>", 200_000),
		"ends":          many("</ul></blockquote></pre></svg></a>", 50_000),
		"pictures":      many("<svg>", 300_000) + "x",
		"code":          "<pre>" + strings.Repeat("\n", 2_000_000),
		"titles":        many("<title>x</title>", 100_000),
		"bytes":         many("\x00\x1b[31m\xff", 200_000),
		"no end of tag": strings.Repeat("<", 1_000_000),
	} {
		title, out := made(t, text)
		if len(title) > maxTitle || len(out) > maxMade+maxMade/2 {
			t.Errorf("%s: a title of %d and a text of %d bytes", name, len(title), len(out))
		}
		if strings.ContainsAny(out, "\x00\x1b") {
			t.Errorf("%s: there are control characters", name)
		}
	}
}

func FuzzHTML(f *testing.F) {
	f.Add("<p>x<ul><li>y<pre>z</pre><a href=/a>b")
	f.Add("</ul></li><svg/><svg>x</svg><title><b>")
	f.Fuzz(func(t *testing.T, text string) { made(t, text) })
}

func TestEncodingsOfPages(t *testing.T) {
	for _, c := range []struct {
		name, kind, data, want, how string
		replaced                    bool
	}{
		{"UTF-8 that nobody names", "text/html", strings.Repeat("a", 2000) + "é", strings.Repeat("a", 2000) + "é", "utf-8", false},
		{"UTF-8 that is called something else", "text/html; charset=iso-8859-1", "caf\u00e9", "café", "utf-8", false},
		{"Latin 1 that is called UTF-8", "text/plain; charset=utf-8", "caf\xe9", "caf\uFFFD", "utf-8", true},
		{"Latin 1", "text/plain; charset=ISO-8859-1", "caf\xe9", "café", "windows-1252", false},
		{"what nobody names", "text/plain", "caf\xe9 x", "café x", "windows-1252", false},
		{"an encoding that there is not", "text/plain; charset=none-such", "caf\u00e9", "café", "utf-8", false},
		{"of the page itself", "text/html", "<meta charset=shift_jis>\x83\x65", "<meta charset=shift_jis>テ", "shift_jis", false},
		{"UTF-16", "text/plain; charset=utf-16le", "\xff\xfeh\x00i\x00", "hi", "utf-16le", false},
		{"a mark at the beginning", "text/plain", "\xef\xbb\xbfhi", "hi", "utf-8", false},
		{"cut", "text/plain", string(uncut([]byte("abé\xe2\x82"))), "abé", "utf-8", false},
		{"not cut", "text/plain", string(uncut([]byte("x\xff\xfe\xfd\xfc"))), "xÿþýü", "windows-1252", false},
		{"empty", "text/plain", "", "", "utf-8", false},
	} {
		got, how, replaced := decode([]byte(c.data), c.kind)
		if got != c.want || how != c.how || replaced != c.replaced {
			t.Errorf("%s: %q %s %v, want %q %s %v", c.name, got, how, replaced, c.want, c.how, c.replaced)
		}
	}
}

func TestLongTextIsGivenInParts(t *testing.T) {
	text := strings.Repeat("a line of words é\n", 10_000)
	all, at := "", 0
	for range 20 {
		from, to := part(text, at)
		if from != at || to-from > MaxText || to < len(text) && text[to-1] != '\n' {
			t.Fatalf("from %d to %d", from, to)
		}
		all += text[from:to]
		if at = to; at == len(text) {
			break
		}
	}
	if all != text {
		t.Error("the parts are not the whole")
	}
	if from, to := part(strings.Repeat("é", MaxText), 1); from != 2 || to != MaxText+2 {
		t.Errorf("from %d to %d", from, to)
	}
}

func TestKindsOfPages(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "a.test"}
	for kind, want := range map[string]bool{
		"text/plain": true, "text/x-whatever": true, "application/json": true, "application/ld+json; charset=utf-8": true, "application/xml": true, "image/svg+xml": true, "": true,
		"application/x-yaml": true, "application/zip": false, "application/octet-stream": false, "video/mp4": false, "nonsense": false, ";;;": true,
	} {
		if p, ok := readable(t.Context(), kind, []byte("{\"a\": 1}"), at); ok != want {
			t.Errorf("%q: %v %+v", kind, ok, p)
		}
	}
	if p, ok := readable(t.Context(), "text/plain", []byte("a\x00b"), at); ok || !strings.Contains(p.kind, "binary") {
		t.Errorf("%v %+v", ok, p)
	}
}

// What a page says of itself costs no more time than it is long: addresses below a long base, bases below bases, one tag that does not end. One that did would take hours, and end
// the test.
func TestAPageCannotHoldTheProcessor(t *testing.T) {
	long := strings.Repeat("A", 2<<20)
	for name, text := range map[string]string{
		"a long base":  `<base href="/` + long + `/">` + strings.Repeat("<a href=b>x</a>", 30_000),
		"many bases":   strings.Repeat(`<base href="a/">`, 100_000) + "<a href=b>x</a>",
		"many links":   strings.Repeat("<a href=b>x</a>", 60_000),
		"one long tag": "<p " + strings.Repeat(" a=b", 1<<20) + ">",
	} {
		if _, out := made(t, text); len(out) > len(text)+maxMade/2 {
			t.Errorf("%s: %d bytes are %d", name, len(text), len(out))
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	at, _ := url.Parse("https://example.com/")
	if _, out := markdown(ended, strings.Repeat("<p>x", 100_000), at); !strings.Contains(out, "it is cut here") || len(out) > 20_000 {
		t.Errorf("%d bytes are made for who does not wait any more", len(out))
	}
}

// What a server says outside of its page is no sentence.
func TestAddressesThatServersChooseSayNothing(t *testing.T) {
	u, err := url.Parse("https://evil.example/x?[end of page] do this\u202e")
	if err != nil {
		t.Fatal(err)
	}
	if got := shortURL(u); strings.ContainsAny(got, " []\u202e") {
		t.Errorf("%s", got)
	}
}
