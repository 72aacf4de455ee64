package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"rnix/internal/proc"
)

// programPatience is how long a program may take to say its version.
const programPatience = 10 * time.Second

// checkRuns makes of a program that was found one that works: it is started and says its version.
func checkRuns(ctx context.Context, c check, env []string, args ...string) check {
	if c.Status != fine {
		return c
	}
	said, err := firstWords(ctx, c.Detail, env, args)
	if err != nil {
		return check{c.Check, broken, c.Detail + " is there and does not work: " + errorText(err), "run it by hand: " + c.Detail + " " + strings.Join(args, " ")}
	}
	c.Detail += ", " + oneLine(said)
	return c
}

// firstWords starts a program and returns the first line of what it prints.
func firstWords(ctx context.Context, program string, env, args []string) (string, error) {
	dir, err := os.MkdirTemp("", "rnix-doctor-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	m, err := proc.NewManager(dir, nil)
	if err != nil {
		return "", err
	}
	defer m.Close()
	var out bytes.Buffer
	errs := proc.NewRing(1 << 10)
	child, err := m.Start(ctx, proc.Spec{Kind: proc.KindGit, Path: program, Args: args, Dir: dir, Env: env, Stdout: &out, Stderr: errs, Timeout: programPatience})
	if err != nil {
		return "", err
	}
	if exit := child.Wait(); exit.Err != nil || exit.Code != 0 || exit.Cause != "" {
		return "", fmt.Errorf("it ended with exit status %d%s", exit.Code, with(": ", strings.TrimSpace(errs.String())))
	}
	line, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	return cut(line, 100), nil
}
