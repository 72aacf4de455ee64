package web

import (
	"bufio"
	"context"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// Background starts a dashboard that outlives this program and its terminal: the program exe with args and env, in a session of its own and in
// the directory dir. It returns the line that the dashboard writes to standard output when it is there. If it ends before that, the error has
// what it wrote to standard error; if ctx ends before, it is ended. What it writes later is lost.
func Background(ctx context.Context, exe, dir string, args, env []string) (ready string, err error) {
	const op = "Background"
	failed := func(err error) (string, error) {
		return "", types.Errorf(types.ErrUnavailable, op, exe, "the dashboard cannot be started: %w", err)
	}
	said, err := os.CreateTemp("", "rnix-web-")
	if err != nil {
		return failed(err)
	}
	defer said.Close()
	_ = os.Remove(said.Name()) // it is ours alone now; what cannot be removed is an empty file
	r, w, err := os.Pipe()
	if err != nil {
		return failed(err)
	}
	defer r.Close()
	cmd := exec.Command(exe, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, w, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// What we have inherited, such as the pipe of a $(command), it must not hold open. A system without the call leaves such files open.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return failed(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	ready, err = bufio.NewReader(r).ReadString('\n')
	if stop() && err == nil {
		_ = cmd.Process.Release()
		return strings.TrimSpace(ready), nil
	}
	_ = cmd.Wait() // how it ended it has said itself
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	_, _ = said.Seek(0, io.SeekStart)
	why, _ := io.ReadAll(io.LimitReader(said, 64<<10))
	return "", types.Errorf(types.ErrUnavailable, op, "", "the dashboard does not start: %s", strings.TrimPrefix(strings.TrimSpace(string(why)), "rnix: "))
}
