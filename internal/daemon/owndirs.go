package daemon

import (
	"path/filepath"

	"rnix/drivers/fs"
	"rnix/runtime/statehome"
)

// ownDirs returns the directories of this installation, which no device serves. Only here stands which they are.
// What processes work in lies in the data directory: the work trees that are made for them, two levels down because a note
// of ours is beside each, and the workspaces of forks.
func ownDirs(d *Daemon) *fs.Own {
	dirs := []fs.OwnDir{
		{Path: d.configDir, What: "configuration directory", Links: true},
		{Path: d.places.DataDir, What: "data directory"},
		{Path: filepath.Dir(d.places.Socket), What: "runtime directory, with the daemon's socket"},
	}
	if h, err := statehome.NewHome(statehome.Brand, "", d.opt.Lookup); err == nil { // without HOME there is none
		if home, err := h.StateDir(""); err == nil {
			dirs = append(dirs, fs.OwnDir{Path: home, What: "home directory of Rnix"})
		}
	}
	return fs.NewOwn(dirs, fs.WorkPlace{Path: d.trees.Dir(), Depth: 2}, fs.WorkPlace{Path: d.snapshots.ForksDir(), Depth: 1})
}
