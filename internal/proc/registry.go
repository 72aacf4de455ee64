package proc

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// entryVersion is the version of the files that this program writes.
const entryVersion = 1

// entry is the registration of one child, a file of its own. It is written before the fork, without
// the leader, completed right after it, and removed when the child was waited for. It need not outlive
// a power cut: no child does. Part of the on-disk format.
type entry struct {
	Version   int        `json:"v"`
	Token     string     `json:"token"`
	Kind      Kind       `json:"kind"`
	Owner     types.PID  `json:"owner,omitempty"`
	OwnerUUID types.UUID `json:"owner_uuid,omitzero"`
	Command   string     `json:"command"`
	Time      time.Time  `json:"time"`
	Boot      string     `json:"boot"`
	Daemon    identity   `json:"daemon"`           // who started it
	Leader    identity   `json:"leader,omitzero"`  // the child; absent if the daemon died while forking
	Lease     types.UUID `json:"lease,omitzero"`   // of the process for whose session the child acts
	Cgroup    string     `json:"cgroup,omitempty"` // that it is born in
	Held      []string   `json:"held,omitempty"`   // what holds names for its box; see sandbox.GiveBack
	Killed    []int      `json:"killed,omitempty"` // the pids that the warden has ended, for the next daemon to tell of
}

const entrySuffix = ".json"

// registry is the directory of the entries.
type registry struct {
	dir    string
	boot   string
	daemon identity
}

func newRegistry(dir string) registry {
	return registry{dir: dir, boot: bootID(), daemon: identityOf(os.Getpid())}
}

// entry returns the entry of a child that is about to be started.
func (r registry) entry(token string, spec Spec, command string) entry {
	return entry{
		Version: entryVersion, Token: token, Kind: spec.Kind, Owner: spec.Owner, OwnerUUID: spec.OwnerUUID,
		Command: command, Time: time.Now().UTC(), Boot: r.boot, Daemon: r.daemon,
	}
}

func (r registry) path(e entry) string { return filepath.Join(r.dir, e.Token+entrySuffix) }

func (r registry) write(e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return durable.WriteFile(durable.OS, r.path(e), append(b, '\n'), durable.Cached)
}

// names returns the files of the entries.
func (r registry) names() ([]string, error) {
	files, err := durable.OS.ReadDir(r.dir)
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "ReapSurvivors", r.dir, "%w", err)
	}
	var out []string
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), ".") && strings.HasSuffix(f.Name(), entrySuffix) {
			out = append(out, f.Name())
		}
	}
	return out, nil
}

// read returns the entry in a file.
func (r registry) read(name string) (entry, error) {
	var e entry
	path := filepath.Join(r.dir, name)
	b, err := durable.ReadFile(durable.OS, path)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return e, types.Errorf(types.ErrInvalid, "ReapSurvivors", path, "not the registration of a child: %w", err)
	}
	switch {
	case e.Version > entryVersion:
		return e, types.Errorf(types.ErrVersion, "ReapSurvivors", path, "written by a newer program (version %d, this one reads up to %d)", e.Version, entryVersion)
	case e.Version < 1 || e.Token == "" || e.Token+entrySuffix != name:
		return e, types.Errorf(types.ErrInvalid, "ReapSurvivors", path, "not the registration of a child: its token is not its name")
	}
	return e, nil
}

// remove removes an entry. One that is not there is no error.
func (r registry) remove(e entry) error {
	if err := os.Remove(r.path(e)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// forget removes an entry of a child that is gone.
func (r registry) forget(e entry, log *slog.Logger) {
	if err := r.remove(e); err != nil {
		log.Warn("registration of a child that has ended cannot be removed", "path", r.path(e), "error", err)
	}
}
