package step

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// seenFile is where a history has which content of which files its process knows; drivers/fs writes and reads it. Part of the on-disk format.
const seenFile = "scratch/seen.jsonl"

// CopySeen gives a fork what its origin knew of files at a moment; the arguments are their directories. Without it the fork has to read them again.
func CopySeen(fsys durable.FS, from, to string, until time.Time) error {
	raw, err := durable.ReadFile(fsys, filepath.Join(from, seenFile))
	if types.CodeOf(err) == types.ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for line := range bytes.Lines(raw) {
		var l struct{ Time time.Time }
		if json.Unmarshal(line, &l) == nil && !l.Time.After(until) {
			out.Write(line)
		}
	}
	path := filepath.Join(to, seenFile)
	if err := durable.MkdirAll(fsys, filepath.Dir(path)); err != nil {
		return err
	}
	return durable.WriteFile(fsys, path, out.Bytes(), durable.Cached)
}
