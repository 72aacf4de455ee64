package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"rnix/types"
	"rnix/vfs"
)

const (
	grepLine   = 400     // bytes of a line that are shown
	grepKeep   = 1 << 20 // bytes of a line that are searched
	grepWhole  = 4 << 20 // size up to which a file is searched as a whole before it is cut into lines
	maxContext = 50
)

// grepTime is how long one search may take: what it has found by then is the answer.
const grepTime = 30 * time.Second

// grepRequest is what a search looks for.
type grepRequest struct {
	Op         string `json:"op"`
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignore_case"`
	Context    int    `json:"context"`
	Output     string `json:"output"`
	Limit      int    `json:"limit"`
	All        bool   `json:"all"`
}

// search is a search under way.
type search struct {
	*call
	grepRequest
	line  *regexp.Regexp // tests a line
	whole *regexp.Regexp // tests a file; nil if that is not sound
	buf   []byte         // for files that are searched as a whole
	files int            // searched
	hits  int            // lines or files, whatever limit counts
	more  bool           // the limit was reached
	time  time.Duration  // the search may take
}

// grep answers with the lines that match an expression.
func (c *call) grep(ctx context.Context) error {
	s := &search{call: c, time: grepTime}
	if err := vfs.DecodeRequest(c.data, &s.grepRequest); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	match := func(string) bool { return true }
	if s.Glob != "" {
		var err error
		if match, _, err = namePattern("grep", s.Glob); err != nil {
			return err
		}
	}
	return s.run(ctx, match)
}

// run searches where it is asked to, for as long as it may.
func (s *search) run(outer context.Context, match func(string) bool) error {
	c := s.call
	place, isDir, err := c.start(s.Path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(outer, s.time)
	defer cancel()
	w := &walker{root: place.Root, start: place, all: s.All}
	if isDir {
		w.visit = func(e entry) error {
			if !e.Type().IsRegular() || !match(e.below) {
				return nil
			}
			return s.file(ctx, Place{Root: place.Root, Rel: e.rel, Name: c.roots.Name(filepath.Join(place.Abs, e.below)), guard: place.guard})
		}
		err = w.walk(ctx, place.Rel)
	} else if err = s.file(ctx, place); s.more {
		err = nil
	}
	late := err != nil && ctx.Err() != nil && outer.Err() == nil
	if err != nil && !late {
		return Failure("grep", place.Name, err)
	}
	switch {
	case late:
		c.note(fmt.Sprintf("not finished: the search ended after %s, while it read file %d; narrow path or glob", s.time, s.files))
	case s.more:
		c.note(fmt.Sprintf("cut after %d: there may be more; narrow the pattern, path or glob, or raise limit", s.hits))
	case s.hits == 0:
		c.note("no match in " + count(s.files, "file"))
		w.noteLeftOut(&c.answer)
		w.noteOwn(&c.answer)
	}
	return nil
}

// check completes the request and compiles the expression.
func (s *search) check() (err error) {
	switch s.Output {
	case "":
		s.Output = "content"
	case "content", "files", "count":
	default:
		return types.Errorf(types.ErrInvalid, "grep", "", "output is %q: use content, files or count", s.Output)
	}
	switch {
	case s.Pattern == "":
		return types.Errorf(types.ErrInvalid, "grep", "", "no pattern given")
	case s.Limit < 0 || s.Context < 0:
		return types.Errorf(types.ErrInvalid, "grep", "", "limit counts from 1, context from 0")
	}
	if s.Limit == 0 {
		s.Limit = foundFiles
	}
	s.Context = min(s.Context, maxContext)
	flags := ""
	if s.IgnoreCase {
		flags = "(?i)"
	}
	if s.line, err = regexp.Compile(flags + s.Pattern); err != nil {
		return types.Errorf(types.ErrInvalid, "grep", "", "bad pattern (RE2 syntax, without backreferences and look-around): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	// A line that matches alone also matches inside its file, if ^ and $ mean lines: so a file without
	// a match has no matching line. That does not hold for \A and \z.
	if !strings.Contains(s.Pattern, `\A`) && !strings.Contains(s.Pattern, `\z`) {
		s.whole, err = regexp.Compile("(?m)" + flags + s.Pattern)
	}
	return err
}

// file searches one file. It returns fs.SkipAll when the limit is reached. A file that cannot be read
// is passed over, like a binary one.
func (s *search) file(ctx context.Context, p Place) error {
	if err := vfs.Ended(ctx, "Read", ""); err != nil {
		return err
	}
	f, info, err := p.Open()
	if err != nil {
		return nil //nolint:nilerr // it is gone, or is not ours to read
	}
	defer f.Close()
	if info.IsDir() {
		return nil
	}
	s.files++
	var src io.Reader = untilEnded{ctx, f}
	if s.whole != nil && info.Size() <= grepWhole {
		s.buf = slices.Grow(s.buf[:0], int(info.Size())+1)
		s.buf = s.buf[:cap(s.buf)]
		n, err := io.ReadFull(src, s.buf[:info.Size()+1])
		content := s.buf[:n]
		switch {
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return vfs.Ended(ctx, "Read", "")
		case bytes.IndexByte(content[:min(n, sniff)], 0) >= 0:
			return nil
		case int64(n) > info.Size(): // it has grown: go on as with a large one
			src = io.MultiReader(bytes.NewReader(content), src)
		case !s.whole.Match(content):
			return nil
		default:
			src = bytes.NewReader(content)
		}
	}
	return s.lines(ctx, src, p)
}

// near is a line near a match.
type near struct {
	number int
	text   string
}

// lines searches line by line.
func (s *search) lines(ctx context.Context, src io.Reader, p Place) error {
	l := newLineReader(src, grepKeep)
	l.text = true
	var before []near // the last lines that were not shown
	number, matches, after, last := 0, 0, 0, 0
	name := shownName(p.Name)
	for {
		line, length, err := l.next()
		if err != nil {
			if e := vfs.Ended(ctx, "Read", ""); e != nil {
				return e
			}
			break // the end, or as far as it can be read
		}
		if l.binary && matches == 0 {
			return nil
		} else if l.binary {
			break // what was text has a hole, which may be of any length
		}
		number++
		at := s.line.FindIndex(line)
		if at == nil {
			switch {
			case after > 0:
				after--
				last = number
				s.show(name, '-', number, window(line, length, 0))
			case s.Context > 0 && s.Output == "content":
				if len(before) == s.Context {
					before = append(before[:0], before[1:]...)
				}
				before = append(before, near{number, window(line, length, 0)})
			}
			continue
		}
		matches++
		switch s.Output {
		case "files":
			return s.hit(name + "\n")
		case "count":
			continue
		}
		if s.hits >= s.Limit || s.full(grepLine) {
			return s.stop()
		}
		if s.Context > 0 && s.text.Len() > 0 && (last == 0 || last+1 < number-len(before)) {
			s.text.WriteString("--\n")
		}
		for _, b := range before {
			s.show(name, '-', b.number, b.text)
		}
		before, after, last = before[:0], s.Context, number
		s.hits++
		s.show(name, ':', number, window(line, length, at[0]))
	}
	if s.Output == "count" && matches > 0 {
		return s.hit(fmt.Sprintf("%s:%d\n", name, matches))
	}
	return nil
}

// hit writes the one line of a file.
func (s *search) hit(line string) error {
	if s.hits >= s.Limit || s.full(len(line)) {
		return s.stop()
	}
	s.hits++
	s.text.WriteString(line)
	return nil
}

// stop ends the search because enough was found.
func (s *search) stop() error {
	s.more = true
	return fs.SkipAll
}

func (s *search) show(name string, sep byte, number int, text string) {
	fmt.Fprintf(&s.text, "%s%c%d%c%s\n", name, sep, number, sep, text)
}

// window returns the part of a line around position at that is shown.
func window(line []byte, length, at int) string {
	if len(line) <= grepLine && length == len(line) {
		return text(line, false)
	}
	from := max(0, min(at-grepLine/4, len(line)-grepLine))
	to := min(len(line), from+grepLine)
	out := text(bytes.TrimLeftFunc(line[from:to], func(r rune) bool { return from > 0 && r == '\uFFFD' }), to < length)
	if from > 0 {
		out = "..." + out
	}
	if to < length {
		out += "..."
	}
	return fmt.Sprintf("%s [bytes %d to %d of %d]", out, from+1, to, length)
}
