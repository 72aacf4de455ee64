package records

import (
	"errors"
	"io/fs"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/internal/rights"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

// sealDir is the directory of the key beside the configuration.
const sealDir = "rights"

// OpenSeals returns the seals of a data directory, whose key is beside the configuration. Where nothing can be written there, and never was, there are
// none, and note says so. A key that is there and cannot be read is an error: without it nobody knows which histories were changed.
func OpenSeals(config, data string, index store.Index, note func(format string, args ...any)) (*rights.Seals, error) {
	dir := filepath.Join(config, sealDir)
	s, err := rights.Open(durable.OS, dir, data, func() (ids []types.UUID, err error) {
		for _, info := range index.List() {
			ids = append(ids, info.UUID)
		}
		archives, err := durable.OS.ReadDir(step.ArchiveDir(data))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		for _, a := range archives {
			var id types.UUID
			if n := a.Name(); len(n) > 36 && id.UnmarshalText([]byte(n[:36])) == nil {
				ids = append(ids, id)
			}
		}
		return ids, err
	})
	if err != nil && rights.Unwritable(err, dir) {
		note("histories get no seals, so a resume believes whatever they say about rights: %v", err)
		return nil, nil
	}
	return s, err
}
