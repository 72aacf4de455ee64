package shell

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"rnix/types"
	"rnix/vfs"
)

// request is what one write asks for.
type request struct {
	command string
	cwd     string
	timeout time.Duration // 0 = the default
	lowered bool          // more was asked for than there is
}

func invalid(format string, args ...any) error {
	return types.Errorf(types.ErrInvalid, "Write", "", format, args...)
}

// parseText takes data as the command itself.
func parseText(data []byte) (request, error) { return checked(request{command: string(data)}) }

// parseRequest reads a request in JSON.
func parseRequest(data []byte) (request, error) {
	var in struct {
		Command   string      `json:"command"`
		TimeoutMs json.Number `json:"timeout_ms"`
		Cwd       string      `json:"cwd"`
	}
	if err := vfs.DecodeRequest(data, &in); err != nil {
		return request{}, err
	}
	req := request{command: in.Command, cwd: in.Cwd}
	if in.TimeoutMs != "" {
		ms, err := strconv.ParseFloat(in.TimeoutMs.String(), 64)
		switch {
		case err != nil && !math.IsInf(ms, 0):
			return req, invalid("timeout_ms is not a number: %q", in.TimeoutMs)
		case ms < 1:
			return req, invalid("timeout_ms is %s: it must be at least 1", in.TimeoutMs)
		case ms > float64(MaxTimeout.Milliseconds()):
			req.timeout, req.lowered = MaxTimeout, true
		default:
			req.timeout = time.Duration(ms * float64(time.Millisecond))
		}
	}
	return checked(req)
}

func checked(req request) (request, error) {
	switch {
	case strings.TrimSpace(req.command) == "":
		return req, invalid("command is empty")
	case strings.IndexByte(req.command, 0) >= 0:
		return req, invalid("command holds a NUL byte")
	case len(req.command) > maxCommand:
		return req, invalid("command is %d bytes long, and %d is the most: write it to a file and run that", len(req.command), maxCommand)
	}
	return req, nil
}

// directory returns where a command runs: cwd, which must be a directory inside workDir, symbolic
// links included. This keeps an agent on its way; it does not keep it in, for a command can change
// its directory.
func directory(workDir, cwd string) (string, error) {
	if workDir == "" {
		return "", invalid("the caller has no working directory")
	}
	inside := cwd
	if filepath.IsAbs(cwd) {
		rel, err := filepath.Rel(workDir, cwd)
		if err != nil {
			return "", invalid("cwd %q: %v", cwd, err)
		}
		inside = rel
	}
	if inside == "" {
		inside = "."
	}
	outside := types.Errorf(types.ErrPermission, "Write", "", "cwd %q is outside the working directory %s", cwd, workDir)
	if !filepath.IsLocal(inside) {
		return "", outside
	}
	root, err := os.OpenRoot(workDir)
	if err != nil {
		return "", types.Errorf(types.ErrNotFound, "Write", "", "working directory: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(inside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", types.Errorf(types.ErrNotFound, "Write", "", "cwd %q does not exist in %s", cwd, workDir)
	case err != nil:
		return "", outside
	case !info.IsDir():
		return "", invalid("cwd %q is not a directory", cwd)
	}
	return filepath.Join(workDir, inside), nil
}
