package ipc

import "time"

// PathRequest names a path of the VFS. As is the process on whose behalf it is opened; empty means
// the user, with Cwd as the workspace.
type PathRequest struct {
	Path string   `json:"path"`
	As   string   `json:"as,omitempty"`
	Cwd  string   `json:"cwd,omitempty"`
	Data []byte   `json:"data,omitempty"`
	Max  int      `json:"max,omitempty"` // bytes to return; 0 = 1 MiB
	Env  []string `json:"env,omitempty"` // as in SpawnRequest; it counts when As is empty
}

// PathResponse is what was read.
type PathResponse struct {
	Data []byte `json:"data"`
	Cut  bool   `json:"cut,omitempty"` // there was more than Max
}

// ListPathResponse is the entries of a directory or of the name space.
type ListPathResponse struct {
	Entries []PathEntry `json:"entries"`
}

// PathEntry is one entry.
type PathEntry struct {
	Name  string    `json:"name"`
	IsDir bool      `json:"is_dir,omitempty"`
	Size  int64     `json:"size"` // -1 = not known
	Mtime time.Time `json:"mtime,omitzero"`
	Type  string    `json:"type,omitempty"`
}
