package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// LookPath returns the path of a program: name itself if it has a slash, else the first executable
// file of that name in the PATH of env. Elements of PATH that are not absolute are passed over: what
// they mean depends on the working directory, which an agent can write to. It fails with NOT_FOUND,
// or with PERMISSION if the only file of that name cannot be executed.
func LookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	search := ""
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = value
		}
	}
	denied := ""
	for _, dir := range filepath.SplitList(search) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		switch err := executable(path); {
		case err == nil:
			return path, nil
		case errors.Is(err, fs.ErrPermission) && denied == "":
			denied = path
		}
	}
	switch {
	case denied != "":
		return "", types.Errorf(types.ErrPermission, "Start", name, "%s may not be executed", denied)
	case search == "":
		return "", types.Errorf(types.ErrNotFound, "Start", name, "program not found: the environment has no PATH")
	}
	return "", types.Errorf(types.ErrNotFound, "Start", name, "program not found in PATH (%s): install it, or give its whole path", search)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fs.ErrNotExist
	}
	return unix.Access(path, unix.X_OK)
}
