package web

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The bounds of what is made of HTML. It is read as a row of tokens and never as a tree, so that it takes a time in proportion to its length, however deep it nests.
const (
	maxMade   = 4 << 20 // bytes of Markdown
	maxNested = 8       // levels of lists and quotes that are shown
	maxLink   = 500     // bytes of the address of a link; a longer one is left out
	maxTitle  = 300     // bytes
	maxLinks  = 20_000  // of a page; what later ones lead to is left out
	maxTag    = 1 << 20 // bytes of one token; a page ends before a longer one
	looks     = 1 << 10 // tokens between two looks whether it is still wanted
)

// markdown returns the title and the text of a page at a URL, as Markdown without emphasis: headings, lists, quotes, code, tables by bars, links with their whole address.
// Scripts are not run. It ends early when the context does.
func markdown(ctx context.Context, text string, at *url.URL) (title, out string) {
	base := *at // relative addresses do without what stands behind the path
	base.RawQuery, base.Fragment, base.RawFragment = "", "", ""
	w := &writer{base: &base, far: len(base.String()) > maxLink}
	z := html.NewTokenizer(strings.NewReader(text))
	z.SetMaxBuf(maxTag)
	for n := 1; w.out.Len() < maxMade && (n%looks != 0 || ctx.Err() == nil); n++ {
		kind := z.Next()
		switch kind {
		case html.ErrorToken: // its end
			w.close()
			if errors.Is(z.Err(), html.ErrBufferExceeded) {
				return w.title(), w.text() + "\n[it is cut here: what follows is one piece of more than 1 MB]"
			}
			return w.title(), w.text()
		case html.TextToken:
			w.words(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			w.open(&t, kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			name, _ := z.TagName()
			w.end(atom.Lookup(name))
		}
	}
	w.close()
	return w.title(), w.text() + "\n[it is cut here: the text is too long]"
}

// writer writes Markdown.
type writer struct {
	base   *url.URL
	far    bool // the base is too long for addresses below it
	based  bool // the page has said its base: only the first counts
	links  int  // so many were resolved
	out    strings.Builder
	named  strings.Builder // the title
	skip   atom.Atom       // what is in this element is not shown; 0 = it is
	depth  int             // of that element in itself
	titled bool            // in the title
	pre    int
	breaks int  // line ends that are due before the next word
	blank  bool // so is a blank
	quotes int
	lists  []int  // of each level how many items there were, -1 = they have no numbers
	bullet string // due before the next word
	cells  int    // in this row of a table
	link   string // where the words lead
	linked int    // where they begin in out
}

// skipped are elements whose content is none of the text.
func skipped(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Template, atom.Svg, atom.Noscript, atom.Iframe, atom.Noframes, atom.Noembed:
		return true
	}
	return false
}

// blocks says how many line ends stand around an element; 0 = none.
func blocks(a atom.Atom) int {
	switch a {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Blockquote, atom.Pre, atom.Hr, atom.Figure:
		return 2
	case atom.Div, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Main, atom.Nav, atom.Aside, atom.Form, atom.Fieldset, atom.Address, atom.Details, atom.Summary,
		atom.Li, atom.Dt, atom.Dd, atom.Tr, atom.Caption, atom.Figcaption, atom.Body, atom.Option, atom.Legend, atom.Center, atom.Dialog, atom.Menu:
		return 1
	}
	return 0
}

// open begins an element.
func (w *writer) open(t *html.Token, closed bool) {
	a := t.DataAtom
	switch {
	case w.skip != 0:
		if a == w.skip && !closed {
			w.depth++
		}
		return
	case skipped(a):
		if !closed || a != atom.Svg { // in HTML a slash at the end of a tag means nothing, but in pictures
			w.skip, w.depth = a, 1
		}
		return
	}
	w.due(blocks(a))
	switch a {
	case atom.Title:
		w.titled = w.named.Len() == 0
	case atom.Base:
		if href := attr(t, "href"); !w.based && len(href) <= maxLink {
			if u, err := w.base.Parse(href); err == nil {
				w.base, w.far = u, len(u.String()) > maxLink
			}
		}
		w.based = true
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.bullet = strings.Repeat("#", int(a.String()[1]-'0')) + " "
	case atom.Hr:
		w.put("---")
		w.due(2)
	case atom.Br:
		w.breaks, w.blank = min(w.breaks+1, 2), false
	case atom.Ul, atom.Menu:
		w.lists = append(w.lists, -1)
	case atom.Ol:
		w.lists = append(w.lists, 0)
	case atom.Li:
		w.item()
	case atom.Dd:
		w.bullet = "  "
	case atom.Blockquote:
		w.quotes++
	case atom.Pre:
		w.put("```")
		w.pre++
		w.breaks = 1
	case atom.Code:
		if w.pre == 0 {
			w.flush()
			w.put("`")
		}
	case atom.Tr:
		w.cells = 0
	case atom.Td, atom.Th:
		if w.cells++; w.cells > 1 {
			w.blank = false
			w.put(" | ")
		}
	case atom.Img:
		if alt := strings.Join(strings.Fields(attr(t, "alt")), " "); alt != "" {
			w.words(" [image: " + alt + "] ")
		}
	case atom.A:
		w.leave()
		if w.link = w.address(attr(t, "href")); w.link != "" {
			w.flush()
			w.linked = w.out.Len()
		}
	}
}

// end ends an element.
func (w *writer) end(a atom.Atom) {
	if w.skip != 0 {
		if a == w.skip {
			if w.depth--; w.depth == 0 {
				w.skip = 0
			}
		}
		return
	}
	switch a {
	case atom.Title:
		w.titled = false
	case atom.A:
		w.leave()
	case atom.Ul, atom.Ol, atom.Menu:
		w.lists = w.lists[:max(0, len(w.lists)-1)]
	case atom.Blockquote:
		w.quotes = max(0, w.quotes-1)
	case atom.Code:
		if w.pre == 0 {
			w.put("`")
		}
	case atom.Pre:
		if w.pre > 0 {
			w.pre--
			w.breaks = max(w.breaks, 1)
			w.put("```")
		}
	}
	w.due(blocks(a))
}

func (w *writer) close() { w.leave() }

func (w *writer) text() string { return strings.TrimSpace(w.out.String()) }

func (w *writer) title() string {
	t := strings.Join(strings.Fields(w.named.String()), " ")
	return strings.ToValidUTF8(strings.Map(harmless, t[:min(len(t), maxTitle)]), "")
}

// due has at least n line ends stand before the next word.
func (w *writer) due(n int) {
	if n > 0 {
		w.breaks, w.blank = max(w.breaks, n), false
	}
}

// item begins an item of a list.
func (w *writer) item() {
	w.bullet = "- "
	if n := len(w.lists); n > 0 {
		w.bullet = strings.Repeat("  ", min(n-1, maxNested)) + w.bullet
		if w.lists[n-1] >= 0 {
			w.lists[n-1]++
			w.bullet = strings.Repeat("  ", min(n-1, maxNested)) + strconv.Itoa(w.lists[n-1]) + ". "
		}
	}
}

// words writes text between tags.
func (w *writer) words(text string) {
	switch {
	case w.skip != 0:
	case w.titled:
		if w.named.Len() < maxTitle {
			w.named.WriteString(text)
		}
	case w.pre > 0:
		i := -1
		for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
			i++
			if i > 0 {
				w.breaks++
			}
			if line != "" {
				w.put(line)
			}
		}
	default:
		for len(text) > 0 {
			end := strings.IndexFunc(text, unicode.IsSpace)
			if end == 0 {
				w.blank = true
				text = strings.TrimLeftFunc(text, unicode.IsSpace)
				continue
			}
			if end < 0 {
				end = len(text)
			}
			w.flush()
			w.put(text[:end])
			text = text[end:]
		}
	}
}

// flush writes the blank that is due.
func (w *writer) flush() {
	if w.blank && w.breaks == 0 && w.out.Len() > 0 {
		w.out.WriteByte(' ')
	}
	w.blank = false
}

// put writes a piece of a line, and before it what is due.
func (w *writer) put(text string) {
	if w.breaks > 0 {
		if w.out.Len() > 0 {
			most := 2
			if w.pre > 0 {
				most = 3 // of code, not all empty lines
			}
			for range min(w.breaks, most) {
				w.out.WriteByte('\n')
			}
		}
		w.breaks = 0
		w.out.WriteString(strings.Repeat("> ", min(w.quotes, maxNested)))
	}
	w.out.WriteString(w.bullet)
	w.bullet = ""
	w.out.WriteString(strings.Map(harmless, text))
}

// leave ends a link.
func (w *writer) leave() {
	if w.link == "" {
		return
	}
	words := w.out.String()[w.linked:]
	if strings.TrimSpace(words) != "" && !strings.Contains(words, w.link) {
		w.out.WriteString(" (" + w.link + ")")
	}
	w.link = ""
}

// address returns where a link leads, whole; empty = nowhere that could be read.
func (w *writer) address(href string) string {
	if href = strings.TrimSpace(href); href == "" || strings.HasPrefix(href, "#") {
		return ""
	}
	if w.links++; w.links > maxLinks || len(href) > maxLink {
		return ""
	}
	u, err := url.Parse(href)
	if err == nil && !u.IsAbs() {
		if w.far {
			return ""
		}
		u = w.base.ResolveReference(u)
	}
	if err != nil || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto" {
		return ""
	}
	if text := u.String(); len(text) <= maxLink {
		return text
	}
	return ""
}

func attr(t *html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
