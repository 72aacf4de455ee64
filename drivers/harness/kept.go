package harness

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/internal/durable"
	"rnix/internal/harness"
)

// lose notes that a session cannot be resumed and says why: the next start begins a new one.
func lose(s *session, id, why string, emit func(llm.StreamEvent)) {
	s.cliID, s.lost = "", true
	emit(llm.StreamEvent{Type: llm.EventWarning, Text: "cannot resume the " + s.cfg.CLI.Name() + " session " + id + ": " + rnixctx.Elide(why, 500) +
		"; a new session is told the conversation from the record of this process"})
}

// anew begins a new session in the place of one that could not be resumed.
func (s *session) anew(ctx context.Context, req *llm.LLMRequest, why string, emit func(llm.StreamEvent)) (*llm.LLMResponse, error) {
	id, asked := s.resumed, s.asked
	s.drop(false)
	lose(s, id, why, emit)
	if err := s.start(ctx, asked, emit); err != nil {
		return nil, err
	}
	s.told = len(req.Messages) - 1 - lastAnswer(req.Messages)
	return s.pump(ctx, req, emit)
}

// gone reports whether a turn has failed because the session that it was to resume is not there, or cannot be read.
func (t *turnState) gone(end *agent.ResultEvent) bool {
	return t.resumed != "" && !end.Success && (end.Subtype == harness.WhyNoSession || !t.began && end.Subtype == harness.WhyNoResult)
}

// A CLI takes a record of a session that was cut short, or put back from an older backup, without a word. So before a session is
// resumed, the CLI's record is searched for what our own says that the session has answered last.

const (
	maxPieces = 8                // answers that are looked for
	maxPiece  = 200              // bytes of each
	kept      = 30 * time.Second // for a CLI to print the record
)

// evidence returns pieces of what the session with an id must know, as JSON has them: parts of its last answers, or of its task if
// it has not answered yet. ids says that the ids of the calls of its own tools are the CLI's.
func (c *Config) evidence(ms []rnixctx.Message, id string, ids bool) (pieces []string) {
	add := func(piece string) {
		if piece != "" && !slices.Contains(pieces, piece) {
			pieces = append(pieces, piece)
		}
	}
	answered := false
	for i := len(ms) - 1; i >= 0 && len(pieces) < maxPieces; i-- {
		if p, ok := c.placeOf(&ms[i]); !ok || p.Session != id {
			continue
		}
		answered = true
		add(fragment(ms[i].Content))
		for _, call := range ms[i].ToolCalls {
			if ids && !strings.HasPrefix(call.ID, kernelCall) && !strings.HasPrefix(call.ID, namelessCall) {
				add(fragment(call.ID))
			}
		}
	}
	for i := 0; i < len(ms) && !answered; i++ {
		if ms[i].Role == rnixctx.RoleUser {
			add(fragment(ms[i].Content))
			break
		}
	}
	return pieces
}

// fragment returns the longest part of a text that stands in JSON as it is and that we have not put there: what is in
// brackets may be a note about something that was left out.
func fragment(text string) (longest string) {
	depth := 0
	parts := strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '[':
			depth++
			return true
		case ']':
			depth = max(depth-1, 0)
			return true
		case '\n': // a bracket that is not closed is no note
			depth = 0
		}
		return depth > 0 || r == '"' || r == '\\' || r == utf8.RuneError || r == '\u2028' || r == '\u2029' || unicode.IsControl(r)
	})
	for _, part := range parts {
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	for len(longest) > maxPiece {
		longest = longest[:maxPiece]
		for !utf8.ValidString(longest) {
			longest = longest[:len(longest)-1]
		}
	}
	return longest
}

// maxKept is how many bytes of records are looked at: an agent can make files of any length that have nothing in them.
const maxKept = 1 << 30

// lacks reports whether the CLI has a record of a session in which something is missing that we know of. If there is no record,
// or it cannot be read, it is left to the CLI to say so.
func lacks(ctx context.Context, s *session, req *llm.LLMRequest, id string) bool {
	where := s.cfg.CLI.Kept(id, func(name string) string { return s.confined.variable(ctx, s.cfg.CLI, name) })
	if len(where.Files) == 0 && (len(where.Args) == 0 || id == s.cliID) { // it has just told us of it
		return false
	}
	pieces := s.cfg.evidence(req.Messages, id, where.CallIDs)
	if len(pieces) == 0 {
		return false
	}
	if len(where.Files) == 0 {
		left, ok := printed(ctx, s, where.Args, req.WorkDir, pieces)
		return ok && len(left) > 0
	}
	found, rest := false, int64(maxKept)
	for _, pattern := range where.Files {
		for f := range records(s.confined.Home, pattern) {
			part := &io.LimitedReader{R: f, N: rest}
			left, err := without(part, pieces)
			if rest = part.N; err == nil && len(left) == 0 {
				return false
			}
			found = found || err == nil
		}
	}
	return found
}

// records opens the files that a pattern finds, one after the other. Of a CLI with a home of its own they lie in that, whatever it has made links to there.
func records(home, pattern string) iter.Seq[io.Reader] {
	return func(yield func(io.Reader) bool) {
		if home == "" {
			names, _ := filepath.Glob(pattern) // its one error is that of a pattern, which is ours
			each(names, func(name string) (io.ReadCloser, error) { return durable.OS.OpenFile(name, os.O_RDONLY, 0) }, yield)
			return
		}
		root, err := os.OpenRoot(home)
		if err != nil {
			return
		}
		defer root.Close() // nothing was written
		if rel, err := filepath.Rel(home, pattern); err == nil {
			each(find(root, rel), func(name string) (io.ReadCloser, error) { return openRecord(root, name) }, yield)
		}
	}
}

// each opens files, one after the other, as long as yield wants more.
func each(names []string, open func(name string) (io.ReadCloser, error), yield func(io.Reader) bool) {
	for _, name := range names {
		f, err := open(name)
		if err != nil {
			continue
		}
		more := yield(f)
		_ = f.Close() // nothing was written
		if !more {
			return
		}
	}
}

// find returns what a pattern finds in a directory. It opens nothing but directories: fs.Glob would wait for the other end of a pipe.
func find(root *os.Root, pattern string) []string {
	found := []string{"."}
	for part := range strings.SplitSeq(pattern, "/") {
		var next []string
		for _, dir := range found {
			d, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
			if err != nil {
				continue
			}
			names, _ := d.Readdirnames(-1) // what could be read
			_ = d.Close()                  // nothing was written
			for _, name := range names {
				if ok, err := filepath.Match(part, name); ok && err == nil {
					next = append(next, filepath.Join(dir, name))
				}
			}
		}
		found = next
	}
	slices.Sort(found)
	return found
}

// openRecord opens a regular file in a directory.
func openRecord(root *os.Root, name string) (io.ReadCloser, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close() // nothing was written
		return nil, errors.Join(err, errNoRecord)
	}
	return f, nil
}

// errNoRecord is why something is no record of a session.
var errNoRecord = errors.New("it is no file")

// variable looks up a variable of the caller.
func variable(ctx context.Context, name string) string {
	for _, pair := range slices.Backward(llm.CallerFrom(ctx).Env) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	value, _ := llm.SecretFrom(ctx, name)
	return value
}

// without returns the pieces that a text does not have. It holds a part of the text at a time.
func without(text io.Reader, pieces []string) (left []string, err error) {
	left = slices.Clone(pieces)
	buf := make([]byte, 0, 256<<10)
	for {
		n, err := text.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if len(buf) == cap(buf) || err != nil {
			left = slices.DeleteFunc(left, func(piece string) bool { return bytes.Contains(buf, []byte(piece)) })
			tail := buf[max(len(buf)-maxPiece, 0):] // a piece may lie on both sides of the cut
			buf = buf[:copy(buf[:len(tail)], tail)]
		}
		switch {
		case err == io.EOF || len(left) == 0:
			return left, nil
		case err != nil:
			return left, err
		}
	}
}

// printed is without for a record that the CLI prints. It reports false if it does not.
func printed(ctx context.Context, s *session, args []string, dir string, pieces []string) (left []string, ok bool) {
	c, err := launch(ctx, s.cfg.Start, &harness.Command{Program: s.cfg.Program, Args: args}, dir, &s.confined, nil)
	if err != nil {
		return nil, false // the start of the session says why
	}
	late := time.NewTimer(kept)
	defer late.Stop()
	left = slices.Clone(pieces)
	for {
		select {
		case line, more := <-c.lines:
			if !more {
				end := c.stop(true)
				return left, end.Code == 0 && end.Signal == 0
			}
			c.read(line)
			left = slices.DeleteFunc(left, func(piece string) bool { return bytes.Contains(line, []byte(piece)) })
		case <-late.C:
			c.stop(false)
			return nil, false
		case <-ctx.Done():
			c.stop(false)
			return nil, false
		case <-s.over:
			c.stop(false)
			return nil, false
		}
	}
}
