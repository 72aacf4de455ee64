package daemon

import (
	"context"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/internal/moved"
)

// placeFile says where the data directory was when a daemon last used it. Part of the on-disk format.
const placeFile = "place"

// here returns where a path is that a record names: records of a data directory that was moved name the old one.
func here(d *Daemon, path string) string { return moved.Here(d.places.DataDir, path) }

// moveIn brings up to date what names the data directory and is no record, if that was moved since a daemon last used it.
// What cannot be is tried again at the next start.
func moveIn(ctx context.Context, d *Daemon) {
	path := filepath.Join(d.places.DataDir, placeFile)
	was, _ := durable.ReadFile(durable.OS, path) // without it, or with another, we look
	if string(was) == d.places.DataDir+"\n" {
		return
	}
	n, err := d.grove.Moved(ctx)
	if n > 0 {
		d.note("this data directory was moved here; forks and git work trees that are used in their new place: %d", n)
	}
	if err != nil {
		d.note("this data directory was moved here, and these forks and git work trees cannot be used: %v", err)
		return
	}
	if err := durable.WriteFile(durable.OS, path, []byte(d.places.DataDir+"\n"), durable.Durable); err != nil {
		d.log.Warn("the path of the data directory is not noted", "err", err) // the next start looks again
	}
}
