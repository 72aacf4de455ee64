package sandbox

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"rnix/internal/prelude"
	"rnix/types"
)

// Word is the first argument with which this program is the test in a box: main calls Helper then, before anything else.
const Word = "__box"

// NotRun is the exit status of a box that has not executed its command. Box.Started says why.
const NotRun = prelude.NotRun

// Command is what a box executes.
type Command struct {
	Path string   // absolute
	Args []string // without the program's name
	Env  []string
	Dir  string // absolute
	// Keep are the numbers of descriptors, from 135 on, that the command inherits besides its three streams. Whoever starts the box gives
	// it these, beside Box.Files; all others are closed.
	Keep []int
	// Listen are ports of 127.0.0.1, as the command finds it, where the caller listens: see Box.Listeners. Only the network of a plan that is the command's own can
	// have them.
	Listen []uint16
}

// mostInside bounds the listeners of one box: what one message can bring.
const mostInside = 16

// The descriptors of a box, before its command is executed.
const (
	startFD = 3 // the program that enters it
	saysFD  = 4 // with Landlock: where that says what comes of it
	rulesFD = 5 // with Landlock: the rules

	argsFD       = 4 // with bubblewrap: its arguments
	saysInside   = 5
	stderrInside = 6 // the standard error of the command

	firstPin  = 7                   // the first descriptor of what is mounted, after the streams and the files of a box
	mostPins  = 128                 // mounts of a box
	firstKept = firstPin + mostPins // the first descriptor after those of a box
)

// Box is a program to start, which confines itself and executes a command.
type Box struct {
	Path string
	Args []string // without the program's name
	// Env is the whole environment to start it with: nothing in a box, since a command can read that of its first process and a dynamic
	// linker obeys it. It is never nil, which os.StartProcess takes for the environment of this program. The command's own environment is in one of the files.
	Env []string
	// Files must be the descriptors from 3 on; see Inherited.
	Files []*os.File
	pins  []*os.File // what is mounted, from firstPin on

	rung    Rung
	enter   *prelude.Program
	says    *os.File // whether the command runs: the reading end of a pipe
	words   *os.File // what bubblewrap prints: the reading end of a pipe
	printed *os.File // the other end
	ports   []uint16
	inner   []net.Listener // at these
	watched map[string]string
	held    []*holding
}

// Open makes a box for a command. The caller starts what the box says, and calls Close when it
// has ended, also if it could not be started. It fails with INVALID for a command that is not absolute, CONFLICT if a path
// has changed since the plan was made, and STORAGE if the files of the box cannot be made.
func (p Plan) Open(c Command) (*Box, error) {
	if !filepath.IsAbs(c.Path) || !filepath.IsAbs(c.Dir) {
		return nil, types.Errorf(types.ErrInvalid, "sandbox", c.Path, "program and directory of a command must be absolute, and the directory is %q", c.Dir)
	}
	if i := slices.IndexFunc(c.Keep, func(fd int) bool { return fd < firstKept }); i >= 0 {
		return nil, types.Errorf(types.ErrInvalid, "sandbox", c.Path, "the command cannot keep descriptor %d: want %d or more", c.Keep[i], firstKept)
	}
	if len(c.Listen) > 0 && (p.Rung != RungBwrap || p.Network) {
		return nil, types.Errorf(types.ErrInvalid, "sandbox", c.Path, "nothing can listen inside of a box that has the network of the host, or none")
	}
	if p.Rung == RungNone {
		if p.Policy.Level != LevelOff {
			return nil, types.Errorf(types.ErrPermission, "sandbox", c.Path, "no plan was made for this command")
		}
		return &Box{Path: c.Path, Args: c.Args, Env: c.Env}, nil
	}
	listen := slices.Compact(slices.Sorted(slices.Values(c.Listen)))
	if len(c.Listen) > mostInside || len(listen) != len(c.Listen) {
		return nil, types.Errorf(types.ErrInvalid, "sandbox", c.Path, "%d ports are to be listened at; %d different ones are possible", len(c.Listen), mostInside)
	}
	step, err := enter(p, c)
	if usedUp(err) {
		return nil, types.Errorf(types.ErrExhausted, "sandbox", c.Path, "cannot make the first program of the box: %w", err)
	}
	if err != nil {
		return nil, types.Errorf(types.ErrPermission, "sandbox", c.Path, "%w", &notStarted{why: err.Error()})
	}
	b := &Box{Env: []string{}, enter: step, rung: p.Rung, ports: c.Listen, watched: fingerprints(p.Watched)}
	for _, path := range p.Held {
		h, err := hold(path)
		if err != nil {
			_, _ = b.Close()
			return nil, types.Errorf(types.ErrConflict, "sandbox", path, "cannot hold the name of a protected path: %w", err)
		}
		b.held = append(b.held, h)
	}
	program := "/proc/self/fd/" + strconv.Itoa(startFD)
	start, err := b.enter.Open(map[Rung]int{RungLandlock: saysFD, RungBwrap: saysInside}[p.Rung])
	b.Files = append(b.Files, start)
	if p.Rung == RungLandlock {
		b.Path = program
	} else if err == nil {
		argv := slices.Clone(p.Argv)
		if p.Pinned {
			if argv, b.pins, err = pin(argv); err != nil {
				_, _ = b.Close()
				return nil, err
			}
		}
		b.Path, b.Args = p.Program, []string{"--args", strconv.Itoa(argsFD), "--", program}
		var args *os.File
		args, err = prelude.File([]byte(strings.Join(argv[:slices.Index(argv, "--")], "\x00") + "\x00"))
		b.Files = append(b.Files, args)
	}
	if err != nil {
		_, _ = b.Close()
		return nil, types.Errorf(types.ErrStorage, "sandbox", c.Path, "cannot make a file of the box: %w", err)
	}
	if err := b.pipes(); err != nil {
		_, _ = b.Close()
		return nil, types.Errorf(types.ErrExhausted, "sandbox", c.Path, "cannot make the pipes of the box: %w", err)
	}
	if p.Rung == RungLandlock {
		rules, err := ruleset(p.Rules, p.Network)
		if err != nil {
			_, _ = b.Close()
			if usedUp(err) {
				return nil, types.Errorf(types.ErrExhausted, "sandbox", c.Path, "cannot make the rules of the box: %w", err)
			}
			return nil, types.Errorf(types.ErrPermission, "sandbox", c.Path, "%w", &notStarted{why: err.Error()})
		}
		b.Files = append(b.Files, rules)
	}
	return b, nil
}

// usedUp reports whether an error is about what this program or the system has no more of at the moment.
func usedUp(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EAGAIN)
}

// pipes makes the pipes by which Started learns what came of the start.
func (b *Box) pipes() error {
	make := os.Pipe
	if len(b.ports) > 0 {
		make = socketPair
	}
	says, w, err := make()
	if err != nil {
		return err
	}
	b.says, b.Files = says, append(b.Files, w)
	if b.rung == RungBwrap {
		b.words, b.printed, err = os.Pipe()
	}
	return err
}

// Inherited returns all descriptors to start the box with, for a command with these standard streams. What bubblewrap itself prints does
// not go to that of the command.
func (b *Box) Inherited(streams [3]*os.File) []*os.File {
	if b.printed == nil {
		return append(streams[:], b.Files...)
	}
	return slices.Concat([]*os.File{streams[0], streams[1], b.printed}, b.Files, []*os.File{streams[2]}, b.pins)
}

// Started waits, once the box was started, until its command runs. It is called once, and closes the box's own ends, so the caller must not have given
// them to anything else. The error has code PERMISSION and says why the command was not executed; the box ends by itself then. It waits as
// long as the start takes: the caller ends the box to end that.
func (b *Box) Started() error {
	if b.says == nil {
		return nil
	}
	pins := b.pins
	closeFiles(b.Files)
	closeFiles(b.pins)
	closeFiles([]*os.File{b.printed})
	b.Files, b.pins, b.printed = nil, nil, nil
	text, err := b.hear()
	closeFiles([]*os.File{b.says})
	b.says = nil
	if err != nil {
		return types.Errorf(types.ErrInternal, "sandbox", "", "it is not known whether the command was started: %w", err)
	}
	report, ran := bytes.CutPrefix(text, []byte{running})
	why := ""
	if len(report) > 0 {
		why = b.enter.Failed(report).Error()
	}
	if ran && why == "" && len(b.inner) == len(b.ports) {
		return nil
	}
	if ran && why == "" {
		why = "its listeners did not arrive"
	}
	failed := &notStarted{why: why}
	if !ran && why == "" && b.words != nil {
		words, _ := io.ReadAll(io.LimitReader(b.words, 4<<10)) // what was read counts
		failed.bwrap = strings.TrimSpace(string(words))
		failed.why = namePins(explainBwrap(failed.bwrap).Reason, pins)
	}
	if failed.why == "" {
		failed.why = "it was ended before"
	}
	return types.Errorf(types.ErrPermission, "sandbox", "", "%w", failed)
}

// Listeners returns what listens inside of the box at the ports of Command.Listen, in their order, once Started has returned without an error. Whoever connects is the
// command, or what it has started: nothing else is in its network. They are closed with the box.
func (b *Box) Listeners() []net.Listener { return b.inner }

// namePins returns what bubblewrap printed with the paths of what it was to mount in place of their descriptors.
func namePins(words string, pins []*os.File) string {
	for i, f := range slices.Backward(pins) {
		words = strings.ReplaceAll(words, "/proc/self/fd/"+strconv.Itoa(firstPin+i), f.Name())
	}
	return words
}

// notStarted says why a command was not executed in a box.
type notStarted struct {
	why   string
	bwrap string // what bubblewrap printed; empty = it had confined, or is not what confines
}

// NotStarted reports whether an error is that of Started: nothing has run.
func NotStarted(err error) bool {
	_, ok := errors.AsType[*notStarted](err)
	return ok
}

func (e *notStarted) Error() string { return "the command was not started in the sandbox: " + e.why }

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // pipes, and what is in memory
		}
	}
}

// Held returns the paths that hold names for the box: see GiveBack.
func (b *Box) Held() (paths []string) {
	for _, h := range b.held {
		paths = append(paths, h.path)
	}
	return paths
}

// Close gives back what the box holds, and returns the protected paths that have changed, which happens only where they cannot be
// protected (Plan.Watched), sorted. The second call does nothing. The error is about names that could not be given back.
func (b *Box) Close() (changed []string, err error) {
	closeFiles(append(b.Files, b.says, b.words, b.printed))
	closeFiles(b.pins)
	for _, l := range b.inner {
		_ = l.Close() // whoever serves it may have
	}
	for _, h := range slices.Backward(b.held) {
		if e := h.release(); e != nil && err == nil {
			err = types.Errorf(types.ErrStorage, "sandbox", h.path, "cannot remove what held the name of a protected path: %w", e)
		}
	}
	paths := make([]string, 0, len(b.watched))
	for path := range b.watched {
		paths = append(paths, path)
	}
	now := fingerprints(paths)
	for path, was := range b.watched {
		if now[path] != was {
			changed = append(changed, path)
		}
	}
	b.Files, b.pins, b.says, b.words, b.printed, b.held, b.watched, b.inner = nil, nil, nil, nil, nil, nil, nil, nil
	return sortPaths(changed), err
}

// fingerprints returns for each path a text that differs if anything in it was changed. It holds the time at which each file was
// last changed in any way, which a program cannot set.
func fingerprints(paths []string) map[string]string {
	out := make(map[string]string, len(paths))
	for _, path := range paths {
		var text strings.Builder
		_ = filepath.WalkDir(path, func(file string, _ os.DirEntry, err error) error {
			text.WriteString(strconv.Quote(file))
			if err != nil {
				text.WriteString(" cannot be read\n")
				return nil
			}
			text.WriteString(identity(file) + "\n")
			return nil
		})
		out[path] = text.String()
	}
	return out
}
