package statehome

import (
	"path/filepath"
	"runtime"

	"rnix/types"
)

// DefaultBrand is the brand of a Home that is given none.
const DefaultBrand = Brand

// Home is where the state of one brand lies, for programs that keep theirs beside ours. It is a value: two of them in one
// program do not know of each other, and nothing is global.
type Home struct {
	brand, base, logs string
}

// NewHome returns the home of a brand; "" means DefaultBrand. base is the directory below which all of it lies; if it is "",
// that is $HOME, and logs go where the system has them. A brand that is no plain name and a base that is not absolute are
// INVALID, as is no HOME.
func NewHome(brand, base string, lookup Lookup) (Home, error) {
	return newHome(brand, base, lookup, runtime.GOOS)
}

func newHome(brand, base string, lookup Lookup, system string) (Home, error) {
	if brand == "" {
		brand = DefaultBrand
	}
	if brand != filepath.Base(brand) || !filepath.IsLocal(brand) || brand == "." {
		return Home{}, types.Errorf(types.ErrInvalid, "Home", brand, "a brand is a plain name, without slashes")
	}
	h := Home{brand: brand}
	var err error
	if base != "" {
		h.base, err = absolute("the base of "+brand, base)
	} else {
		h.base, err = inHome(lookup)
	}
	if err != nil {
		return Home{}, err
	}
	h.logs = filepath.Join(h.base, ".local", "state", brand, "log")
	if system == "darwin" {
		h.logs = filepath.Join(h.base, "Library", "Logs", brand)
	} else if base == "" {
		if dir, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(dir) {
			h.logs = filepath.Join(dir, brand, "log")
		}
	}
	return h, nil
}

// Brand returns the name that all paths are made from.
func (h Home) Brand() string { return h.brand }

// BaseHome returns the directory below which all of it lies.
func (h Home) BaseHome() string { return h.base }

// StateDir returns the directory of one kind of state: <base>/.<brand>/<suffix>. suffix may have several elements, and
// "" is the directory above them all. One that would lead out of it is INVALID. Nothing is made on disk.
func (h Home) StateDir(suffix string) (string, error) {
	top := filepath.Join(h.base, "."+h.brand)
	if suffix == "" {
		return top, nil
	}
	if !filepath.IsLocal(suffix) {
		return "", types.Errorf(types.ErrInvalid, "StateDir", suffix, "leads out of %s; name a directory below it", top)
	}
	return filepath.Join(top, suffix), nil
}

// LogDir returns the directory of logs: $XDG_STATE_HOME/<brand>/log, else <base>/.local/state/<brand>/log; on macOS
// <base>/Library/Logs/<brand>. Rnix itself keeps its logs with its data: see LogFile.
func (h Home) LogDir() string { return h.logs }

// LogPath returns the log of a daemon.
func (h Home) LogPath() string { return filepath.Join(h.logs, "daemon.log") }

// ErrorLogPath returns what a daemon has written to standard error.
func (h Home) ErrorLogPath() string { return filepath.Join(h.logs, "daemon-error.log") }
