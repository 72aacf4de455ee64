// Package statehome is the one place that knows where things lie: data, configuration, socket and
// log, all derived from one brand and from the environment. It reads the environment only through
// the lookup function that it is given, keeps nothing, and creates nothing but the private
// directories that it is asked to check. What is kept in those places it does not know.
package statehome

import (
	"fmt"
	"hash/fnv"
	"path/filepath"

	"rnix/types"
)

// The names, all made from one brand.
const (
	Brand      = "rnix"
	ProjectDir = "." + Brand     // configuration of a project, below its root
	EnvDataDir = "RNIX_DATA_DIR" // overrides the data directory
)

// MaxSocketPath is the longest path in bytes that a Unix socket can have: sun_path less its NUL.
const MaxSocketPath = 107

// Lookup returns the value of an environment variable, as os.LookupEnv does.
type Lookup func(key string) (string, bool)

// Places is where everything of one installation lies. All paths are absolute.
type Places struct {
	DataDir   string
	ConfigDir string
	Socket    string
	Log       string // the daemon's
}

// Find returns all places. Configured is the data directory that a configuration file names; empty
// means none.
func Find(lookup Lookup, configured string) (Places, error) {
	data, err := DataDir(lookup, configured)
	if err != nil {
		return Places{}, err
	}
	conf, err := ConfigDir(lookup)
	if err != nil {
		return Places{}, err
	}
	socket, err := Socket(lookup, data)
	if err != nil {
		return Places{}, err
	}
	return Places{DataDir: data, ConfigDir: conf, Socket: socket, Log: LogFile(data)}, nil
}

// DataDir returns $RNIX_DATA_DIR, else configured, else ~/.rnix/data. A relative path is refused: it
// would mean another place in each directory.
func DataDir(lookup Lookup, configured string) (string, error) {
	if dir, _ := lookup(EnvDataDir); dir != "" {
		return absolute(EnvDataDir, dir)
	}
	if configured != "" {
		return absolute("data_dir", configured)
	}
	return defaultData(lookup)
}

// ConfigDir returns $XDG_CONFIG_HOME/rnix, else ~/.config/rnix. A relative XDG_CONFIG_HOME is
// ignored, as its standard asks.
func ConfigDir(lookup Lookup) (string, error) {
	if dir, _ := lookup("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, Brand), nil
	}
	return inHome(lookup, ".config", Brand)
}

// SocketDir returns the directory of the socket: $XDG_RUNTIME_DIR/rnix, else ~/.rnix/run. Never a
// directory that others may write to, such as /tmp. A relative XDG_RUNTIME_DIR is ignored.
func SocketDir(lookup Lookup) (string, error) {
	if dir, _ := lookup("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, Brand), nil
	}
	return ownState(lookup, "run")
}

// Socket returns the path of the socket of the daemon that serves dataDir, an absolute path:
// rnix.sock for the default data directory, rnix-<hash of dataDir>.sock for any other, so that two
// data directories never share a daemon. Whether it is short enough for the system, CheckSocketPath says: only who listens
// or connects there needs that, since a daemon that listens elsewhere is found by the lock of its data directory.
func Socket(lookup Lookup, dataDir string) (string, error) {
	dir, err := SocketDir(lookup)
	if err != nil {
		return "", err
	}
	name := Brand
	if usual, err := defaultData(lookup); err != nil || usual != filepath.Clean(dataDir) {
		h := fnv.New64a()
		h.Write([]byte(filepath.Clean(dataDir)))
		name += fmt.Sprintf("-%012x", h.Sum64()&(1<<48-1))
	}
	return filepath.Join(dir, name+".sock"), nil
}

// CheckSocketPath returns an error of code INVALID if path is too long for a Unix socket.
func CheckSocketPath(path string) error {
	if n := len(path); n > MaxSocketPath {
		return types.Errorf(types.ErrInvalid, "Socket", path,
			"the path has %d bytes and the system allows %d; set XDG_RUNTIME_DIR to a directory with a shorter name", n, MaxSocketPath)
	}
	return nil
}

// LogFile returns the path of the log of the daemon that serves dataDir.
func LogFile(dataDir string) string { return filepath.Join(dataDir, "log", "daemon.log") }

// ShellHistory returns the file with the lines that were typed into the shell.
func ShellHistory(dataDir string) string { return filepath.Join(dataDir, "sh_history") }

// UIState returns the file in which the state of the terminal dashboard's view is kept between starts.
func UIState(dataDir string) string { return filepath.Join(dataDir, "ui-state.json") }

func defaultData(lookup Lookup) (string, error) { return ownState(lookup, "data") }

// ownState returns a directory of our own state.
func ownState(lookup Lookup, suffix string) (string, error) {
	h, err := NewHome(Brand, "", lookup)
	if err != nil {
		return "", err
	}
	return h.StateDir(suffix)
}

func inHome(lookup Lookup, elem ...string) (string, error) {
	home, _ := lookup("HOME")
	if home == "" {
		return "", types.Errorf(types.ErrInvalid, "Home", "",
			"HOME is not set; set it, or set %s, XDG_CONFIG_HOME and XDG_RUNTIME_DIR", EnvDataDir)
	}
	home, err := absolute("HOME", home)
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{home}, elem...)...), nil
}

func absolute(what, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", types.Errorf(types.ErrInvalid, "Home", path, "%s must be an absolute path", what)
	}
	return filepath.Clean(path), nil
}
