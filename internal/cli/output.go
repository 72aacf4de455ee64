package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"rnix/debug"
	"rnix/internal/tui"
	"rnix/runtime/statehome"
	"rnix/types"
)

// format is the form of the answer.
type format int

const (
	asText format = iota
	asJSON
	asStream // NDJSON from init to result; only run and wait
)

// output is where a command's answer and its talk go.
type output struct {
	out, err       stream
	format         format
	quiet, verbose bool
	ascii          bool
	lastLine       bool    // of results, only the last line
	exact          bool    // the result is JSON that a schema has asked for, and nothing else goes to standard output
	broken         error   // the first failure to write the answer
	live           *status // the line that is being kept at the bottom of the terminal; nil = none
	prog           string
	// unfinished is set when a process was shown that has not ended, but is suspended.
	unfinished bool

	lines *lineStream // of stream-json; nil = none yet
	voice voice
}

// stream is standard output or standard error.
type stream struct {
	w        io.Writer
	terminal bool
	color    bool
	width    int // in cells; 0 = no limit
}

func newOutput(out, err io.Writer, env statehome.Lookup) *output {
	return &output{out: newStream(out, env), err: newStream(err, env), ascii: tui.NewTheme(env).ASCII, prog: statehome.Brand}
}

func newStream(w io.Writer, env statehome.Lookup) stream {
	s := stream{w: w}
	if f, ok := w.(*os.File); ok {
		if ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			s.terminal, s.width = true, int(ws.Col)
		}
	}
	if n, _ := env("COLUMNS"); n != "" {
		var cols int
		if _, err := fmt.Sscan(n, &cols); err == nil && cols > 0 {
			s.width = cols
		}
	}
	term, _ := env("TERM")
	force, _ := env("CLICOLOR_FORCE")
	s.color = s.terminal && term != "dumb" || force != "" && force != "0"
	if no, _ := env("NO_COLOR"); no != "" {
		s.color = false
	}
	return s
}

// json reports whether a program reads the answer.
func (o *output) json() bool { return o.format != asText }

// talks reports whether progress is to be told.
func (o *output) talks() bool { return !o.quiet && !o.json() }

// style is how a piece of text stands out on a terminal.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

func (s *stream) paint(st style, text string) string {
	if !s.color || st == plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// print writes to standard output. What comes from an agent must have been cleaned.
func (o *output) print(text string) {
	if text == "" {
		return
	}
	o.voice.breakLine(&o.err, o.live)
	o.write(text)
	o.live.draw()
}

func (o *output) write(text string) {
	if _, err := io.WriteString(o.out.w, text); err != nil && o.broken == nil {
		o.broken = err
	}
}

// result writes a text that an agent made, clean, with a line break at its end.
func (o *output) result(text string) {
	text = strings.TrimRight(debug.Sanitize(text), "\n")
	if o.lastLine {
		text = strings.TrimSpace(text)
		text = text[strings.LastIndexByte(text, '\n')+1:]
	}
	if text == "" || o.voice.shows(o, text) {
		return // it stands on the terminal already
	}
	o.print(text + "\n")
}

// raw writes bytes as they are, but clean if a person sees them.
func (o *output) raw(data []byte) {
	if o.out.terminal {
		o.print(debug.Sanitize(string(data)))
		return
	}
	o.print(string(data))
}

// object writes v as one line of JSON.
func (o *output) object(v any) {
	line, err := encode(v)
	if err != nil {
		if o.broken == nil {
			o.broken = err
		}
		return
	}
	o.jsonLine(line)
}

// jsonLine writes a line of JSON that is already encoded.
func (o *output) jsonLine(line []byte) {
	text := string(line)
	if o.out.terminal {
		text = debug.Sanitize(text)
	}
	o.print(text + "\n")
}

// encode returns v as one line of JSON, without its line break.
func encode(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// talk writes a line of progress to standard error, unless nobody wants it.
func (o *output) talk(format string, args ...any) {
	if o.talks() {
		o.say(fmt.Sprintf(format, args...))
	}
}

// detail is talk that only -v shows.
func (o *output) detail(format string, args ...any) {
	if o.verbose {
		o.talk(format, args...)
	}
}

// warn writes a problem to standard error. JSON has it in its own fields.
func (o *output) warn(text string) {
	if !o.json() {
		o.say(o.err.paint(yellow, "warning: ") + lines(text))
	}
}

// say writes a line to standard error, whatever was asked for.
func (o *output) say(line string) {
	o.voice.breakLine(&o.err, o.live)
	_, _ = io.WriteString(o.err.w, o.drawn(line)+"\n")
	o.live.draw()
}

// asciiMarks are ASCII for what this program puts into lines of its own.
var asciiMarks = strings.NewReplacer("…", "~", "µs", "us")

// drawn is a text that this program makes for people to see, in ASCII if that was asked for.
func (o *output) drawn(text string) string {
	if o.ascii {
		return asciiMarks.Replace(text)
	}
	return text
}

// failure is the answer of a command that failed. Part of the wire format of --json.
type failure struct {
	OK    bool             `json:"ok"`
	Error *types.WireError `json:"error"`
	Mend  string           `json:"mend,omitempty"`
}

// fail says why the command failed.
func (o *output) fail(err error) {
	o.live.end()
	var m *mended
	mend := ""
	if errors.As(err, &m) {
		mend = m.mend
	}
	switch o.format {
	case asJSON:
		o.object(failure{Error: wireError(err), Mend: mend})
	case asStream:
		linesOf(o).end(linesOf(o).failed(err))
	default:
		o.say(o.err.paint(red, o.prog+": ") + shown(errorText(err)))
		if mend != "" {
			o.say("  " + shown(mend))
		}
	}
}

// longestLine is how much of one line of an error people see, in cells: it may name what somebody gave by mistake.
const longestLine = 2000

// shown is what people see of the text of an error.
func shown(text string) string {
	all := strings.Split(lines(text), "\n")
	for i, line := range all {
		all[i] = cut(line, longestLine)
	}
	return strings.Join(all, "\n")
}

// lastWords says that the answer could not be written, in the only place that is left.
func (o *output) lastWords(err error) {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	o.say(o.prog + ": write standard output: " + err.Error())
}

// wireError is the form of an error in JSON.
func wireError(err error) *types.WireError {
	w := types.ToWire(err)
	w.Message = debug.Sanitize(w.Message)
	return w
}

// lines returns text clean, with further lines indented.
func lines(text string) string {
	return strings.ReplaceAll(strings.TrimRight(debug.Sanitize(text), "\n"), "\n", "\n  ")
}
