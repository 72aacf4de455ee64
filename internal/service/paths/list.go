package paths

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"rnix/internal/service"
	"rnix/ipc"
	"rnix/vfs"
)

// device describes a device as an entry of the directory above it. One that the caller may not open is
// listed all the same.
func (s *Service) device(peer *ipc.Peer, req ipc.PathRequest, path, name string) ipc.PathEntry {
	e := ipc.PathEntry{Name: name, Size: -1, Type: "device"}
	req.Path = path
	if f, err := s.open(peer, req, vfs.OpenRead); err == nil {
		defer f.Close()
		if st, err := f.Stat(); err == nil {
			e.IsDir = st.IsDir || len(namesOf(f)) > 0
		}
	}
	return e
}

// namesOf returns the names of what is below a file that does not list it line by line; nil = it does, or there is nothing.
func namesOf(f vfs.VFSFile) []string {
	if l, ok := f.(vfs.Lister); ok {
		return l.Names()
	}
	return nil
}

// maxStat bounds how many entries of a directory are looked at one by one.
const maxStat = 2000

// onHost reports whether what stands in dir are files of the host.
func onHost(dir string) bool {
	return strings.HasPrefix(dir, "/dev/fs/") || strings.HasPrefix(dir, "/dev/workspace/")
}

// measure fills in the size and the time of an entry of the directory that req names, if the caller may
// open it.
func (s *Service) measure(peer *ipc.Peer, req ipc.PathRequest, e *ipc.PathEntry) {
	req.Path += "/" + e.Name
	if f, err := s.open(peer, req, vfs.OpenRead); err == nil {
		defer f.Close()
		if st, err := f.Stat(); err == nil {
			e.Size, e.Mtime = st.Size, st.Mtime
		}
	}
}

// list lists a directory: the entries of a device's file, and the devices below the path.
func (s *Service) list(_ context.Context, peer *ipc.Peer, req ipc.PathRequest) (ipc.ListPathResponse, error) {
	dir := "/" + strings.Trim(req.Path, "/")
	entries := map[string]ipc.PathEntry{}
	for _, path := range s.Devices.Paths() {
		if path != dir && vfs.Below(path, dir) {
			name, _, deeper := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, dir), "/"), "/")
			e := ipc.PathEntry{Name: name, IsDir: deeper, Size: -1, Type: "dir"}
			if !deeper {
				e = s.device(peer, req, path, name)
			}
			entries[name] = e
		}
	}
	req.Path = dir
	f, err := s.open(peer, req, vfs.OpenRead)
	if err == nil {
		defer f.Close()
		st, serr := f.Stat()
		names := namesOf(f)
		if serr == nil && (st.IsDir || len(names) > 0) {
			if len(names) == 0 {
				r, rerr := readUpTo(f, req)
				if rerr != nil {
					return ipc.ListPathResponse{}, rerr
				}
				names = slices.Collect(strings.Lines(string(r.Data)))
			}
			for _, name := range names {
				name = strings.TrimSuffix(name, "\n")
				isDir := strings.HasSuffix(name, "/")
				name = strings.TrimSuffix(name, "/")
				if _, known := entries[name]; !known && name != "" {
					e := ipc.PathEntry{Name: name, IsDir: isDir, Size: -1, Type: "file"}
					if isDir {
						e.Type = "dir"
					} else if len(entries) < maxStat && onHost(dir) {
						s.measure(peer, req, &e)
					}
					entries[name] = e
				}
			}
		} else if len(entries) == 0 {
			if serr != nil {
				return ipc.ListPathResponse{}, service.Named(serr, "Stat", dir)
			}
			entries[st.Name] = ipc.PathEntry{Name: cmp.Or(st.Name, dir), Size: st.Size, Mtime: st.Mtime, Type: st.Type}
		}
	} else if len(entries) == 0 {
		return ipc.ListPathResponse{}, err
	}
	resp := ipc.ListPathResponse{Entries: make([]ipc.PathEntry, 0, len(entries))}
	for _, e := range entries {
		resp.Entries = append(resp.Entries, e)
	}
	slices.SortFunc(resp.Entries, func(a, b ipc.PathEntry) int { return strings.Compare(a.Name, b.Name) })
	return resp, nil
}
