package chat

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	rnixctx "rnix/context"
	"rnix/internal/media"
	"rnix/internal/plumbing"
	"rnix/internal/tui"
	"rnix/ipc"
)

// namesIn returns what a text names with @, in its order: a word without the punctuation behind it, or, for a name with spaces, what stands in quotes:
// @"my shot.png". Each has the spellings that may be meant, the longest first.
func namesIn(text string) (out [][]string) {
	for i := 0; i < len(text); i++ {
		if text[i] != '@' || i > 0 && !unicode.IsSpace(rune(text[i-1])) {
			continue
		}
		rest := text[i+1:]
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			if name, _, closed := strings.Cut(quoted, `"`); closed && name != "" && !strings.Contains(name, "\n") {
				out = append(out, []string{name})
				i += len(name) + 2
				continue
			}
		}
		if end := strings.IndexFunc(rest, unicode.IsSpace); end >= 0 {
			rest = rest[:end]
		}
		if rest != "" {
			out = append(out, []string{rest, strings.TrimRight(rest, ".,;:!?)")})
		}
	}
	return out
}

// namedFiles returns the files that a message names with @, each once.
func namedFiles(m *Model, text string) (out []string) {
	for _, spellings := range namesIn(text) {
		for _, try := range spellings {
			st, err := os.Stat(pathOf(m, try))
			if err != nil {
				continue
			}
			if st.Mode().IsRegular() && !slices.Contains(out, try) {
				out = append(out, try)
			}
			break
		}
	}
	return out
}

// namedTexts returns the files that a message names and that are given as text.
func namedTexts(m *Model, text string) []string {
	return slices.DeleteFunc(namedFiles(m, text), func(name string) bool { return isMedia(pathOf(m, name)) })
}

// isMedia reports whether a file is an image or a PDF, by how it begins.
func isMedia(path string) bool {
	head, err := plumbing.Beginning(path, media.SniffLen)
	return err == nil && media.Type(head) != ""
}

// fileEnding finds the ending of a file's name, such as .txt: without one, a word behind @ may be a person or a package.
var fileEnding = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.[a-z][a-z0-9]{0,4}$`) })

// missing returns what a message names as a file, by its ending, and is not there.
func missing(m *Model, text string) string {
	for _, spellings := range namesIn(text) {
		name := spellings[len(spellings)-1]
		if !fileEnding().MatchString(strings.ToLower(filepath.Ext(name))) {
			continue
		}
		if !slices.ContainsFunc(spellings, func(s string) bool { _, err := os.Stat(pathOf(m, s)); return err == nil }) {
			return name
		}
	}
	return ""
}

// compose reads the images and PDFs that a message names, and looks whether its texts can be given to the agent.
func compose(m *Model, text string) (message, error) {
	said := message{text: text}
	if name := missing(m, text); name != "" {
		return said, fmt.Errorf("no such file: %s; correct the name, or take the @ before it away", name)
	}
	all := 0
	for _, a := range m.given {
		all += len(a.Data)
	}
	for _, name := range namedFiles(m, text) {
		path := pathOf(m, name)
		if !isMedia(path) {
			if _, err := contentsOf(m, name); err != nil {
				return said, err
			}
			continue
		}
		data, err := media.Read(path)
		if all += len(data); err == nil && all > ipc.MaxAttached {
			err = fmt.Errorf("the images and PDFs have more than %s together: name some without @, and the agent reads them", media.Size(ipc.MaxAttached))
		}
		if err != nil {
			return said, err
		}
		said.shown, said.labels = append(said.shown, ipc.Attachment{Name: filepath.Base(name), Data: data}), append(said.labels, labelOf(filepath.Base(name), data))
	}
	if n := len(said.shown) + len(m.given); n > rnixctx.MaxAttachments {
		return said, fmt.Errorf("the message has %d images and PDFs, and at most %d are taken: name some without @, and the agent reads them", n, rnixctx.MaxAttachments)
	}
	return said, nil
}

// beside is what the agent gets with the next message, whatever that says: commands that the person has run, and what the command line has attached.
type beside struct {
	ran   []ran
	given []ipc.Attachment
}

// takeBeside returns what goes along with a message: it is given once. What could not be sent is put back with giveBeside.
func takeBeside(m *Model) beside {
	b := beside{m.ran, m.given}
	m.ran, m.given = nil, nil
	return b
}

func giveBeside(m *Model, b beside) {
	m.ran, m.given = append(b.ran, m.ran...), append(b.given, m.given...)
	lookBeside(m)
}

// with returns what is shown with a message.
func (b beside) with(shown []ipc.Attachment) []ipc.Attachment { return slices.Concat(b.given, shown) }

// along is what is known of the files that go along with what is being typed.
type along struct {
	labels []string
	why    string // one of them cannot; "" = all can
	seen   map[string]looked
}

// looked is what a file was when it was looked at.
type looked struct {
	size, time int64
	label      string
	err        error
}

// lookBeside looks what goes along with what is being typed. A file is read once, as long as it does not change.
func lookBeside(m *Model) {
	a := along{seen: map[string]looked{}}
	for i := range m.given {
		a.labels = append(a.labels, labelOf(m.given[i].Name, m.given[i].Data))
	}
	text := ""
	if !m.ed.empty() {
		text = m.ed.value()
	}
	if !strings.Contains(text, "@") {
		m.along = a
		return
	}
	for _, name := range namedFiles(m, text) {
		path := pathOf(m, name)
		if !isMedia(path) {
			continue
		}
		l := look(path, m.along.seen[path])
		a.seen[path] = l
		if l.err != nil {
			a.why = tui.Line(m.t, l.err.Error())
			continue
		}
		a.labels = append(a.labels, l.label)
	}
	m.along = a
}

// look looks at a file, if it is not as it was.
func look(path string, was looked) looked {
	st, err := os.Stat(path)
	if err != nil {
		return looked{err: err}
	}
	now := looked{size: st.Size(), time: st.ModTime().UnixNano()}
	if was.size == now.size && was.time == now.time && (was.label != "" || was.err != nil) {
		return was
	}
	data, err := media.Read(path)
	if now.err = err; err == nil {
		now.label = labelOf(filepath.Base(path), data)
	}
	return now
}

// labelOf is how the conversation will name a file.
func labelOf(name string, data []byte) string {
	in, err := media.Check(data)
	if err != nil {
		return "[" + name + "]"
	}
	a := rnixctx.Attachment{Name: name, Media: in.Type, Bytes: int64(len(data)), Width: in.Width, Height: in.Height, Pages: in.Pages}
	return a.Label()
}

// view shows what goes along, on one line.
func (a *along) view(m *Model) []string {
	switch {
	case a.why != "":
		return []string{paint(m.t, red, tui.Cut(m.t, "  "+a.why, m.w-1))}
	case len(a.labels) > 0:
		return []string{paint(m.t, dim, tui.Cut(m.t, "  the agent is shown "+tui.Line(m.t, strings.Join(a.labels, " ")), m.w-1))}
	}
	return nil
}
