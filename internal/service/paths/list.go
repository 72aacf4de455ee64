package paths

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
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
	req.Path = "/" + strings.Trim(req.Path, "/")
	entries := s.devicesBelow(peer, req)
	f, err := s.open(peer, req, vfs.OpenRead)
	if err == nil {
		defer f.Close()
		err = s.entriesOf(peer, req, f, entries)
	} else if len(entries) > 0 {
		err = nil
	}
	if err != nil {
		return ipc.ListPathResponse{}, err
	}
	resp := ipc.ListPathResponse{Entries: make([]ipc.PathEntry, 0, len(entries))}
	for _, e := range entries {
		resp.Entries = append(resp.Entries, e)
	}
	slices.SortFunc(resp.Entries, func(a, b ipc.PathEntry) int { return strings.Compare(a.Name, b.Name) })
	return resp, nil
}

// devicesBelow returns what of the paths of devices stands in the directory that req names.
func (s *Service) devicesBelow(peer *ipc.Peer, req ipc.PathRequest) map[string]ipc.PathEntry {
	dir := req.Path
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
	return entries
}

// entriesOf adds what a device's file lists, or the file itself if it lists nothing and there is nothing else.
func (s *Service) entriesOf(peer *ipc.Peer, req ipc.PathRequest, f vfs.VFSFile, entries map[string]ipc.PathEntry) error {
	st, err := f.Stat()
	names := namesOf(f)
	switch {
	case err == nil && len(names) > 0:
	case err == nil && st.IsDir:
		if names, err = linesOf(f, req.Path); err != nil {
			return err
		}
	case len(entries) > 0:
		return nil
	case err != nil:
		return service.Named(err, "Stat", req.Path)
	default:
		entries[st.Name] = ipc.PathEntry{Name: cmp.Or(st.Name, req.Path), Size: st.Size, Mtime: st.Mtime, Type: st.Type}
		return nil
	}
	for _, name := range names {
		name, isDir := strings.CutSuffix(strings.TrimSuffix(name, "\n"), "/")
		if _, known := entries[name]; known || name == "" {
			continue
		}
		e := ipc.PathEntry{Name: name, IsDir: isDir, Size: -1, Type: "file"}
		if isDir {
			e.Type = "dir"
		} else if len(entries) < maxStat && onHost(req.Path) {
			s.measure(peer, req, &e)
		}
		entries[name] = e
	}
	return nil
}

// maxNames bounds the names that are read of a directory, in bytes: a few hundred thousand entries.
const maxNames = 8 << 20

// linesOf returns the names that a file lists line by line. Rather than a part of them, it returns an error.
func linesOf(f vfs.VFSFile, path string) ([]string, error) {
	data, cut, err := readUpTo(f, path, maxNames)
	if err != nil {
		return nil, err
	}
	if cut {
		return nil, types.Errorf(types.ErrExhausted, "List", path, "it has too many entries to list: their names are longer than %d MiB", maxNames>>20)
	}
	return slices.Collect(strings.Lines(string(data))), nil
}
