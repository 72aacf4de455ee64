package chat

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// maxDropped is how long a paste may be that is taken for paths, in bytes.
const maxDropped = 8 << 10

// dropped returns a paste that is nothing but paths of images and PDFs, as a terminal writes them when files are dropped on it, as names with @; "" = it is
// something else. A word without a directory is none: it may be meant as a word.
func dropped(m *Model, s string) string {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > maxDropped || strings.ContainsRune(s, '\n') || !strings.Contains(s, "/") {
		return ""
	}
	names := []string{s}
	if !droppable(m, s) {
		names = shellWords(s)
	}
	var out []string
	for _, name := range names {
		if !droppable(m, name) {
			return ""
		}
		out = append(out, atName(hereName(m, localName(name))))
	}
	return strings.Join(out, " ")
}

func droppable(m *Model, name string) bool {
	name = localName(name)
	return strings.Contains(name, "/") && !strings.Contains(name, `"`) && isMedia(pathOf(m, name))
}

// localName is the path of a file:// address, or the name itself.
func localName(name string) string {
	if u, err := url.Parse(name); err == nil && u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") {
		return u.Path
	}
	return name
}

// hereName is a shorter name of a file in the working directory.
func hereName(m *Model, name string) string {
	if rel, err := filepath.Rel(m.o.Dir, name); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return name
}

// atName is how a message names a file.
func atName(name string) string {
	if strings.ContainsAny(name, " \t") || strings.TrimRight(name, ".,;:!?)") != name {
		return `@"` + name + `"`
	}
	return "@" + name
}

// shellWords splits a line as a shell does: quotes and backslashes keep spaces.
func shellWords(s string) (words []string) {
	var b strings.Builder
	in, quote := false, rune(0)
	for rs := []rune(s); len(rs) > 0; rs = rs[1:] {
		switch r := rs[0]; {
		case quote == 0 && r == ' ':
			if in {
				words = append(words, b.String())
			}
			b.Reset()
			in = false
			continue
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		case r == '\\' && quote != '\'' && len(rs) > 1:
			b.WriteRune(rs[1])
			rs = rs[1:]
		default:
			b.WriteRune(r)
		}
		in = true
	}
	if in {
		words = append(words, b.String())
	}
	return words
}

// putNames puts names of files in at the cursor, apart from what stands there.
func putNames(m *Model, names string) {
	if n := m.ed.at; n > 0 && m.ed.text[n-1] == '@' && strings.HasPrefix(names, "@") {
		m.ed.cut(n-1, n)
	} else if n > 0 && !strings.ContainsRune(" \n\t", m.ed.text[n-1]) {
		names = " " + names
	}
	m.ed.insert(names + " ")
}

// pasteImage puts the image of the clipboard into what is typed, as a file.
func pasteImage(m *Model) tea.Cmd {
	if m.o.Clipboard == nil {
		m.note, m.bad = "the clipboard cannot be read here; name an image as @FILE", true
		return nil
	}
	take, ctx := m.o.Clipboard, m.ctx
	return func() tea.Msg {
		path, err := take(ctx)
		return doneMsg(func(m *Model) tea.Cmd {
			if err == nil {
				_, err = os.Stat(path)
			}
			if err != nil {
				m.complain(err)
				return nil
			}
			putNames(m, atName(path))
			lookBeside(m)
			return nil
		})
	}
}
