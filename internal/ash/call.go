package ash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/interp"
)

// startPatience is how long `spawn ... &` waits for the PID of its agent.
const startPatience = 10 * time.Second

// clashing are the built-ins of the interpreter that it does not have, or not for agents.
var clashing = map[string]bool{"kill": true, "wait": true, "jobs": true, "fg": true, "bg": true, "ulimit": true, "help": true, "history": true, "disown": true}

// caller looks at each command before it is run.
type caller struct{ *Shell }

// call sees every command with its words expanded, before it is looked up, and returns what is run
// instead.
func (s caller) call(ctx context.Context, args []string) ([]string, error) {
	hc := interp.HandlerCtx(ctx)
	if strings.HasPrefix(args[0], ownPrefix) {
		return s.hidden(ctx, &hc, args)
	}
	if err := s.halted(&hc); err != nil {
		return nil, err
	}
	for len(args) > 1 && (args[0] == "builtin" || args[0] == "command") && (clashing[args[1]] || s.ours[args[1]]) {
		args = args[1:]
	}
	if id := s.texts.function(args[0]); id != 0 {
		return s.enter(&hc, id, args), nil
	}
	if clashing[args[0]] {
		return append([]string{ownPrefix + args[0]}, args[1:]...), nil
	}
	switch args[0] {
	case "eval":
		return s.eval(&hc, args), nil
	case "source", ".":
		return s.sourced(ctx, &hc, args), nil
	case "trap":
		return s.trap(args), nil
	case "cd", "pushd":
		if len(args) > 1 && inSpace(absolute(hc.Dir, args[len(args)-1])) {
			return s.refuse(&hc, exitError, "%s: %s is in the name space of agents; the shell stays in directories of this system", args[0], args[len(args)-1]), nil
		}
	case "command", "type":
		return s.which(args), nil
	}
	return args, nil
}

// refuse says what is wrong, and returns a command that fails.
func (s caller) refuse(hc *interp.HandlerContext, code int, format string, args ...any) []string {
	s.fail(hc, code, format, args...)
	return []string{cmdFail, strconv.Itoa(code)}
}

// enter calls a function so that the places within it are those of the file in which it stands. The
// interpreter takes a variable that stands before a call back when it returns, however it does.
func (s caller) enter(hc *interp.HandlerContext, id int, args []string) []string {
	if s.texts.of(hc).id == id {
		return args
	}
	return []string{"eval", varSource + "=" + strconv.Itoa(id) + " " + words(args)}
}

// words returns a command line that means args.
func words(args []string) string {
	var b strings.Builder
	for i, arg := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quote(arg))
	}
	return b.String()
}

// eval compiles what is to be run. It comes twice: the second time with its source known.
func (s caller) eval(hc *interp.HandlerContext, args []string) []string {
	text := strings.Join(args[1:], " ")
	if src := s.texts.of(hc); src.name == evalName && src.text == text {
		return []string{"eval", src.run}
	}
	src, err := compile(evalName, text)
	if err != nil {
		return s.refuse(hc, exitUsage, "%s", message(err))
	}
	return []string{"eval", fmt.Sprintf("%s=%d eval %s", varSource, s.texts.add(src).id, quote(text))}
}

// evalName is the name of what eval is given.
const evalName = "eval"

// compiled is where the interpreter finds the sources of others; the number of one follows.
const compiled = "/dev/fd/rnix-source-"

// sourced compiles a file that is to be run in this shell.
func (s caller) sourced(ctx context.Context, hc *interp.HandlerContext, args []string) []string {
	if len(args) < 2 {
		return s.refuse(hc, exitUsage, "%s: name the file", args[0])
	}
	if strings.HasPrefix(args[1], compiled) {
		return args
	}
	text, err := s.script(ctx, hc, args[1])
	if err != nil {
		return s.refuse(hc, exitError, "%s: %s", args[0], message(err))
	}
	src, err := compile(args[1], text)
	if err != nil {
		return s.refuse(hc, exitUsage, "%s", message(err))
	}
	id := s.texts.add(src).id
	line := append([]string{"source", compiled + strconv.Itoa(id)}, args[2:]...)
	return []string{"eval", fmt.Sprintf("%s=%d %s", varSource, id, words(line))}
}

// script reads a file that is to be sourced: of the name space, of the current directory, or of PATH.
func (s caller) script(ctx context.Context, hc *interp.HandlerContext, name string) (string, error) {
	if inSpace(name) {
		data, err := s.cfg.Host.Read(ctx, hc.Dir, name)
		return string(data), err
	}
	paths := []string{absolute(hc.Dir, name)}
	if !strings.Contains(name, "/") {
		for _, dir := range filepath.SplitList(hc.Env.Get("PATH").String()) {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	var first error
	for _, path := range paths {
		text, err := ReadScript(path)
		if err == nil {
			return text, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}

// trap compiles what is run at the end or after an error.
func (s caller) trap(args []string) []string {
	if len(args) < 3 || strings.HasPrefix(args[1], "-") {
		return args
	}
	src, err := compile("trap", args[1])
	if err != nil {
		return args // the interpreter says so
	}
	return append([]string{"trap", src.run}, args[2:]...)
}

// which answers `command -v` and `type` for our own commands, which the interpreter does not know.
func (s caller) which(args []string) []string {
	rest := slices.DeleteFunc(slices.Clone(args[1:]), func(a string) bool { return strings.HasPrefix(a, "-") })
	if args[0] == "command" && (len(args) < 2 || args[1] != "-v") || !slices.ContainsFunc(rest, func(a string) bool { return s.ours[a] }) {
		return args
	}
	return append([]string{ownPrefix + "which", args[0]}, rest...)
}

// hidden runs the commands that rewrite has put in and that change variables of the shell.
func (s caller) hidden(ctx context.Context, hc *interp.HandlerContext, args []string) ([]string, error) {
	switch args[0] {
	case cmdJob:
		if len(args) < 3 {
			return []string{cmdFail, "2"}, nil // somebody has typed it
		}
		if err := s.halted(hc); err != nil {
			return nil, err
		}
		j, err := s.jobs.add(jobOf(hc), args[1], strings.Join(args[2:], " "))
		if err != nil {
			return nil, s.halt(hc, err.Error())
		}
		s.jobs.until(j, context.AfterFunc(ctx, func() { s.jobs.end(j, signalCode(os.Interrupt)) }))
		return []string{"eval", fmt.Sprintf("%s=%%%d", varLast, j.id)}, nil
	case cmdStarted:
		return s.started(ctx, hc), nil
	case cmdLoop:
		return s.inLoop(hc), nil
	}
	return args, nil
}

// started waits for the PID of an agent that was started in the background.
func (s caller) started(ctx context.Context, hc *interp.HandlerContext) []string {
	j := s.jobs.get(number(hc.Env.Get(varLast).String()))
	if j == nil {
		return []string{":"}
	}
	if j.kind == jobAgent {
		select {
		case <-j.started:
		case <-s.broken(hc):
		case <-ctx.Done():
		case <-after(startPatience):
		}
	}
	word := s.jobs.word(j)
	if s.cfg.Terminal && jobOf(hc) == 0 {
		_, _ = fmt.Fprintf(hc.Stderr, "[%d] %s\n", j.id, word)
	}
	return []string{"eval", varLast + "=" + quote(word)}
}

// inLoop notes what the loop that begins reads: an agent in it does not take that as its own input, or
// the first one would take it all.
func (s caller) inLoop(hc *interp.HandlerContext) []string {
	id := ""
	if f, ok := hc.Stdin.(*os.File); ok && f != s.stdin {
		id = identity(f)
		s.texts.loop(id, f)
	}
	if hc.Env.Get(varLoop).String() == id {
		return []string{":"}
	}
	return []string{"eval", varLoop + "=" + id}
}

func identity(f *os.File) string { return fmt.Sprintf("%p", f) }
