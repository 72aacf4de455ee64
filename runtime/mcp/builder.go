package mcp

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"rnix/agent"
	"rnix/runtime/statehome"
	"rnix/types"
)

// DefaultPrefix begins the names of files if nothing else is said.
const DefaultPrefix = statehome.Brand + "-mcp-"

const suffix = ".json"

// Builder writes files for sessions. The zero value is ready to use. Safe for concurrent use.
type Builder struct {
	// TempDir is where the files go; empty means os.TempDir. If others may enter it, they go into a directory
	// below it that nobody else can enter.
	TempDir string
	// Prefix begins each name; empty means DefaultPrefix.
	Prefix string
	// Session is whose file it is, for Sweep: letters, digits, dots, underscores and hyphens. It may be empty.
	Session string
}

// Build writes the file for these servers, mode 0600, and returns its absolute path. With no servers it writes none and
// returns "". cleanup removes the file; it is never nil, may be called again, and any number of goroutines may call it.
// Whoever has called Build calls it when the session ends; what a crash leaves behind, Sweep removes. After an error no file is
// left.
func (b Builder) Build(servers []agent.MCPServerConfig) (path string, cleanup func(), err error) {
	if len(servers) == 0 {
		return "", func() {}, nil
	}
	config, err := BuildConfigFile(servers)
	if err != nil {
		return "", func() {}, err
	}
	data, err := config.encode()
	if err != nil {
		return "", func() {}, err
	}
	if b.Session != "" && !sessionName().MatchString(b.Session) {
		return "", func() {}, types.Errorf(types.ErrInvalid, "Build", b.Session, "the name of a session may have letters, digits, '.', '_' and '-', and up to 128 of them")
	}
	if strings.ContainsAny(b.prefix(), "/\x00") {
		return "", func() {}, types.Errorf(types.ErrInvalid, "Build", b.Prefix, "a prefix is the beginning of a name and has no slash")
	}
	dir, err := b.dir(true)
	if err != nil {
		return "", func() {}, err
	}
	return b.write(dir, data)
}

var sessionName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`) }) // not at the start of every program

func (b Builder) prefix() string {
	if b.Prefix != "" {
		return b.Prefix
	}
	return DefaultPrefix
}

// dir returns the directory of the files, absolute and private; make makes it if it is missing.
func (b Builder) dir(make bool) (string, error) {
	dir := b.TempDir
	if dir == "" {
		dir = os.TempDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", types.Errorf(types.ErrInternal, "Build", b.TempDir, "%w", err)
	}
	var st unix.Stat_t
	switch err := unix.Stat(dir, &st); {
	case err == unix.ENOENT && !make:
		return dir, nil
	case err == nil && (st.Mode&0o077 != 0 || int(st.Uid) != os.Geteuid()):
		dir = filepath.Join(dir, statehome.Brand+"-"+strconv.Itoa(os.Geteuid()))
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && !make {
		return dir, nil
	}
	return dir, statehome.CheckPrivateDir(dir)
}

// write makes a new file, whole and synced. It is locked as long as it is ours: that is how Sweep knows of the
// living.
func (b Builder) write(dir string, data []byte) (string, func(), error) {
	path := filepath.Join(dir, b.prefix()+b.Session+"-"+rand.Text()+suffix)
	fail := func(err error) (string, func(), error) {
		os.Remove(path)
		return "", func() {}, types.Errorf(types.ErrStorage, "Build", path, "%w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", func() {}, types.Errorf(types.ErrStorage, "Build", path, "%w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		return fail(err)
	}
	return path, sync.OnceFunc(func() {
		os.Remove(path) // while it is locked, so that nobody sees it without an owner
		f.Close()
	}), nil
}

// Sweep removes the files that a crash has left behind in dir, as a Builder with this TempDir and the usual prefix makes them,
// and returns how many. See Builder.Sweep.
func Sweep(dir string, alive func(session string) bool) (int, error) {
	return Builder{TempDir: dir}.Sweep(alive)
}

// Sweep removes the files that a crash has left behind: those that no living Builder has made, and whose session is not
// alive, since its command line may outlive who started it. alive nil means that none is; it is not asked for files without a session.
// Files of other names, and what is no regular file of this user, stay. It goes on after errors and
// returns them together, with the number of files that are gone.
func (b Builder) Sweep(alive func(session string) bool) (int, error) {
	dir, err := b.dir(false)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, types.Errorf(types.ErrStorage, "Sweep", dir, "%w", err)
	}
	gone := 0
	for _, e := range entries {
		session, ours := b.sessionOf(e.Name())
		if !ours || !e.Type().IsRegular() || (session != "" && alive != nil && alive(session)) {
			continue
		}
		removed, rerr := removeAbandoned(filepath.Join(dir, e.Name()))
		err = errors.Join(err, rerr)
		if removed {
			gone++
		}
	}
	return gone, err
}

// sessionOf returns the session in the name of a file; ours is false for other files.
func (b Builder) sessionOf(name string) (session string, ours bool) {
	name, mine := strings.CutPrefix(name, b.prefix())
	name, file := strings.CutSuffix(name, suffix)
	at := strings.LastIndexByte(name, '-')
	return name[:max(at, 0)], mine && file && at >= 0
}

// removeAbandoned removes a file that nobody has locked.
func removeAbandoned(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		defer f.Close()
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == unix.EWOULDBLOCK {
			return false, nil
		}
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err == nil, nil
	}
	return false, types.Errorf(types.ErrStorage, "Sweep", path, "%w", err)
}

// maxConfig bounds what LoadConfigFile reads, in bytes.
const maxConfig = 16 << 20

// LoadConfigFile reads a file that Build has written.
func LoadConfigFile(path string) (ConfigFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return ConfigFile{}, types.Errorf(types.ErrNotFound, "LoadConfigFile", path, "%w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return ConfigFile{}, types.Errorf(types.ErrStorage, "LoadConfigFile", path, "%w", err)
	}
	if len(b) > maxConfig {
		return ConfigFile{}, types.Errorf(types.ErrInvalid, "LoadConfigFile", path, "has more than %d bytes", maxConfig)
	}
	var c ConfigFile
	if err := json.Unmarshal(b, &c); err != nil {
		return ConfigFile{}, types.Errorf(types.ErrInvalid, "LoadConfigFile", path, "%w", err)
	}
	return c, nil
}
