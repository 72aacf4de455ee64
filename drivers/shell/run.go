package shell

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"
)

// run starts a command, waits for its end, and tells what came of it.
func (f *file) run(ctx context.Context, caller vfs.Caller, req request) ([]byte, error) {
	dir, err := directory(caller.WorkDir, req.cwd)
	if err != nil {
		return nil, err
	}
	if req.timeout == 0 && f.opts.TimeoutOf != nil {
		req.timeout = min(f.opts.TimeoutOf(caller), MaxTimeout)
	}
	if req.timeout <= 0 {
		req.timeout = f.opts.Timeout
	}
	output := proc.NewHeadTail(f.opts.Keep, caller.Scratch, "shell-*.txt")
	if caller.PID != 0 { // a person's own outputs lie in one place for all
		output.Quota(f.opts.Quota)
	}
	live := &pieces{notify: f.notify}
	sink := io.Writer(output)
	if f.notify != nil {
		sink = io.MultiWriter(output, live)
	}
	spec := proc.Spec{
		Kind: proc.KindShell, Owner: caller.PID, OwnerUUID: caller.UUID,
		Path: program(caller.Env), Args: []string{"-c", req.command}, Dir: dir, Env: caller.Env,
		Stdout: sink, Stderr: sink, Timeout: req.timeout, Grace: grace,
	}
	child, err := f.children.Start(ctx, spec)
	if err != nil {
		if ended := vfs.Ended(ctx, "Write", ""); ended != nil {
			return nil, ended
		}
		return nil, types.Errorf(types.CodeOf(err), "Write", "", "%w", err)
	}
	exit := child.Wait()
	live.flush()
	_ = output.Close() // what could not be written is told by Text
	refused := f.refused(caller, child, req.command, dir, exit, output)
	if exit.Cause == proc.Cancelled || exit.Cause == proc.Stopped {
		return nil, cancelled(ctx, exit, output)
	}
	return answer(req, exit, output.Text(), refused), nil
}

// program returns the shell of an environment.
func program(env []string) string {
	if path, err := proc.LookPath("bash", env); err == nil {
		return path
	}
	if path, err := proc.LookPath("sh", env); err == nil {
		return path
	}
	return "/bin/sh" // where POSIX systems have one, whatever PATH says
}

// refused returns what the sandbox did not let a command do, and tells whoever is to know.
func (f *file) refused(caller vfs.Caller, child *proc.Child, command, dir string, exit proc.ExitInfo, output *proc.HeadTail) []sandbox.Refusal {
	plan := proc.PlanOf(child)
	if plan.Rung == sandbox.RungNone {
		return nil
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // as the plan has it
	}
	reads := func(path string) bool { return unix.Access(path, unix.R_OK) == nil }
	refused := sandbox.Besides(plan.Refused(sandbox.Outcome{Command: command, Dir: dir, Code: exit.Code, Output: output.Text(), Reads: reads}, sandbox.Disk{}), exit.Refused)
	if f.opts.Refused != nil && len(refused)+len(exit.Changed) > 0 {
		f.opts.Refused(caller, refused, exit.Changed)
	}
	return slices.Concat(exit.Refused, refused) // the former was told when it happened
}

// mostTold is how many refusals an answer has in full.
const mostTold = 3

// answer is the output, what was refused and, as its last line, how the command ended.
func answer(req request, exit proc.ExitInfo, output string, refused []sandbox.Refusal) []byte {
	var b strings.Builder
	b.WriteString(output)
	if output != "" && !strings.HasSuffix(output, "\n") {
		b.WriteByte('\n')
	}
	if req.lowered {
		fmt.Fprintf(&b, "[timeout_ms was lowered to %d, which is 24 h and the most there is]\n", MaxTimeout.Milliseconds())
	}
	switch exit.Left {
	case 0:
	case 1:
		b.WriteString("[a background process was ended with the command]\n")
	default:
		fmt.Fprintf(&b, "[%d background processes were ended with the command]\n", exit.Left)
	}
	for _, path := range exit.Changed {
		fmt.Fprintf(&b, "[%s is protected, and the command has changed it, which this sandbox cannot prevent: look at it, and undo that]\n", path)
	}
	for _, r := range refused[:min(len(refused), mostTold)] {
		fmt.Fprintf(&b, "[%s]\n", r.Text())
	}
	if more := len(refused) - mostTold; more > 0 {
		fmt.Fprintf(&b, "[and %d more that the sandbox does not let commands do]\n", more)
	}
	for _, text := range exit.Hits.Texts() {
		fmt.Fprintf(&b, "[%s]\n", text)
	}
	took := strconv.FormatFloat(exit.Took.Seconds(), 'f', 1, 64)
	switch {
	case exit.Cause == proc.TimedOut:
		fmt.Fprintf(&b, "[timed out after %s s; killed]", strconv.FormatFloat(req.timeout.Seconds(), 'f', -1, 64))
	case exit.Err != nil:
		fmt.Fprintf(&b, "[exit code unknown: %v, %s s]", exit.Err, took)
	case exit.Signal != 0:
		fmt.Fprintf(&b, "[exit code %d: killed by %s, %s s]", exit.Code, signalName(exit.Signal), took)
	default:
		fmt.Fprintf(&b, "[exit code %d, %s s]", exit.Code, took)
	}
	b.WriteByte('\n')
	return []byte(b.String())
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(s))
}

// cancelled is the error of a command that somebody else ended. It holds the end of the output, which
// would be lost otherwise.
func cancelled(ctx context.Context, exit proc.ExitInfo, output *proc.HeadTail) error {
	const most = 500
	code, cause := types.ErrCancelled, "the process or the daemon is ending"
	if ended := vfs.Ended(ctx, "Write", ""); ended != nil {
		code, cause = types.CodeOf(ended), context.Cause(ctx).Error()
	}
	text := strings.TrimSpace(output.Text())
	if len(text) > most {
		text = "..." + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	if text == "" {
		text = "nothing"
	}
	return types.Errorf(code, "Write", "", "%s: command killed after %s; it had printed: %s", cause, exit.Took.Round(100*time.Millisecond), text)
}
