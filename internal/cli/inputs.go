package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// maxInputs is how many bytes of inputs are read: more does not fit into a request.
const maxInputs = ipc.MaxBody - 512<<10

// takeStdin takes a "-" from the beginning or the end of what is said beside an intent: standard input is
// then the input of the agent. A "-" alone stands for the intent.
func takeStdin(args []string, intentGiven bool) (rest []string, stdin bool) {
	if len(args) < 2 && !(intentGiven && len(args) == 1) {
		return args, false
	}
	switch last := len(args) - 1; {
	case args[0] == "-":
		return args[1:], true
	case args[last] == "-":
		return args[:last], true
	}
	return args, false
}

// inputs reads what the agent is given with its intent: standard input, and files as NAME=FILE.
func (a *app) inputs(stdin bool, files []string) ([]ipc.Input, error) {
	var out []ipc.Input
	left := maxInputs
	add := func(name, what string, read func(limit int) ([]byte, error)) error {
		b, err := read(left)
		if err != nil {
			return err
		}
		if len(b) > left {
			return usagef("put it into a file, and tell the agent to read that", "%s: there are more than the %s bytes that all inputs may have", what, number(maxInputs))
		}
		left -= len(b)
		out = append(out, ipc.Input{Name: name, Text: string(b)})
		return nil
	}
	for _, nf := range files {
		name, file, ok := strings.Cut(nf, "=")
		if !ok || file == "" || !step.InputName(name) {
			return nil, usagef("such as: --input report=report.txt", "--input %s: give a name of letters, digits, dots, dashes and underscores, and a file, as NAME=FILE", nf)
		}
		if file == "-" {
			if stdin {
				return nil, usagef("", "standard input can be one input only")
			}
			return nil, usagef(`name it by its place instead: rnix run - "..."`, "--input %s: standard input is the input named pipe", nf)
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(a.host.Dir, file)
		}
		err := add(name, file, func(limit int) ([]byte, error) { return readHead(file, limit) })
		if err != nil {
			return nil, err
		}
	}
	if stdin {
		if terminal(a.host.In) {
			return nil, usagef(`for instance: git diff | rnix run - "Review this"`, "standard input is a terminal: there is nothing to be read")
		}
		err := add(step.PipeInput, "standard input", func(limit int) ([]byte, error) { return a.stdin("the input", int64(limit)) })
		if err != nil {
			return nil, err
		}
		last := len(out) - 1
		if out[last].Broken, err = brokenOff(a, out[last].Text == ""); err != nil {
			return nil, err
		}
		if out[last].Text == "" {
			a.out.talk("[kernel] standard input was empty: the agent gets an empty input")
		}
	}
	checked := make([]step.Input, len(out))
	for i := range out {
		checked[i] = step.Input(out[i])
	}
	if err := step.CheckInputs(checked); err != nil {
		return nil, usagef("", "%s", errorText(err))
	}
	return out, nil
}

// readHead reads at most limit bytes of a file, and one.
func readHead(path string, limit int) ([]byte, error) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(f, int64(limit)+1)); err == nil {
			return b, nil
		}
	}
	return nil, usagef("", "--input: %w", err)
}

// brokenOff says why standard input, which was read to its end, is not the whole result of the agent that it comes from; "" if it is, or
// comes from elsewhere. It fails if there is nothing to work on: no agent is started then, and the exit code is that of what comes before.
func brokenOff(a *app, empty bool) (string, error) {
	sh := a.host.Shell
	if sh == nil || sh.Before == nil {
		return "", nil
	}
	from, ok := sh.Before()
	switch {
	case !ok:
		return "", nil
	case from.Last && from.Unfinished:
		return "", &exitError{from.Code, types.Errorf(types.ErrUnavailable, "Spawn", "", "the agent was not started: the process that its input comes from is suspended and has brought no result yet")}
	case from.Last && empty:
		return "", &exitError{from.Code, types.Errorf(types.ErrUnavailable, "Spawn", "", "the agent was not started: what its input comes from (%s) ended with exit code %d and brought nothing", from.Name, from.Code)}
	}
	return fmt.Sprintf("%s, which it comes from, did not complete (exit code %d)", from.Name, from.Code), nil
}
