package ash

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"
	"golang.org/x/sys/unix"
)

// The lines that are kept, and how large the file may become before it is shortened to them.
const (
	maxLines   = 1000
	maxHistory = 512 << 10 // bytes
)

// Completer returns what a line may go on with at a place: what stays before it, the words, and what
// stays behind.
type Completer func(s *Shell, line string, pos int) (head string, words []string, tail string)

// Interact reads lines from the terminal and runs them until its end, and returns the exit code. say
// shows what is wrong with a line.
func (s *Shell) Interact(history string, complete Completer, say func(error)) int {
	cooked, err := liner.TerminalMode()
	if err != nil {
		say(fmt.Errorf("standard input cannot be used as a terminal: %w", err))
		return exitError
	}
	editor := liner.NewLiner()
	defer editor.Close()
	editor.SetCtrlCAborts(true)
	editor.SetTabCompletionStyle(liner.TabPrints)
	editor.SetWordCompleter(func(line string, pos int) (string, []string, string) { return complete(s, line, pos) })
	raw, err := liner.TerminalMode()
	if err != nil {
		say(err)
		return exitError
	}
	h := openHistory(history)
	for _, line := range h.lines {
		editor.AppendHistory(line)
	}
	s.typed = func() []string { return h.lines }
	code := 0
	for {
		_ = raw.ApplyMode()
		text, err := s.read(editor, func(line string) { h.add(line); editor.AppendHistory(line) })
		_ = cooked.ApplyMode()
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			code = signalCode(os.Interrupt)
			continue
		case errors.Is(err, io.EOF):
			_, _ = fmt.Fprintln(s.cfg.Stderr)
			s.Leave()
			return code
		case err != nil:
			say(err)
			return exitError
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		code, err = s.Run("", text, false)
		if err != nil {
			say(err)
		}
		if code == signalCode(os.Interrupt) && s.front.signal() == os.Interrupt {
			_, _ = fmt.Fprintln(s.cfg.Stderr) // behind the ^C
			_, _ = s.Run("", fmt.Sprintf("%s %d", cmdFail, code), false)
		}
		if sig := s.front.signal(); s.Exited() || sig != nil && sig != os.Interrupt {
			return code
		}
		s.ended()
	}
}

// read reads lines until they are whole statements.
func (s *Shell) read(editor *liner.State, keep func(string)) (string, error) {
	prompt, text := s.prompt(), ""
	for {
		line, err := editor.Prompt(prompt)
		if err != nil {
			return "", err
		}
		if line != "" && line[0] != ' ' { // as other shells do with lines that are not to be kept
			keep(line)
		}
		text += line + "\n"
		if _, err := compile("", text); !isIncomplete(err) {
			return text, nil
		}
		prompt = "> "
	}
}

func isIncomplete(err error) bool {
	var i *IncompleteError
	return errors.As(err, &i) && i.More
}

// prompt shows the directory.
func (s *Shell) prompt() string {
	dir := s.Dir()
	if home := s.runner.Env.Get("HOME").String(); home != "" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		dir = "~" + strings.TrimPrefix(dir, home)
	}
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, dir)
	return "rnix:" + clean + "> "
}

// Dir returns the directory that the shell is in.
func (s *Shell) Dir() string {
	if s.runner.Dir == "" {
		return s.cfg.Dir
	}
	return s.runner.Dir
}

// ended tells of the jobs that have ended since.
func (s *Shell) ended() {
	for _, j := range s.jobs.of(0, true) {
		select {
		case <-j.done:
			_, _ = fmt.Fprintln(s.cfg.Stderr, s.jobs.line(j))
			s.jobs.take(j)
		default:
		}
	}
}

// history is the lines that were typed, and their file.
type history struct {
	lines []string
	path  string
}

// openHistory reads the last lines of the file, and shortens it if it has become too long. A file that
// cannot be read or written is done without.
func openHistory(path string) *history {
	h := &history{path: path}
	if path == "" {
		return h
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return h
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		h.path = ""
		return h
	}
	if st.Size() > 2*maxHistory {
		_, _ = f.Seek(-maxHistory, io.SeekEnd)
	}
	for in := bufio.NewReader(f); ; {
		line, err := in.ReadString('\n')
		if line = strings.TrimRight(line, "\n"); line != "" && len(line) <= MaxSource {
			h.lines = append(h.lines, line)
		}
		if err != nil {
			break
		}
	}
	if over := len(h.lines) - maxLines; over > 0 {
		h.lines = h.lines[over:]
	}
	if st.Size() > maxHistory {
		h.shorten()
	}
	return h
}

// shorten writes the file anew with the lines that are kept.
func (h *history) shorten() {
	f, err := os.CreateTemp(filepath.Dir(h.path), ".sh_history-*") // with mode 0600
	if err != nil {
		return
	}
	_, err = f.WriteString(strings.Join(h.lines, "\n") + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), h.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// add keeps a line, unless it is the one before it again.
func (h *history) add(line string) {
	line = strings.TrimRight(line, " \t")
	if n := len(h.lines); n > 0 && h.lines[n-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if len(h.lines) > maxLines {
		h.lines = h.lines[1:]
	}
	if h.path == "" {
		return
	}
	if os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(line + "\n") // several shells add whole lines
	_ = f.Close()
}
