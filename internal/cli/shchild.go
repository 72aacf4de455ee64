package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/internal/ash"
	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
)

// shChild is the command that the shell starts itself with, to run scripts in a process of their own.
const shChild = "sh-child"

func shChildCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    shChild,
		Short:  "a part of sh, which starts it",
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			child, err := ash.NewChild()
			if err != nil {
				return err
			}
			a.out.err = newStream(child.Stderr, a.env)
			a.out.prog = shellName(child.Script)
			h := &shellHost{a: a}
			code := child.Run(h, a.host.Environ, a.host.Dir, h.complete, func(err error) { a.out.fail(err) })
			return leave(code)
		},
	}
}

// shellName is what messages begin with that have no place in a script.
func shellName(s ash.Script) string {
	if s.Terminal {
		return "sh"
	}
	return "rnix"
}

// shellHost is what the shell needs of this program.
type shellHost struct{ a *app }

// Commands returns the names of all commands but those that belong to the shell itself.
func (h *shellHost) Commands() []string {
	var out []string
	for _, e := range entries() {
		for name := range strings.FieldsSeq(e.names) {
			if name != shChild {
				out = append(out, name)
			}
		}
	}
	return out
}

// errInterrupted is the end of a command that an interrupt has ended, and that says nothing itself.
var errInterrupted = &exitError{code: ExitInterrupted}

// Run runs a command as if it had been called, within this process.
func (h *shellHost) Run(ctx context.Context, c ash.Call) int {
	args := c.Args
	if args[0] == "rnix" {
		args = args[1:]
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	host := h.a.host
	host.Name, host.Args, host.In, host.Out, host.Err, host.Environ, host.Dir, host.Shell = statehome.Brand, args, c.Stdin, c.Stdout, c.Stderr, c.Environ, c.Dir, &c
	if c.Stdin == nil {
		host.In = bytes.NewReader(nil)
	}
	a, err := newApp(host)
	if err == nil {
		if h.hushed(a, &c, args) {
			a.host.Args = slices.Insert(slices.Clone(args), 1, "--quiet")
		}
		err = a.execute(ctx)
	}
	if a.out.unfinished && c.Unfinished != nil {
		c.Unfinished()
	}
	if a.client != nil {
		_ = a.client.Close()
	}
	if ctx.Err() != nil && err != nil {
		err = errInterrupted
	}
	return a.report(err)
}

// hushed reports whether a command is to tell no progress: that is for a person who looks, and who waits
// for nothing else.
func (h *shellHost) hushed(a *app, c *ash.Call, args []string) bool {
	if slices.ContainsFunc(args, func(arg string) bool { return arg == "-v" || arg == "--verbose" }) || h.a.out.verbose {
		return false
	}
	return (h.a.out.quiet || c.Background || !a.out.err.terminal) && slices.Contains([]string{"spawn", "run", "resume", "wait", "kill", "pause"}, args[0])
}

// client returns a connection of its own for one use of the name space.
func (h *shellHost) client(ctx context.Context) (*ipc.Client, error) {
	a, err := newApp(h.a.host)
	if err != nil {
		return nil, err
	}
	return a.connect(ctx)
}

func (h *shellHost) path(ctx context.Context, dir, path string) (*ipc.Client, ipc.PathRequest, error) {
	c, err := h.client(ctx)
	if err != nil {
		return nil, ipc.PathRequest{}, err
	}
	full, err := vfsPath(ctx, c, path)
	if err != nil {
		_ = c.Close()
		return nil, ipc.PathRequest{}, notInSpace(err, path)
	}
	return c, ipc.PathRequest{Path: full, Cwd: dir, Env: h.a.host.Environ}, err
}

// Read reads a path of the name space.
func (h *shellHost) Read(ctx context.Context, dir, path string) ([]byte, error) {
	c, req, err := h.path(ctx, dir, path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	req.Max = 4 << 20
	r, err := ipc.Call(ctx, c, ipc.ReadPath, req)
	switch {
	case err != nil:
		return nil, notInSpace(err, path)
	case r.Cut:
		return nil, types.Errorf(types.ErrExhausted, "", path, "it has more than %s bytes; read its beginning with: rnix cat --max N %s", number(req.Max), shellWord(path))
	}
	return r.Data, nil
}

// Write writes to a path of the name space. What can be read there afterwards is not asked for.
func (h *shellHost) Write(ctx context.Context, dir, path string, data []byte) error {
	c, req, err := h.path(ctx, dir, path)
	if err != nil {
		return err
	}
	defer c.Close()
	req.Data = data
	if req.Path == "/dev/shell" {
		req.Data = shellRequest(data)
	}
	_, err = ipc.Call(ctx, c, ipc.WritePath, req)
	return notInSpace(err, path)
}

// List lists a directory of the name space.
func (h *shellHost) List(ctx context.Context, dir, path string) ([]ipc.PathEntry, error) {
	c, req, err := h.path(ctx, dir, path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r, err := ipc.Call(ctx, c, ipc.ListPath, req)
	return r.Entries, notInSpace(err, path)
}

// notInSpace returns an error about a path with its text for people. Of a path that is not there it says
// where files of this system are.
func notInSpace(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case types.CodeOf(err) == types.ErrNotFound && !strings.HasPrefix(path, "/dev/fs/"):
		return types.Errorf(types.ErrNotFound, "", path, "there is no such path in the name space of agents (a file of this system is /dev/fs%s there)", path)
	}
	return types.Errorf(types.CodeOf(err), "", path, "%s", strings.TrimPrefix(errorText(err), path+": "))
}

// Help returns what the word help shows.
func (h *shellHost) Help() string { return shellHelp }

// complete completes a line with what the command itself offers, and with files.
func (h *shellHost) complete(s *ash.Shell, line string, pos int) (string, []string, string) {
	t := ash.Typed(line, pos)
	var words []string
	switch {
	case len(t.Before) == 0 && !strings.Contains(t.Word, "/"):
		for _, name := range s.Names() {
			if strings.HasPrefix(name, t.Word) {
				words = append(words, name)
			}
		}
		if t.Word != "" {
			words = append(words, s.Programs(t.Word)...)
		}
	case len(t.Before) > 0 && (s.Ours(t.Before[0]) || t.Before[0] == "help"):
		var files bool
		if words, files = h.offered(s, t); files {
			words = append(words, ash.Files(s.Dir(), t.Word)...)
		}
	case ash.InSpace(t.Word):
		words, _ = h.offered(s, ash.Words{Before: []string{"cat"}, Word: t.Word})
	default:
		words = ash.Files(s.Dir(), t.Word)
	}
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) == 1 && !strings.HasSuffix(words[0], "/") && !strings.HasSuffix(words[0], "=") {
		words[0] += " "
	}
	return t.Head, words, t.Tail
}

// offered asks a command what may stand at a place. files says that files of this system may.
func (h *shellHost) offered(s *ash.Shell, t ash.Words) (words []string, files bool) {
	args := slices.Clone(t.Before)
	if args[0] == "rnix" {
		args = args[1:]
	}
	var out bytes.Buffer
	host := h.a.host
	host.Args = append(append([]string{"__complete"}, args...), t.Word)
	host.Dir, host.In, host.Out, host.Err = s.Dir(), bytes.NewReader(nil), &out, &bytes.Buffer{}
	if Main(context.Background(), host) != ExitOK {
		return nil, true
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := len(lines) - 1
	how := cobra.ShellCompDirectiveDefault
	if d, ok := strings.CutPrefix(lines[last], ":"); ok {
		how, lines = directive(d), lines[:last]
	}
	for _, line := range lines {
		word, _, _ := strings.Cut(line, "\t")
		if word != "" && strings.HasPrefix(word, t.Word) {
			words = append(words, word)
		}
	}
	return words, how&cobra.ShellCompDirectiveNoFileComp == 0
}

func directive(text string) cobra.ShellCompDirective {
	n := 0
	for _, r := range text {
		if r < '0' || r > '9' {
			return cobra.ShellCompDirectiveDefault
		}
		n = 10*n + int(r-'0')
	}
	return cobra.ShellCompDirective(n)
}
