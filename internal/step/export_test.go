package step

import (
	"path/filepath"

	"rnix/internal/durable"
)

// What the tests outside of the package need of it.
var (
	Must      = must
	User      = user
	OpenIn    = openLocal
	ReadSteps = readSteps
	ForkBy    = fork
)

// Names below the data directory.
const (
	EpochFile = epochFile
	StepsDir  = stepsDir
)

// Age makes the index as long as if so many lines more had been written.
func (x *Index) Age(lines int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lines += lines
}

// Holds reports whether a record holds what its kind says and nothing else.
func (r *Record) Holds() bool { return r.holds(r.Kind) }

// ReadProfile reads ctx-profile.json.
func ReadProfile(fsys durable.FS, dir string) (*Profile, error) {
	path := filepath.Join(dir, ProfileFile)
	b, err := durable.ReadFile(fsys, path)
	if err != nil {
		return nil, err
	}
	return parseVersioned[Profile](path, b, ProfileVersion)
}
